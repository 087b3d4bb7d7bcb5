//! Patience with metadata that does not answer: it may start at the same time, or elect a leader.

use std::time::Duration;

use simshard_cluster::{KeyValueError, MetadataError};
use tokio::time::{Instant, sleep};

use crate::say::note;

/// How long metadata may not answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two attempts to read it.
const PAUSE: Duration = Duration::from_millis(300);

/// Reads metadata, again and again for a while if it does not answer. Says so once.
pub(super) async fn patiently<T>(
    read: impl AsyncFn() -> Result<T, MetadataError>,
) -> Result<T, MetadataError> {
    let started = Instant::now();
    let mut is_told = false;
    loop {
        match read().await {
            Err(error) if is_unreachable(&error) && started.elapsed() < PATIENCE => {
                if !is_told {
                    note(format!("waiting for the metadata: {error}"));
                }
                is_told = true;
            }
            read => return read,
        }
        sleep(PAUSE).await;
    }
}

fn is_unreachable(error: &MetadataError) -> bool {
    let unreachable = |error: &KeyValueError| matches!(error, KeyValueError::Unreachable { .. });
    matches!(error, MetadataError::KeyValues(error) if unreachable(error))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn away() -> MetadataError {
        MetadataError::KeyValues(KeyValueError::Unreachable {
            store: "etcd".to_owned(),
            reason: "nothing listens".to_owned(),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn metadata_that_is_away_for_a_moment_fails_no_reading_and_another_error_does() {
        let tries = Cell::new(0);
        let attempt = async |fails: bool, error: fn() -> MetadataError| {
            tries.set(tries.get() + 1);
            if fails { Err(error()) } else { Ok(()) }
        };
        patiently(async || attempt(tries.get() < 5, away).await)
            .await
            .unwrap();
        assert_eq!(tries.get(), 6);
        let gone = patiently(async || attempt(true, away).await);
        assert!(gone.await.is_err());
        tries.set(0);
        let other = patiently(async || attempt(true, || MetadataError::NoCluster).await);
        assert!(other.await.is_err());
        assert_eq!(tries.get(), 1);
    }
}
