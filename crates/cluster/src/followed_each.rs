//! Values that operators set, each of use without the others.

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
    on_bad: impl Fn(&MetadataError),
) -> All {
    let values = snapshot.pairs.iter();
    let values = values.filter_map(|pair| read(pair).inspect_err(&on_bad).ok());
    values.collect()
}

/// Follows the values under a prefix, and tells of each change, as long as it is polled. Until they were read first, there
/// is nothing to tell.
pub(crate) async fn follow_each<T, All: FromIterator<T>>(
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
    loop {
        let snapshot = Arc::clone(&followed.borrow_and_update());
        told.send_replace(Some(Arc::new(each(&snapshot, &read, &on_bad))));
        if followed.changed().await.is_err() {
            return pending().await;
        }
    }
}
