//! Taking dead stores out of the records of shards.
//!
//! # Invariants
//! - PE3: an eviction leaves a store in sync that has answered lately.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{ClusterLayout, KeyValueStore, Steps, take_steps};
use simshard_topology::ShardSet;
use simshard_topology::replication::{ShardRecord, Step, StoreId};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tracing::{info, warn};

use super::health::{INTERVAL, Others};
use super::{Peers, names, share, synced};
use crate::engine::Engine;
use crate::error::NodeError;

/// A metadata store that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(5);

/// Looks again and again, as long as it is polled.
pub(super) async fn run(
    peers: &Arc<Peers>,
    keys: &dyn KeyValueStore,
    engine: &Engine,
    followed: watch::Receiver<Arc<ClusterLayout>>,
) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_failing = false;
    loop {
        ticks.tick().await;
        let layout = Arc::clone(&followed.borrow());
        let others = peers.others.lock().clone();
        let Some(members) = Members::of(&others, peers.own, &layout) else {
            continue;
        };
        let outcome = members.leave(keys, &others, engine).await;
        if let Err(error) = &outcome
            && !is_failing
        {
            warn!(%error, "dead stores stay in the records of shards for now");
        }
        is_failing = outcome.is_err();
    }
}

/// The stores by which steps are decided.
struct Members {
    own: StoreId,
    live: BTreeSet<StoreId>,
    dead: BTreeSet<StoreId>,
}

impl Members {
    /// `None` if no record names a dead store.
    fn of(others: &Others, own: StoreId, layout: &ClusterLayout) -> Option<Self> {
        let now = Instant::now();
        let dead = others.dead(now, |other, store| share(layout, other, store));
        let mut records = layout.records().into_iter().flatten();
        let is_named = records.any(|(_, record)| dead.iter().any(|store| names(record, *store)));
        let live = others.live(now);
        is_named.then_some(Self { own, live, dead })
    }

    /// The step by which a dead store leaves a shard of this node, if there is one to take.
    fn step(&self, record: &ShardRecord) -> Option<Step> {
        if !names(record, self.own) {
            return None;
        }
        let mut learners = record.learners.iter();
        if let Some(learner) = learners.find(|learner| self.dead.contains(&learner.store)) {
            return Some(Step::DropLearner(learner.store));
        }
        let is_there = |store: StoreId| store == self.own || self.live.contains(&store);
        if !record.in_sync.iter().any(|entry| is_there(entry.store)) {
            return None;
        }
        let mut in_sync = record.in_sync.iter();
        let dead = in_sync.find(|entry| self.dead.contains(&entry.store));
        dead.map(|entry| Step::Evict(entry.store))
    }

    /// Takes one step of each record that names a dead store.
    async fn leave(
        &self,
        keys: &dyn KeyValueStore,
        others: &Others,
        engine: &Engine,
    ) -> Result<(), NodeError> {
        let steps = take_steps(
            keys,
            |_, record| self.step(record),
            |shard, store| synced(others, self.own, engine, shard, store),
        );
        match timeout(PATIENCE, steps).await {
            Ok(steps) => {
                self.log(&steps?);
                Ok(())
            }
            Err(_elapsed) => Err(NodeError::MetadataLate(PATIENCE)),
        }
    }

    fn log(&self, steps: &Steps) {
        let shards: ShardSet = steps.taken.keys().copied().collect();
        if !shards.is_empty() {
            let dead: Vec<String> = self.dead.iter().map(ToString::to_string).collect();
            let dead = dead.join(",");
            info!(%shards, dead, "shards go on without stores that do not answer");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORES: [StoreId; 3] = [StoreId([1; 16]), StoreId([2; 16]), StoreId([3; 16])];

    fn members(own: usize, live: &[usize], dead: &[usize]) -> Members {
        let some = |places: &[usize]| places.iter().map(|&place| STORES[place]).collect();
        Members {
            own: STORES[own],
            live: some(live),
            dead: some(dead),
        }
    }

    /// PE3.
    #[test]
    fn a_dead_store_leaves_where_a_live_one_stays() {
        let record = ShardRecord::first(0, &STORES, 7);
        let evict = Some(Step::Evict(STORES[2]));
        assert_eq!(members(0, &[1], &[2]).step(&record), evict);
        assert_eq!(members(0, &[1], &[]).step(&record), None);
        let others = ShardRecord::first(0, &STORES[1..], 7);
        assert_eq!(members(0, &[1], &[2]).step(&others), None);
        let mut as_learner = ShardRecord::first(0, &STORES[1..], 7);
        as_learner.learners = vec![simshard_topology::replication::Learner {
            store: STORES[0],
            added: as_learner.epoch,
        }];
        assert_eq!(members(0, &[1], &[2]).step(&as_learner), evict);
        assert_eq!(members(0, &[], &[2]).step(&as_learner), None);
        let drop = Some(Step::DropLearner(STORES[0]));
        assert_eq!(members(1, &[2], &[0]).step(&as_learner), drop);
    }
}
