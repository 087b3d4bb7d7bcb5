//! Which nodes hold which shards.

use std::collections::{BTreeMap, BTreeSet};

use simshard_cluster::{registered_stores, shard_records, targets};
use simshard_topology::replication::{Epoch, ShardRecord, StoreId};
use simshard_topology::{NodeId, ShardId, ShardSet, Version};

use crate::asked::known;
use crate::{Admin, AdminError};

/// Neighbouring shards with equal records. A replica is named by its node, or by its store if that has not registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaGroup {
    /// The shards.
    pub shards: ShardSet,
    /// Counts the changes of their records.
    pub epoch: Epoch,
    /// Those that hold the shards in sync.
    pub in_sync: Vec<String>,
    /// Those of them that answer searches.
    pub hot: Vec<String>,
    /// Those that copy them.
    pub learners: Vec<String>,
    /// Those that are to hold them, where an operator has chosen some.
    pub target: Vec<String>,
    /// No change up to this version is taken any more, if there is one.
    pub floor: Option<Version>,
    /// Whether no repair up to the floor is taken just now.
    pub is_frozen: bool,
    /// Tombstones up to this version may be dropped, if there is one.
    pub settled: Option<Version>,
}

impl ReplicaGroup {
    /// The replicas of one shard by its record.
    fn of(
        shard: ShardId,
        record: &ShardRecord,
        target: Option<&BTreeSet<NodeId>>,
        names: &BTreeMap<StoreId, String>,
    ) -> Self {
        let name = |store: StoreId| {
            let name = names.get(&store).cloned();
            name.unwrap_or_else(|| store.to_string())
        };
        let hot = record.in_sync.iter().filter(|one| one.hot);
        Self {
            shards: ShardSet::from_iter([shard]),
            epoch: record.epoch,
            in_sync: record.in_sync.iter().map(|one| name(one.store)).collect(),
            hot: hot.map(|one| name(one.store)).collect(),
            learners: record.learners.iter().map(|one| name(one.store)).collect(),
            target: target
                .into_iter()
                .flatten()
                .map(NodeId::to_string)
                .collect(),
            floor: Some(record.floor).filter(|floor| *floor > Version::NONE),
            is_frozen: record.is_frozen,
            settled: Some(record.settled).filter(|settled| *settled > Version::NONE),
        }
    }

    /// Whether a node holds the shard in sync, copies it, or is to hold it.
    fn concerns(&self, node: &str) -> bool {
        let mut all = [&self.in_sync, &self.learners, &self.target]
            .into_iter()
            .flatten();
        all.any(|name| name == node)
    }

    /// Whether all but the shards is the same.
    fn is_alike(&self, other: &Self) -> bool {
        let shards = self.shards;
        *self
            == Self {
                shards,
                ..other.clone()
            }
    }
}

impl Admin<'_> {
    /// Which nodes hold which shards, and those alone that a node holds, copies or is to hold, if one is named.
    ///
    /// # Errors
    /// If no such node has registered, or the metadata cannot be read.
    pub async fn shards(&self, node: Option<&NodeId>) -> Result<Vec<ReplicaGroup>, AdminError> {
        let records = shard_records(self.keys).await?;
        let stores = registered_stores(self.keys).await?;
        if let Some(node) = node {
            known(stores.iter(), node)?;
        }
        let names = stores.into_iter();
        let names: BTreeMap<StoreId, String> = names
            .map(|store| (store.id, store.node.to_string()))
            .collect();
        let targets = targets(self.keys, |error| self.warn_of_bad(error)).await?;
        let all = records.iter();
        let all =
            all.map(|(shard, record)| ReplicaGroup::of(*shard, record, targets.get(shard), &names));
        let concerned = all.filter(|group| node.is_none_or(|node| group.concerns(node.as_str())));
        Ok(merged(concerned))
    }
}

/// Neighbours that are alike, together.
fn merged(shards: impl Iterator<Item = ReplicaGroup>) -> Vec<ReplicaGroup> {
    let mut groups = Vec::<ReplicaGroup>::new();
    for group in shards {
        match groups.last_mut() {
            Some(last) if last.is_alike(&group) => last.shards = last.shards.union(&group.shards),
            Some(_) | None => groups.push(group),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_are_alike_are_listed_together() {
        let stores = [1, 2].map(|id| StoreId([id; 16]));
        let names = BTreeMap::from([(stores[0], "n1".to_owned()), (stores[1], "n2".to_owned())]);
        let target = BTreeSet::from([NodeId::new("n3").unwrap()]);
        let of = |shard: u8, holder: usize, target| {
            let record = ShardRecord::first(0, &stores[holder..=holder], 1);
            ReplicaGroup::of(ShardId(shard), &record, target, &names)
        };
        let all = [
            of(0, 0, None),
            of(1, 0, None),
            of(2, 0, Some(&target)),
            of(3, 1, Some(&target)),
            of(4, 0, None),
        ];
        assert!(all[2].concerns("n1") && all[2].concerns("n3") && !all[2].concerns("n2"));
        let groups = merged(all.into_iter());
        let shards = groups.iter().map(|group| group.shards.to_string());
        assert_eq!(Vec::from_iter(shards), ["00-01", "02", "03", "04"]);
        assert_eq!(groups[1].target, ["n3"]);
        assert_eq!(groups[2].in_sync, ["n2"]);
        assert_eq!((groups[2].floor, groups[2].settled), (None, None));
        let mut record = ShardRecord::first(0, &stores[..1], 1);
        (record.floor, record.settled) = (Version(9), Version(5));
        let raised = ReplicaGroup::of(ShardId(5), &record, None, &names);
        assert_eq!(raised.floor, Some(Version(9)));
        assert_eq!(raised.settled, Some(Version(5)));
        let before = of(4, 0, None);
        assert_eq!(merged([before, raised].into_iter()).len(), 2);
    }
}
