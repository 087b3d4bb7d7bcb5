//! Taking dead stores out of the records of shards, and the own one back in: as a learner first, and in sync once it has
//! copied all.
//!
//! # Invariants
//! - PE3: a dead store leaves only if as many stores in sync as the record needs have answered lately, or all that it has.
//!   So a process that is cut off from all others takes none out where two must be in sync. The own store counts only if
//!   its disk is not late: else it may never write down that the other has left. An eviction that would be refused stands
//!   in the way of no other step.
//! - PE4: the own store comes only to a shard that has too few replicas and a live store in sync. To one that it never
//!   held, it comes only after a while.
//! - PE6: a store that can write nothing, as it has no room or its disk hangs, is no learner: it neither comes nor stays
//!   one.
//! - PE7: a store whose disk hangs leaves the shards that have another live store in sync.
//! - PE9: a store leaves a shard of which a file is damaged, if another live store in sync has told of no damage to it. It
//!   comes back with a copy.
//! - PE13: a store whose disk is slow leaves a shard if most others in sync are much faster. They must have answered lately,
//!   and be enough. It leaves only if no store has left the shard lately, and then stays away for a while.
//! - PE10: where each hot store is dead or damaged and none may leave, a live store in sync gets hot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use simshard_cluster::{ClusterLayout, KeyValueStore, METADATA_PATIENCE, take_steps};
use simshard_topology::replication::{Epoch, Role, Searched, ShardRecord, Step, StoreId};
use simshard_topology::{ShardId, ShardSet};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tracing::warn;

use super::health::{INTERVAL, Others};
use super::leavings::Leavings;
use super::own_disk::OwnDisk;
use super::step_log::{Cause, Chosen};
use super::{Peers, is_short, names, share};
use crate::engine::Engine;
use crate::error::NodeError;
use crate::reconcile::Copies;

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
    let mut short = Short::new();
    let mut own_disk = OwnDisk::default();
    let mut leavings = Leavings::default();
    let mut takeover = peers.takeover;
    loop {
        ticks.tick().await;
        let layout = Arc::clone(&followed.borrow());
        let others = peers.others.lock().clone();
        let now = Instant::now();
        note_short(&mut short, &layout, now);
        own_disk.look(now, engine.awaited(), &others.log_delays(now));
        let mut members = Members::of(&others, peers.own, engine, &layout);
        members.agreed = peers.agreed.borrow().clone();
        members.note_disk(&own_disk);
        if let Some(records) = layout.records() {
            members.lately_left = leavings.look(now, records);
        }
        takeover.at_once &= !short.is_empty();
        let is_long = |since: &Instant| takeover.at_once || since.elapsed() >= takeover.after;
        let long = short.iter().filter(|(_, since)| is_long(since));
        members.long_short = long.map(|(shard, _)| *shard).collect();
        if !members.have_steps(&layout) {
            continue;
        }
        let outcome = members.take_steps(keys, peers, engine, &layout).await;
        if let Err(error) = &outcome
            && !is_failing
        {
            warn!(%error, "the records of shards stay as they are for now");
        }
        is_failing = outcome.is_err();
        if outcome.is_ok_and(|has_left| has_left) {
            own_disk.note_leaving(now);
        }
    }
}

/// Since when shards have been short of replicas.
type Short = BTreeMap<ShardId, Instant>;

fn note_short(short: &mut Short, layout: &ClusterLayout, now: Instant) {
    for (&shard, record) in layout.records().into_iter().flatten() {
        if is_short(record) {
            short.entry(shard).or_insert(now);
        } else {
            short.remove(&shard);
        }
    }
}

