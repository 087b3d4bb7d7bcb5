//! Raising the level of a cluster, once all its processes know the new one.
//!
//! # Invariants
//! - UP1: a level is raised only if each registered node shows that it knows the new one. What it shows is of the start that
//!   it has published last. A node that shows nothing is left out only if an operator says that it is stopped. Each router
//!   that is shown knows the level, too. If one of them starts meanwhile, the raise conflicts
//!   (`a_level_is_raised_only_if_all_processes_know_it`, `a_start_meanwhile_conflicts_with_a_raise`).
//!
//! Processes that show themselves change one key when they start, so the raise compares that one. Nodes of versions before
//! level 2 show nothing, and publish their starts, each in a key of its own. The raise compares the first 125 of these keys.
//! If one of the other nodes goes back to such a version just then, it is not noticed. Routers of these versions do neither:
//! they are the operator's to know.

use std::collections::BTreeMap;

use simshard_topology::NodeId;
use simshard_topology::replication::StoreId;

use crate::key_value::{KeyValueStore, MAX_OPERATIONS, Revision, Snapshot, Transaction};
use crate::keys;
use crate::levels::{NEWEST_LEVEL, RawCluster, cluster_pair};
use crate::membership::commit;
use crate::processes::{RunningProcess, processes_in};
use crate::published::published_in;
use crate::records::{RegisteredStore, text_of};
use crate::registered::{REGISTRATION_OPERATIONS, Registered, if_still, revision_in};
use crate::store::MetadataError;

/// The most nodes whose published starts one transaction compares. A start of another one is noticed if it shows itself.
const MOST_STARTS: usize = MAX_OPERATIONS - REGISTRATION_OPERATIONS - 1;

/// The processes of a cluster, and the level that they could raise it to: the newest one that this version knows.
#[derive(Debug)]
pub struct Upgrade {
    /// The level of now.
    pub level: u32,
    /// The level that it could be.
    pub next: u32,
    /// The registered nodes, by their names, and what their processes show. `None` if a node does not run, or is of an
    /// earlier version.
    pub nodes: Vec<(RegisteredStore, Option<RunningProcess>)>,
    /// The routers that are shown.
    pub routers: Vec<RunningProcess>,
    registered: Registered,
    cluster: RawCluster,
    process_starts: Option<Revision>,
    published: BTreeMap<String, Option<Revision>>,
}

impl Upgrade {
    /// Reads which processes a cluster has.
    ///
    /// # Errors
    /// [`MetadataError::NoCluster`] if there is none. Else when the keys cannot be read or understood.
    pub async fn read(keys: &dyn KeyValueStore) -> Result<Self, MetadataError> {
        // Each is read before what it counts the changes of.
        let registered = Registered::read(keys).await?;
        let starts = keys.read(keys::PROCESS_STARTS).await?;
        let cluster = keys.read(keys::CLUSTER).await?;
        let cluster = cluster_pair(&cluster).ok_or(MetadataError::NoCluster)?;
        let cluster = RawCluster::of_text(&cluster.value)?;
        let published = keys.read(keys::PUBLISHED).await?;
        let shown = keys.read(keys::PROCESSES).await?;
        let mut shown = processes_in(&shown);
        let mut nodes = Vec::new();
        let mut revisions = BTreeMap::new();
        for store in registered.stores.clone() {
            let key = keys::published(store.id);
            revisions.insert(key.clone(), revision_in(&published, &key));
            let process = shown.remove(&*store.id.to_string());
            let process = process.filter(|process| is_of_last_start(process, &published, store.id));
            nodes.push((store, process));
        }
        nodes.sort_by(|(a, _), (b, _)| a.node.cmp(&b.node));
        let routers = shown.into_values();
        Ok(Self {
            level: cluster.schema,
            next: cluster.schema.max(NEWEST_LEVEL),
            nodes,
            routers: routers.filter(|process| process.router.is_some()).collect(),
            registered,
            cluster,
            process_starts: revision_in(&starts, keys::PROCESS_STARTS),
            published: revisions,
        })
    }

