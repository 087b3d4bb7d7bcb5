//! The caller of a change, and whether it still waits.

use simshard_transport::Admitted;
use tokio::task::yield_now;

use crate::deadline::Deadline;

/// Tells whether the caller of a change still waits. A change keeps it until it ends.
///
/// A connection reads that a request was cancelled before it reads a later request. But the task of the cancelled
/// request may be dropped only later.
pub(crate) trait CallerWatch: Clone + Send + Sync + 'static {
    /// Whether the caller waits. True if the connection had not read a cancellation when this was called, false at the
    /// deadline. The server drops a cancelled call while this waits.
    fn is_waiting(&self, deadline: Deadline) -> impl Future<Output = bool> + Send;
}

impl CallerWatch for Admitted {
    /// The server checks for a cancellation each time that the task of a call yields.
    async fn is_waiting(&self, _deadline: Deadline) -> bool {
        yield_now().await;
        true
    }
}
