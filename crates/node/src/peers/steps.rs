//! Taking dead stores out of the records of shards, and the own one back in: as a learner first, and in sync once it has
//! copied all. Which step a record needs is chosen by [`Members`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use simshard_cluster::{ClusterLayout, KeyValueStore, METADATA_PATIENCE, take_steps};
use simshard_storage::Room;
use simshard_topology::replication::{Cause, Members, Searched, ShardRecord, StoreId};
use simshard_topology::{ShardId, ShardSet};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tracing::warn;

use super::health::{INTERVAL, Others};
use super::leavings::Leavings;
use super::own_disk::OwnDisk;
use super::step_log::Chosen;
use super::{Peers, Takeover, share};
use crate::engine::Engine;
use crate::error::NodeError;

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
    let mut seen = Seen::new(peers.takeover);
    loop {
        ticks.tick().await;
        let layout = Arc::clone(&followed.borrow());
        let others = peers.others.lock().clone();
        let now = Instant::now();
        let members = seen.members(now, peers, &others, engine, &layout);
        let comes = any(&layout, |shard, record| members.is_wanted(shard, record));
        peers.set_coming(comes);
        seen.note_reach(comes.then(|| others.reach(now)).flatten(), peers, &layout);
        if !any(&layout, |shard, record| {
            members.step(shard, record).is_some()
        }) {
            continue;
        }
        let outcome = steps_of(&members, keys, peers, engine, &layout).await;
        if let Err(error) = &outcome
            && !is_failing
        {
            warn!(%error, "the records of shards stay as they are for now");
        }
        is_failing = outcome.is_err();
        if outcome.is_ok_and(|has_left| has_left) {
            seen.own_disk.note_leaving(now);
        }
    }
}

/// Whether something holds of any record.
fn any(layout: &ClusterLayout, holds: impl Fn(ShardId, &ShardRecord) -> bool) -> bool {
    let mut records = layout.records().into_iter().flatten();
    records.any(|(&shard, record)| holds(shard, record))
}

/// What was seen over time.
struct Seen {
    short: Short,
    own_disk: OwnDisk,
    leavings: Leavings,
    takeover: Takeover,
    /// Whether this store is known not to be reached.
    is_unreached: bool,
}

impl Seen {
    fn new(takeover: Takeover) -> Self {
        Self {
            short: Short::new(),
            own_disk: OwnDisk::default(),
            leavings: Leavings::default(),
            takeover,
            is_unreached: false,
        }
    }

    /// Looks once more. Answers what is known now.
    fn members(
        &mut self,
        now: Instant,
        peers: &Peers,
        others: &Others,
        engine: &Engine,
        layout: &ClusterLayout,
    ) -> Members {
        let dead = others.dead(now, |other, store| share(layout, other, store));
        note_short(&mut self.short, layout, &dead, now);
        self.own_disk
            .look(now, engine.awaited(), &others.log_delays(now));
        self.takeover.at_once &= !self.short.is_empty();
        let Takeover { after, at_once } = self.takeover;
        let long = self.short.iter();
        let long = long.filter(|(_, since)| at_once || since.elapsed() >= after);
        let roles = engine.roles().into_iter();
        let roles = roles.map(|(shard, _, role)| (shard, role)).collect();
        // After the roles: a shard that has begun anew since then has no damage.
        let own_damage = engine.damaged();
        let others_damage = others.by_store.iter();
        let damaged = others_damage.map(|(store, health)| (*store, health.damaged));
        let room = engine.room();
        let own_full = (room <= Room::Little).then_some(peers.own);
        let records = layout.records();
        Members {
            own: peers.own,
            live: others.live(now),
            dead,
            silent: others.silent(now),
            reaching: others.reaching(now),
            roles,
            has_room_for_copies: room == Room::Ample,
            full: others.full().into_iter().chain(own_full).collect(),
            disk_hangs: self.own_disk.hangs(),
            disk_is_late: self.own_disk.is_late(),
            much_faster: self.own_disk.much_faster().collect(),
            rests: self.own_disk.rests(),
            lately_left: records
                .map_or(ShardSet::EMPTY, |records| self.leavings.look(now, records)),
            damaged: damaged.chain([(peers.own, own_damage)]).collect(),
            copied: peers.agreed.borrow().clone(),
            unbuilt: engine.unbuilt(),
            long_short: long.map(|(shard, _)| *shard).collect(),
        }
    }

    /// Says so when it gets known that no other store reaches this one, which would come back. `reach` is not there while
    /// that is not known.
    fn note_reach(&mut self, reach: Option<bool>, peers: &Peers, layout: &ClusterLayout) {
        let Some(is_reached) = reach else { return };
        if !is_reached && !self.is_unreached {
            let address = layout.node_of(peers.own).map(|node| &node.address);
            let address = address.map_or("unknown", String::as_str);
            warn!(
                address,
                "no node that holds shards reaches this one at its address, so it does not come back to them: \
                 see --address, and what is between the nodes"
            );
        }
        self.is_unreached = !is_reached;
    }
}

/// Since when shards have been short of replicas.
type Short = BTreeMap<ShardId, Instant>;

fn note_short(short: &mut Short, layout: &ClusterLayout, dead: &BTreeSet<StoreId>, now: Instant) {
    for (&shard, record) in layout.records().into_iter().flatten() {
        if record.is_short_without(dead) {
            short.entry(shard).or_insert(now);
        } else {
            short.remove(&shard);
        }
    }
}

/// A store that left for one of these stays away for a while.
const OF_THE_DISK: [Cause; 3] = [Cause::SlowDisk, Cause::DiskHangs, Cause::NoRoom];

/// Takes the next step of each record. Answers whether the own store has left a shard because of its disk.
async fn steps_of(
    members: &Members,
    keys: &dyn KeyValueStore,
    peers: &Peers,
    engine: &Engine,
    layout: &ClusterLayout,
) -> Result<bool, NodeError> {
    let chosen = Chosen::default();
    let reported_epoch = |shard: ShardId, store: StoreId| {
        if store == members.own {
            engine.report(shard)
        } else {
            peers.reported_epoch(shard, store)
        }
    };
    let steps = take_steps(
        keys,
        |shard, record| {
            let (step, cause) = members.step_and_cause(shard, record)?;
            chosen.note(shard, step, cause);
            Some(step)
        },
        reported_epoch,
        |shard, store| members.searched(shard, store) == Searched::Lost,
    );
    match timeout(METADATA_PATIENCE, steps).await {
        Ok(steps) => {
            let taken = steps?.taken;
            let has_left = chosen.has_left(&taken, &OF_THE_DISK);
            chosen.tell(&taken, members.own, layout);
            Ok(has_left)
        }
        Err(_elapsed) => Err(NodeError::MetadataLate(METADATA_PATIENCE)),
    }
}
