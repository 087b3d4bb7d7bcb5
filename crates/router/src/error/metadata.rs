//! What an error of the metadata means to a request.

use simshard_cluster::MetadataError;

use super::RouterError;

impl From<MetadataError> for RouterError {
    fn from(error: MetadataError) -> Self {
        match error {
            MetadataError::AlreadyExists { name, state, .. } => Self::taken(name, state),
            MetadataError::TooMany { max_corpora } => Self::TooManyCorpora { max_corpora },
            MetadataError::NotFound { name, .. } => Self::CorpusNotFound(name),
            MetadataError::UidTaken { .. }
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
            | MetadataError::NoCluster
            | MetadataError::EmptiedStore { .. }
            | MetadataError::NotHeld { .. }
            | MetadataError::NoneBegins { .. }
            | MetadataError::PartnersAbsent { .. }
            | MetadataError::BadTarget { .. }
            | MetadataError::StillHolds { .. }
            | MetadataError::NotRegistered { .. }
            | MetadataError::UnknownLevel { .. }
            | MetadataError::LevelTooLow { .. }
            | MetadataError::LevelNotKnown { .. }
            | MetadataError::Raced
            | MetadataError::OtherCorpora
            | MetadataError::OtherName { .. }
            | MetadataError::UnusableRecords(_)
            | MetadataError::Stopping => Self::Metadata(error),
        }
    }
}
