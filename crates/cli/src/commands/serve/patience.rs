//! Waiting for metadata that is away when a node or a router starts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use simshard_cluster::{KeyValueError, MetadataError};
use simshard_node::RegistrationError;
use tokio::time::sleep;
use tracing::{info, warn};

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// Whether the metadata is away, as far as the log says.
#[derive(Debug, Default)]
pub(super) struct Absence {
    is_told: AtomicBool,
}

impl Absence {
    /// Says that the metadata is away, unless that was said.
    fn begins(&self, error: &anyhow::Error) {
        if !self.is_told.swap(true, Ordering::Relaxed) {
            warn!("the metadata is away, waiting for it: {error:#}");
        }
    }

    /// Says that the metadata is there again, if it was away. Call it before a wait for something else.
    pub(super) fn is_over(&self) {
        if self.is_told.swap(false, Ordering::Relaxed) {
            info!("the metadata is there again");
        }
    }
}

/// Tries until the metadata is not away. Says once that it waits, and once that it goes on.
pub(super) async fn once_there<T>(
    mut attempt: impl AsyncFnMut(&Absence) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let absence = Absence::default();
    loop {
        match attempt(&absence).await {
            Err(error) if is_away(&error) => absence.begins(&error),
            done => {
                absence.is_over();
                return done;
            }
        }
        sleep(PAUSE).await;
    }
}

/// Whether an attempt failed because the metadata did not answer.
fn is_away(error: &anyhow::Error) -> bool {
    let of_registration = match error.downcast_ref() {
        Some(RegistrationError::Metadata(error)) => Some(error),
        Some(
            RegistrationError::Stale { .. }
            | RegistrationError::Kept { .. }
            | RegistrationError::Replaced { .. }
            | RegistrationError::Removed
            | RegistrationError::Runs { .. }
            | RegistrationError::Open(_),
        )
        | None => None,
    };
    matches!(
        of_registration.or_else(|| error.downcast_ref()),
        Some(MetadataError::KeyValues(
            KeyValueError::Unreachable { .. } | KeyValueError::Unknown { .. }
        ))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(error: KeyValueError) -> MetadataError {
        MetadataError::KeyValues(error)
    }

    fn unreachable() -> KeyValueError {
        KeyValueError::Unreachable {
            store: "etcd".to_owned(),
            reason: "it is a test".to_owned(),
        }
    }

    #[tokio::test]
    async fn it_tries_again_only_while_the_metadata_does_not_answer() {
        let unknown = KeyValueError::Unknown {
            store: "etcd".to_owned(),
            reason: "it is a test".to_owned(),
        };
        let mut failures = vec![
            anyhow::Error::from(metadata(KeyValueError::NoLease)),
            RegistrationError::Metadata(metadata(unknown)).into(),
            metadata(unreachable()).into(),
        ];
        let failed = once_there(async |_: &Absence| Err::<(), _>(failures.pop().unwrap())).await;
        let error = failed.unwrap_err();
        assert!(failures.is_empty(), "{error}");
        assert_eq!(error.to_string(), KeyValueError::NoLease.to_string());
        let mut first = Some(RegistrationError::Metadata(metadata(unreachable())));
        let done = once_there(async |absence: &Absence| match first.take() {
            Some(error) => Err(error.into()),
            None => {
                assert!(absence.is_told.load(Ordering::Relaxed));
                absence.is_over();
                assert!(!absence.is_told.load(Ordering::Relaxed));
                Ok(7)
            }
        });
        assert_eq!(done.await.unwrap(), 7);
    }
}
