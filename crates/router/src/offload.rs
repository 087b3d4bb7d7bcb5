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
