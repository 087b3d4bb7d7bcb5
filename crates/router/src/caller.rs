//! The caller of a change, and whether it still waits.

use simshard_transport::Admitted;
use tokio::task::yield_now;

use crate::deadline::Deadline;

/// What a request keeps while its change goes on, and how to learn whether its caller waits.
///
/// A connection reads that a request was cancelled before it reads a later request. But what works for the cancelled
/// one may be dropped only later.
pub(crate) trait Asks: Clone + Send + Sync + 'static {
    /// Whether the caller waits: true if the connection had not read a cancellation of the request when this was
    /// called. This waits for the answer until the deadline at most, and is false then. The server drops a cancelled
    /// call while this waits.
    fn waits(&self, deadline: Deadline) -> impl Future<Output = bool> + Send;
}

impl Asks for Admitted {
    /// The server looks whether a call was cancelled each time that the work for it waits.
    async fn waits(&self, _deadline: Deadline) -> bool {
        yield_now().await;
        true
    }
}
