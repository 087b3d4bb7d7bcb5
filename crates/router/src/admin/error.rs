//! What a refusal or a failure of an operation means to clients.

use simshard_admin::AdminError;
use simshard_cluster::MetadataError;
use simshard_proto::Reason;
use tonic::Status;

pub(super) fn status(error: &AdminError) -> Status {
    reason(error).status(error.to_string(), [])
}

/// The only mapping to what clients see.
const fn reason(error: &AdminError) -> Reason {
    match error {
        AdminError::UnknownNode(_) => Reason::NodeNotFound,
        AdminError::Impossible(_) | AdminError::Refused(_) => Reason::Refused,
        AdminError::OtherOperator => Reason::ChangedMeanwhile,
        AdminError::Metadata(error) => reason_of_metadata(error),
    }
}

const fn reason_of_metadata(error: &MetadataError) -> Reason {
    match error {
        MetadataError::NotRegistered { .. } => Reason::NodeNotFound,
        MetadataError::Raced => Reason::ChangedMeanwhile,
        MetadataError::NoCluster
        | MetadataError::BadTarget { .. }
        | MetadataError::StillHolds { .. }
        | MetadataError::UnknownLevel { .. }
        | MetadataError::LevelTooLow { .. }
        | MetadataError::LevelNotKnown { .. } => Reason::Refused,
        MetadataError::AlreadyExists { .. }
        | MetadataError::TooMany { .. }
        | MetadataError::NotFound { .. }
        | MetadataError::UidTaken { .. }
        | MetadataError::NotDeleting { .. }
        | MetadataError::MalformedLayout { .. }
        | MetadataError::UnusableLayout { .. }
        | MetadataError::CorruptCorpora { .. }
        | MetadataError::UnknownCorporaVersion { .. }
        | MetadataError::Unreadable { .. }
        | MetadataError::Unwritable { .. }
        | MetadataError::NotDurable { .. }
        | MetadataError::KeyValues(_)
        | MetadataError::BadRecord { .. }
        | MetadataError::OtherStore { .. }
        | MetadataError::StoreHolds { .. }
        | MetadataError::AlreadyInitialized
        | MetadataError::EmptiedStore { .. }
        | MetadataError::NotHeld { .. }
        | MetadataError::NoneBegins { .. }
        | MetadataError::PartnersAbsent { .. }
        | MetadataError::OtherCorpora
        | MetadataError::OtherName { .. }
        | MetadataError::UnusableRecords(_)
        | MetadataError::Stopping => Reason::MetadataFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_no_failure() {
        let refused = MetadataError::LevelTooLow {
            what: "pausing".to_owned(),
            needed: 2,
            level: 1,
        };
        for (error, expected) in [
            (
                AdminError::UnknownNode("n9".to_owned()),
                Reason::NodeNotFound,
            ),
            (AdminError::Impossible("no".to_owned()), Reason::Refused),
            (AdminError::OtherOperator, Reason::ChangedMeanwhile),
            (MetadataError::Raced.into(), Reason::ChangedMeanwhile),
            (refused.into(), Reason::Refused),
            (MetadataError::Stopping.into(), Reason::MetadataFailed),
        ] {
            let told = error.to_string();
            let status = status(&error);
            assert_eq!(Reason::of(&status), Some(expected), "{told}");
            assert_eq!(status.message(), told);
        }
    }
}
