//! Keeping work that takes long away from the async threads.

use crate::error::RouterError;

/// Items below this number are worked on at once: moving takes longer.
const INLINE_ITEMS: usize = 256;

/// Runs `work` on `items` things, elsewhere if they are many.
pub(crate) async fn offload<T: Send + 'static>(
    items: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RouterError> {
    if items < INLINE_ITEMS {
        return Ok(work());
    }
    // Fails only where the runtime is going down: our own work does not panic.
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| RouterError::Stopping)
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
