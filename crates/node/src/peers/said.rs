//! What is said of a request to another node that failed.

use simshard_runtime::causes::followed_by_causes;
use tonic::Status;

/// What a status says, with its causes.
pub(in crate::peers) fn status_text(status: &Status) -> String {
    followed_by_causes(status.message().to_owned(), status)
}