/// The stores by which steps are decided.
struct Members {
    own: StoreId,
    live: BTreeSet<StoreId>,
    dead: BTreeSet<StoreId>,
    silent: BTreeSet<StoreId>,
    /// What the own store does for each shard.
    roles: BTreeMap<ShardId, Role>,
    /// Whether the own store has room for what it would be sent.
    has_room: bool,
    /// Whether the own store waits for a disk that does not answer.
    disk_hangs: bool,
    /// Whether it has waited for its disk for a while, so that the disk may hang.
    disk_is_late: bool,
    /// The stores whose disks have been much faster than the own one for some time.
    much_faster: BTreeSet<StoreId>,
    /// Whether the own store stays away, as its disk was slow or hung.
    rests: bool,
    /// The shards that a store has left lately.
    lately_left: ShardSet,
    /// The shards of which each store, the own one too, has found a file damaged.
    damaged: BTreeMap<StoreId, ShardSet>,
    /// The copies of the own store since whose end the corpora were compared with the metadata.
    agreed: Copies,
    /// The shards of the own store whose tables are being made.
    unbuilt: ShardSet,
    /// The shards that have been short of replicas for long.
    long_short: ShardSet,
}

impl Members {
    fn of(others: &Others, own: StoreId, engine: &Engine, layout: &ClusterLayout) -> Self {
        let now = Instant::now();
        let roles = engine.roles().into_iter();
        let roles = roles.map(|(shard, _, role)| (shard, role)).collect();
        // After the roles: a shard that has begun anew since then has no damage.
        let own_damage = engine.damaged();
        let others_damage = others.by_store.iter();
        let damaged = others_damage.map(|(store, health)| (*store, health.damaged));
        Self {
            own,
            live: others.live(now),
            dead: others.dead(now, |other, store| share(layout, other, store)),
            silent: others.silent(now),
            roles,
            has_room: engine.store().shortage().is_none(),
            disk_hangs: false,
            disk_is_late: false,
            much_faster: BTreeSet::new(),
            rests: false,
            lately_left: ShardSet::EMPTY,
            damaged: damaged.chain([(own, own_damage)]).collect(),
            agreed: Copies::new(),
            unbuilt: engine.unbuilt(),
            long_short: ShardSet::EMPTY,
        }
    }

    fn note_disk(&mut self, disk: &OwnDisk) {
        self.disk_hangs = disk.hangs();
        self.disk_is_late = disk.is_late();
        self.much_faster = disk.much_faster().collect();
        self.rests = disk.rests();
    }

    fn have_steps(&self, layout: &ClusterLayout) -> bool {
        let mut records = layout.records().into_iter().flatten();
        records.any(|(&shard, record)| self.step(shard, record).is_some())
    }

    /// The next step of a shard, if there is one.
    fn step(&self, shard: ShardId, record: &ShardRecord) -> Option<Step> {
        self.step_and_cause(shard, record).map(|(step, _)| step)
    }

    /// The next step of a shard, and why the own store leaves, if it does by that.
    fn step_and_cause(
        &self,
        shard: ShardId,
        record: &ShardRecord,
    ) -> Option<(Step, Option<Cause>)> {
        if !names(record, self.own) {
            return Some((self.coming(shard, record)?, None));
        }
        if let Some((step, cause)) = self.own_leaving(shard, record) {
            return Some((step, Some(cause)));
        }
        let step = self
            .dead_leaving(record)
            .or_else(|| self.promotion(shard, record))
            .or_else(|| record.heating(self.own, |store| self.searched(shard, store)))?;
        Some((step, None))
    }

    /// Whether the own store can take changes.
    const fn can_write(&self) -> bool {
        self.has_room && !self.disk_hangs
    }

    /// The step by which this store leaves, and why.
    fn own_leaving(&self, shard: ShardId, record: &ShardRecord) -> Option<(Step, Cause)> {
        let first = |causes: &[(bool, Cause)]| {
            let mut causes = causes.iter().filter(|(holds, _)| *holds);
            causes.next().map(|(_, cause)| *cause)
        };
        if let Some(learner) = record.learner(self.own) {
            let cause = first(&self.against_learning(shard, record, learner.added))?;
            return Some((Step::DropLearner(self.own), cause));
        }
        let cause = first(&self.against_staying(shard, record)).filter(|_| record.may_evict())?;
        Some((Step::Evict(self.own), cause))
    }

