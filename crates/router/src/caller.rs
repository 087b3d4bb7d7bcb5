//! The caller of a change, and whether it still waits.

use std::future::poll_fn;
use std::task::Poll;

use simshard_transport::Admitted;

use crate::deadline::Deadline;

/// What a request keeps while its change goes on, and how to learn whether its caller waits.
///
/// A transport knows of a cancelled request before it begins a later one of the same connection. But it drops what
/// works for the cancelled one only when it looks at that the next time.
pub(crate) trait Asks: Clone + Send + Sync + 'static {
    /// Waits until the transport has looked at the request, but no longer than until the deadline. Returns false if the
    /// request was cancelled. Who asks from within the request is dropped then.
    fn waits(&self, deadline: Deadline) -> impl Future<Output = bool> + Send;
}

impl Asks for Admitted {
    /// The transport looks each time that the work for the request has to wait.
    async fn waits(&self, _deadline: Deadline) -> bool {
        let mut has_waited = false;
        poll_fn(|context| {
            if std::mem::replace(&mut has_waited, true) {
                return Poll::Ready(true);
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }
}
