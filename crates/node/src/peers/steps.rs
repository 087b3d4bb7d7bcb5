//! Taking dead stores out of the records of shards, and the own one back in: as a learner first, and in sync once it has
//! copied all. Which step a record needs is chosen by [`View`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{ClusterLayout, Feature, KeyValueStore, Steps, require};
use simshard_storage::Room;
use simshard_topology::replication::{
    Cause, MOST_AT_ONCE, Searched, ShardRecord, ShardRecords, StoreId, View,
};
use simshard_topology::{ShardId, ShardSet};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::warn;

use super::aims::Aims;
use super::cadence::Cadence;
use super::health::{INTERVAL, Others};
use super::leavings::Leavings;
use super::own_disk::OwnDisk;
use super::own_room::OwnRoom;
use super::step_log::Chosen;
use super::{Peers, Wishes, dead};
use crate::engine::Engine;
use crate::error::NodeError;
use crate::patience::in_time;

/// After this number of looks in a row, about two seconds, the log says that no store reaches this one. Others may not know
/// a new address before.
const PATIENT_LOOKS: u32 = 10;

/// Between two questions whether the cluster has the level at which nodes share searches.
const LEVEL_INTERVAL: Duration = Duration::from_secs(10);

/// Looks again and again, as long as it is polled.
pub(super) async fn run(
    peers: &Arc<Peers>,
    keys: &dyn KeyValueStore,
    engine: &Engine,
    followed: watch::Receiver<Arc<ClusterLayout>>,
) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // What was said last of a failure.
    let mut failing: Option<String> = None;
    let mut seen = Seen::new();
    loop {
        ticks.tick().await;
        // Without them, a node that has just started would leave, or take, what an operator has chosen otherwise.
        let Some(wishes) = peers.wishes() else {
            continue;
        };
        let layout = Arc::clone(&followed.borrow());
        seen.ask_for_level(keys).await;
        let others = peers.others.lock().clone();
        let now = Instant::now();
        let mut view = seen.look(now, peers, &wishes, &others, engine, &layout);
        let records = seen.last_records(&layout);
        seen.take_turns(&mut view, &records);
        seen.share_searches(&mut view, &records);
        view.moves_go_on = seen.cadence.look(engine.work_given(), now);
        let comes = any(&layout, |shard, record| view.is_wanted(shard, record));
        let address = layout.node_of(peers.own).map(|node| node.address.clone());
        let holds = |store| any(&layout, |_, record| record.in_sync(store).is_some());
        seen.note_reach(comes, others.reach(now, holds), address.as_deref());
        peers.set_coming_at(address.filter(|_| comes));
        if view.stops && own_has_left(&view, &records) {
            peers.has_left.send_replace(true);
        }
        if !any(&layout, |shard, record| view.step(shard, record).is_some()) {
            continue;
        }
        let due = moves_due(&view, &layout);
        let (taken, causes, outcome) = take_steps(&view, keys, peers, engine, &layout).await;
        // A move whose record is not sealed yet was not taken, and so it waits for no pause.
        if due.iter().any(|shard| taken.contains_key(&shard)) {
            seen.cadence.note_moves(now);
        }
        let failure = outcome.err().map(|error| error.to_string());
        if let Some(error) = &failure
            && failing != failure
        {
            warn!(%error, "some records of shards stay as they are for now");
        }
        failing = failure;
        seen.note_leaving(now, &causes);
        seen.written.extend(taken);
    }
}

/// Whether the own store, which is about to stop, leaves no shard any more. It may leave one of which another store may
/// live or be dead.
fn own_has_left(view: &View, records: &ShardRecords) -> bool {
    let is_unknown = |store| {
        let is_known = view.live.contains(&store) || view.dead.contains(&store);
        store != view.own && !is_known
    };
    let may_leave = |(shard, record): (&ShardId, &Arc<ShardRecord>)| {
        let step = view.step_and_cause(*shard, record);
        let leaves = step.is_some_and(|(_, cause)| cause.is_some());
        let mut in_sync = record.in_sync.iter();
        leaves || record.names(view.own) && in_sync.any(|entry| is_unknown(entry.store))
    };
    !records.iter().any(may_leave)
}

