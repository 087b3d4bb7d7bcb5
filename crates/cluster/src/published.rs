//! What a store publishes of itself while it runs: its last start, and how far its log is on disk.
//!
//! This is a key of its own beside the record of the store. It changes every few seconds, and all nodes and routers follow
//! the records of stores. So they are not woken by it, and earlier versions, which do not know it, can read the records.

use serde::{Deserialize, Serialize};
use simshard_topology::replication::{Incarnation, PublishedStore, StoreId};

use crate::key_value::{KeyValueStore, Revision, Snapshot, Transaction};
use crate::keys;
use crate::membership::commit;
use crate::records::{nonce_of, nonce_text, object_in, text_of};
use crate::store::MetadataError;

/// What the metadata holds of a store, and the revision that wrote it. `None` if the store has published nothing.
pub type Published = Option<(Revision, PublishedStore)>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPublished {
    incarnation: u64,
    /// A number of 64 bits, in hexadecimal digits: not all readers of JSON have such numbers.
    nonce: String,
    synced: u64,
}

/// Reads what a store has published.
///
/// # Errors
/// When the key cannot be read or understood.
pub async fn published(
    keys: &dyn KeyValueStore,
    store: StoreId,
) -> Result<Published, MetadataError> {
    published_in(&keys.read(&published_key(store)).await?, store)
}

/// The key of what a store publishes, to be followed.
#[must_use]
pub fn published_key(store: StoreId) -> String {
    keys::published(store)
}

/// What a store has published, among these keys.
///
/// # Errors
/// When it cannot be understood.
pub fn published_in(snapshot: &Snapshot, store: StoreId) -> Result<Published, MetadataError> {
    let key = published_key(store);
    let pair = snapshot.pairs.iter().find(|pair| pair.key == key);
    pair.map(|pair| Ok((pair.revision, of_text(&key, &pair.value)?)))
        .transpose()
}

/// Publishes this for a store if the metadata holds what was read, of that revision; `None` means nothing. Answers
/// whether that was so.
///
/// # Errors
/// When the key cannot be written. It may have been.
pub async fn publish(
    keys: &dyn KeyValueStore,
    store: StoreId,
    read: Option<Revision>,
    news: &PublishedStore,
) -> Result<bool, MetadataError> {
    let key = published_key(store);
    let text = to_text(&key, news)?;
    let change = match read {
        Some(revision) => Transaction::new().if_unchanged(&*key, revision),
        None => Transaction::new().if_absent(&*key),
    };
    let change = change.put(&*key, &*text);
    Ok(commit(keys, &change, &key, &text).await?.is_some())
}

fn to_text(key: &str, published: &PublishedStore) -> Result<String, MetadataError> {
    let raw = RawPublished {
        incarnation: published.incarnation.number,
        nonce: nonce_text(published.incarnation.nonce),
        synced: published.synced,
    };
    text_of(key, &raw)
}

fn of_text(key: &str, text: &str) -> Result<PublishedStore, MetadataError> {
    let raw: RawPublished = object_in(key, text)?;
    Ok(PublishedStore {
        incarnation: Incarnation {
            number: raw.incarnation,
            nonce: nonce_of(key, &raw.nonce)?,
        },
        synced: raw.synced,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_value::MemoryKeyValues;

    const STORE: StoreId = StoreId([7; 16]);

    const fn news(number: u64, synced: u64) -> PublishedStore {
        let nonce = 0x0123_4567_89ab_cdef;
        let incarnation = Incarnation { number, nonce };
        PublishedStore {
            incarnation,
            synced,
        }
    }

    #[tokio::test]
    async fn what_is_published_follows_what_was_read_and_nothing_else() {
        let keys = MemoryKeyValues::default();
        assert_eq!(published(&keys, STORE).await.unwrap(), None);
        let first = news(1, 5);
        assert!(publish(&keys, STORE, None, &first).await.unwrap());
        assert!(!publish(&keys, STORE, None, &news(2, 0)).await.unwrap());
        let (revision, read) = published(&keys, STORE).await.unwrap().unwrap();
        assert_eq!(read, first);
        let second = news(1, u64::MAX);
        let read = Some(revision);
        assert!(publish(&keys, STORE, read, &second).await.unwrap());
        assert!(!publish(&keys, STORE, read, &first).await.unwrap());
        let (_, last) = published(&keys, STORE).await.unwrap().unwrap();
        assert_eq!(last, second);
        assert_eq!(published(&keys, StoreId([8; 16])).await.unwrap(), None);
    }

    #[test]
    fn a_text_is_as_it_was_and_others_are_refused_by_their_key() {
        let key = published_key(STORE);
        let text = to_text(&key, &news(3, 9)).unwrap();
        let expected = "{\"incarnation\":3,\"nonce\":\"0123456789abcdef\",\"synced\":9}";
        assert_eq!(text, expected);
        let replaced = |from, to| expected.replace(from, to);
        for wrong in [
            String::new(),
            replaced("0123", "x"),
            replaced("synced", "later"),
        ] {
            let error = of_text(&key, &wrong).unwrap_err().to_string();
            assert!(error.contains(&key), "{error}");
        }
    }
}
