//! Values that operators set, each of use without the others.
//!
//! # Invariants
//! - FW3: who follows goes on with what a value said before it was damaged
//!   (`a_value_that_gets_damaged_stays_as_it_was_until_it_is_mended_or_gone`).

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::key_value::{KeyValue, KeyValueStore, Snapshot, follow};
use crate::store::MetadataError;

/// After an attempt to read the keys that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// The values that can be understood. `on_bad` is told of each other one: it is a wish, and hinders nothing else.
pub(crate) fn each<T, All: FromIterator<T>>(
    snapshot: &Snapshot,
    read: impl Fn(&KeyValue) -> Result<T, MetadataError>,
    mut on_bad: impl FnMut(&MetadataError),
) -> All {
    let values = snapshot.pairs.iter();
    let values = values.filter_map(|pair| read(pair).inspect_err(&mut on_bad).ok());
    values.collect()
}

/// Follows the values under a prefix, and tells of each change, as long as it is polled. Until they were read first, there
/// is nothing to tell. One that cannot be understood any more stays as it was (FW3).
pub(crate) async fn follow_each<T: Clone, All: FromIterator<T>>(
    keys: Arc<dyn KeyValueStore>,
    prefix: &str,
    told: &watch::Sender<Option<Arc<All>>>,
    read: impl Fn(&KeyValue) -> Result<T, MetadataError>,
    on_bad: impl Fn(&MetadataError),
) {
    let mut followed = loop {
        match follow(Arc::clone(&keys), prefix.to_owned(), |_| {}).await {
            Ok(followed) => break followed,
            // Those who follow the layout say so.
            Err(_away) => sleep(PAUSE).await,
        }
    };
    let mut last = BTreeMap::new();
    loop {
        let snapshot = Arc::clone(&followed.borrow_and_update());
        last = by_key(&snapshot, &read, &on_bad, &last);
        told.send_replace(Some(Arc::new(last.values().cloned().collect())));
        if followed.changed().await.is_err() {
            return pending().await;
        }
    }
}

/// The values that can be understood, by their keys. Others are as they were last.
fn by_key<T: Clone>(
    snapshot: &Snapshot,
    read: impl Fn(&KeyValue) -> Result<T, MetadataError>,
    on_bad: impl Fn(&MetadataError),
    last: &BTreeMap<String, T>,
) -> BTreeMap<String, T> {
    let values = snapshot.pairs.iter().filter_map(|pair| {
        let now = read(pair).inspect_err(&on_bad).ok();
        let value = now.or_else(|| last.get(&pair.key).cloned())?;
        Some((pair.key.clone(), value))
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_value::Revision;
    use crate::records::bad;

    fn read(pair: &KeyValue) -> Result<u8, MetadataError> {
        let value = pair.value.parse();
        value.map_err(|_| bad(&pair.key, "no number".to_owned()))
    }

    /// FW3.
    #[test]
    fn a_value_that_gets_damaged_stays_as_it_was_until_it_is_mended_or_gone() {
        let mut last = BTreeMap::new();
        let mut look = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(key, value)| KeyValue {
                key: (*key).to_owned(),
                value: (*value).to_owned(),
                revision: Revision(1),
            });
            let snapshot = Snapshot {
                pairs: pairs.collect(),
                revision: Revision(1),
            };
            last = by_key(&snapshot, read, |_| {}, &last);
            Vec::from_iter(last.values().copied())
        };
        assert_eq!(look(&[("a", "1"), ("b", "x")]), [1]);
        assert_eq!(look(&[("a", "x"), ("b", "2")]), [1, 2]);
        assert_eq!(look(&[("a", "x"), ("b", "x")]), [1, 2]);
        assert_eq!(look(&[("a", "3")]), [3]);
        assert_eq!(look(&[("a", "3"), ("b", "x")]), [3]);
    }
}