/// The shards of which steps are due that might wait.
fn moves_due(view: &View, layout: &ClusterLayout) -> ShardSet {
    let waiting = View {
        moves_go_on: false,
        ..view.clone()
    };
    let records = layout.records().into_iter().flatten();
    let due = records
        .filter(|(shard, record)| view.step(**shard, record) != waiting.step(**shard, record));
    due.map(|(shard, _)| *shard).collect()
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
    own_room: OwnRoom,
    leavings: Leavings,
    aims: Aims,
    cadence: Cadence,
    /// Records that this store has written, which the layout may not show yet.
    written: ShardRecords,
    /// Whether all nodes of the cluster share searches.
    all_share_searches: bool,
    /// When that was asked last.
    level_asked: Option<Instant>,
    /// Which shard comes first at the next look, where more are to be copied than may be at once.
    first_on_turn: u8,
    /// The number of looks in a row at which other stores had said that they do not reach this one.
    unreached: u32,
}

impl Seen {
    fn new() -> Self {
        Self {
            short: Short::new(),
            own_disk: OwnDisk::default(),
            own_room: OwnRoom::default(),
            leavings: Leavings::default(),
            aims: Aims::default(),
            cadence: Cadence::default(),
            written: ShardRecords::new(),
            all_share_searches: false,
            level_asked: None,
            first_on_turn: 0,
            unreached: 0,
        }
    }

    /// Looks once more. Answers what is known now.
    fn look(
        &mut self,
        now: Instant,
        peers: &Peers,
        wishes: &Wishes,
        others: &Others,
        engine: &Engine,
        layout: &Arc<ClusterLayout>,
    ) -> View {
        let dead = dead(others, layout, now);
        note_short(&mut self.short, layout, &dead, now);
        self.own_disk
            .look(now, engine.awaited(), &others.log_delays(now));
        let long_short = long_short(&self.short, peers);
        let roles = engine.roles().into_iter();
        let roles = roles.map(|(shard, _, role)| (shard, role)).collect();
        // After the roles: a shard that has begun anew since then has no damage.
        let own_damage = engine.damaged();
        let others_damage = others.by_store.iter();
        let damaged = others_damage.map(|(store, health)| (*store, health.damaged));
        let room = peers.room();
        self.own_room.look(room);
        let own_lack = self.own_room.is_lacking().then_some(peers.own);
        let records = layout.records();
        View {
            own: peers.own,
            live: others.live(now),
            dead,
            silent: others.silent(now),
            reaching: others.reaching(now),
            roles,
            has_room: room != Room::None,
            has_room_for_copies: room == Room::Ample,
            lacking_room: others.lacking_room().into_iter().chain(own_lack).collect(),
            disk_hangs: self.own_disk.hangs(),
            disk_is_late: self.own_disk.is_late(),
            much_faster: self.own_disk.much_faster().collect(),
            stops: *peers.stops.borrow(),
            rests: self.own_disk.rests() || self.own_room.stays_away(),
            lately_left: records
                .map_or(ShardSet::EMPTY, |records| self.leavings.look(now, records)),
            damaged: damaged.chain([(peers.own, own_damage)]).collect(),
            copied: peers.agreed.borrow().clone(),
            unbuilt: engine.unbuilt(),
            unbuilt_by_others: records
                .map(|records| others.unbuilt(records))
                .unwrap_or_default(),
            long_short,
            targets: self.aims.look(&wishes.targets, layout),
            is_drained: is_drained(wishes, layout, peers.own),
            moves_are_paused: wishes.moves_are_paused,
            on_turn: ShardSet::ALL,
            moves_go_on: true,
            to_warm: ShardSet::EMPTY,
            to_cool: BTreeMap::new(),
        }
    }

    /// The last record of each shard that is known: what was written may not be read yet.
    fn last_records(&mut self, layout: &ClusterLayout) -> ShardRecords {
        let read = layout.records().cloned().unwrap_or_default();
        last(&mut self.written, read)
    }

    /// Decides which shards this store begins to copy now.
    fn take_turns(&mut self, view: &mut View, records: &ShardRecords) {
        view.take_turns(each(records), ShardId(self.first_on_turn));
        self.first_on_turn = self.first_on_turn.wrapping_add(MOST_AT_ONCE as u8);
    }

