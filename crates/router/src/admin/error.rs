//! What a refusal or a failure of an operation means to clients.

use simshard_admin::AdminError;
use simshard_cluster::{MetadataError, MetadataErrorKind};
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
        AdminError::Unfinished { cause, .. } => reason(cause),
        AdminError::Metadata(error) => reason_of_metadata(error),
    }
}

const fn reason_of_metadata(error: &MetadataError) -> Reason {
    if let MetadataError::NotRegistered { .. } = error {
        return Reason::NodeNotFound;
    }
    match error.kind() {
        MetadataErrorKind::Refusal => Reason::Refused,
        MetadataErrorKind::Race => Reason::ChangedMeanwhile,
        MetadataErrorKind::Mistake | MetadataErrorKind::OfCorpus | MetadataErrorKind::Failure => {
            Reason::MetadataFailed
        }
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
            (
                MetadataError::AlreadyInitialized.into(),
                Reason::MetadataFailed,
            ),
            (MetadataError::Stopping.into(), Reason::MetadataFailed),
            (
                MetadataError::NotRegistered {
                    missing: "n9".to_owned(),
                }
                .into(),
                Reason::NodeNotFound,
            ),
        ] {
            let told = error.to_string();
            let status = status(&error);
            assert_eq!(Reason::of(&status), Some(expected), "{told}");
            assert_eq!(status.message(), told);
        }
    }
}
