//! Keeping work that takes long away from the async threads.

use std::panic::resume_unwind;

use crate::error::RouterError;

/// Items below this number are worked on at once: moving takes longer.
const INLINE_ITEMS: usize = 256;

/// Runs `work` on `items` things, elsewhere if they are many. A panic goes on in the caller, as that of work that is done
/// at once.
pub(crate) async fn offload<T: Send + 'static>(
    items: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RouterError> {
    if items < INLINE_ITEMS {
        return Ok(work());
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(ended) => Err(ended.into()),
        },
    }
}

/// Runs `test` while nothing that is offloaded comes to its turn.
#[cfg(test)]
pub(crate) fn while_offloaded_work_waits(test: impl AsyncFnOnce()) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build();
    runtime.unwrap().block_on(async {
        let (done, waits) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || waits.recv());
        test().await;
        drop(done);
    });
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_panic_goes_on_in_the_caller_whether_the_work_is_done_elsewhere_or_at_once() {
        for items in [0, INLINE_ITEMS] {
            let work = offload(items, move || assert_eq!(items, usize::MAX, "a fault"));
            let panic = AssertUnwindSafe(work).catch_unwind().await.unwrap_err();
            let message = panic.downcast_ref::<String>().unwrap();
            assert!(message.contains("a fault"), "{message}");
        }
    }
}
