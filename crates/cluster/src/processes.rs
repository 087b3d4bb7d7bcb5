//! Which processes of a cluster run, by what they show of themselves: their version, and the levels that it knows.
//!
//! Versions before level 2 show nothing, and do not look at these keys.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use simshard_topology::replication::{Incarnation, StoreId};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::key_value::{KeyValueStore, LeaseId, Snapshot, Transaction};
use crate::keys;
use crate::levels::{NEWEST_LEVEL, OLDEST_LEVEL, VERSION};
use crate::records::{RegisteredStore, nonce_of, nonce_text, object_in, text_of};
use crate::registered::cluster_in;
use crate::store::MetadataError;

/// How long a process that ended without a word seems to run.
const TIME_TO_LIVE: Duration = Duration::from_secs(30);

/// How often a process shows that it still runs.
const INTERVAL: Duration = Duration::from_secs(10);

/// How soon it tries again, if it is not shown.
const RETRY: Duration = Duration::from_secs(1);

/// How long a process that ends tries to say so.
const LAST_ATTEMPT: Duration = Duration::from_secs(1);

/// What a process shows of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningProcess {
    /// The version of its program.
    pub version: String,
    /// The oldest level that it knows.
    pub oldest: u32,
    /// The newest one.
    pub newest: u32,
    /// Where it listens, if it is a router.
    pub router: Option<String>,
    /// The start of its store, if it is a node that has begun one.
    pub start: Option<Incarnation>,
}

/// What is written of it. Later versions may write more.
#[derive(Serialize, Deserialize)]
struct RawProcess {
    version: String,
    oldest: u32,
    newest: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    router: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<RawStart>,
}

#[derive(Serialize, Deserialize)]
struct RawStart {
    incarnation: u64,
    /// A number of 64 bits, in hexadecimal digits: not all readers of JSON have such numbers.
    nonce: String,
}

impl RunningProcess {
    /// This process, as a node that has begun no start yet.
    fn this() -> Self {
        Self {
            version: VERSION.to_owned(),
            oldest: OLDEST_LEVEL,
            newest: NEWEST_LEVEL,
            router: None,
            start: None,
        }
    }

    /// Whether it knows a level.
    #[must_use]
    pub const fn knows(&self, level: u32) -> bool {
        self.oldest <= level && level <= self.newest
    }

    fn to_text(&self, key: &str) -> Result<String, MetadataError> {
        let start = self.start.map(|start| RawStart {
            incarnation: start.number,
            nonce: nonce_text(start.nonce),
        });
        let raw = RawProcess {
            version: self.version.clone(),
            oldest: self.oldest,
            newest: self.newest,
            router: self.router.clone(),
            start,
        };
        text_of(key, &raw)
    }

    fn of_text(key: &str, text: &str) -> Result<Self, MetadataError> {
        let raw: RawProcess = object_in(key, text)?;
        let start = raw.start.map(|start| {
            let nonce = nonce_of(key, &start.nonce)?;
            let number = start.incarnation;
            Ok::<_, MetadataError>(Incarnation { number, nonce })
        });
        Ok(Self {
            version: raw.version,
            oldest: raw.oldest,
            newest: raw.newest,
            router: raw.router,
            start: start.transpose()?,
        })
    }
}

/// Shows others that this process runs, until it is dropped, and some seconds longer.
#[derive(Debug)]
pub struct ShownProcess {
    keys: Arc<dyn KeyValueStore>,
    key: String,
    news: watch::Sender<RunningProcess>,
    showing: JoinHandle<()>,
}

impl Drop for ShownProcess {
    fn drop(&mut self) {
        self.showing.abort();
    }
}

impl ShownProcess {
    /// Shows which start of its store this node has begun.
    pub fn has_begun(&self, start: Incarnation) {
        self.news.send_modify(|process| process.start = Some(start));
    }

    /// Says that this process ends, if the metadata answers soon.
    pub async fn end(self) {
        self.showing.abort();
        let gone = Transaction::new().delete(&*self.key);
        // If it is late or fails, the key ends with its lease.
        let _ = timeout(LAST_ATTEMPT, self.keys.commit(&gone)).await;
    }
}

