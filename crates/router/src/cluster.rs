//! The cluster as one round of a request sees it: a layout, and connections to its nodes.
//!
//! # Invariants
//! - CV1: a round plans, names its map and reaches its nodes by one layout. A newer layout is for the next round.
//! - CV2: a layout counts as soon as the metadata store tells of it or it was read, whichever comes first. It replaces
//!   none that has a newer record (`a_layout_that_was_read_counts_until_the_store_tells_of_a_newer_one`).

use std::sync::Arc;

use simshard_cluster::{ClusterLayout, CorpusRecord, Node};
use simshard_proto::epochs_from;
use simshard_proto::shard::v1 as pb;
use simshard_topology::{NodeId, ShardSet};
use tokio::sync::watch;

use crate::nodes::{Access, Nodes};
use crate::readers::{Avoided, Readers};
use tonic::Status;

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

/// The newest layout that the metadata store has told of, or that was read there (CV2).
#[derive(Debug)]
pub(crate) struct WatchedCluster {
    told: watch::Receiver<Arc<ClusterLayout>>,
    newest: watch::Sender<Newest>,
}

#[derive(Debug)]
struct Newest {
    /// What the store had told last.
    told: Arc<ClusterLayout>,
    view: Arc<ClusterView>,
}

impl Newest {
    fn replace(&mut self, layout: &Arc<ClusterLayout>) {
        let nodes = self.view.nodes.of_layout(layout);
        self.view = Arc::new(ClusterView::new(Arc::clone(layout), nodes));
    }
}

impl WatchedCluster {
    /// Follows the layouts, whose nodes are reached by `access`.
    ///
    /// # Errors
    /// If an address of the first layout cannot be parsed.
    pub(crate) fn new(
        mut told: watch::Receiver<Arc<ClusterLayout>>,
        access: Access,
    ) -> Result<Self, Status> {
        let layout = Arc::clone(&told.borrow_and_update());
        let nodes = Nodes::new(&layout, access)?;
        let view = ClusterView::new(Arc::clone(&layout), nodes);
        let newest = watch::Sender::new(Newest {
            told: layout,
            view: Arc::new(view),
        });
        Ok(Self { told, newest })
    }

    /// Waits until there is another layout than that of `seen`.
    pub(crate) async fn changed_since(&self, seen: &ClusterView) {
        self.until(|layout| !Arc::ptr_eq(layout, &seen.layout))
            .await;
    }

    /// Waits until no shard of these is a node's any more. The layout that gave them must have been told or taken.
    pub(crate) async fn left(&self, node: &NodeId, shards: ShardSet) {
        self.until(|layout| {
            let holds = |shard| layout.map().replicas(shard).contains(node);
            !shards.iter().any(holds)
        })
        .await;
    }