    /// Decides for which shards this store gets hot in the place of another one. For none before all nodes know that (PE20).
    fn share_searches(&self, view: &mut View, records: &ShardRecords) {
        view.share_searches(each(records));
        if !self.all_share_searches {
            view.to_warm = ShardSet::EMPTY;
        }
    }

    /// Asks now and then whether the cluster has the level at which nodes share searches, until it does. Nothing has been
    /// looked at by then that would be old afterwards.
    async fn ask_for_level(&mut self, keys: &dyn KeyValueStore) {
        let is_asked = self
            .level_asked
            .is_some_and(|asked| asked.elapsed() < LEVEL_INTERVAL);
        if self.all_share_searches || is_asked {
            return;
        }
        let level = in_time(require(keys, Feature::SharedSearches)).await;
        self.all_share_searches = level.is_ok();
        self.level_asked = Some(Instant::now());
    }

    /// Takes note of whether other stores reach this one, which would come to shards. Warns once if they do not.
    fn note_reach(&mut self, comes: bool, is_reached: Option<bool>, address: Option<&str>) {
        self.unreached = match is_reached {
            Some(false) if comes => self.unreached.saturating_add(1),
            None if comes => self.unreached,
            Some(_) | None => 0,
        };
        if self.unreached == PATIENT_LOOKS {
            let address = address.unwrap_or("unknown");
            warn!(
                address,
                "no node that holds shards reaches this one at its address, so it does not come back to them: \
                 see --address, and what is between the nodes"
            );
            self.unreached += 1;
        }
    }

    /// Takes note of why this store has left shards.
    fn note_leaving(&mut self, now: Instant, causes: &[Cause]) {
        if causes.contains(&Cause::SlowDisk) || causes.contains(&Cause::DiskHangs) {
            self.own_disk.note_leaving(now);
        }
        if causes.contains(&Cause::NoRoom) {
            self.own_room.note_leaving();
        }
    }
}

/// The last record of each shard, by what was written and what was read. Forgets what was read since.
fn last(written: &mut ShardRecords, mut read: ShardRecords) -> ShardRecords {
    written.retain(|shard, written| {
        let read = read.get(shard);
        read.is_some_and(|read| read.epoch < written.epoch)
    });
    let written = written.iter();
    read.extend(written.map(|(shard, record)| (*shard, Arc::clone(record))));
    read
}

fn each(records: &ShardRecords) -> impl Iterator<Item = (ShardId, &ShardRecord)> + Clone {
    records.iter().map(|(shard, record)| (*shard, &**record))
}

/// Whether an operator lets this node take no shards.
pub(super) fn is_drained(wishes: &Wishes, layout: &ClusterLayout, own: StoreId) -> bool {
    let own = layout.node_of(own);
    let own = own.and_then(|node| wishes.settings.get(&node.id));
    own.is_some_and(|settings| settings.is_drained)
}