/// Shows that the node of a store runs. Call it before the store is registered, so that no registered store seems to be of
/// an earlier version.
///
/// # Errors
/// When the keys cannot be read or written. [`MetadataError::UnknownLevel`] if the cluster is at a level that this version
/// does not know.
pub async fn show_node(
    keys: &Arc<dyn KeyValueStore>,
    store: StoreId,
) -> Result<ShownProcess, MetadataError> {
    show(keys, keys::process(store), RunningProcess::this()).await
}

/// Shows that a router runs, which listens there.
///
/// # Errors
/// As those of [`show_node`].
pub async fn show_router(
    keys: &Arc<dyn KeyValueStore>,
    address: impl Display,
) -> Result<ShownProcess, MetadataError> {
    let process = RunningProcess {
        router: Some(address.to_string()),
        ..RunningProcess::this()
    };
    show(keys, keys::process(Uuid::new_v4()), process).await
}

async fn show(
    keys: &Arc<dyn KeyValueStore>,
    key: String,
    process: RunningProcess,
) -> Result<ShownProcess, MetadataError> {
    let mut lease = Some(put(&**keys, &key, &process).await?);
    // Who raises the level either sees this process, or has written the level.
    cluster_in(&keys.read(keys::CLUSTER).await?)?;
    let (news, mut told) = watch::channel(process);
    let (keys, key) = (Arc::clone(keys), key);
    let showing = tokio::spawn({
        let (keys, key) = (Arc::clone(&keys), key.clone());
        async move {
            loop {
                let pause = lease.map_or(RETRY, |_| INTERVAL);
                let has_news = tokio::select! {
                    changed = told.changed() => changed.is_ok(),
                    () = sleep(pause) => false,
                };
                let process = told.borrow_and_update().clone();
                let kept = match lease.filter(|_| !has_news) {
                    Some(lease) if is_shown(&*keys, &key, &process).await => {
                        keys.keep_alive(lease).await.ok().map(|()| lease)
                    }
                    Some(_) | None => None,
                };
                lease = match kept {
                    Some(lease) => Some(lease),
                    None => put(&*keys, &key, &process).await.ok(),
                };
            }
        }
    });
    Ok(ShownProcess {
        keys,
        key,
        news,
        showing,
    })
}

/// Whether a process is still shown, as far as can be known. A copy of its directory that was started, and refused, takes its
/// key away.
async fn is_shown(keys: &dyn KeyValueStore, key: &str, process: &RunningProcess) -> bool {
    let Ok(snapshot) = keys.read(key).await else {
        return true;
    };
    let shown = snapshot.pairs.iter().find(|pair| pair.key == key);
    let shown = shown.map(|pair| RunningProcess::of_text(key, &pair.value));
    matches!(shown, Some(Ok(shown)) if shown == *process)
}

/// Puts what a process shows under a lease, and changes what tells of starts: so a raise that was decided before conflicts.
async fn put(
    keys: &dyn KeyValueStore,
    key: &str,
    process: &RunningProcess,
) -> Result<LeaseId, MetadataError> {
    let text = process.to_text(key)?;
    let lease = keys.grant(TIME_TO_LIVE).await?;
    let put = Transaction::new()
        .put_leased(key, text, lease)
        .put(keys::PROCESS_STARTS, Uuid::new_v4().to_string());
    // It has no condition.
    Ok(keys.commit(&put).await.map(|_| lease)?)
}

/// What processes show, by the ends of their keys. One that cannot be understood counts as none.
pub(crate) fn processes_in(snapshot: &Snapshot) -> BTreeMap<&str, RunningProcess> {
    let pairs = snapshot.pairs.iter().filter_map(|pair| {
        let id = pair.key.strip_prefix(keys::PROCESSES)?;
        let process = RunningProcess::of_text(&pair.key, &pair.value).ok()?;
        Some((id, process))
    });
    pairs.collect()
}