    /// What may speak against this store as a learner, and whether it does. One that can write nothing would fail each
    /// change (PE6). With a slow disk it would hold up each one (PE13). A copy that is damaged is of no use (PE9).
    fn against_learning(
        &self,
        shard: ShardId,
        record: &ShardRecord,
        added: Epoch,
    ) -> [(bool, Cause); 5] {
        // Until the shard begins anew, the damage may be in its old files.
        let anew = [Role::Copying { added }, Role::Copied { added }];
        let role = self.roles.get(&shard);
        let has_begun = role.is_some_and(|role| anew.contains(role));
        // Without a report of a store in sync it cannot begin, and refuses each change meanwhile.
        let mut in_sync = record.in_sync.iter();
        let is_stuck = !has_begun && in_sync.all(|entry| self.silent.contains(&entry.store));
        let is_damaged = has_begun && self.is_damaged(self.own, shard);
        [
            (self.disk_hangs, Cause::DiskHangs),
            (!self.has_room, Cause::NoRoom),
            (self.is_slow(record), Cause::SlowDisk),
            (is_damaged, Cause::Damage),
            (is_stuck, Cause::NoSource),
        ]
    }

    /// What may speak against this store as one in sync, and whether it does. With a disk that hangs or is slow it would
    /// hold up each change (PE7, PE13). If a file of the shard is damaged, it fails those that read it (PE9).
    fn against_staying(&self, shard: ShardId, record: &ShardRecord) -> [(bool, Cause); 3] {
        let live = record.in_sync.iter().map(|entry| entry.store);
        let mut live = live.filter(|store| self.live.contains(store)).peekable();
        let has_live = live.peek().is_some();
        let has_whole = live.any(|store| !self.is_damaged(store, shard));
        let is_damaged =
            self.is_damaged(self.own, shard) && self.roles.get(&shard) == Some(&Role::InSync);
        let is_slow = self.is_slow(record) && !self.is_needed(shard, record);
        [
            (self.disk_hangs && has_live, Cause::DiskHangs),
            (is_slow, Cause::SlowDisk),
            (is_damaged && has_whole, Cause::Damage),
        ]
    }

    /// Whether the disk of the own store is slow beside those of most others in sync. These must be as many as an eviction
    /// leaves at least, or all.
    fn is_slow(&self, record: &ShardRecord) -> bool {
        let others = record.in_sync.iter().map(|entry| entry.store);
        let others: Vec<StoreId> = others.filter(|store| *store != self.own).collect();
        let is_faster =
            |store: &&StoreId| self.live.contains(store) && self.much_faster.contains(store);
        let faster = others.iter().filter(is_faster).count();
        faster > others.len() / 2 && faster >= record.least_in_sync().min(others.len())
    }

    /// Whether a shard is better off with a slow store than without: only one would be left, another one has left lately,
    /// or no other answers searches.
    fn is_needed(&self, shard: ShardId, record: &ShardRecord) -> bool {
        let mut others = record.in_sync.iter().map(|entry| entry.store);
        let searches = |store| {
            let is_hot = store != self.own && record.is_hot(store);
            is_hot && self.searched(shard, store) == Searched::Well
        };
        let is_last_hot = record.is_hot(self.own) && !others.any(searches);
        record.in_sync.len() <= 2 || self.lately_left.contains(shard) || is_last_hot
    }

    /// Whether a store has found a file of a shard damaged.
    fn is_damaged(&self, store: StoreId, shard: ShardId) -> bool {
        let of_store = self.damaged.get(&store);
        of_store.is_some_and(|shards| shards.contains(shard))
    }

    /// The step by which a dead store leaves.
    fn dead_leaving(&self, record: &ShardRecord) -> Option<Step> {
        let least = record.least_in_sync().min(record.in_sync.len());
        if self.live_in_sync(record) < least {
            return None;
        }
        let mut learners = record.learners.iter();
        if let Some(learner) = learners.find(|learner| self.dead.contains(&learner.store)) {
            return Some(Step::DropLearner(learner.store));
        }
        let mut in_sync = record.in_sync.iter();
        let dead = in_sync.find(|entry| self.dead.contains(&entry.store));
        let dead = dead.filter(|_| record.may_evict());
        dead.map(|entry| Step::Evict(entry.store))
    }

