//! Shards that are damaged wherever they are in sync: no node can copy them from another.

use std::collections::BTreeMap;

use simshard_topology::ShardSet;
use simshard_topology::replication::{ShardRecords, StoreId};

use crate::Cluster;

impl Cluster {
    /// What an operator is to do about shards of which each store in sync that answers has found a file damaged. They can be
    /// filled by what the others have of them, once these stores do not run. `None` if there are none.
    #[must_use]
    pub fn advice_on_damage(&self, records: &ShardRecords) -> Option<String> {
        let (store, damaged) = self.damaged(records).into_iter().next()?;
        let held = records
            .iter()
            .filter(|(_, record)| record.in_sync(store).is_some());
        let held: ShardSet = held.map(|(shard, _)| *shard).collect();
        let (node, whole) = (self.name(store), held.difference(&damaged));
        let moved = if whole.is_empty() {
            String::new()
        } else {
            format!(
                "Move its other shards away, by `simshard cluster move --shards {whole} --to NODE`. "
            )
        };
        Some(format!(
            "files of shards {damaged} are damaged on {node}, and no other node has them in sync and whole. {moved}Then stop \
             {node}, and run this command again with --stopped {node}"
        ))
    }

    /// Those shards, by the first store in sync that answers.
    fn damaged(&self, records: &ShardRecords) -> BTreeMap<StoreId, ShardSet> {
        let mut found: BTreeMap<StoreId, ShardSet> = BTreeMap::new();
        for (&shard, record) in records {
            let in_sync = record.in_sync.iter().map(|entry| entry.store);
            let answering: Vec<StoreId> = in_sync.filter(|store| self.answers(*store)).collect();
            let is_damaged = |store: &StoreId| {
                self.news(*store)
                    .is_some_and(|news| news.damaged.contains(shard))
            };
            if let [first, ..] = answering[..]
                && answering.iter().all(is_damaged)
            {
                found.entry(first).or_default().insert(shard);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use simshard_cluster::SettingsOfNodes;
    use simshard_node::StoreAnswer;
    use simshard_topology::ShardId;
    use simshard_topology::replication::ShardRecord;

    use super::*;
    use crate::asked::{Reports, tests::news};

    fn store(id: u8) -> StoreId {
        StoreId([id; 16])
    }

    /// One shard is in sync on both stores, the other two on the first alone.
    fn records() -> ShardRecords {
        let both = [store(1), store(2)];
        [(1, &both[..]), (2, &both[..1]), (3, &both[..1])]
            .map(|(shard, stores)| (ShardId(shard), Arc::new(ShardRecord::first(0, stores, 7))))
            .into()
    }

    fn cluster(damaged: &str) -> Cluster {
        let mut first = news(Reports::new());
        first.damaged = damaged.parse().unwrap();
        let answers = [
            (store(1), StoreAnswer::News(first)),
            (store(2), StoreAnswer::News(news(Reports::new()))),
        ];
        Cluster::of_test(Vec::new(), answers.into(), SettingsOfNodes::new())
    }

    #[test]
    fn a_shard_that_is_damaged_where_it_is_held_is_told_with_what_to_do() {
        let advice = cluster("01,02").advice_on_damage(&records()).unwrap();
        assert!(
            advice.starts_with("files of shards 02 are damaged on")
                && advice.contains("move --shards 01,03 --to NODE"),
            "{advice}"
        );
        let all = cluster("01-03").advice_on_damage(&records()).unwrap();
        assert!(
            all.contains("shards 02-03") && all.contains("move --shards 01 "),
            "{all}"
        );
    }

    #[test]
    fn a_shard_that_another_node_has_whole_needs_no_operator() {
        assert_eq!(cluster("01").advice_on_damage(&records()), None);
        assert_eq!(cluster("00").advice_on_damage(&records()), None);
    }
}
