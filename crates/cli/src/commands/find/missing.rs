//! Searches that fail because nodes are missing.

use simshard_client::{ClientError, Reason};

/// Needed nodes are missing, and `--allow-partial` would return the answers of the others.
#[derive(Debug, thiserror::Error)]
#[error("{0}, or give --allow-partial for what the other nodes hold")]
pub struct MissingNodes(pub ClientError);

/// Why a search failed. If nodes are missing, the error suggests `--allow-partial`.
pub(super) fn find_error(error: ClientError) -> anyhow::Error {
    let can_be_missing = [
        Reason::NodeUnreachable,
        Reason::DeadlineTooShort,
        Reason::CorpusNotLoaded,
    ];
    let is_missing = |reason| can_be_missing.contains(&reason) && !error.nodes().is_empty();
    if error.reason().is_some_and(is_missing) {
        return MissingNodes(error).into();
    }
    error.into()
}