    /// Waits until a condition holds for the newest layout. Layouts are followed as long as the metadata is open.
    async fn until(&self, is_so: impl Fn(&Arc<ClusterLayout>) -> bool) {
        let (mut told, mut newest) = (self.told.clone(), self.newest.subscribe());
        while !is_so(&self.view().layout) {
            let is_open = tokio::select! {
                changed = told.changed() => changed.is_ok(),
                changed = newest.changed() => changed.is_ok(),
            };
            if !is_open {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Takes a layout that was read, if it is newer.
    pub(crate) fn take_read(&self, read: &Arc<ClusterLayout>) {
        self.newest.send_if_modified(|newest| {
            let is_newer = read.is_newer_than(&newest.view.layout);
            if is_newer {
                newest.replace(read);
            }
            is_newer
        });
    }

    /// A layout that was read, with connections to its nodes.
    pub(crate) fn view_of(&self, read: &Arc<ClusterLayout>) -> ClusterView {
        self.take_read(read);
        let nodes = self.newest.borrow().view.nodes.of_layout(read);
        ClusterView::new(Arc::clone(read), nodes)
    }

    /// The cluster now, for one round of a request.
    pub(crate) fn view(&self) -> Arc<ClusterView> {
        self.newest.send_if_modified(|newest| {
            // What the store tells is looked at under the lock, so that what it told before does not replace it.
            let told = Arc::clone(&self.told.borrow());
            if Arc::ptr_eq(&newest.told, &told) {
                return false;
            }
            let known = &newest.view.layout;
            let is_older = known.is_newer_than(&told) && !told.is_newer_than(known);
            if !is_older {
                newest.replace(&told);
            }
            newest.told = told;
            !is_older
        });
        Arc::clone(&self.newest.borrow().view)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;
    use simshard_cluster::{
        Corpora, KeyValueMetadata, KeyValueStore, MemoryKeyValues, MetadataStore, RegisteredStore,
        Steps, initialize, register, take_steps,
    };
    use simshard_topology::replication::{Epoch, ShardRecord, Step, StoreId};
    use simshard_topology::{ShardId, plan_evenly};

    use super::*;

    /// The metadata of a cluster of the nodes n1 to n3, which hold each shard.
    pub(crate) async fn cluster() -> MemoryKeyValues {
        let keys = MemoryKeyValues::new();
        let mut names = Vec::new();
        for number in 1..=3 {
            let node = NodeId::new(&format!("n{number}")).unwrap();
            let store = RegisteredStore::new(
                StoreId([number; 16]),
                node.clone(),
                format!("http://127.0.0.1:700{number}"),
            );
            register(&keys, &store).await.unwrap();
            names.push(node);
        }
        let map = plan_evenly(None, &names, 3).unwrap();
        let none = Corpora::default();
        initialize(&keys, &map, 2, &none, &[]).await.unwrap();
        keys
    }

    /// Takes the store of a node out of a shard.
    pub(crate) async fn evict(keys: &dyn KeyValueStore, number: u8, of: ShardId) {
        let mut steps = Steps::default();
        let step = Step::Evict(StoreId([number; 16]));
        let latest = Epoch {
            generation: u32::MAX,
            number: u64::MAX,
        };
        let of_it = |shard, record: &ShardRecord| {
            let is_there = record.in_sync(StoreId([number; 16])).is_some();
            (shard == of && is_there).then_some(step)
        };
        let taking = take_steps(keys, of_it, |_, _| latest, |_, _, _| false, &mut steps);
        taking.await.unwrap();
        assert_eq!(steps.taken.len(), 1);
    }

    /// The layouts of a cluster in which n1 leaves shard 7, and then n2 leaves shard 8.
    async fn layouts() -> [Arc<ClusterLayout>; 3] {
        let keys: Arc<dyn KeyValueStore> = Arc::new(cluster().await);
        let metadata = KeyValueMetadata::follow(Arc::clone(&keys), || {}, |_| {}).await;
        let metadata = metadata.unwrap();
        let first = metadata.layout().await.unwrap();
        evict(&*keys, 1, ShardId(7)).await;
        let second = metadata.layout().await.unwrap();
        evict(&*keys, 2, ShardId(8)).await;
        [first, second, metadata.layout().await.unwrap()]
    }

    #[tokio::test]
    async fn replicas_in_sync_that_are_not_hot_are_cold() {
        let keys = Arc::new(cluster().await);
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

    /// CV2.
    #[tokio::test]
    async fn a_layout_that_was_read_counts_until_the_store_tells_of_a_newer_one() {
        let [first, second, third] = layouts().await;
        let (tell, told) = watch::channel(Arc::clone(&first));
        let cluster = WatchedCluster::new(told, Access::of_tests()).unwrap();
        let is_newest = |layout| Arc::ptr_eq(&cluster.view().layout, layout);
        let seen = cluster.view();
        let left = |number, shard| {
            let node = NodeId::new(&format!("n{number}")).unwrap();
            let cluster = &cluster;
            async move {
                let shards = ShardSet::from_iter([ShardId(shard)]);
                cluster.left(&node, shards).await;
            }
        };
        let (mut changed, mut first_left) = (pin!(cluster.changed_since(&seen)), pin!(left(1, 7)));
        let mut second_left = pin!(left(2, 8));
        assert!((&mut changed).now_or_never().is_none());
        assert!((&mut first_left).now_or_never().is_none());
        cluster.take_read(&second);
        assert!(changed.now_or_never().is_some());
        assert!(first_left.now_or_never().is_some());
        assert!(is_newest(&second));
        // Older ones come late, by either way.
        cluster.take_read(&first);
        assert!(is_newest(&second));
        tell.send_replace(Arc::new(ClusterLayout::clone(&first)));
        assert!(is_newest(&second));
        assert!(left(1, 7).now_or_never().is_some());
        assert!((&mut second_left).now_or_never().is_none());
        tell.send_replace(Arc::clone(&third));
        assert!(second_left.now_or_never().is_some());
        cluster.take_read(&second);
        assert!(is_newest(&third));
    }
}