    /// The step by which this node gets in sync.
    fn promotion(&self, shard: ShardId, record: &ShardRecord) -> Option<Step> {
        let added = record.learner(self.own)?.added;
        let has_copied = self.roles.get(&shard) == Some(&Role::Copied { added });
        let has_agreed = self.agreed.get(&shard) == Some(&added);
        let is_built = !self.unbuilt.contains(shard);
        (has_copied && has_agreed && is_built).then_some(Step::Promote {
            store: self.own,
            copied: added,
        })
    }

    /// Whether a store answers searches of a shard, if it is hot.
    fn searched(&self, shard: ShardId, store: StoreId) -> Searched {
        if self.dead.contains(&store) || self.is_damaged(store, shard) {
            return Searched::Lost;
        }
        let is_well = if store == self.own {
            !self.disk_hangs && !self.unbuilt.contains(shard)
        } else {
            self.live.contains(&store)
        };
        if is_well {
            Searched::Well
        } else {
            Searched::Unsure
        }
    }

    /// The step by which this node comes back to a shard that it held, or takes one that is short of replicas (PE4).
    fn coming(&self, shard: ShardId, record: &ShardRecord) -> Option<Step> {
        let is_former = self.roles.get(&shard) == Some(&Role::None);
        let is_meant = is_former || self.long_short.contains(shard);
        // Where a dead store cannot leave without this one, it comes at once.
        let is_urgent = self.live_in_sync(record) < record.least_in_sync();
        let can_come = self.can_write() && (!self.rests || is_urgent);
        let may_come = is_meant && can_come && is_short(record) && self.has_live(record);
        may_come.then_some(Step::AddLearner(self.own))
    }

    /// Whether a store in sync has answered lately.
    fn has_live(&self, record: &ShardRecord) -> bool {
        self.live_in_sync(record) > 0
    }

    /// How many stores in sync have answered lately. This one does if its disk has.
    fn live_in_sync(&self, record: &ShardRecord) -> usize {
        let in_sync = record.in_sync.iter().map(|entry| entry.store);
        let own_lives = !self.disk_is_late;
        in_sync
            .filter(|store| *store == self.own && own_lives || self.live.contains(store))
            .count()
    }

    /// Takes the next step of each record. Answers whether the own store has left a shard because of its disk.
    async fn take_steps(
        &self,
        keys: &dyn KeyValueStore,
        peers: &Peers,
        engine: &Engine,
        layout: &ClusterLayout,
    ) -> Result<bool, NodeError> {
        let chosen = Chosen::default();
        let reported_epoch = |shard: ShardId, store: StoreId| {
            if store == self.own {
                engine.report(shard)
            } else {
                peers.reported_epoch(shard, store)
            }
        };
        let steps = take_steps(
            keys,
            |shard, record| {
                let (step, cause) = self.step_and_cause(shard, record)?;
                chosen.note(shard, step, cause);
                Some(step)
            },
            reported_epoch,
            |shard, store| self.searched(shard, store) == Searched::Lost,
        );
        match timeout(METADATA_PATIENCE, steps).await {
            Ok(steps) => {
                let taken = steps?.taken;
                let has_left = chosen.has_left(&taken, &[Cause::SlowDisk, Cause::DiskHangs]);
                chosen.tell(&taken, self.own, layout);
                Ok(has_left)
            }
            Err(_elapsed) => Err(NodeError::MetadataLate(METADATA_PATIENCE)),
        }
    }
}

#[cfg(test)]
mod tests {
    use simshard_topology::replication::Learner;

    use super::*;

    const STORES: [StoreId; 3] = [StoreId([1; 16]), StoreId([2; 16]), StoreId([3; 16])];

