//! Whether this node holds all that it should: what an operator waits for before the next node is restarted.
//!
//! # Invariants
//! - PE5: a node is ready only while it is in sync for each shard that names it, or that it held and that is short of
//!   replicas. One that lost its store needs those that it takes at once and may copy. It also needs the tables of those
//!   that it is hot for, but of those that others search meanwhile (PE20). And it knows that the record by which it came is
//!   sealed. One of two knows that by a later record, also after a restart: if the store that was alone before is lost, it
//!   goes on alone (PE22). A move that ends makes no node unready, though that takes such a record too. At last, each
//!   store in sync beside it has said for a while that it hears this node, or is silent. Another one may be about to leave
//!   it out, as it was away.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use simshard_cluster::ClusterLayout;
use simshard_topology::replication::{Epoch, Role, ShardRecords, StoreId};
use simshard_topology::{ShardId, ShardSet};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::info;

use super::Peers;
use super::health::INTERVAL;
use super::heard::Heard;
use super::replacement::may_be_copied;
use crate::engine::Engine;

/// Tells whether the node is ready, as long as it is polled.
pub(super) async fn run(
    peers: &Peers,
    engine: &Engine,
    followed: watch::Receiver<Arc<ClusterLayout>>,
) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard = Heard::default();
    let mut said = None;
    loop {
        ticks.tick().await;
        let layout = Arc::clone(&followed.borrow());
        let deaf = deaf(&mut heard, peers, layout.records());
        let roles = roles(engine);
        let dead = peers.dead(&layout);
        let at_once = peers.may_take_at_once(&layout);
        let meant = meant(layout.records(), peers.own, &roles, &dead, &at_once);
        let reported = |shard, store| peers.epoch_on_disk(engine, shard, store);
        let in_sync = in_sync(layout.records(), peers.own, &roles, reported);
        let unbuilt = engine.unbuilt().difference(&spare(layout.records()));
        let missing = meant.difference(&in_sync).union(&unbuilt);
        let obstacle = Obstacle::of(&missing, deaf);
        peers.ready.send_if_modified(|ready| {
            let is_ready = obstacle.is_none();
            let has_changed = *ready != is_ready;
            *ready = is_ready;
            has_changed
        });
        if said.as_ref() != Some(&obstacle) && !*peers.stops.borrow() {
            match &obstacle {
                None => say_ready(in_sync),
                Some(Obstacle::Missing) => say_missing(missing),
                Some(Obstacle::Deaf(stores)) => say_deaf(stores, &layout),
            }
        }
        said = Some(obstacle);
    }
}

/// The stores in sync beside this one that may be about to take it for dead.
fn deaf(heard: &mut Heard, peers: &Peers, records: Option<&ShardRecords>) -> BTreeSet<StoreId> {
    let partners = partners(records, peers.own);
    let (now, others) = (Instant::now(), peers.others.lock());
    heard.look(now, peers.own, &others);
    heard.deaf(now, &others, &partners)
}

/// What keeps a node from being ready.
#[derive(Debug, PartialEq, Eq)]
enum Obstacle {
    /// Shards that it lacks, or whose tables it has yet to make.
    Missing,
    /// Stores that do not hear it, or not for long enough.
    Deaf(BTreeSet<StoreId>),
}

impl Obstacle {
    fn of(missing: &ShardSet, deaf: BTreeSet<StoreId>) -> Option<Self> {
        if !missing.is_empty() {
            return Some(Self::Missing);
        }
        (!deaf.is_empty()).then_some(Self::Deaf(deaf))
    }
}

/// The other stores in sync of the shards that a store holds in sync.
fn partners(records: Option<&ShardRecords>, own: StoreId) -> BTreeSet<StoreId> {
    let records = records.into_iter().flatten();
    let held = records.filter(|(_, record)| record.in_sync(own).is_some());
    let in_sync = held.flat_map(|(_, record)| &record.in_sync);
    let stores = in_sync.map(|entry| entry.store);
    stores.filter(|store| *store != own).collect()
}