/// The shards that were short of replicas for so long that a store may take them that never held them.
fn long_short(short: &Short, peers: &Peers) -> ShardSet {
    let (at_once, after) = (peers.taken_at_once(), peers.takeover.after);
    let mut long = short.clone();
    long.retain(|shard, since| at_once.contains(*shard) || since.elapsed() >= after);
    long.into_keys().collect()
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

/// Takes the next step of each record. Answers the records that were written, and why the own store has left shards, if
/// it has; also if some steps failed.
async fn take_steps(
    view: &View,
    keys: &dyn KeyValueStore,
    peers: &Peers,
    engine: &Engine,
    layout: &ClusterLayout,
) -> (ShardRecords, Vec<Cause>, Result<(), NodeError>) {
    let chosen = Chosen::default();
    let mut steps = Steps::default();
    let taking = simshard_cluster::take_steps(
        keys,
        |shard, record| {
            let (step, cause) = view.step_and_cause(shard, record)?;
            chosen.note(shard, step, cause);
            Some(step)
        },
        |shard, store| peers.epoch_on_disk(engine, shard, store),
        |shard, record, store| view.searched(shard, record, store) == Searched::Lost,
        &mut steps,
    );
    let outcome = in_time(taking).await;
    let causes = chosen.causes(&steps.taken);
    chosen.tell(&steps.taken, view.own, layout);
    (steps.taken, causes, outcome)
}

#[cfg(test)]
mod tests {
    use simshard_cluster::{MemoryKeyValues, Outcome, SettingsOfNodes, Targets, Transaction};
    use simshard_topology::replication::Step;

    use simshard_transport::Dialer;

    use super::*;
    use crate::peers::Takeover;

    /// A target that started anew would leave as the last of too many, and a drained node would take shards.
    #[test]
    fn nothing_is_chosen_before_the_wishes_of_operators_are_read() {
        let peers = Peers::new(StoreId([1; 16]), 1, Takeover::default(), Dialer::PLAIN);
        assert!(peers.wishes().is_none());
        peers.targets.send_replace(Some(Arc::new(Targets::new())));
        assert!(peers.wishes().is_none());
        let settings = Arc::new(SettingsOfNodes::new());
        peers.settings.send_replace(Some(settings));
        assert!(peers.wishes().is_none());
        peers.paused.send_replace(Some(Arc::default()));
        assert!(peers.wishes().is_some());
    }

    /// PE17: a layout that comes late shows none of the copies that were just begun.
    #[test]
    fn what_was_written_counts_until_it_is_read() {
        let [own, other] = [StoreId([1; 16]), StoreId([2; 16])];
        let shard = ShardId(7);
        let before = ShardRecord::first(0, &[other], 0);
        let step = Step::AddLearner(own);
        let after = before.after(step, 1, |_| before.epoch, |_| false).unwrap();
        let read = |record: &ShardRecord| ShardRecords::from([(shard, Arc::new(record.clone()))]);
        let mut written = read(&after);
        assert_eq!(last(&mut written, read(&before)), read(&after));
        let dropped = after.after(Step::DropLearner(own), 1, |_| after.epoch, |_| false);
        let later = read(&dropped.unwrap());
        assert_eq!(last(&mut written, later.clone()), later);
        assert!(written.is_empty());
    }

    /// PE19: a layout that comes late does not show yet that the store has begun to copy a shard.
    #[test]
    fn a_store_that_stops_has_left_once_the_last_records_say_so() {
        let [own, other] = [StoreId([1; 16]), StoreId([2; 16])];
        let shard = ShardId(7);
        let without = ShardRecord::first(0, &[other], 0);
        let step = Step::AddLearner(own);
        let learns = without.after(step, 1, |_| without.epoch, |_| false);
        let of = |record: &ShardRecord| ShardRecords::from([(shard, Arc::new(record.clone()))]);
        let view = View {
            stops: true,
            live: BTreeSet::from([other]),
            ..View::alone(own)
        };
        let mut written = of(&learns.unwrap());
        let last = last(&mut written, of(&without));
        assert!(!own_has_left(&view, &last));
        assert!(own_has_left(&view, &of(&without)));
        // The other may live, so that the own store could leave as soon as that is known.
        let both = of(&ShardRecord::first(0, &[own, other], 0));
        let unknown = View {
            live: BTreeSet::new(),
            ..view
        };
        assert!(!own_has_left(&unknown, &both));
    }

    /// PE20: a node of an earlier version would take the searches back. The level is asked for every ten seconds at most.
    #[tokio::test(start_paused = true)]
    async fn searches_are_shared_once_the_cluster_has_the_level() {
        let keys = MemoryKeyValues::new();
        let level = async |level: &str| {
            let change = Transaction::new().put("cluster", level);
            let outcome = keys.commit(&change).await.unwrap();
            assert!(matches!(outcome, Outcome::Committed(_)));
        };
        let mut seen = Seen::new();
        let mut warms = async || {
            seen.ask_for_level(&keys).await;
            seen.all_share_searches
        };
        level(r#"{"schema":1,"id":"x"}"#).await;
        assert!(!warms().await);
        level(r#"{"schema":2,"id":"x"}"#).await;
        assert!(!warms().await);
        tokio::time::advance(LEVEL_INTERVAL).await;
        assert!(warms().await);
        // A level never falls, so it is not asked for again.
        level("damaged").await;
        tokio::time::advance(LEVEL_INTERVAL).await;
        assert!(warms().await);
    }
}
