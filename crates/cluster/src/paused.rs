//! Whether an operator lets no shard begin to move. What is on its way arrives, and shards that are short of replicas still
//! get them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::followed_each::follow_each;
use crate::key_value::{KeyValue, KeyValueStore, Outcome, Transaction};
use crate::keys;
use crate::records::{object_in, text_of};
use crate::store::MetadataError;

/// Moves are paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paused {
    /// Since when, in seconds since the beginning of 1970; `None` if the record does not tell, as it is damaged.
    pub since: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPause {
    since: u64,
}

/// Whether moves are paused. They are as long as there is a record; `on_bad` is told of one that cannot be understood.
///
/// # Errors
/// When the keys cannot be read.
pub async fn paused(
    keys: &dyn KeyValueStore,
    on_bad: impl FnOnce(&MetadataError),
) -> Result<Option<Paused>, MetadataError> {
    let snapshot = keys.read(keys::PAUSED).await?;
    Ok(snapshot.pairs.first().map(|pair| pause_in(pair, on_bad)))
}

/// Lets no shard begin to move from now on, or lets them move again.
///
/// # Errors
/// When the keys cannot be written.
pub async fn set_paused(keys: &dyn KeyValueStore, since: Option<u64>) -> Result<(), MetadataError> {
    let change = Transaction::new();
    let change = match since {
        Some(since) => change.put(keys::PAUSED, text_of(keys::PAUSED, &RawPause { since })?),
        None => change.delete(keys::PAUSED),
    };
    match keys.commit(&change).await? {
        Outcome::Committed(_) => Ok(()),
        // It has no condition.
        Outcome::Conflict => Err(MetadataError::Raced),
    }
}

/// Follows whether moves are paused, and tells of each change, as long as it is polled: of one pause at most. `on_bad` is
/// told of a record that cannot be understood.
pub async fn follow_paused(
    keys: Arc<dyn KeyValueStore>,
    told: &watch::Sender<Option<Arc<Vec<Paused>>>>,
    on_bad: impl Fn(&MetadataError),
) {
    let read = |pair: &KeyValue| Ok(pause_in(pair, &on_bad));
    follow_each(keys, keys::PAUSED, told, read, |_| {}).await;
}

/// What a record says. It is there, so an operator wanted a pause, whatever became of it.
fn pause_in(pair: &KeyValue, on_bad: impl FnOnce(&MetadataError)) -> Paused {
    let raw: Result<RawPause, _> = object_in(&pair.key, &pair.value);
    let since = raw.inspect_err(on_bad).ok().map(|raw| raw.since);
    Paused { since }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_value::MemoryKeyValues;

    #[tokio::test]
    async fn moves_are_paused_until_they_go_on() {
        let keys = MemoryKeyValues::new();
        let pause = || async { paused(&keys, |_| unreachable!()).await.unwrap() };
        assert_eq!(pause().await, None);
        for since in [7, 8] {
            set_paused(&keys, Some(since)).await.unwrap();
            let since = Some(since);
            assert_eq!(pause().await, Some(Paused { since }));
        }
        set_paused(&keys, None).await.unwrap();
        assert_eq!(pause().await, None);
        let damage = Transaction::new().put(keys::PAUSED, "{");
        let damaged = keys.commit(&damage).await.unwrap();
        assert!(matches!(damaged, Outcome::Committed(_)));
        // Whatever it says, it is a pause, and ends.
        let told = |error: &MetadataError| assert!(error.to_string().contains("paused"));
        let pause_of_unknown_time = Some(Paused { since: None });
        assert_eq!(paused(&keys, told).await.unwrap(), pause_of_unknown_time);
        set_paused(&keys, None).await.unwrap();
        assert_eq!(pause().await, None);
    }
}
