//! Readings of the metadata that requests share, and the end of their patience.
//!
//! # Invariants
//! - RD1: each caller gets the outcome of a reading that began after its call. There is one reading at a time: all callers
//!   that wait share the next one, whether it succeeds or fails.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use crate::store::MetadataError;

/// A store that takes longer has failed: etcd is away, or another process holds its lock.
pub const METADATA_PATIENCE: Duration = Duration::from_secs(5);

/// Why a reading failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReadingError {
    /// The store says so.
    #[error("{0}")]
    Failed(Arc<MetadataError>),
    /// The store does not answer.
    #[error("the store did not answer within {0:?}")]
    Late(Duration),
}

/// What comes of a reading.
type Outcome<T> = Result<T, ReadingError>;

/// A reading that is under way or done.
struct Reading<T: Clone> {
    begun: Instant,
    outcome: Shared<BoxFuture<'static, Outcome<T>>>,
}

/// The last reading of a value, for all who ask (RD1).
pub struct SharedReading<T: Clone>(Mutex<Option<Reading<T>>>);

impl<T: Clone> Default for SharedReading<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> fmt::Debug for SharedReading<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begun = self.0.lock().as_ref().map(|reading| reading.begun);
        f.debug_struct("SharedReading")
            .field("begun", &begun)
            .finish_non_exhaustive()
    }
}

impl<T: Clone + Send + Sync + 'static> SharedReading<T> {
    /// The value by a reading that began at a time or later. `read` begins one.
    ///
    /// # Errors
    /// If the store fails, or does not answer within [`METADATA_PATIENCE`].
    pub async fn since<F>(&self, since: Instant, read: impl Fn() -> F) -> Result<T, ReadingError>
    where
        F: Future<Output = Result<T, MetadataError>> + Send + 'static,
    {
        loop {
            let Reading { begun, outcome } = self.current(since, &read);
            let outcome = outcome.await;
            if begun >= since {
                return outcome;
            }
        }
    }

    /// The reading that is under way or began at the time or later; else a new one.
    fn current<F>(&self, since: Instant, read: impl Fn() -> F) -> Reading<T>
    where
        F: Future<Output = Result<T, MetadataError>> + Send + 'static,
    {
        let mut last = self.0.lock();
        if let Some(Reading { begun, outcome }) = &*last
            && (*begun >= since || outcome.peek().is_none())
        {
            let (begun, outcome) = (*begun, outcome.clone());
            return Reading { begun, outcome };
        }
        let begun = Instant::now();
        let outcome = timeout(METADATA_PATIENCE, read()).map(|answer| match answer {
            Ok(answer) => answer.map_err(|error| ReadingError::Failed(Arc::new(error))),
            Err(_elapsed) => Err(ReadingError::Late(METADATA_PATIENCE)),
        });
        let outcome = outcome.boxed().shared();
        *last = Some(Reading {
            begun,
            outcome: outcome.clone(),
        });
        Reading { begun, outcome }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;
    use tokio::sync::Notify;

    use super::*;

    /// A store whose readings wait to be let go. It counts them.
    #[derive(Default)]
    struct Slow {
        begun: AtomicUsize,
        go: Notify,
    }

    impl Slow {
        /// Begins a reading, which answers its number, or fails if that is odd.
        fn read(self: &Arc<Self>) -> BoxFuture<'static, Result<usize, MetadataError>> {
            let number = self.begun.fetch_add(1, Ordering::Relaxed);
            let store = Arc::clone(self);
            let answer = async move {
                store.go.notified().await;
                if number.is_multiple_of(2) {
                    Ok(number)
                } else {
                    Err(MetadataError::Stopping)
                }
            };
            answer.boxed()
        }
    }

    type ReadingFuture<'a> = Pin<Box<dyn Future<Output = Result<usize, ReadingError>> + 'a>>;

    fn ask<'a>(shared: &'a SharedReading<usize>, store: &'a Arc<Slow>) -> ReadingFuture<'a> {
        let since = Instant::now();
        Box::pin(shared.since(since, || store.read()))
    }

    /// RD1.
    #[tokio::test]
    async fn those_who_wait_share_the_next_reading_and_not_one_that_began_before() {
        let (shared, store) = (SharedReading::default(), Arc::new(Slow::default()));
        let begun = || store.begun.load(Ordering::Relaxed);
        let mut first = ask(&shared, &store);
        assert!((&mut first).now_or_never().is_none());
        let mut others = [(); 3].map(|()| ask(&shared, &store));
        for other in &mut others {
            assert!(other.now_or_never().is_none());
        }
        assert_eq!(begun(), 1);
        store.go.notify_one();
        assert_eq!(first.await.unwrap(), 0);
        for other in &mut others {
            assert!(other.now_or_never().is_none());
        }
        assert_eq!(begun(), 2);
        store.go.notify_one();
        for failed in join_all(others).await {
            assert!(matches!(failed, Err(ReadingError::Failed(_))), "{failed:?}");
        }
        assert_eq!(begun(), 2);
    }

    /// RD1.
    #[tokio::test]
    async fn who_gives_up_leaves_the_reading_to_the_others() {
        let (shared, store) = (SharedReading::default(), Arc::new(Slow::default()));
        let (mut first, mut second) = (ask(&shared, &store), ask(&shared, &store));
        assert!((&mut first).now_or_never().is_none());
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        store.go.notify_one();
        assert_eq!(second.await.unwrap(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_wait_for_a_store_that_does_not_answer_give_up_together() {
        let (shared, store) = (SharedReading::default(), Arc::new(Slow::default()));
        let begun = Instant::now();
        let asked = (0..10).map(|_| ask(&shared, &store));
        for failed in join_all(asked).await {
            assert!(matches!(failed, Err(ReadingError::Late(_))), "{failed:?}");
        }
        assert_eq!(begun.elapsed(), METADATA_PATIENCE);
    }
}
