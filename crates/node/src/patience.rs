//! Waiting for the metadata, for a bounded time.

use simshard_cluster::{METADATA_PATIENCE, MetadataError};
use tokio::time::timeout;

use crate::error::NodeError;

/// What the metadata answers.
///
/// # Errors
/// [`NodeError::MetadataLate`] if it does not answer in time, else what went wrong.
pub(crate) async fn in_time<T>(
    answer: impl Future<Output = Result<T, MetadataError>>,
) -> Result<T, NodeError> {
    let answer = timeout(METADATA_PATIENCE, answer).await;
    let answer = answer.map_err(|_elapsed| NodeError::MetadataLate(METADATA_PATIENCE))?;
    Ok(answer?)
}
