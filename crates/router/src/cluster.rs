//! The cluster as one round of a request sees it: a layout, and connections to its nodes.
//!
//! # Invariants
//! - CV1: a round plans, names its map and reaches its nodes by one layout. A newer layout is for the next round.

use std::sync::Arc;

use parking_lot::Mutex;
use simshard_cluster::{ClusterLayout, CorpusRecord, Node};
use simshard_proto::epochs_from;
use simshard_proto::shard::v1 as pb;
use simshard_topology::{NodeId, ShardSet};
use simshard_transport::Budget;
use tokio::sync::watch;

use crate::nodes::Nodes;
use crate::readers::{Avoided, Readers};

/// A layout, and connections to its nodes.
#[derive(Debug)]
pub(crate) struct ClusterView {
    pub(crate) layout: Arc<ClusterLayout>,
    pub(crate) nodes: Nodes,
    /// While nothing is known against a replica.
    usual_readers: Arc<Readers>,
}

impl ClusterView {
    pub(crate) fn new(layout: Arc<ClusterLayout>, nodes: Nodes) -> Self {
        let readers = Readers::new(Arc::clone(&layout), &Avoided::default());
        Self {
            layout,
            nodes,
            usual_readers: Arc::new(readers),
        }
    }

    /// The node that each shard is read from.
    pub(crate) fn readers(&self, avoided: &Avoided) -> Arc<Readers> {
        if avoided.is_empty() {
            return Arc::clone(&self.usual_readers);
        }
        Arc::new(Readers::new(Arc::clone(&self.layout), avoided))
    }

    /// What a request about these shards tells nodes: the corpus, and the records and map that it is planned by.
    pub(crate) fn target(&self, corpus: &CorpusRecord, shards: ShardSet) -> pb::Target {
        let epochs = self.layout.epochs(shards).unwrap_or_default();
        let (epoch_numbers, epoch_generations) = epochs_from(&epochs);
        pb::Target {
            corpus_uid: corpus.uid.to_string(),
            blocks: corpus.blocks,
            distance: corpus.distance,
            map_digest: self.layout.map().digest().0,
            epoch_numbers,
            epoch_generations,
        }
    }

    /// The same for a request about the whole corpus on a node.
    pub(crate) fn target_of_all(&self, corpus: &CorpusRecord) -> pb::Target {
        self.target(corpus, ShardSet::EMPTY)
    }

    /// Whether these shards may go on without a node: each has another store in sync.
    pub(crate) fn may_leave(&self, node: &NodeId, shards: ShardSet) -> bool {
        let Some(records) = self.layout.records() else {
            return false;
        };
        shards.iter().all(|shard| {
            let replicas = self.layout.map().replicas(shard);
            let in_sync = records.get(&shard).map_or(0, |record| record.in_sync.len());
            replicas.iter().take(in_sync).any(|other| other != node)
        })
    }

    /// The shards that the map gives a node.
    pub(crate) fn shards_of(&self, node: &Node) -> ShardSet {
        self.layout.map().shards_of(&node.id)
    }

    /// The shards that a node holds in sync without tables.
    pub(crate) fn cold_of(&self, node: &Node) -> ShardSet {
        cold_of(&self.layout, node)
    }
}

fn cold_of(layout: &ClusterLayout, node: &Node) -> ShardSet {
    let records = layout.records().into_iter().flatten();
    let cold = records.filter(|(shard, record)| {
        let mut replicas = layout.replicas(**shard);
        let replica = replicas.find(|(_, holder)| **holder == node.id);
        let entry = replica.and_then(|(store, _)| record.in_sync(store));
        entry.is_some_and(|entry| !entry.hot)
    });
    cold.map(|(shard, _)| *shard).collect()
}

/// The newest layout that the metadata store has told of.
#[derive(Debug)]
pub(crate) struct WatchedCluster {
    layouts: watch::Receiver<Arc<ClusterLayout>>,
    newest: Mutex<Arc<ClusterView>>,
}

