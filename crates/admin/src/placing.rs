//! How far shards are that are to be elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use simshard_cluster::{
    KeyValueStore, MetadataError, Targets, is_placed, registered_stores, shard_records, targets_of,
};
use simshard_topology::replication::{ShardRecord, ShardRecords, StoreId};
use simshard_topology::{NodeId, ShardId, ShardSet};

/// Where shards are to be.
#[derive(Clone, Debug, Default)]
pub struct Placing {
    /// The nodes that are to hold them.
    pub targets: Targets,
    /// How many replicas the shards are to have, and how many of them hot, if that was said.
    pub wished: Option<(u8, u8)>,
    /// The nodes that are to hold nothing of them. Without any, no other nodes than those of the targets are to.
    pub emptied: BTreeSet<NodeId>,
    /// Nodes of the targets that did not answer: for `emptied`, they are not waited for.
    pub silent: BTreeSet<NodeId>,
    /// The shards of a plan for which operators have said something else since. They are not waited for.
    pub given_up: ShardSet,
    /// The shards that were elsewhere when that was written down.
    pub unplaced: ShardSet,
}

/// How far it is.
#[derive(Debug)]
pub enum Progress {
    /// No operator has chosen anything else.
    Open(Open),
    /// Another operator has chosen other nodes for these shards meanwhile: the wait might never end.
    Elsewhere(ShardSet),
    /// Another operator has taken the choice of these shards back: they stay where they are.
    Freed(ShardSet),
    /// Another operator wishes for other numbers of replicas of these shards.
    OtherWish(ShardSet),
}

/// What is still to be done.
#[derive(Debug, Default)]
pub struct Open {
    /// How many shards are not yet where they are to be.
    pub shards: usize,
    /// The nodes that do not hold shards yet which they are to hold.
    pub lacking: BTreeMap<NodeId, ShardSet>,
    /// The nodes that are to hold nothing, and what they hold still.
    pub staying: BTreeMap<NodeId, ShardSet>,
}

/// The nodes of stores.
pub(crate) type NodesOfStores = BTreeMap<StoreId, NodeId>;

impl Placing {
    /// How far it is.
    ///
    /// # Errors
    /// If the metadata cannot be read, or a target that it waits for is damaged: another operator may have chosen it.
    pub async fn progress(&self, keys: &dyn KeyValueStore) -> Result<Progress, MetadataError> {
        let wanted: ShardSet = self.targets.keys().copied().collect();
        let now = targets_of(keys, wanted).await?;
        let chosen: ShardSet = now.keys().copied().collect();
        let freed = wanted.difference(&chosen);
        if !freed.is_empty() {
            return Ok(Progress::Freed(freed));
        }
        let others = wanted.iter();
        let others = others.filter(|shard| now[shard] != self.targets[shard]);
        let others: ShardSet = others.collect();
        if !others.is_empty() {
            return Ok(Progress::Elsewhere(others));
        }
        let records = shard_records(keys).await?;
        let is_meant = |record: &ShardRecord| {
            self.wished
                .is_none_or(|wished| (record.want, record.hot) == wished)
        };
        let others = records.iter().filter(|(_, record)| !is_meant(record));
        let others: ShardSet = others.map(|(shard, _)| *shard).collect();
        if !others.is_empty() {
            return Ok(Progress::OtherWish(others));
        }
        let nodes = nodes_of_stores(keys).await?;
        Ok(Progress::Open(self.open(&records, &nodes)))
    }

    /// The shards that are not where they are to be.
    pub(crate) fn not_done(&self, records: &ShardRecords, nodes: &NodesOfStores) -> ShardSet {
        let records = records.iter();
        let open = records.filter(|(shard, record)| !self.is_done(**shard, record, nodes));
        open.map(|(shard, _)| *shard).collect()
    }

    fn open(&self, records: &ShardRecords, nodes: &NodesOfStores) -> Open {
        let mut open = Open::default();
        for shard in self.not_done(records, nodes).iter() {
            open.shards += 1;
            let record = &records[&shard];
            let held = holders(record, nodes);
            let target = self.targets.get(&shard).into_iter().flatten();
            for node in target.filter(|node| !held.contains(node)) {
                open.lacking.entry(node.clone()).or_default().insert(shard);
            }
            for node in named(record, nodes).intersection(&self.emptied) {
                open.staying.entry(node.clone()).or_default().insert(shard);
            }
        }
        open
    }

    fn is_done(&self, shard: ShardId, record: &ShardRecord, nodes: &NodesOfStores) -> bool {
        let Some(target) = self.targets.get(&shard) else {
            return true;
        };
        if !self.emptied.is_empty() {
            let held = holders(record, nodes);
            let mut awaited = target.difference(&self.silent);
            return awaited.all(|node| held.contains(node))
                && named(record, nodes).is_disjoint(&self.emptied);
        }
        let hot = record.in_sync.iter().filter(|entry| entry.hot).count();
        // One more may get hot in the place of another, for as long as it makes its tables.
        let is_hot = self.wished.is_none() || hot >= usize::from(record.hot);
        is_placed(record, target, |store| nodes.get(&store)) && is_hot
    }
}