    const SHARD: ShardId = ShardId(7);

    /// By places among the stores; the first one is the own one.
    fn members(role: Role, live: &[usize], dead: &[usize]) -> Members {
        let agreed = match role {
            Role::Copied { added } => Copies::from([(SHARD, added)]),
            Role::None | Role::Copying { .. } | Role::InSync => Copies::new(),
        };
        let some = |places: &[usize]| places.iter().map(|&place| STORES[place]).collect();
        Members {
            own: STORES[0],
            live: some(live),
            dead: some(dead),
            silent: some(dead),
            roles: BTreeMap::from([(SHARD, role)]),
            has_room: true,
            disk_hangs: false,
            disk_is_late: false,
            much_faster: BTreeSet::new(),
            rests: false,
            lately_left: ShardSet::EMPTY,
            damaged: BTreeMap::new(),
            agreed,
            unbuilt: ShardSet::EMPTY,
            long_short: ShardSet::EMPTY,
        }
    }

    /// The record of all but the own store, which is a learner.
    fn with_learner() -> ShardRecord {
        let mut record = ShardRecord::first(0, &STORES[1..], 7);
        record.learners.push(Learner {
            store: STORES[0],
            added: record.epoch,
        });
        record
    }

    /// PE3.
    #[test]
    fn a_dead_store_leaves_where_a_live_one_stays() {
        let record = ShardRecord::first(0, &STORES, 7);
        let evict = Some(Step::Evict(STORES[2]));
        let step = |live: &[usize], dead: &[usize], record: &ShardRecord| {
            members(Role::InSync, live, dead).step(SHARD, record)
        };
        assert_eq!(step(&[1], &[2], &record), evict);
        assert_eq!(step(&[1], &[], &record), None);
        let copying = with_learner();
        assert_eq!(step(&[1], &[2], &copying), evict);
        let begun = Role::Copying {
            added: copying.epoch,
        };
        assert_eq!(members(begun, &[], &[2]).step(SHARD, &copying), None);
        let mut other = ShardRecord::first(0, &STORES[..2], 7);
        other.learners.push(Learner {
            store: STORES[2],
            added: other.epoch,
        });
        let drop = Some(Step::DropLearner(STORES[2]));
        assert_eq!(step(&[1], &[2], &other), drop);
        // Cut off from all others, it takes none out.
        assert_eq!(step(&[], &[1, 2], &record), None);
        other.min_in_sync = 2;
        assert_eq!(step(&[], &[1, 2], &other), None);
        // Not even one of two is left.
        other.in_sync.truncate(1);
        assert_eq!(step(&[], &[2], &other), drop);
    }

    /// PE3: it could not write down that the other has left, which may come back and has all.
    #[test]
    fn a_store_whose_disk_is_late_takes_no_dead_one_out_to_be_alone() {
        let mut late = members(Role::InSync, &[], &[1]);
        late.disk_is_late = true;
        let two = ShardRecord::first(0, &STORES[..2], 7);
        assert_eq!(late.step(SHARD, &two), None);
        // Others are enough.
        late.live.insert(STORES[2]);
        let mut three = ShardRecord::first(0, &STORES, 7).with_want(2);
        assert_eq!(late.step(SHARD, &three), Some(Step::Evict(STORES[1])));
        three.min_in_sync = 2;
        assert_eq!(late.step(SHARD, &three), None);
    }

    /// It would refuse each change until it hears a report.
    #[test]
    fn a_learner_that_cannot_begin_leaves() {
        let record = with_learner();
        let waiting = |silent: &[usize]| {
            let mut members = members(Role::None, &[], &[]);
            members.silent = silent.iter().map(|&place| STORES[place]).collect();
            members.step(SHARD, &record)
        };
        // It may just have started, and have heard none yet.
        assert_eq!(waiting(&[]), None);
        assert_eq!(waiting(&[1]), None);
        assert_eq!(waiting(&[1, 2]), Some(Step::DropLearner(STORES[0])));
    }