impl WatchedCluster {
    /// Follows the layouts. `budget` is the memory for answers of nodes.
    ///
    /// # Errors
    /// If an address of the first layout cannot be parsed.
    pub(crate) fn new(
        mut layouts: watch::Receiver<Arc<ClusterLayout>>,
        budget: &Budget,
    ) -> Result<Self, tonic::transport::Error> {
        let layout = Arc::clone(&layouts.borrow_and_update());
        let nodes = Nodes::new(&layout, budget)?;
        let newest = Mutex::new(Arc::new(ClusterView::new(layout, nodes)));
        Ok(Self { layouts, newest })
    }

    /// Waits until there is another layout than that of `seen`.
    pub(crate) async fn changed_since(&self, seen: &ClusterView) {
        self.until(|layout| !Arc::ptr_eq(layout, &seen.layout))
            .await;
    }

    /// Waits until a condition holds for the newest layout. Layouts are followed as long as the metadata is open.
    async fn until(&self, is_so: impl FnMut(&Arc<ClusterLayout>) -> bool) {
        let mut layouts = self.layouts.clone();
        if layouts.wait_for(is_so).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// A layout that was read, with connections to its nodes.
    pub(crate) fn view_of(&self, layout: &Arc<ClusterLayout>) -> ClusterView {
        let nodes = self.newest.lock().nodes.of_layout(layout);
        ClusterView::new(Arc::clone(layout), nodes)
    }

    /// Waits until no shard that a layout gives a node is its any more, by records that are not older.
    pub(crate) async fn left_since(&self, before: &ClusterLayout, node: &NodeId) {
        let held = before.map().shards_of(node);
        let epoch = |layout: &ClusterLayout, shard| {
            let record = layout.records().and_then(|records| records.get(&shard));
            record.map(|record| record.epoch)
        };
        self.until(|layout| {
            held.iter().all(|shard| {
                let is_older = epoch(layout, shard) < epoch(before, shard);
                !is_older && !layout.map().replicas(shard).contains(node)
            })
        })
        .await;
    }

    /// Waits until no shard of these is a node's any more.
    pub(crate) async fn left(&self, node: &NodeId, shards: ShardSet) {
        self.until(|layout| {
            let holds = |shard| layout.map().replicas(shard).contains(node);
            !shards.iter().any(holds)
        })
        .await;
    }

    /// The cluster now, for one round of a request.
    pub(crate) fn view(&self) -> Arc<ClusterView> {
        // The layout is read under the lock: an older one must not replace a newer one.
        let mut newest = self.newest.lock();
        let layout = Arc::clone(&self.layouts.borrow());
        if !Arc::ptr_eq(&newest.layout, &layout) {
            let nodes = newest.nodes.of_layout(&layout);
            *newest = Arc::new(ClusterView::new(layout, nodes));
        }
        Arc::clone(&newest)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use simshard_cluster::{
        Corpora, KeyValueMetadata, KeyValueStore, MemoryKeyValues, MetadataStore, RegisteredStore,
        initialize, register,
    };
    use simshard_topology::plan_evenly;
    use simshard_topology::replication::StoreId;

    use super::*;

    #[tokio::test]
    async fn replicas_in_sync_that_are_not_hot_are_cold() {
        let keys: Arc<dyn KeyValueStore> = Arc::new(MemoryKeyValues::new());
        let mut names = Vec::new();
        for number in 1..=3 {
            let node = NodeId::new(&format!("n{number}")).unwrap();
            let store = RegisteredStore {
                id: StoreId([number; 16]),
                node: node.clone(),
                address: format!("http://127.0.0.1:700{number}"),
                next_generation: 0,
                corpora: BTreeSet::new(),
                in_sync: BTreeMap::new(),
                partners: BTreeMap::new(),
                is_replacement: false,
            };
            register(&*keys, &store).await.unwrap();
            names.push(node);
        }
        let map = plan_evenly(None, &names, 3).unwrap();
        let none = Corpora::default();
        initialize(&*keys, &map, 2, &none, &[]).await.unwrap();
        let metadata = KeyValueMetadata::follow(keys, || {}, |_| {}).await.unwrap();
        let layout = metadata.layout().await.unwrap();
        let mut cold = ShardSet::EMPTY;
        for node in layout.nodes() {
            let of_node = cold_of(&layout, node);
            assert!(cold.intersection(&of_node).is_empty());
            cold = cold.union(&of_node);
        }
        assert_eq!(cold, ShardSet::ALL);
    }
}