/// The nodes of all stores that have registered.
pub(crate) async fn nodes_of_stores(
    keys: &dyn KeyValueStore,
) -> Result<NodesOfStores, MetadataError> {
    let stores = registered_stores(keys).await?.into_iter();
    Ok(stores.map(|store| (store.id, store.node)).collect())
}

/// The nodes whose stores are in sync.
pub(crate) fn holders(record: &ShardRecord, nodes: &NodesOfStores) -> BTreeSet<NodeId> {
    let stores = record.in_sync.iter().map(|entry| entry.store);
    stores
        .filter_map(|store| nodes.get(&store).cloned())
        .collect()
}

/// The nodes whose stores are in sync, or learn.
fn named(record: &ShardRecord, nodes: &NodesOfStores) -> BTreeSet<NodeId> {
    let stores = record.write_set();
    stores
        .filter_map(|store| nodes.get(&store).cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use simshard_topology::replication::{Epoch, InSync, Learner};

    use super::*;

    /// A replica too many, one that only comes, and a hot one too few are no end.
    #[test]
    fn a_shard_is_placed_once_its_nodes_alone_hold_it_with_as_many_hot_ones_as_wished() {
        let stores = [1, 2].map(|id| StoreId([id; 16]));
        let names = ["n1", "n2"].map(|name| NodeId::new(name).unwrap());
        let nodes = BTreeMap::from_iter(stores.into_iter().zip(names.clone()));
        let entry = |store, hot| InSync {
            store,
            since: Epoch::NONE,
            hot,
        };
        let held = |in_sync: Vec<InSync>| ShardRecord {
            in_sync,
            hot: 1,
            ..ShardRecord::first(0, &stores[..1], 1)
        };
        let placing = |wished| Placing {
            targets: Targets::from([(ShardId(7), BTreeSet::from([names[0].clone()]))]),
            wished,
            ..Placing::default()
        };
        let is_done =
            |record: &ShardRecord| placing(Some((1, 1))).is_done(ShardId(7), record, &nodes);
        let one = held(vec![entry(stores[0], true)]);
        assert!(is_done(&one));
        let cold = held(vec![entry(stores[0], false)]);
        assert!(!is_done(&cold));
        assert!(placing(None).is_done(ShardId(7), &cold, &nodes));
        assert!(!is_done(&held(vec![entry(stores[1], true)])));
        let two = held(vec![entry(stores[0], true), entry(stores[1], false)]);
        assert!(!is_done(&two));
        let mut coming = one;
        coming.learners.push(Learner {
            store: stores[1],
            added: Epoch::NONE,
        });
        assert!(!is_done(&coming));
    }

    /// One more is hot while it makes tables in the place of another (PE20).
    #[test]
    fn a_shard_with_a_hot_replica_more_is_placed() {
        let stores = [1, 2].map(|id| StoreId([id; 16]));
        let names = ["n1", "n2"].map(|name| NodeId::new(name).unwrap());
        let nodes = BTreeMap::from_iter(stores.into_iter().zip(names.clone()));
        let placing = Placing {
            targets: Targets::from([(ShardId(7), BTreeSet::from(names))]),
            wished: Some((2, 1)),
            ..Placing::default()
        };
        let record = ShardRecord::first(0, &stores, 1).with_hot(2);
        let record = ShardRecord { hot: 1, ..record };
        assert!(placing.is_done(ShardId(7), &record, &nodes));
    }

    /// A node that was dead from the beginning, and one that stands in for it, keep no node from being emptied.
    #[test]
    fn a_node_is_emptied_once_it_holds_nothing_and_those_that_answered_have_come() {
        let stores = [1, 2, 3, 4].map(|id| StoreId([id; 16]));
        let names = ["n1", "n2", "n3", "n4"].map(|name| NodeId::new(name).unwrap());
        let nodes = BTreeMap::from_iter(stores.into_iter().zip(names.clone()));
        let shard = ShardId(7);
        // n1 leaves, n2 comes, n3 is dead, and n4 stands in for it.
        let placing = Placing {
            targets: Targets::from([(shard, BTreeSet::from([names[1].clone(), names[2].clone()]))]),
            emptied: BTreeSet::from([names[0].clone()]),
            silent: BTreeSet::from([names[2].clone()]),
            ..Placing::default()
        };
        let held = |of: &[usize]| {
            let of: Vec<StoreId> = of.iter().map(|place| stores[*place]).collect();
            ShardRecord::first(0, &of, 1)
        };
        assert!(placing.is_done(shard, &held(&[1, 3]), &nodes));
        assert!(!placing.is_done(shard, &held(&[3]), &nodes));
        assert!(!placing.is_done(shard, &held(&[0, 1]), &nodes));
        let mut copying = held(&[1]);
        copying.learners.push(Learner {
            store: stores[0],
            added: Epoch::NONE,
        });
        assert!(!placing.is_done(shard, &copying, &nodes));
        let records = ShardRecords::from([(shard, std::sync::Arc::new(held(&[0, 3])))]);
        let open = placing.open(&records, &nodes);
        assert_eq!(
            open.lacking.keys().collect::<Vec<_>>(),
            [&names[1], &names[2]]
        );
        assert_eq!(open.staying.keys().collect::<Vec<_>>(), [&names[0]]);
    }
}
