//! Waiting for metadata that is away when a node or a router starts.

use std::time::Duration;

use simshard_cluster::{KeyValueError, MetadataError};
use simshard_node::RegistrationError;
use tokio::time::sleep;
use tracing::{info, warn};

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// Tries until the metadata is not away. Says once that it waits, and once that it goes on.
pub(super) async fn once_there<T>(
    mut attempt: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut is_waiting = false;
    loop {
        match attempt().await {
            Err(error) if is_away(&error) => {
                if !is_waiting {
                    warn!("the metadata is away, waiting for it: {error:#}");
                }
                is_waiting = true;
            }
            done => {
                if is_waiting {
                    info!("the metadata is there again");
                }
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
        let failed = once_there(async || Err::<(), _>(failures.pop().unwrap())).await;
        let error = failed.unwrap_err();
        assert!(failures.is_empty(), "{error}");
        assert_eq!(error.to_string(), KeyValueError::NoLease.to_string());
        let mut first = Some(RegistrationError::Metadata(metadata(unreachable())));
        let done = once_there(async || match first.take() {
            Some(error) => Err(error.into()),
            None => Ok(7),
        });
        assert_eq!(done.await.unwrap(), 7);
    }
}
