//! Deleting what this node has of shards that it lost, once other nodes have taken its place.
//!
//! # Invariants
//! - FM1: what a store has of a shard that it lost goes only once the shard has long had all its replicas without it. All
//!   of them have answered lately, and have found no damage. The record that says so is sealed. Until then, the store may
//!   come back and copy only what differs. The time while this process did not run does not count.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::ClusterLayout;
use simshard_topology::replication::{Epoch, Role, ShardRecord, StoreId};
use simshard_topology::{ShardId, ShardSet};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::info;

use super::Peers;
use super::health::Others;
use crate::engine::Engine;

/// How often it looks.
const INTERVAL: Duration = Duration::from_secs(1);

/// If this process has not looked for so long, it cannot say who lived meanwhile.
const ABSENT_AFTER: Duration = Duration::from_secs(3);

/// Deletes again and again what may go, as long as it is polled. A shard must have been without this node for as long as
/// one that lacks a replica waits for another node.
pub(super) async fn run(
    peers: &Peers,
    engine: &Engine,
    followed: watch::Receiver<Arc<ClusterLayout>>,
) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut former = Former::default();
    loop {
        ticks.tick().await;
        let layout = Arc::clone(&followed.borrow());
        let due = former.due(
            Instant::now(),
            replaced(peers, engine, &layout),
            peers.takeover.after,
        );
        if due.is_empty() {
            continue;
        }
        let store = Arc::clone(engine.store());
        let delete = move || {
            let deleted = due.iter().filter(|shard| store.delete_former(*shard));
            deleted.collect()
        };
        let deleted = spawn_blocking(delete).await;
        // If it panicked, the process says so.
        let shards = deleted.unwrap_or(ShardSet::EMPTY);
        if !shards.is_empty() {
            info!(%shards, "this node has deleted what it had of shards that other nodes hold now");
        }
    }
}

/// The shards that this node lost, and that have all their replicas without it, each of them well.
fn replaced(peers: &Peers, engine: &Engine, layout: &ClusterLayout) -> ShardSet {
    let Some(records) = layout.records() else {
        return ShardSet::EMPTY;
    };
    let (others, now) = (peers.others.lock().clone(), Instant::now());
    let roles = engine.roles().into_iter();
    let replaced = roles.filter(|(shard, record, role)| {
        let current = records.get(shard).map(|current| current.epoch);
        let is_last = *role == Role::None && current == Some(record.epoch);
        let is_well = |store| is_well(&others, now, *shard, store);
        is_last && is_replaced(record, is_well, |store| peers.reported_epoch(*shard, store))
    });
    replaced.map(|(shard, ..)| shard).collect()
}

/// Whether the record by which this node has lost a shard names all that the shard needs, each of them well, and is
/// sealed.
fn is_replaced(
    record: &ShardRecord,
    is_well: impl Fn(StoreId) -> bool,
    reported: impl Fn(StoreId) -> Epoch,
) -> bool {
    is_complete(record, is_well) && record.is_sealed(reported)
}

/// Whether a store has answered lately, and has found no damage of a shard. Without silence it may yet be dead: no silence
/// counts while this process did not run.
fn is_well(others: &Others, now: Instant, shard: ShardId, store: StoreId) -> bool {
    let health = others.by_store.get(&store);
    health.is_some_and(|health| health.is_live(now) && !health.damaged.contains(shard))
}

fn is_complete(record: &ShardRecord, is_well: impl Fn(StoreId) -> bool) -> bool {
    let mut in_sync = record.in_sync.iter();
    let are_well = in_sync.all(|entry| is_well(entry.store));
    are_well && !record.is_short() && record.learners.is_empty()
}

/// The shards that have had all their replicas without this node.
#[derive(Default)]
struct Former {
    since: BTreeMap<ShardId, Instant>,
    /// When this process last looked.
    looked: Option<Instant>,
    deleted: ShardSet,
}

