//! Why an operation was refused, or failed.

use simshard_cluster::MetadataError;
use simshard_topology::ShardMapError;

/// Why an operation was refused, or failed. All but [`AdminError::Metadata`] and [`AdminError::Unfinished`] are refusals:
/// nothing is wrong with the cluster, and the message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// No node of this name has registered.
    #[error("{0}")]
    UnknownNode(String),
    /// The cluster cannot do what was asked for: something else is to be asked for.
    #[error("{0}")]
    Impossible(String),
    /// The cluster is in no state for it: something is to be done first.
    #[error("{0}")]
    Refused(String),
    /// Another operator was faster.
    #[error(
        "another operator has changed the plan meanwhile: see `simshard cluster rebalance show`"
    )]
    OtherOperator,
    /// Some of it is done, and some is not.
    #[error("{cause}; {state}")]
    Unfinished {
        /// What is done, and what to do now.
        state: String,
        /// Why the rest is not.
        cause: Box<AdminError>,
    },
    /// The metadata cannot be read or written, or refuses.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

impl AdminError {
    /// An error of a change of the staged plan.
    pub(crate) fn of_plan(error: MetadataError) -> Self {
        if matches!(error, MetadataError::Raced) {
            return Self::OtherOperator;
        }
        if matches!(error, MetadataError::BadTarget { .. }) {
            return Self::Refused(format!(
                "{error}. So the plan was taken back: draw another one by `simshard cluster rebalance plan`"
            ));
        }
        error.into()
    }
}

impl From<ShardMapError> for AdminError {
    fn from(error: ShardMapError) -> Self {
        Self::Refused(error.to_string())
    }
}
