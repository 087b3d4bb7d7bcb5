//! Waiting until shards are where they are to be.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use simshard_cluster::{
    KeyValueStore, MetadataError, Targets, registered_stores, shard_records, targets,
};
use simshard_topology::replication::{ShardRecord, StoreId};
use simshard_topology::{NodeId, ShardId, ShardSet};
use tokio::time::{Instant, sleep};

use crate::progress;
use crate::say::note;

/// Between two looks at the records.
const INTERVAL: Duration = Duration::from_millis(300);

/// The metadata may be away for this long before a command ends that waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether a command waits until the nodes have done what it asks for.
#[derive(Args, Debug)]
pub struct Wait {
    /// Do not wait: the nodes go on by themselves
    #[arg(long)]
    pub no_wait: bool,
}

/// Where shards are to be.
pub(super) struct Placing {
    /// The nodes that are to hold them.
    pub(super) targets: Targets,
    /// Whether they are to have as many hot replicas as wished, too.
    pub(super) and_hot: bool,
}

/// How far it is.
enum Progress {
    /// This many shards are not yet where they are to be.
    Open(usize),
    /// Another operator has chosen other nodes for these shards meanwhile: what is waited for may never be so.
    Elsewhere(ShardSet),
}

impl Placing {
    /// Waits until it is so. The nodes go on if this is cut off.
    pub(super) async fn wait(&self, keys: &dyn KeyValueStore, wait: &Wait) -> anyhow::Result<()> {
        if wait.no_wait {
            note("the nodes move the shards: `simshard cluster shards` shows how far they are");
            return Ok(());
        }
        let bar = progress::bar("moving shards", Some(self.targets.len() as u64));
        let (mut read, mut is_told) = (Instant::now(), false);
        loop {
            match self.progress(keys).await {
                Ok(Progress::Open(0)) => break,
                Ok(Progress::Open(open)) => {
                    (read, is_told) = (Instant::now(), false);
                    bar.set_position(self.targets.len().saturating_sub(open) as u64);
                }
                Ok(Progress::Elsewhere(shards)) => bail!(
                    "other nodes have been chosen for shards {shards} meanwhile: they go there instead"
                ),
                Err(error) if read.elapsed() > PATIENCE => {
                    let told = "the nodes are told, and go on by themselves: `simshard cluster shards` shows how far they are";
                    return Err(error).context(told);
                }
                Err(error) if !is_told => {
                    note(format_args!("{error}: trying again"));
                    is_told = true;
                }
                Err(_) => {}
            }
            sleep(INTERVAL).await;
        }
        bar.finish_and_clear();
        note("done");
        Ok(())
    }

    async fn progress(&self, keys: &dyn KeyValueStore) -> Result<Progress, MetadataError> {
        // Those that are damaged were told when this command began.
        let now = targets(keys, |_| {}).await?;
        let wanted = self.targets.iter();
        let others = wanted.filter(|(shard, nodes)| now.get(shard) != Some(nodes));
        let others: ShardSet = others.map(|(shard, _)| *shard).collect();
        if !others.is_empty() {
            return Ok(Progress::Elsewhere(others));
        }
        let records = shard_records(keys).await?;
        let stores = registered_stores(keys).await?.into_iter();
        let nodes: BTreeMap<StoreId, NodeId> = stores.map(|store| (store.id, store.node)).collect();
        let open = records.iter();
        let open = open.filter(|(shard, record)| !self.is_done(**shard, record, &nodes));
        Ok(Progress::Open(open.count()))
    }

    fn is_done(
        &self,
        shard: ShardId,
        record: &ShardRecord,
        nodes: &BTreeMap<StoreId, NodeId>,
    ) -> bool {
        let Some(target) = self.targets.get(&shard) else {
            return true;
        };
        let held = record.in_sync.iter();
        let held = held.filter_map(|entry| nodes.get(&entry.store).cloned());
        let hot = record.in_sync.iter().filter(|entry| entry.hot).count();
        let is_hot = !self.and_hot || hot == usize::from(record.hot);
        held.collect::<BTreeSet<_>>() == *target && record.learners.is_empty() && is_hot
    }
}

#[cfg(test)]
mod tests {
    use simshard_cluster::{MemoryKeyValues, Outcome, Transaction};
    use simshard_topology::replication::{Epoch, InSync, Learner};

    use super::*;

    /// Of two operators, the first would wait for ever.
    #[tokio::test]
    async fn who_waits_is_told_that_another_operator_has_chosen_other_nodes() {
        let keys = MemoryKeyValues::new();
        let nodes = BTreeSet::from([NodeId::new("n1").unwrap()]);
        let placing = Placing {
            targets: Targets::from([(ShardId(7), nodes)]),
            and_hot: true,
        };
        let change = Transaction::new().put("targets/07", r#"{"nodes":["n2"]}"#);
        let outcome = keys.commit(&change).await.unwrap();
        assert!(matches!(outcome, Outcome::Committed(_)));
        let waited = placing.wait(&keys, &Wait { no_wait: false }).await;
        let error = waited.unwrap_err().to_string();
        assert!(error.contains("for shards 07 meanwhile"), "{error}");
    }

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
        let placing = |and_hot| Placing {
            targets: Targets::from([(ShardId(7), BTreeSet::from([names[0].clone()]))]),
            and_hot,
        };
        let is_done = |record: &ShardRecord| placing(true).is_done(ShardId(7), record, &nodes);
        let one = held(vec![entry(stores[0], true)]);
        assert!(is_done(&one));
        let cold = held(vec![entry(stores[0], false)]);
        assert!(!is_done(&cold));
        assert!(placing(false).is_done(ShardId(7), &cold, &nodes));
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
}