/// The newest level that the nodes of all these stores know.
pub(crate) async fn newest_known(
    keys: &dyn KeyValueStore,
    stores: &[RegisteredStore],
) -> Result<u32, MetadataError> {
    let snapshot = keys.read(keys::PROCESSES).await?;
    let processes = processes_in(&snapshot);
    let newest = stores.iter().map(|store| {
        let process = processes.get(&*store.id.to_string());
        process.map_or(OLDEST_LEVEL, |process| process.newest)
    });
    let newest = newest.min().unwrap_or(OLDEST_LEVEL);
    Ok(newest.clamp(OLDEST_LEVEL, NEWEST_LEVEL))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_value::MemoryKeyValues;
    use crate::steps::tests::registered;

    const STORE: StoreId = StoreId([7; 16]);

    fn start(number: u64) -> Incarnation {
        let nonce = u64::MAX - 1;
        Incarnation { number, nonce }
    }

    async fn shown(keys: &dyn KeyValueStore) -> Vec<RunningProcess> {
        let snapshot = keys.read(keys::PROCESSES).await.unwrap();
        processes_in(&snapshot).into_values().collect()
    }

    #[test]
    fn what_a_process_shows_comes_back_exactly() {
        let node = RunningProcess {
            start: Some(start(3)),
            ..RunningProcess::this()
        };
        let router = RunningProcess {
            router: Some("http://h:1".to_owned()),
            ..RunningProcess::this()
        };
        for process in [node, router] {
            let text = process.to_text("k").unwrap();
            assert_eq!(RunningProcess::of_text("k", &text).unwrap(), process);
        }
        let later = r#"{"version":"9","oldest":2,"newest":7,"more":{}}"#;
        let later = RunningProcess::of_text("k", later).unwrap();
        assert!(!later.knows(1) && later.knows(2) && later.knows(7) && !later.knows(8));
        assert!(RunningProcess::of_text("k", "{}").is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_is_shown_as_long_as_it_runs_also_if_its_lease_is_lost() {
        let keys: Arc<dyn KeyValueStore> = Arc::new(MemoryKeyValues::new());
        let node = show_node(&keys, STORE).await.unwrap();
        let router = show_router(&keys, "http://h:1").await.unwrap();
        assert_eq!(shown(&*keys).await.len(), 2);
        node.has_begun(start(1));
        sleep(RETRY).await;
        let has_begun = |process: &RunningProcess| process.start == Some(start(1));
        assert!(shown(&*keys).await.iter().any(has_begun));
        let lose = Transaction::new().delete(keys::process(STORE));
        let _lost = keys.commit(&lose).await.unwrap();
        for lease in 1..9 {
            keys.revoke(LeaseId(lease)).await.unwrap();
        }
        assert_eq!(shown(&*keys).await, []);
        sleep(INTERVAL + RETRY).await;
        assert!(shown(&*keys).await.iter().any(has_begun));
        router.end().await;
        assert_eq!(shown(&*keys).await.len(), 1);
    }

    /// A copy of its directory was started, and refused.
    #[tokio::test(start_paused = true)]
    async fn a_process_whose_key_another_one_took_away_is_shown_again() {
        let keys: Arc<dyn KeyValueStore> = Arc::new(MemoryKeyValues::new());
        let node = show_node(&keys, STORE).await.unwrap();
        node.has_begun(start(1));
        sleep(RETRY).await;
        let own = shown(&*keys).await;
        let copy = show_node(&keys, STORE).await.unwrap();
        assert_ne!(shown(&*keys).await, own);
        copy.end().await;
        assert_eq!(shown(&*keys).await, []);
        sleep(INTERVAL + RETRY).await;
        assert_eq!(shown(&*keys).await, own);
    }

    #[tokio::test]
    async fn all_nodes_know_the_newest_level_or_it_is_the_first_one() {
        let keys: Arc<dyn KeyValueStore> = Arc::new(MemoryKeyValues::new());
        let stores = [registered(STORE), registered(StoreId([8; 16]))];
        let _first = show_node(&keys, STORE).await.unwrap();
        assert_eq!(newest_known(&*keys, &stores).await.unwrap(), OLDEST_LEVEL);
        let one = newest_known(&*keys, &stores[..1]).await.unwrap();
        assert_eq!(one, NEWEST_LEVEL);
        let _second = show_node(&keys, stores[1].id).await.unwrap();
        assert_eq!(newest_known(&*keys, &stores).await.unwrap(), NEWEST_LEVEL);
        assert_eq!(newest_known(&*keys, &[]).await.unwrap(), OLDEST_LEVEL);
    }
}
