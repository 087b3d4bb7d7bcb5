//! Whether an operator lets no shard begin to move. What is on its way arrives, and shards that are short of replicas still
//! get them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::followed_each::follow_each;
use crate::key_value::{KeyValue, KeyValueStore, Outcome, Transaction};
use crate::keys;
use crate::records::{bad, text_of};
use crate::store::MetadataError;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPause {
    since: u64,
}

/// Since when moves are paused, in seconds since the beginning of 1970; `None` if they are not.
///
/// # Errors
/// [`MetadataError::BadRecord`] if the record cannot be understood. Else when the keys cannot be read.
pub async fn paused(keys: &dyn KeyValueStore) -> Result<Option<u64>, MetadataError> {
    let snapshot = keys.read(keys::PAUSED).await?;
    snapshot.pairs.first().map(pause_in).transpose()
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

/// Follows since when moves are paused, and tells of each change, as long as it is polled: of one time at most. `on_bad` is
/// told of a record that cannot be understood.
pub async fn follow_paused(
    keys: Arc<dyn KeyValueStore>,
    told: &watch::Sender<Option<Arc<Vec<u64>>>>,
    on_bad: impl Fn(&MetadataError),
) {
    follow_each(keys, keys::PAUSED, told, pause_in, on_bad).await;
}

fn pause_in(pair: &KeyValue) -> Result<u64, MetadataError> {
    let raw: Result<RawPause, _> = serde_json::from_str(&pair.value);
    let raw = raw.map_err(|error| bad(&pair.key, error.to_string()))?;
    Ok(raw.since)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_value::MemoryKeyValues;

    #[tokio::test]
    async fn moves_are_paused_until_they_go_on() {
        let keys = MemoryKeyValues::new();
        assert_eq!(paused(&keys).await.unwrap(), None);
        for since in [7, 8] {
            set_paused(&keys, Some(since)).await.unwrap();
            assert_eq!(paused(&keys).await.unwrap(), Some(since));
        }
        set_paused(&keys, None).await.unwrap();
        assert_eq!(paused(&keys).await.unwrap(), None);
        let damage = Transaction::new().put(keys::PAUSED, "{");
        let damaged = keys.commit(&damage).await.unwrap();
        assert!(matches!(damaged, Outcome::Committed(_)));
        let refused = paused(&keys).await.unwrap_err();
        assert!(refused.to_string().contains("paused"), "{refused}");
        // Whatever it says, it ends.
        set_paused(&keys, None).await.unwrap();
        assert_eq!(paused(&keys).await.unwrap(), None);
    }
}