    /// Whether a process that is shown knows the level that the cluster could be at.
    #[must_use]
    pub fn is_ready(&self, process: Option<&RunningProcess>) -> bool {
        process.is_some_and(|process| process.knows(self.next))
    }

    /// The names of nodes, and the addresses of routers, that keep the level from being raised. Nodes that are `stopped` and
    /// show nothing do not: if they are of an earlier version, they do not start any more.
    #[must_use]
    pub fn obstacles(&self, stopped: &[NodeId]) -> Vec<String> {
        let is_stopped = |store: &RegisteredStore, process: &Option<RunningProcess>| {
            process.is_none() && stopped.contains(&store.node)
        };
        let nodes = self.nodes.iter();
        let nodes = nodes.filter(|(store, process)| {
            !self.is_ready(process.as_ref()) && !is_stopped(store, process)
        });
        let nodes = nodes.map(|(store, _)| store.node.to_string());
        let routers = self.routers.iter();
        let routers = routers.filter(|process| !self.is_ready(Some(process)));
        let routers = routers.filter_map(|process| process.router.clone());
        nodes.chain(routers).collect()
    }

    /// Raises the level, if all is as it was read (UP1). An operator says that nodes are `stopped`.
    ///
    /// # Errors
    /// [`MetadataError::LevelNotKnown`] if a process does not know it. [`MetadataError::Raced`] if processes have started or
    /// registered since, or published something: read again. Else when the keys cannot be read or written.
    pub async fn raise(
        self,
        keys: &dyn KeyValueStore,
        stopped: &[NodeId],
    ) -> Result<(), MetadataError> {
        let processes = self.obstacles(stopped).join(", ");
        if !processes.is_empty() {
            let level = self.next;
            return Err(MetadataError::LevelNotKnown { level, processes });
        }
        let mut raise = self.registered.if_unchanged(Transaction::new());
        raise = if_still(raise, keys::PROCESS_STARTS, self.process_starts);
        for (key, revision) in self.published.iter().take(MOST_STARTS) {
            raise = if_still(raise, key, *revision);
        }
        let text = text_of(keys::CLUSTER, &self.cluster.raised(self.next))?;
        let raise = raise.put(keys::CLUSTER, &*text);
        let raised = commit(keys, &raise, keys::CLUSTER, &text).await?;
        raised.map(|_| ()).ok_or(MetadataError::Raced)
    }
}