/// What the store of this node does for the shards that it holds or held.
type Roles = BTreeMap<ShardId, Role>;

fn roles(engine: &Engine) -> Roles {
    let roles = engine.roles().into_iter();
    roles.map(|(shard, _, role)| (shard, role)).collect()
}

fn say_ready(in_sync: ShardSet) {
    if in_sync.is_empty() {
        info!("this node is ready: it holds no shard, and none waits for it");
    } else {
        info!(shards = %in_sync, "this node is ready: it holds all its shards in sync");
    }
}

fn say_missing(missing: ShardSet) {
    info!(shards = %missing, "this node is not ready: it has yet to get in sync, or to make tables");
}

fn say_deaf(stores: &BTreeSet<StoreId>, layout: &ClusterLayout) {
    let names = stores.iter().map(|store| {
        let node = layout.node_of(*store);
        node.map_or_else(|| store.to_string(), |node| node.id.to_string())
    });
    let nodes = names.collect::<Vec<String>>().join(",");
    info!(
        nodes,
        "this node is not ready: these nodes have not said for a second that they hear it; if that lasts, look at its \
         --address and the network"
    );
}

/// The shards of which more stores are hot than wished. While one of them makes its tables, another answers.
fn spare(records: Option<&ShardRecords>) -> ShardSet {
    let records = records.into_iter().flatten();
    let spare = records.filter(|(_, record)| record.has_spare_hot());
    spare.map(|(shard, _)| *shard).collect()
}

/// The shards that a store should hold in sync. `at_once` are those that it takes at once if they are short of replicas, as
/// its node lost the store that it had.
fn meant(
    records: Option<&ShardRecords>,
    own: StoreId,
    roles: &Roles,
    dead: &BTreeSet<StoreId>,
    at_once: &ShardSet,
) -> ShardSet {
    let records = records.into_iter().flatten();
    let meant = records.filter(|(shard, record)| {
        let comes = at_once.contains(**shard) && may_be_copied(record, dead);
        let comes = comes || roles.contains_key(shard);
        record.names(own) || comes && record.is_short_without(dead)
    });
    meant.map(|(shard, _)| *shard).collect()
}

/// The shards that a store holds in sync, by the metadata and by its own log, and by records that are sealed as far as it
/// knows. `reported` tells the epoch of a shard that a store has on disk.
fn in_sync(
    records: Option<&ShardRecords>,
    own: StoreId,
    roles: &Roles,
    reported: impl Fn(ShardId, StoreId) -> Epoch,
) -> ShardSet {
    let records = records.into_iter().flatten();
    let in_sync = records.filter(|(shard, record)| {
        let is_by_log = roles.get(shard) == Some(&Role::InSync);
        // A later record follows a sealed one.
        let is_known = |since: Epoch| {
            since.number == Epoch::FIRST.number
                || since < record.epoch
                || record.is_sealed(|store| reported(**shard, store)) && !record.needs_other(own)
        };
        let entry = record.in_sync(own);
        is_by_log && entry.is_some_and(|entry| is_known(entry.since))
    });
    in_sync.map(|(shard, _)| *shard).collect()
}

#[cfg(test)]
mod tests {
    use simshard_topology::replication::{InSync, Learner, ShardRecord};

    use super::*;

    const STORES: [StoreId; 3] = [StoreId([1; 16]), StoreId([2; 16]), StoreId([3; 16])];

    const SHARD: ShardId = ShardId(7);

    fn records(record: &ShardRecord) -> ShardRecords {
        ShardRecords::from([(SHARD, Arc::new(record.clone()))])
    }

    /// Whether the first store lacks the shard.
    fn is_missing(record: &ShardRecord, role: Option<Role>, is_at_once: bool) -> bool {
        is_missing_without(&[], record, role, is_at_once)
    }