    /// PE3: the record of two stores, one of which is dead, takes the third one that has copied all.
    #[test]
    fn an_eviction_that_would_be_refused_stands_in_the_way_of_no_promotion() {
        let mut record = with_learner();
        record.min_in_sync = 2;
        let added = record.epoch;
        let promote = Step::Promote {
            store: STORES[0],
            copied: added,
        };
        let copied = members(Role::Copied { added }, &[1], &[2]);
        assert_eq!(copied.step(SHARD, &record), Some(promote));
        record.min_in_sync = 1;
        let evict = Some(Step::Evict(STORES[2]));
        assert_eq!(copied.step(SHARD, &record), evict);
    }

    /// PE6.
    #[test]
    fn a_store_without_room_is_no_learner() {
        let mut record = ShardRecord::first(0, &STORES[1..], 7);
        record.want = 3;
        let mut full = members(Role::None, &[1], &[]);
        full.has_room = false;
        assert_eq!(full.step(SHARD, &record), None);
        let record = with_learner();
        let added = record.epoch;
        for role in [Role::Copying { added }, Role::Copied { added }] {
            let mut full = members(role, &[1], &[]);
            full.has_room = false;
            let drop = Some(Step::DropLearner(STORES[0]));
            assert_eq!(full.step(SHARD, &record), drop);
        }
        // In sync, it holds what must not be lost.
        let mut full = members(Role::InSync, &[1], &[]);
        full.has_room = false;
        assert_eq!(full.step(SHARD, &ShardRecord::first(0, &STORES, 7)), None);
    }

    /// PE6, PE7.
    #[test]
    fn a_store_whose_disk_hangs_leaves_and_stays_away() {
        let hanging = |role, live: &[usize]| {
            let mut members = members(role, live, &[]);
            members.disk_hangs = true;
            members
        };
        let record = ShardRecord::first(0, &STORES, 7);
        let evict = Some(Step::Evict(STORES[0]));
        assert_eq!(hanging(Role::InSync, &[1]).step(SHARD, &record), evict);
        assert_eq!(hanging(Role::InSync, &[]).step(SHARD, &record), None);
        let record = with_learner();
        let copying = Role::Copying {
            added: record.epoch,
        };
        let drop = Some(Step::DropLearner(STORES[0]));
        assert_eq!(hanging(copying, &[1]).step(SHARD, &record), drop);
        let mut short = ShardRecord::first(0, &STORES[1..], 7);
        short.want = 3;
        assert_eq!(hanging(Role::None, &[1]).step(SHARD, &short), None);
    }

    /// PE13.
    #[test]
    fn a_store_whose_disk_is_slow_leaves_where_the_others_are_enough() {
        let record = ShardRecord::first(0, &STORES, 7);
        let slow = |live: &[usize], faster: &[usize]| {
            let mut members = members(Role::InSync, live, &[]);
            members.much_faster = faster.iter().map(|&place| STORES[place]).collect();
            members
        };
        let step = |live: &[usize], faster: &[usize], record: &ShardRecord| {
            slow(live, faster).step(SHARD, record)
        };
        let evict = Some(Step::Evict(STORES[0]));
        assert_eq!(step(&[1, 2], &[1, 2], &record), evict);
        // All are slow, or one of those that would be left, or it does not answer.
        assert_eq!(step(&[1, 2], &[], &record), None);
        assert_eq!(step(&[1, 2], &[1], &record), None);
        assert_eq!(step(&[1], &[1, 2], &record), None);
        // Only one would be left, where two must be.
        let mut few = record.clone();
        few.in_sync.truncate(2);
        assert_eq!(step(&[1], &[1], &few), None);
        few.min_in_sync = 1;
        assert_eq!(step(&[1], &[1], &few), None);
        few.in_sync.truncate(1);
        assert_eq!(step(&[1, 2], &[1, 2], &few), None);
        let mut lately = slow(&[1, 2], &[1, 2]);
        lately.lately_left = ShardSet::from_iter([SHARD]);
        assert_eq!(lately.step(SHARD, &record), None);
        assert_eq!(lately.step(ShardId(8), &record), evict);
        // No other would answer searches.
        let alone = record.clone().with_hot(1);
        assert_eq!(step(&[1, 2], &[1, 2], &alone), None);
        let two = record.with_hot(2);
        assert_eq!(step(&[1, 2], &[1, 2], &two), evict);
    }

