//! Waiting until shards are where they are to be.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use simshard_cluster::{
    KeyValueStore, MetadataError, Targets, is_placed, paused, registered_stores, shard_records,
    targets,
};
use simshard_topology::replication::{ShardRecord, StoreId};
use simshard_topology::{NodeId, ShardId, ShardSet};
use tokio::time::{Instant, sleep};

use crate::progress;
use crate::say::note;

/// Between two looks at the records.
const INTERVAL: Duration = Duration::from_millis(300);

/// A command that waits ends once the metadata has been away for this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// After this long without a shard that arrived, a command says whom it waits for.
const STANDSTILL: Duration = Duration::from_secs(20);

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
    /// How many replicas the shards are to have, and how many of them hot, if that was said.
    pub(super) wished: Option<(u8, u8)>,
}

/// How far it is.
enum Progress {
    Open(Open),
    /// Another operator has chosen other nodes for these shards meanwhile: the wait might never end.
    Elsewhere(ShardSet),
    /// Another operator wishes for other numbers of replicas of these shards.
    OtherWish(ShardSet),
}

/// What is still to be done.
#[derive(Default)]
struct Open {
    /// How many shards are not yet where they are to be.
    shards: usize,
    /// The nodes that do not hold shards yet which they are to hold.
    lacking: BTreeMap<NodeId, ShardSet>,
}

/// When shards arrived last, and whether a standstill was told since then.
struct Arrivals {
    open: usize,
    last: Instant,
    is_told: bool,
}

impl Arrivals {
    fn new() -> Self {
        Self {
            open: usize::MAX,
            last: Instant::now(),
            is_told: false,
        }
    }

    /// What to say of what is open now: once for each standstill, and only if a node lacks shards.
    fn look(&mut self, open: &Open) -> Option<String> {
        if open.shards < self.open {
            (self.open, self.last, self.is_told) = (open.shards, Instant::now(), false);
        }
        if self.is_told || self.last.elapsed() < STANDSTILL || open.lacking.is_empty() {
            return None;
        }
        self.is_told = true;
        let lacking = open.lacking.iter();
        let lacking = lacking.map(|(node, shards)| format!("{node} for shards {shards}"));
        let lacking = lacking.collect::<Vec<_>>().join(", ");
        Some(format!(
            "still waiting for {lacking}: `simshard cluster nodes` shows whether they run"
        ))
    }
}

impl Placing {
    /// Waits until the shards are where they are to be. The nodes go on if this is cut off.
    pub(super) async fn wait(&self, keys: &dyn KeyValueStore, wait: &Wait) -> anyhow::Result<()> {
        if wait.no_wait {
            note("the nodes move the shards: `simshard cluster shards` shows how far they are");
            return Ok(());
        }
        if paused(keys).await.is_ok_and(|since| since.is_some()) {
            note("moves are paused: `simshard cluster rebalance resume` lets the shards move");
        }
        let bar = progress::bar("moving shards", Some(self.targets.len() as u64));
        let (mut read, mut is_told) = (Instant::now(), false);
        let mut arrivals = Arrivals::new();
        loop {
            match self.progress(keys).await {
                Ok(Progress::Open(open)) if open.shards == 0 => break,
                Ok(Progress::Open(open)) => {
                    (read, is_told) = (Instant::now(), false);
                    bar.set_position(self.targets.len().saturating_sub(open.shards) as u64);
                    if let Some(standstill) = arrivals.look(&open) {
                        note(standstill);
                    }
                }
                Ok(Progress::Elsewhere(shards)) => bail!(
                    "other nodes have been chosen for shards {shards} meanwhile: they go there instead"
                ),
                Ok(Progress::OtherWish(shards)) => bail!(
                    "other numbers of replicas have been chosen for shards {shards} meanwhile: they get those instead"
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
        let is_meant = |record: &ShardRecord| {
            self.wished
                .is_none_or(|wished| (record.want, record.hot) == wished)
        };
        let others = records.iter().filter(|(_, record)| !is_meant(record));
        let others: ShardSet = others.map(|(shard, _)| *shard).collect();
        if !others.is_empty() {
            return Ok(Progress::OtherWish(others));
        }
        let stores = registered_stores(keys).await?.into_iter();
        let nodes: BTreeMap<StoreId, NodeId> = stores.map(|store| (store.id, store.node)).collect();
        let mut open = Open::default();
        for (shard, record) in &records {
            if !self.is_done(*shard, record, &nodes) {
                open.shards += 1;
                self.add_lacking(*shard, record, &nodes, &mut open.lacking);
            }
        }
        Ok(Progress::Open(open))
    }

    /// Adds the nodes of the target that do not hold this shard.
    fn add_lacking(
        &self,
        shard: ShardId,
        record: &ShardRecord,
        nodes: &BTreeMap<StoreId, NodeId>,
        lacking: &mut BTreeMap<NodeId, ShardSet>,
    ) {
        let held = holders(record, nodes);
        let target = self.targets.get(&shard).into_iter().flatten();
        for node in target.filter(|node| !held.contains(node)) {
            let of_node = lacking.entry(node.clone()).or_default();
            *of_node = of_node.union(&ShardSet::from_iter([shard]));
        }
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
        let hot = record.in_sync.iter().filter(|entry| entry.hot).count();
        let is_hot = self.wished.is_none() || hot == usize::from(record.hot);
        is_placed(record, target, |store| nodes.get(&store)) && is_hot
    }
}

/// The nodes whose stores are in sync.
fn holders(record: &ShardRecord, nodes: &BTreeMap<StoreId, NodeId>) -> BTreeSet<NodeId> {
    let stores = record.in_sync.iter().map(|entry| entry.store);
    stores
        .filter_map(|store| nodes.get(&store).cloned())
        .collect()
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
            wished: None,
        };
        let change = Transaction::new().put("targets/07", r#"{"nodes":["n2"]}"#);
        let outcome = keys.commit(&change).await.unwrap();
        assert!(matches!(outcome, Outcome::Committed(_)));
        let waited = placing.wait(&keys, &Wait { no_wait: false }).await;
        let error = waited.unwrap_err().to_string();
        assert!(error.contains("for shards 07 meanwhile"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_standstill_is_told_once_with_the_nodes_that_lack_shards() {
        let node = NodeId::new("n4").unwrap();
        let shards: ShardSet = [ShardId(0x40), ShardId(0x41)].into_iter().collect();
        let open = |count, lacking| Open {
            shards: count,
            lacking,
        };
        let lacking = BTreeMap::from([(node, shards)]);
        let mut arrivals = Arrivals::new();
        assert_eq!(arrivals.look(&open(3, lacking.clone())), None);
        tokio::time::advance(STANDSTILL).await;
        // Tables that are still to be made are no node's lack.
        assert_eq!(arrivals.look(&open(3, BTreeMap::new())), None);
        let told = arrivals.look(&open(3, lacking.clone())).unwrap();
        assert!(told.contains("n4 for shards 40-41:"), "{told}");
        tokio::time::advance(STANDSTILL).await;
        assert_eq!(arrivals.look(&open(3, lacking.clone())), None);
        // Another shard arrived: the next standstill is told again.
        assert_eq!(arrivals.look(&open(2, lacking.clone())), None);
        tokio::time::advance(STANDSTILL).await;
        assert!(arrivals.look(&open(2, lacking)).is_some());
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
        let placing = |wished| Placing {
            targets: Targets::from([(ShardId(7), BTreeSet::from([names[0].clone()]))]),
            wished,
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
}
