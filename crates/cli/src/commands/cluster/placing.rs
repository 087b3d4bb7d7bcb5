//! Waiting until shards are where they are to be.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use simshard_cluster::{
    KeyValueStore, MetadataError, Targets, registered_stores, shard_records, targets,
};
use simshard_topology::replication::{ShardRecord, StoreId};
use simshard_topology::{NodeId, ShardId, ShardSet};
use tokio::time::sleep;

use super::asked::warn_of_bad;
use crate::progress;
use crate::say::note;

/// Between two looks at the records.
const INTERVAL: Duration = Duration::from_millis(300);

/// Whether a command waits until the nodes have done what it asks for.
#[derive(Args, Debug)]
pub struct Wait {
    /// Do not wait: the nodes go on by themselves
    #[arg(long)]
    pub no_wait: bool,
}

/// What is waited for.
pub(super) enum Placing {
    /// Shards are held by these nodes.
    At(Targets),
    /// Shards have as many replicas as wished, and as many hot ones.
    Replicas,
}

impl Placing {
    /// Waits until it is so. The nodes go on if this is cut off.
    pub(super) async fn wait(self, keys: &dyn KeyValueStore, wait: &Wait) -> anyhow::Result<()> {
        if wait.no_wait {
            note("the nodes move the shards: `simshard cluster shards` shows how far they are");
            return Ok(());
        }
        let all = self.open(keys).await?;
        let bar = progress::bar("moving shards", Some(all as u64));
        loop {
            self.check(keys).await?;
            let open = self.open(keys).await?;
            bar.set_position(all.saturating_sub(open) as u64);
            if open == 0 {
                bar.finish_and_clear();
                note("done");
                return Ok(());
            }
            sleep(INTERVAL).await;
        }
    }

    /// Fails if another operator has chosen other nodes meanwhile: what is waited for may never be so.
    async fn check(&self, keys: &dyn KeyValueStore) -> anyhow::Result<()> {
        let Self::At(wanted) = self else {
            return Ok(());
        };
        let now = targets(keys, warn_of_bad).await?;
        let others = wanted
            .iter()
            .filter(|(shard, nodes)| now.get(shard) != Some(nodes));
        let others: ShardSet = others.map(|(shard, _)| *shard).collect();
        if !others.is_empty() {
            bail!(
                "other nodes have been chosen for shards {others} meanwhile: they go there instead"
            );
        }
        Ok(())
    }

    /// How many shards are not so yet.
    async fn open(&self, keys: &dyn KeyValueStore) -> Result<usize, MetadataError> {
        let records = shard_records(keys).await?;
        let stores = registered_stores(keys).await?.into_iter();
        let nodes: BTreeMap<StoreId, NodeId> = stores.map(|store| (store.id, store.node)).collect();
        let open = records.iter();
        let open = open.filter(|(shard, record)| !self.is_done(**shard, record, &nodes));
        Ok(open.count())
    }

    fn is_done(
        &self,
        shard: ShardId,
        record: &ShardRecord,
        nodes: &BTreeMap<StoreId, NodeId>,
    ) -> bool {
        match self {
            Self::At(targets) => targets.get(&shard).is_none_or(|target| {
                let held = record.in_sync.iter();
                let held = held.filter_map(|entry| nodes.get(&entry.store).cloned());
                held.collect::<BTreeSet<_>>() == *target && record.learners.is_empty()
            }),
            Self::Replicas => {
                let hot = record.in_sync.iter().filter(|entry| entry.hot).count();
                record.in_sync.len() == usize::from(record.want) && hot == usize::from(record.hot)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use simshard_cluster::{MemoryKeyValues, Outcome, Transaction};

    use super::*;

    /// Of two operators, the first would wait for ever.
    #[tokio::test]
    async fn who_waits_is_told_that_another_operator_has_chosen_other_nodes() {
        let keys = MemoryKeyValues::new();
        let nodes = BTreeSet::from([NodeId::new("n1").unwrap()]);
        let placing = Placing::At(Targets::from([(ShardId(7), nodes)]));
        for (node, is_fine) in [("n1", true), ("n2", false)] {
            let value = format!(r#"{{"nodes":["{node}"]}}"#);
            let change = Transaction::new().put("targets/07", value);
            let outcome = keys.commit(&change).await.unwrap();
            assert!(matches!(outcome, Outcome::Committed(_)));
            let checked = placing.check(&keys).await;
            assert_eq!(checked.is_ok(), is_fine);
            if let Err(error) = checked {
                assert!(
                    error.to_string().contains("for shards 07 meanwhile"),
                    "{error}"
                );
            }
        }
    }
}