    /// PE13: as a learner it would hold up each change.
    #[test]
    fn a_store_whose_disk_is_slow_is_no_learner_and_stays_away_for_a_while() {
        let mut record = with_learner();
        let copying = Role::Copying {
            added: record.epoch,
        };
        let mut slow = members(copying, &[1], &[]);
        slow.much_faster = BTreeSet::from([STORES[1]]);
        assert_eq!(slow.step(SHARD, &record), None);
        slow.live.insert(STORES[2]);
        slow.much_faster.insert(STORES[2]);
        let drop = Some(Step::DropLearner(STORES[0]));
        assert_eq!(slow.step(SHARD, &record), drop);
        // It leaves at once.
        slow.lately_left = ShardSet::from_iter([SHARD]);
        assert_eq!(slow.step(SHARD, &record), drop);
        record.in_sync.truncate(1);
        slow.live = BTreeSet::from([STORES[1]]);
        assert_eq!(slow.step(SHARD, &record), drop);
        let mut short = ShardRecord::first(0, &STORES[1..], 7);
        short.want = 3;
        let mut back = members(Role::None, &[1], &[]);
        back.rests = true;
        short.min_in_sync = 1;
        assert_eq!(back.step(SHARD, &short), None);
        // The silent one cannot leave before another is in sync.
        short.min_in_sync = 2;
        let come = Some(Step::AddLearner(STORES[0]));
        assert_eq!(back.step(SHARD, &short), come);
        short.min_in_sync = 1;
        back.rests = false;
        assert_eq!(back.step(SHARD, &short), come);
    }

    /// PE10.
    #[test]
    fn a_cold_store_gets_hot_where_the_hot_one_is_lost_and_may_not_leave() {
        let mut record = ShardRecord::first(0, &[STORES[1], STORES[0], STORES[2]], 7).with_hot(1);
        let step = |members: &Members, record: &ShardRecord| members.step(SHARD, record);
        let evict = Some(Step::Evict(STORES[1]));
        assert_eq!(step(&members(Role::InSync, &[2], &[1]), &record), evict);
        record.in_sync.truncate(2);
        let heat = Some(Step::Keep);
        assert_eq!(step(&members(Role::InSync, &[], &[1]), &record), heat);
        assert_eq!(step(&members(Role::InSync, &[1], &[]), &record), None);
        assert_eq!(step(&members(Role::InSync, &[], &[]), &record), None);
        let mut damaged = members(Role::InSync, &[1], &[]);
        damaged.damaged = BTreeMap::from([(STORES[1], ShardSet::from_iter([SHARD]))]);
        assert_eq!(step(&damaged, &record), heat);
    }

    /// PE9.
    #[test]
    fn a_store_leaves_a_shard_that_is_damaged_if_another_one_is_whole() {
        let damaged = |role, live: &[usize], damaged: &[usize]| {
            let mut members = members(role, live, &[]);
            let shards = ShardSet::from_iter([SHARD]);
            let damaged = damaged.iter().map(|&place| (STORES[place], shards));
            members.damaged = damaged.collect();
            members
        };
        let record = ShardRecord::first(0, &STORES, 7);
        let evict = Some(Step::Evict(STORES[0]));
        let step = |live: &[usize], places: &[usize]| {
            damaged(Role::InSync, live, places).step(SHARD, &record)
        };
        assert_eq!(step(&[1], &[0]), evict);
        assert_eq!(step(&[1, 2], &[0, 1]), evict);
        assert_eq!(step(&[1, 2], &[1]), None);
        // Together they may still have all.
        assert_eq!(step(&[1], &[0, 1]), None);
        assert_eq!(step(&[], &[0]), None);
        let members = damaged(Role::InSync, &[1], &[0]);
        assert_eq!(members.step(ShardId(8), &record), None);
        let mut few = record.clone();
        few.in_sync.truncate(2);
        assert_eq!(members.step(SHARD, &few), None);
        few.min_in_sync = 1;
        assert_eq!(members.step(SHARD, &few), evict);
    }