impl Former {
    /// Takes note of those that have them now. Answers those that have had them for this long, each once. If this process
    /// was away, the time begins anew.
    fn due(&mut self, now: Instant, replaced: ShardSet, after: Duration) -> ShardSet {
        let looked = self.looked.replace(now);
        if looked.is_none_or(|looked| now.saturating_duration_since(looked) >= ABSENT_AFTER) {
            self.since.clear();
        }
        self.since.retain(|shard, _| replaced.contains(*shard));
        for shard in replaced.iter() {
            self.since.entry(shard).or_insert(now);
        }
        let long = self
            .since
            .iter()
            .filter(|(_, since)| now >= **since + after);
        let long: ShardSet = long.map(|(shard, _)| *shard).collect();
        let due = long.difference(&self.deleted);
        self.deleted = long;
        due
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use simshard_topology::replication::{Learner, Step};

    use super::*;
    use crate::peers::health::Sign;

    const AFTER: Duration = Duration::from_secs(600);

    /// The shards that are due at the end of a time in which it looked again and again.
    fn due_after(
        former: &mut Former,
        now: &mut Instant,
        time: Duration,
        replaced: &[ShardId],
    ) -> Vec<ShardId> {
        let mut due = ShardSet::EMPTY;
        for _ in 0..time.as_secs().max(1) {
            *now += INTERVAL;
            due = due.union(&former.due(*now, replaced.iter().copied().collect(), AFTER));
        }
        due.iter().collect()
    }

    /// FM1.
    #[test]
    fn a_shard_is_due_once_it_has_been_complete_for_long() {
        let (one, both) = ([ShardId(7)], [ShardId(7), ShardId(8)]);
        let (mut former, mut now) = (Former::default(), Instant::now());
        let mut due = |time, replaced: &[_]| due_after(&mut former, &mut now, time, replaced);
        assert_eq!(due(INTERVAL, &one), []);
        assert_eq!(due(AFTER / 2, &both), []);
        assert_eq!(due(AFTER / 2, &both), one);
        assert_eq!(due(AFTER / 2, &both), [ShardId(8)]);
        assert_eq!(due(AFTER, &both), []);
        // It was short of a replica meanwhile.
        assert_eq!(due(AFTER, &[ShardId(8)]), []);
        assert_eq!(due(AFTER, &both), []);
        assert_eq!(due(INTERVAL, &both), one);
    }

    /// FM1.
    #[test]
    fn the_time_while_this_process_did_not_run_does_not_count() {
        let (mut former, mut now) = (Former::default(), Instant::now());
        let one = [ShardId(7)];
        assert_eq!(due_after(&mut former, &mut now, AFTER / 2, &one), []);
        now += AFTER;
        assert_eq!(due_after(&mut former, &mut now, AFTER, &one), []);
        assert_eq!(due_after(&mut former, &mut now, INTERVAL, &one), one);
    }

    /// FM1: before it looks again, a process that was away knows of no silence.
    #[test]
    fn a_store_that_has_not_answered_lately_is_not_well() {
        let (store, start) = (StoreId([1; 16]), Instant::now());
        let mut others = Others::default();
        others.look(start, &BTreeSet::from([store]));
        let is_well = |others: &Others, now| is_well(others, now, ShardId(7), store);
        assert!(!is_well(&others, start));
        let health = others.by_store.get_mut(&store).unwrap();
        health.note(start, Sign::default());
        assert!(is_well(&others, start));
        let later = start + AFTER;
        assert!(others.silent(later).is_empty());
        assert!(!is_well(&others, later));
        let damaged = Sign {
            damaged: ShardSet::from_iter([ShardId(7)]),
            ..Sign::default()
        };
        let health = others.by_store.get_mut(&store).unwrap();
        health.note(start, damaged);
        assert!(!is_well(&others, start));
    }

    /// FM1.
    #[test]
    fn a_shard_that_lacks_a_replica_keeps_what_others_have_of_it() {
        let stores = [1, 2].map(|byte| StoreId([byte; 16]));
        let mut record = ShardRecord::first(0, &stores, 7);
        let is_complete = |record: &ShardRecord, ill: &[StoreId]| {
            is_complete(record, |store| !ill.contains(&store))
        };
        assert!(is_complete(&record, &[]));
        assert!(!is_complete(&record, &stores[1..]));
        record.in_sync.pop();
        assert!(!is_complete(&record, &[]));
        record.learners.push(Learner {
            store: stores[1],
            added: Epoch::FIRST,
        });
        assert!(!is_complete(&record, &[]));
    }

    /// FM1: a move has brought it to another node, and nothing proves yet that reads know of that.
    #[test]
    fn a_shard_is_kept_until_the_record_that_lost_it_is_sealed() {
        let [old, new] = [1, 2].map(|byte| StoreId([byte; 16]));
        let record = ShardRecord::first(0, &[old, new], 7).with_want(1);
        let epoch = record.epoch;
        let moved = record.after(Step::Evict(old), 8, |_| epoch, |_| false);
        let moved = moved.unwrap();
        let is_replaced = |reported: Epoch| is_replaced(&moved, |_| true, |_| reported);
        assert!(!is_replaced(epoch));
        assert!(is_replaced(moved.epoch));
    }
}
