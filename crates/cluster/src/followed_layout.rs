//! The layout of a cluster whose nodes register themselves, as it changes.
//!
//! # Invariants
//! - FW1: a record that cannot be understood, or names a store that cannot, hides no other: it counts as it was before
//!   (`a_record_that_is_damaged_hides_no_other`, `a_record_whose_store_is_not_understood_hides_no_other`). So does a store
//!   with the address of another one. A process that starts has no such records, and needs all.
//! - FW2: a record whose stores the keys hold is seen, though their own news come later
//!   (`a_shard_is_seen_though_its_store_is_not_told_yet`).

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use simshard_topology::ShardMap;
use simshard_topology::replication::{ShardRecords, StoreId};
use tokio::sync::watch;

use crate::key_value::{KeyValue, KeyValueError, KeyValueStore, Snapshot, follow};
use crate::keys;
use crate::layout::ClusterLayout;
use crate::membership::records_in;
use crate::records::{self, RegisteredStore};
use crate::registered::{check_apart, cluster_in, node_of, stores_in};
use crate::store::MetadataError;

/// Is told that the metadata cannot be read now, or makes no layout, and then that all is well again.
pub trait OnTurn: Fn(Result<(), &MetadataError>) + Send + Sync + 'static {}

impl<F: Fn(Result<(), &MetadataError>) + Send + Sync + 'static> OnTurn for F {}

/// Waits until there is a cluster. Calls `on_wait` if there is none yet.
///
/// # Errors
/// When the keys cannot be read at first, or the cluster is of a later version.
pub(crate) async fn wait_for_cluster(
    keys: &Arc<dyn KeyValueStore>,
    on_wait: impl FnOnce() + Send,
    on_turn: impl OnTurn,
) -> Result<(), MetadataError> {
    let mut followed = follow_keys(keys, keys::CLUSTER, &Turns::told(on_turn)).await?;
    let mut on_wait = Some(on_wait);
    while cluster_in(&followed.borrow_and_update())?.is_none() {
        if let Some(on_wait) = on_wait.take() {
            on_wait();
        }
        news(&mut followed).await;
    }
    Ok(())
}

/// Waits until stores have registered that are `enough`, in a cluster that has not begun.
///
/// # Errors
/// [`MetadataError::AlreadyInitialized`] if it has, else when the keys cannot be read at first, or not understood.
pub async fn wait_for_stores(
    keys: &Arc<dyn KeyValueStore>,
    mut enough: impl FnMut(&[RegisteredStore]) -> bool,
    on_turn: impl OnTurn,
) -> Result<Vec<RegisteredStore>, MetadataError> {
    let turns = Turns::told(on_turn);
    let mut cluster = follow_keys(keys, keys::CLUSTER, &turns).await?;
    let mut stores = follow_keys(keys, keys::STORES, &turns).await?;
    loop {
        if cluster_in(&cluster.borrow_and_update())?.is_some() {
            return Err(MetadataError::AlreadyInitialized);
        }
        let registered = stores_in(&stores.borrow_and_update())?;
        if enough(&registered) {
            return Ok(registered);
        }
        tokio::select! {
            () = news(&mut cluster) => {}
            () = news(&mut stores) => {}
        }
    }
}

/// Parts that fail at once, and the one who is told of the first failure and of the end of the last.
struct Turns<F> {
    failing: AtomicUsize,
    on_turn: F,
}

impl<F: OnTurn> Turns<F> {
    fn told(on_turn: F) -> Arc<Self> {
        let failing = AtomicUsize::new(0);
        Arc::new(Self { failing, on_turn })
    }

    /// Notes that a part begins to fail, or ends to.
    fn note(&self, turn: Result<(), &MetadataError>) {
        match turn {
            Err(error) => {
                if self.failing.fetch_add(1, Ordering::Relaxed) == 0 {
                    (self.on_turn)(Err(error));
                }
            }
            Ok(()) => {
                if self.failing.fetch_sub(1, Ordering::Relaxed) == 1 {
                    (self.on_turn)(Ok(()));
                }
            }
        }
    }
}

async fn follow_keys(
    keys: &Arc<dyn KeyValueStore>,
    prefix: &str,
    turns: &Arc<Turns<impl OnTurn>>,
) -> Result<watch::Receiver<Arc<Snapshot>>, MetadataError> {
    let turns = Arc::clone(turns);
    let on_turn = move |turn: Result<(), &KeyValueError>| {
        let turn = turn.map_err(|error| MetadataError::KeyValues(error.clone()));
        turns.note(turn.as_ref().copied());
    };
    Ok(follow(Arc::clone(keys), prefix.to_owned(), on_turn).await?)
}