    /// The same while others are dead.
    fn is_missing_without(
        dead: &[StoreId],
        record: &ShardRecord,
        role: Option<Role>,
        is_at_once: bool,
    ) -> bool {
        let roles = role.map(|role| (SHARD, role)).into_iter().collect();
        let records = records(record);
        let dead = dead.iter().copied().collect();
        let at_once = is_at_once.then_some(SHARD).into_iter().collect();
        let meant = meant(Some(&records), STORES[0], &roles, &dead, &at_once);
        let in_sync = in_sync(Some(&records), STORES[0], &roles, |_, _| record.epoch);
        !meant.difference(&in_sync).is_empty()
    }

    /// PE5. Else the shard could not go on if the other one dies just then.
    #[test]
    fn a_node_that_joins_one_is_ready_once_it_could_go_on_without_the_other() {
        let mut record = ShardRecord::first(0, &STORES[1..2], 7).with_want(2);
        record.epoch.number += 2;
        record.previous = vec![STORES[1]];
        record.in_sync.push(InSync {
            store: STORES[0],
            since: record.epoch,
            hot: true,
        });
        let roles = Roles::from([(SHARD, Role::InSync)]);
        let is_in_sync = |record: &ShardRecord, of_other: Epoch| {
            let reported = |_, store| {
                if store == STORES[1] {
                    of_other
                } else {
                    record.epoch
                }
            };
            !in_sync(Some(&records(record)), STORES[0], &roles, reported).is_empty()
        };
        assert!(!is_in_sync(&record, Epoch::FIRST));
        // It would not know that any more after a restart, when the other one may be lost.
        assert!(!is_in_sync(&record, record.epoch));
        let mut of_three = record.clone().with_want(3);
        of_three.in_sync.push(InSync {
            store: STORES[2],
            since: Epoch::FIRST,
            hot: true,
        });
        assert!(!is_in_sync(&of_three, Epoch::FIRST));
        assert!(is_in_sync(&of_three, record.epoch));
        let mut later = record.clone();
        later.epoch.number += 1;
        assert!(is_in_sync(&later, Epoch::FIRST));
        record.in_sync[1].since = Epoch::FIRST;
        assert!(is_in_sync(&record, Epoch::FIRST));
    }

    /// PE5: those of shards that it does not hold, and those that copy, cannot leave it out.
    #[test]
    fn the_other_stores_in_sync_of_its_shards_are_to_hear_it() {
        let [own, beside, other] = STORES;
        let mut held = ShardRecord::first(0, &[own, beside], 7);
        held.learners.push(Learner {
            store: other,
            added: held.epoch,
        });
        let not_held = ShardRecord::first(0, &[beside, other], 7);
        let both = [(SHARD, held), (ShardId(8), not_held)];
        let records = both.map(|(shard, record)| (shard, Arc::new(record)));
        let partners = partners(Some(&ShardRecords::from(records)), own);
        assert_eq!(partners, BTreeSet::from([beside]));
    }

    /// PE5. Such a store is in no record at first, and has no role.
    #[test]
    fn a_node_that_lost_its_store_is_ready_once_no_shard_is_short() {
        let whole = ShardRecord::first(0, &STORES, 7);
        let mut short = whole.clone();
        short.in_sync.remove(0);
        // A new node takes them later.
        assert!(!is_missing(&short, None, false));
        assert!(is_missing(&short, None, true));
        // No store has what it would copy.
        assert!(is_missing_without(&STORES[1..2], &short, None, true));
        assert!(!is_missing_without(&STORES[1..], &short, None, true));
        let mut rebuilt = short.clone();
        rebuilt.hot = 0;
        assert!(!is_missing(&rebuilt, None, true));
        let added = short.epoch;
        short.learners.push(Learner {
            store: STORES[0],
            added,
        });
        let copying = Some(Role::Copying { added });
        assert!(is_missing(&short, copying, true));
        assert!(!is_missing(&whole, Some(Role::InSync), true));
        // From then on it is as any other.
        let mut short = whole;
        short.in_sync.remove(0);
        assert!(!is_missing(&short, None, false));
        assert!(is_missing(&short, Some(Role::None), false));
    }
}