    /// PE9, PE13: a store that leaves for its disk is to stay away.
    #[test]
    fn a_store_that_is_damaged_and_slow_leaves_for_the_cause_that_lets_it_leave() {
        let mut members = members(Role::InSync, &[1, 2], &[]);
        members.much_faster = BTreeSet::from([STORES[1], STORES[2]]);
        members.damaged = BTreeMap::from([(STORES[0], ShardSet::from_iter([SHARD]))]);
        let record = ShardRecord::first(0, &STORES, 7);
        let leaves = |members: &Members, cause| {
            let step = members.step_and_cause(SHARD, &record);
            assert_eq!(step, Some((Step::Evict(STORES[0]), Some(cause))));
        };
        leaves(&members, Cause::SlowDisk);
        // Slow, it would stay.
        members.lately_left = ShardSet::from_iter([SHARD]);
        leaves(&members, Cause::Damage);
        members.disk_hangs = true;
        leaves(&members, Cause::DiskHangs);
    }

    /// PE9: what is damaged is set aside once the shard begins anew.
    #[test]
    fn a_store_comes_back_to_a_shard_that_was_damaged_and_leaves_again_if_its_copy_is() {
        let damaged = |role| {
            let mut members = members(role, &[1], &[]);
            members.damaged = BTreeMap::from([(STORES[0], ShardSet::from_iter([SHARD]))]);
            members
        };
        let mut short = ShardRecord::first(0, &STORES[1..], 7);
        short.want = 3;
        let come = Some(Step::AddLearner(STORES[0]));
        // Its own log has not yet that it left.
        assert_eq!(damaged(Role::InSync).step(SHARD, &short), None);
        assert_eq!(damaged(Role::None).step(SHARD, &short), come);
        let record = with_learner();
        let added = record.epoch;
        assert_eq!(damaged(Role::None).step(SHARD, &record), None);
        let drop = Some(Step::DropLearner(STORES[0]));
        for role in [Role::Copying { added }, Role::Copied { added }] {
            assert_eq!(damaged(role).step(SHARD, &record), drop);
        }
    }

    /// PE4.
    #[test]
    fn a_store_comes_back_where_there_is_room_and_gets_in_sync_once_it_has_copied() {
        let mut record = ShardRecord::first(0, &STORES[1..], 7);
        let back = |role, live: &[usize], record: &ShardRecord| {
            members(role, live, &[]).step(SHARD, record)
        };
        assert_eq!(back(Role::None, &[1], &record), None);
        record.want = 3;
        let come = Some(Step::AddLearner(STORES[0]));
        assert_eq!(back(Role::None, &[1], &record), come);
        assert_eq!(back(Role::None, &[], &record), None);
        // One that it never held it takes later.
        let mut other = members(Role::None, &[1], &[]);
        other.roles.clear();
        assert_eq!(other.step(SHARD, &record), None);
        other.long_short.insert(SHARD);
        assert_eq!(other.step(SHARD, &record), come);
        let record = with_learner();
        let added = record.epoch;
        assert_eq!(back(Role::Copying { added }, &[1], &record), None);
        let promote = Step::Promote {
            store: STORES[0],
            copied: added,
        };
        let copied = Role::Copied { added };
        assert_eq!(back(copied, &[1], &record), Some(promote));
        // AG1.
        let mut early = members(copied, &[1], &[]);
        early.agreed.clear();
        assert_eq!(early.step(SHARD, &record), None);
        let earlier = Role::Copied { added: Epoch::NONE };
        assert_eq!(back(earlier, &[1], &record), None);
    }
}