/// Whether the node that shows this has begun the start that its store published last. An earlier version may have begun
/// another one since.
fn is_of_last_start(process: &RunningProcess, published: &Snapshot, store: StoreId) -> bool {
    let last = published_in(published, store).ok().flatten();
    last.is_some_and(|(_, last)| process.start == Some(last.incarnation))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use simshard_topology::replication::{Incarnation, PublishedStore};
    use tokio::task::yield_now;

    use super::*;
    use crate::key_value::Outcome;
    use crate::levels::cluster_level;
    use crate::processes::{ShownProcess, show_node, show_router};
    use crate::published::{publish, published};
    use crate::steps::tests::{STORES, earlier_cluster};

    /// A store begins a start.
    async fn begin(keys: &dyn KeyValueStore, store: StoreId, number: u64) -> Incarnation {
        let incarnation = Incarnation { number, nonce: 7 };
        let news = PublishedStore {
            incarnation,
            synced: 0,
        };
        let (read, _) = published(keys, store).await.unwrap().unzip();
        assert!(publish(keys, store, read, &news).await.unwrap());
        incarnation
    }

    /// A node of this version starts.
    async fn start(keys: &Arc<dyn KeyValueStore>, store: StoreId, number: u64) -> ShownProcess {
        let shown = show_node(keys, store).await.unwrap();
        let start = begin(&**keys, store, number).await;
        shown.has_begun(start);
        let is_shown = |upgrade: Upgrade| {
            let mut nodes = upgrade.nodes.into_iter();
            nodes.any(|(other, process)| other.id == store && process.is_some())
        };
        while !is_shown(Upgrade::read(&**keys).await.unwrap()) {
            yield_now().await;
        }
        shown
    }

    async fn obstacles(keys: &dyn KeyValueStore) -> Vec<String> {
        Upgrade::read(keys).await.unwrap().obstacles(&[])
    }

    async fn put(keys: &dyn KeyValueStore, key: &str, text: &str) {
        let put = Transaction::new().put(key, text);
        let put = keys.commit(&put).await.unwrap();
        assert!(matches!(put, Outcome::Committed(_)));
    }

    /// UP1.
    #[tokio::test(start_paused = true)]
    async fn a_level_is_raised_only_if_all_processes_know_it() {
        let keys: Arc<dyn KeyValueStore> = Arc::new(earlier_cluster().await);
        assert_eq!(obstacles(&*keys).await, ["n1", "n2", "n3"]);
        let _n1 = start(&keys, STORES[0], 1).await;
        let _n2 = start(&keys, STORES[1], 1).await;
        // It is of the earlier version.
        begin(&*keys, STORES[2], 1).await;
        assert_eq!(obstacles(&*keys).await, ["n3"]);
        let upgrade = Upgrade::read(&*keys).await.unwrap();
        let n3 = NodeId::new("n3").unwrap();
        assert!(upgrade.obstacles(&[n3]).is_empty());
        let refused = upgrade.raise(&*keys, &[]).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("n3"), "{refused}");
        let _n3 = start(&keys, STORES[2], 2).await;
        assert!(obstacles(&*keys).await.is_empty());
        // It went back, and what it showed before is there for a while.
        begin(&*keys, STORES[2], 3).await;
        assert_eq!(obstacles(&*keys).await, ["n3"]);
        let _n3 = start(&keys, STORES[2], 4).await;
        let _router = show_router(&keys, "http://h:1").await.unwrap();
        let old = r#"{"version":"0.0.1","oldest":1,"newest":1,"router":"http://h:2"}"#;
        put(&*keys, "processes/old", old).await;
        assert_eq!(obstacles(&*keys).await, ["http://h:2"]);
        let gone = Transaction::new().delete("processes/old");
        let _gone = keys.commit(&gone).await.unwrap();
        let upgrade = Upgrade::read(&*keys).await.unwrap();
        assert_eq!((upgrade.level, upgrade.routers.len()), (1, 1));
        upgrade.raise(&*keys, &[]).await.unwrap();
        assert_eq!(cluster_level(&*keys).await.unwrap(), NEWEST_LEVEL);
        let text = keys.read(keys::CLUSTER).await.unwrap().pairs;
        assert!(text[0].value.contains(r#""schema":2,"id":""#), "{text:?}");
    }

    /// UP1.
    #[tokio::test(start_paused = true)]
    async fn a_start_meanwhile_conflicts_with_a_raise() {
        let keys: Arc<dyn KeyValueStore> = Arc::new(earlier_cluster().await);
        let mut shown = Vec::new();
        for store in STORES {
            shown.push(start(&keys, store, 1).await);
        }
        let upgrade = Upgrade::read(&*keys).await.unwrap();
        begin(&*keys, STORES[1], 2).await;
        let raced = upgrade.raise(&*keys, &[]).await;
        assert!(matches!(raced, Err(MetadataError::Raced)));
        shown.push(start(&keys, STORES[1], 3).await);
        let upgrade = Upgrade::read(&*keys).await.unwrap();
        let _router = show_router(&keys, "http://h:1").await.unwrap();
        let raced = upgrade.raise(&*keys, &[]).await;
        assert!(matches!(raced, Err(MetadataError::Raced)));
        let upgrade = Upgrade::read(&*keys).await.unwrap();
        crate::register(&*keys, &crate::steps::tests::registered(StoreId([4; 16])))
            .await
            .unwrap();
        let raced = upgrade.raise(&*keys, &[]).await;
        assert!(matches!(raced, Err(MetadataError::Raced)));
    }
}
