//! Work that runs to its end even if its caller leaves.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, ready};
use tokio::runtime::Handle;

/// Whether the caller of some work has left.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallerLeft(Arc<AtomicBool>);

impl CallerLeft {
    pub(crate) fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Does `work` in the caller's own task, as any future. If the caller drops it before its end, a task of its own
/// goes on with it.
pub(crate) fn run_to_end<F>(work: impl FnOnce(CallerLeft) -> F) -> RunToEnd<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let caller_left = CallerLeft::default();
    RunToEnd {
        work: Some(work(caller_left.clone()).boxed()),
        caller_left,
    }
}

/// See [`run_to_end`].
pub(crate) struct RunToEnd<T: Send + 'static> {
    /// `None` once it has ended.
    work: Option<BoxFuture<'static, T>>,
    caller_left: CallerLeft,
}

impl<T: Send> Future for RunToEnd<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // Taken out while it runs: work that panics is not begun again.
        let mut work = self.work.take().expect("it is not polled after its end");
        let polled = work.poll_unpin(context);
        if polled.is_pending() {
            self.work = Some(work);
        }
        Poll::Ready(ready!(polled))
    }
}

impl<T: Send> Drop for RunToEnd<T> {
    fn drop(&mut self) {
        self.caller_left.0.store(true, Ordering::Relaxed);
        // Without a runtime the whole process is ending.
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_goes_on_when_its_caller_leaves_and_knows_of_it() {
        let (go, may_go) = oneshot::channel::<()>();
        let (end, ended) = oneshot::channel();
        let mut work = run_to_end(async move |caller_left| {
            assert!(!caller_left.is_known());
            may_go.await.unwrap();
            end.send(caller_left.is_known()).unwrap();
        });
        assert!((&mut work).now_or_never().is_none());
        drop(work);
        go.send(()).unwrap();
        assert_eq!(ended.await, Ok(true));
    }

    #[tokio::test]
    async fn work_that_was_not_begun_is_done_too() {
        let (end, ended) = oneshot::channel();
        drop(run_to_end(async move |_| end.send(7).unwrap()));
        assert_eq!(ended.await, Ok(7));
    }

    #[tokio::test]
    async fn a_caller_that_waits_gets_the_outcome_and_no_task_is_left() {
        assert_eq!(run_to_end(async |_| 7).await, 7);
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
    }
}