/// Waits for a change. The keys are followed as long as there is a receiver, so there is one in the end.
async fn news(followed: &mut watch::Receiver<Arc<Snapshot>>) {
    if followed.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Follows the layout of a cluster that has begun, until the last receiver is gone. What goes wrong later is told to
/// `on_turn`, and when all is well again.
///
/// # Errors
/// When the keys cannot be read, or their records make no layout.
pub(crate) async fn follow_layout(
    keys: &Arc<dyn KeyValueStore>,
    on_turn: impl OnTurn,
) -> Result<watch::Receiver<Arc<ClusterLayout>>, MetadataError> {
    let turns = Turns::told(on_turn);
    let mut followed = Followed {
        // Shards first, so that the stores that they name are there.
        shards: follow_keys(keys, keys::SHARDS, &turns).await?,
        stores: follow_keys(keys, keys::STORES, &turns).await?,
        keys: Arc::clone(keys),
        known: Known::default(),
    };
    followed.look().await?;
    let (layouts, layout) = watch::channel(Arc::new(followed.known.layout()?));
    tokio::spawn(async move {
        let mut is_failing = false;
        while followed.changed(&layouts).await {
            let looked = followed.look().await;
            let layout = followed.known.layout();
            let turn = looked.as_ref().copied();
            let turn = turn.and(layout.as_ref().map(|_| ()));
            if is_failing != turn.is_err() {
                turns.note(turn);
            }
            is_failing = turn.is_err();
            if let Ok(layout) = layout {
                layouts.send_replace(Arc::new(layout));
            }
        }
    });
    Ok(layout)
}

/// The records that make a layout, as they change.
struct Followed {
    keys: Arc<dyn KeyValueStore>,
    stores: watch::Receiver<Arc<Snapshot>>,
    shards: watch::Receiver<Arc<Snapshot>>,
    known: Known,
}

impl Followed {
    /// Waits for a change. Returns false once all receivers of the layout are gone.
    async fn changed(&mut self, sender: &watch::Sender<Arc<ClusterLayout>>) -> bool {
        tokio::select! {
            () = news(&mut self.stores) => true,
            () = news(&mut self.shards) => true,
            () = sender.closed() => false,
        }
    }

    /// Takes what was told. Where it is behind, as a store is named that is not there, stores are read (FW2).
    async fn look(&mut self) -> Result<(), MetadataError> {
        let stores = Arc::clone(&self.stores.borrow_and_update());
        let shards = Arc::clone(&self.shards.borrow_and_update());
        let shards = self.known.take_shards(&shards);
        let mut stores = self.known.take_stores(&stores);
        let mut named = self.known.use_records();
        if named.is_err() {
            stores = self.known.take_stores(&self.keys.read(keys::STORES).await?);
            named = self.known.use_records();
        }
        shards.and(stores).and(named)
    }
}

/// The records as they were understood last (FW1).
#[derive(Default)]
struct Known {
    /// By their keys.
    stores: BTreeMap<String, RegisteredStore>,
    /// The records of shards.
    told: ShardRecords,
    /// Those of them that make the layout: their stores are known.
    used: ShardRecords,
}

impl Known {
    /// Takes the records of shards that can be understood. Fails with the first other one.
    fn take_shards(&mut self, shards: &Snapshot) -> Result<(), MetadataError> {
        let mut all = Ok(());
        for (shard, record) in records::shards_in(shards) {
            match record {
                Ok(record) => drop(self.told.insert(shard, record)),
                Err(error) => all = all.and(Err(error)),
            }
        }
        all
    }

    /// The same with those of stores, where none has the node or the address of another one. One that is gone stays while
    /// a record is used that names it.
    fn take_stores(&mut self, stores: &Snapshot) -> Result<(), MetadataError> {
        let mut before = take(&mut self.stores);
        let mut all = Ok(());
        let mut changed = Vec::new();
        for KeyValue { key, value, .. } in &stores.pairs {
            match records::store_of(key, value) {
                Ok(store) if before.get(key) == Some(&store) => {
                    self.stores.insert(key.clone(), store);
                }
                told => changed.push((key, told)),
            }
        }
        for (key, told) in changed {
            let apart =
                told.and_then(|store| check_apart(&store, self.stores.values()).map(|()| store));
            let store = match apart {
                Ok(store) => Some(store),
                Err(error) => {
                    all = all.and(Err(error));
                    before.remove(key)
                }
            };
            self.stores.extend(store.map(|store| (key.clone(), store)));
        }
        before.retain(|key, store| {
            let is_used = || self.used.values().any(|record| record.names(store.id));
            !self.stores.contains_key(key) && is_used()
        });
        self.stores.append(&mut before);
        all
    }

    /// Uses the records of which all stores are known. Fails with the first store that is not.
    fn use_records(&mut self) -> Result<(), MetadataError> {
        let mut all = Ok(());
        for (&shard, record) in &self.told {
            let mut named = record.write_set().map(keys::store);
            match named.find(|key| !self.stores.contains_key(key)) {
                None => drop(self.used.insert(shard, Arc::clone(record))),
                Some(key) => all = all.and(Err(records::missing(&key))),
            }
        }
        all
    }

    fn layout(&self) -> Result<ClusterLayout, MetadataError> {
        layout_with(self.stores.values(), self.used.clone())
    }
}

/// Reads the layout of a cluster that has begun.
///
/// # Errors
/// When the keys cannot be read, or their records make no layout.
pub(crate) async fn read_layout(keys: &dyn KeyValueStore) -> Result<ClusterLayout, MetadataError> {
    // Shards first, so that the stores that they name are there.
    let shards = keys.read(keys::SHARDS).await?;
    layout_of(&keys.read(keys::STORES).await?, &shards)
}

/// The layout that records make: each shard has the nodes of its stores in sync, then those of its learners.
pub(crate) fn layout_of(
    stores: &Snapshot,
    shards: &Snapshot,
) -> Result<ClusterLayout, MetadataError> {
    layout_with(&stores_in(stores)?, records_in(shards)?)
}

fn layout_with<'a>(
    stores: impl IntoIterator<Item = &'a RegisteredStore>,
    all_records: ShardRecords,
) -> Result<ClusterLayout, MetadataError> {
    let stores = stores.into_iter().map(|store| (store.id, store));
    let stores: BTreeMap<StoreId, &RegisteredStore> = stores.collect();
    let (mut entries, mut nodes) = (Vec::new(), BTreeMap::new());
    for record in all_records.values() {
        let mut replicas = Vec::new();
        for replica in record.write_set() {
            let store = stores.get(&replica);
            let store = store.ok_or_else(|| records::missing(&keys::store(replica)))?;
            nodes.insert(store.node.clone(), node_of(store));
            replicas.push(store.node.clone());
        }
        entries.push(replicas);
    }
    let map = ShardMap::new(1, &entries).map_err(|error| MetadataError::BadRecord {
        key: keys::SHARDS.to_owned(),
        reason: error.to_string(),
    })?;
    let stores = stores.into_iter();
    let stores = stores.map(|(id, store)| (id, node_of(store))).collect();
    let nodes = nodes.into_values().collect();
    let layout = ClusterLayout::of_records(nodes, map, all_records, stores);
    layout.map_err(MetadataError::UnusableRecords)
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use simshard_topology::ShardId;
    use simshard_topology::replication::{Epoch, ShardRecord, Step};

    use super::*;
    use crate::disturbed::Disturbed;
    use crate::key_value::{Outcome, Transaction};
    use crate::membership::register;
    use crate::steps::tests::{cluster, registered};
    use crate::steps::{Steps, take_steps};

    /// Waits until the layout that is told has something.
    async fn until(
        layouts: &mut watch::Receiver<Arc<ClusterLayout>>,
        has: impl FnMut(&Arc<ClusterLayout>) -> bool,
    ) {
        layouts.wait_for(has).await.unwrap();
    }

    /// Takes a step of one shard.
    async fn step(keys: &dyn KeyValueStore, of: ShardId, step: Step) {
        let mut steps = Steps::default();
        let first = |shard, record: &ShardRecord| {
            let is_first = record.epoch == Epoch::FIRST;
            (shard == of && is_first).then_some(step)
        };
        let synced = |_, _| Epoch::FIRST;
        // It says which record is damaged, after the step.
        let _ = take_steps(keys, first, synced, |_, _, _| false, &mut steps).await;
        assert_eq!(steps.taken.len(), 1);
    }

    async fn put(keys: &dyn KeyValueStore, key: &str, value: &str) {
        let put = Transaction::new().put(key, value);
        let outcome = keys.commit(&put).await.unwrap();
        assert!(matches!(outcome, Outcome::Committed(_)));
    }

    fn number(layout: &ClusterLayout, shard: ShardId) -> u64 {
        layout.records().unwrap()[&shard].epoch.number
    }

    /// FW2.
    #[tokio::test]
    async fn a_shard_is_seen_though_its_store_is_not_told_yet() {
        let store = Arc::new(Disturbed::untold(cluster().await, keys::STORES));
        let keys: Arc<dyn KeyValueStore> = Arc::<Disturbed>::clone(&store);
        let on_turn = |turn: Result<(), &MetadataError>| panic!("{turn:?}");
        let mut layouts = follow_layout(&keys, on_turn).await.unwrap();
        let new = registered(StoreId([4; 16]));
        register(&*keys, &new).await.unwrap();
        step(&*keys, ShardId(7), Step::AddLearner(new.id)).await;
        let comes =
            |layout: &Arc<ClusterLayout>| layout.map().shards_of(&new.node).contains(ShardId(7));
        until(&mut layouts, comes).await;
    }

    /// FW1.
    #[tokio::test]
    async fn a_record_that_is_damaged_hides_no_other() {
        let keys: Arc<dyn KeyValueStore> = Arc::new(cluster().await);
        let told = watch::Sender::new(true);
        let mut is_well = told.subscribe();
        let on_turn = move |turn: Result<(), &MetadataError>| {
            told.send_replace(turn.is_ok());
        };
        let mut layouts = follow_layout(&keys, on_turn).await.unwrap();
        let (damaged, good) = (ShardId(7), ShardId(8));
        let (shard, store) = (keys::shard(damaged), keys::store(StoreId([1; 16])));
        let pairs = keys.read("").await.unwrap().pairs;
        let address_of_other = pairs
            .iter()
            .find(|pair| pair.key == keys::store(StoreId([2; 16])))
            .map(|pair| pair.value.replace("\"n2\"", "\"n1\""))
            .unwrap();
        let twice = pairs.iter().find(|pair| pair.key == shard).map(|pair| {
            let of_first = StoreId([1; 16]).to_string();
            pair.value.replace(&StoreId([2; 16]).to_string(), &of_first)
        });
        for (before, (key, damaged_text)) in (0..).zip([
            (&shard, "{".to_owned()),
            (&store, "{".to_owned()),
            (&store, address_of_other),
            (&shard, twice.unwrap()),
        ]) {
            put(&*keys, key, &damaged_text).await;
            is_well.wait_for(|is_well| !is_well).await.unwrap();
            let other = ShardId(good.0 + before);
            step(&*keys, other, Step::Adjust).await;
            until(&mut layouts, |layout| number(layout, other) == 2).await;
            assert_eq!(number(&layouts.borrow(), damaged), 1);
            let good = pairs.iter().find(|pair| pair.key == *key).unwrap();
            put(&*keys, key, &good.value).await;
            is_well.wait_for(|is_well| *is_well).await.unwrap();
        }
    }

    /// FW1: a node of a later version registers what this one does not know.
    #[tokio::test]
    async fn a_record_whose_store_is_not_understood_hides_no_other() {
        let keys: Arc<dyn KeyValueStore> = Arc::new(cluster().await);
        let mut layouts = follow_layout(&keys, |_| {}).await.unwrap();
        let new = registered(StoreId([4; 16]));
        register(&*keys, &new).await.unwrap();
        let (with_new, other) = (ShardId(7), ShardId(8));
        step(&*keys, with_new, Step::AddLearner(new.id)).await;
        until(&mut layouts, |layout| number(layout, with_new) == 2).await;
        step(&*keys, other, Step::Adjust).await;
        let (unknown, with_unknown) = (StoreId([5; 16]), ShardId(9));
        put(&*keys, &keys::store(unknown), "{\"later\":1}").await;
        let pairs = keys.read(&keys::shard(with_new)).await.unwrap().pairs;
        let text = pairs[0]
            .value
            .replace(&new.id.to_string(), &unknown.to_string());
        assert_ne!(text, pairs[0].value);
        put(&*keys, &keys::shard(with_unknown), &text).await;
        step(&*keys, ShardId(11), Step::Adjust).await;
        until(&mut layouts, |layout| number(layout, ShardId(11)) == 2).await;
        assert_eq!(number(&layouts.borrow(), other), 2);
        assert_eq!(number(&layouts.borrow(), with_unknown), 1);
        // A store that is gone stays for the record that was understood last.
        put(&*keys, &keys::shard(with_new), "{").await;
        let delete = Transaction::new().delete(keys::store(new.id));
        let deleted = keys.commit(&delete).await.unwrap();
        assert!(matches!(deleted, Outcome::Committed(_)));
        let last = ShardId(10);
        step(&*keys, last, Step::Adjust).await;
        until(&mut layouts, |layout| number(layout, last) == 2).await;
        assert_eq!(number(&layouts.borrow(), with_new), 2);
    }

    #[test]
    fn parts_that_fail_at_once_are_told_of_once_and_so_is_the_end() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let turns = Turns::told(move |turn: Result<(), &MetadataError>| {
            heard.lock().push(turn.is_ok());
        });
        for _ in 0..2 {
            for turn in [
                Err(&MetadataError::NoCluster),
                Err(&MetadataError::NoCluster),
                Ok(()),
                Ok(()),
            ] {
                turns.note(turn);
            }
        }
        assert_eq!(*told.lock(), [false, true, false, true]);
    }
}
