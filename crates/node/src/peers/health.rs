//! Which other stores are dead, as far as this process and those that answer it know. Pure.
//!
//! # Invariants
//! - PE1: a store is taken for dead only if it has not answered for a while, and another process that may know does not
//!   reach it either. If no other process may know, it takes longer.
//! - PE2: while this process itself did not run, no silence counts. Nor does an answer of before: who has died meanwhile
//!   is not taken for alive.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use simshard_topology::replication::{Epoch, ShardRecords, StoreId};
use simshard_topology::{ShardId, ShardSet};
use tokio::time::Instant;

/// How often each store is asked.
pub(super) const INTERVAL: Duration = Duration::from_millis(200);

/// A store that has not answered for this time is silent.
pub(super) const SILENT_AFTER: Duration = Duration::from_millis(1000);

/// A silent store is dead after this time if there is no other process to ask.
const DEAD_ALONE_AFTER: Duration = Duration::from_millis(1400);

/// The same if all of several stores have become silent: it is rather this process that is cut off. The others have ample
/// time to find it dead before it finds them dead. Also if the others that live have just started, and may yet hear the
/// store.
const DEAD_TO_ONE_CUT_OFF_AFTER: Duration = Duration::from_secs(5);

/// A store that has been silent for this time is long lost, and tells nothing about this process.
const LONG_LOST_AFTER: Duration = Duration::from_secs(10);

/// A store that has never answered this process may be starting. It is silent only after this time.
const SILENT_AFTER_START: Duration = Duration::from_secs(10);

/// If this process was not there for so long, it cannot say who was silent.
const ABSENT_AFTER: Duration = Duration::from_millis(500);

/// What is known of another store.
#[derive(Clone, Debug)]
pub(super) struct Health {
    /// When it was first asked, or its silence last excused.
    since: Instant,
    /// When it last answered.
    answered: Option<Instant>,
    /// When it last said more than that it lives.
    pub(super) told: Option<Instant>,
    /// Whether it has been silent for long, or never answered. That this process was away does not excuse it.
    is_long_lost: bool,
    /// The number of its start.
    incarnation: u64,
    /// The number of installations by which it reported.
    pub(super) installations: u64,
    /// The epochs that it has on disk. They never decrease.
    reports: BTreeMap<ShardId, Epoch>,
    /// The last record of its log that it said to be on disk.
    pub(super) synced: u64,
    /// The stores that do not answer it.
    silent_to_it: BTreeSet<StoreId>,
    /// The stores that have not answered it yet.
    unheard_by_it: BTreeSet<StoreId>,
    /// The shards of which it found a file damaged.
    pub(super) damaged: ShardSet,
    /// The shards whose tables it has yet to make.
    unbuilt: ShardSet,
    /// How long its disk takes for a batch of changes, if it has said so.
    log_delay: Option<Duration>,
    /// Whether it has little room for more, if it has said so.
    lacks_room: Option<bool>,
    /// Whether it reaches this process, if it was asked.
    reaches_own: Option<bool>,
}

/// A sign of life.
#[derive(Clone, Debug, Default)]
pub(super) struct Sign {
    pub(super) incarnation: u64,
    pub(super) installations: u64,
    /// `None` if they are as they were.
    pub(super) reports: Option<Vec<(ShardId, Epoch)>>,
    pub(super) synced: u64,
    pub(super) silent_stores: BTreeSet<StoreId>,
    pub(super) unheard_stores: BTreeSet<StoreId>,
    pub(super) damaged: ShardSet,
    pub(super) unbuilt: ShardSet,
    pub(super) log_delay: Option<Duration>,
    pub(super) lacks_room: Option<bool>,
    pub(super) reaches_own: Option<bool>,
}

impl Health {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            since: now,
            answered: None,
            told: None,
            is_long_lost: false,
            incarnation: 0,
            installations: 0,
            reports: BTreeMap::new(),
            synced: 0,
            silent_to_it: BTreeSet::new(),
            unheard_by_it: BTreeSet::new(),
            damaged: ShardSet::EMPTY,
            unbuilt: ShardSet::EMPTY,
            log_delay: None,
            lacks_room: None,
            reaches_own: None,
        }
    }

    /// Takes note of a sign of life. One of an earlier start does not count: its directory was started again.
    pub(super) fn note(&mut self, now: Instant, sign: Sign) {
        if sign.incarnation < self.incarnation {
            return;
        }
        // Another start counts anew, so its number says nothing without its reports.
        let is_known = sign.incarnation == self.incarnation || sign.reports.is_some();
        self.installations = if is_known { sign.installations } else { 0 };
        // An operator may have accepted that a later start has less.
        let is_later = sign.incarnation > self.incarnation;
        self.synced = if is_later {
            sign.synced
        } else {
            self.synced.max(sign.synced)
        };
        self.incarnation = sign.incarnation;
        self.note_life(now);
        self.told = Some(now);
        self.silent_to_it = sign.silent_stores;
        self.unheard_by_it = sign.unheard_stores;
        self.damaged = sign.damaged;
        self.unbuilt = sign.unbuilt;
        self.log_delay = sign.log_delay;
        self.lacks_room = sign.lacks_room;
        self.reaches_own = sign.reaches_own;
        for (shard, epoch) in sign.reports.into_iter().flatten() {
            let report = self.reports.entry(shard).or_insert(Epoch::NONE);
            *report = epoch.max(*report);
        }
    }

    /// Takes note that it lives, and had too much to do to say more.
    pub(super) const fn note_life(&mut self, now: Instant) {
        self.answered = Some(now);
        self.is_long_lost = false;
    }

    /// The epoch of a shard that it has reported.
    pub(super) fn report(&self, shard: ShardId) -> Epoch {
        self.reports.get(&shard).copied().unwrap_or(Epoch::NONE)
    }

    fn silence(&self, now: Instant) -> Duration {
        let last = self
            .answered
            .map_or(self.since, |answered| answered.max(self.since));
        now.saturating_duration_since(last)
    }

    fn is_silent(&self, now: Instant) -> bool {
        let most = if self.answered.is_some() {
            SILENT_AFTER
        } else {
            SILENT_AFTER_START
        };
        self.silence(now) >= most
    }

    /// Excuses its silence while this process was away for a time (PE2). One that never answered is excused for that time
    /// only: if this process is away again and again, it is silent all the same.
    fn excuse(&mut self, now: Instant, away: Duration) {
        self.since = match self.answered {
            Some(_) => now,
            None => now.min(self.since + away),
        };
    }

    /// Whether it says that it hears another store. `None` if it has said nothing, or has yet to hear it.
    pub(super) fn says_it_hears(&self, store: StoreId) -> Option<bool> {
        self.told?;
        let is_silent = self.silent_to_it.contains(&store);
        (is_silent || !self.unheard_by_it.contains(&store)).then_some(!is_silent)
    }

    /// Whether it has answered lately. One whose silence is excused has not.
    pub(super) fn is_live(&self, now: Instant) -> bool {
        let last = self.answered;
        last.is_some_and(|answered| now.saturating_duration_since(answered) < SILENT_AFTER)
    }
}

/// The other stores, by what is known of each.
#[derive(Clone, Debug, Default)]
pub(super) struct Others {
    pub(super) by_store: BTreeMap<StoreId, Health>,
    /// When this process last looked.
    looked: Option<Instant>,
}

impl Others {
    /// Goes on with these stores only, and excuses all if this process was away (PE2).
    pub(super) fn look(&mut self, now: Instant, stores: &BTreeSet<StoreId>) {
        self.by_store.retain(|store, _| stores.contains(store));
        for &store in stores {
            self.by_store
                .entry(store)
                .or_insert_with(|| Health::new(now));
        }
        let was_there = self.is_there(now);
        let looked = self.looked.replace(now).unwrap_or(now);
        for health in self.by_store.values_mut() {
            if was_there {
                health.is_long_lost |= health.silence(now) >= LONG_LOST_AFTER;
            } else {
                health.excuse(now, now.saturating_duration_since(looked));
            }
        }
    }

    /// Whether this process was there to hear the others until now.
    fn is_there(&self, now: Instant) -> bool {
        let looked = self.looked;
        looked.is_some_and(|looked| now.saturating_duration_since(looked) < ABSENT_AFTER)
    }

    /// The stores that do not answer this process; none if it was away since it last looked (PE2).
    pub(super) fn silent(&self, now: Instant) -> BTreeSet<StoreId> {
        if !self.is_there(now) {
            return BTreeSet::new();
        }
        let silent = self.by_store.iter();
        let silent = silent.filter(|(_, health)| health.is_silent(now));
        silent.map(|(store, _)| *store).collect()
    }

    /// The stores that have never answered this process. It cannot say that they live.
    pub(super) fn unheard(&self) -> BTreeSet<StoreId> {
        let unheard = self.by_store.iter();
        let unheard = unheard.filter(|(_, health)| health.answered.is_none());
        unheard.map(|(store, _)| *store).collect()
    }

    /// The stores that have answered lately.
    pub(super) fn live(&self, now: Instant) -> BTreeSet<StoreId> {
        let live = self.by_store.iter();
        let live = live.filter(|(_, health)| health.is_live(now));
        live.map(|(store, _)| *store).collect()
    }

    /// The stores that have answered lately that they reach this process.
    pub(super) fn reaching(&self, now: Instant) -> BTreeSet<StoreId> {
        let mut stores = self.live(now);
        stores.retain(|store| self.by_store[store].reaches_own == Some(true));
        stores
    }

    /// Whether any of these stores that has answered lately reaches this process, if any has said whether it does.
    pub(super) fn reach(&self, now: Instant, is_meant: impl Fn(StoreId) -> bool) -> Option<bool> {
        let live = self.live(now).into_iter().filter(|store| is_meant(*store));
        live.filter_map(|store| self.by_store[&store].reaches_own)
            .max()
    }

    /// The shards whose tables each store has yet to make. One that has not told of a record may have to make some by it.
    pub(super) fn unbuilt(&self, records: &ShardRecords) -> BTreeMap<StoreId, ShardSet> {
        let of_store = |(store, health): (&StoreId, &Health)| {
            let untold = records.iter().filter(|(shard, record)| {
                record.in_sync(*store).is_some() && health.report(**shard) < record.epoch
            });
            let untold: ShardSet = untold.map(|(shard, _)| *shard).collect();
            (*store, health.unbuilt.union(&untold))
        };
        self.by_store.iter().map(of_store).collect()
    }

    /// The stores that have not said that they have room for more.
    pub(super) fn lacking_room(&self) -> BTreeSet<StoreId> {
        let lacking = self.by_store.iter();
        let lacking = lacking.filter(|(_, health)| health.lacks_room != Some(false));
        lacking.map(|(store, _)| *store).collect()
    }

    /// How long the disks of the stores that have answered lately take for a batch of changes, as far as they have said so.
    pub(super) fn log_delays(&self, now: Instant) -> BTreeMap<StoreId, Duration> {
        let live = self.live(now).into_iter();
        live.filter_map(|store| Some((store, self.by_store[&store].log_delay?)))
            .collect()
    }

    /// The stores that are dead (PE1). `may_know` says whether a live store asks another one as this process does.
    pub(super) fn dead(
        &self,
        now: Instant,
        may_know: impl Fn(StoreId, StoreId) -> bool,
    ) -> BTreeSet<StoreId> {
        let live = self.live(now);
        let lately = self.by_store.values();
        let lately = lately.filter(|health| !health.is_long_lost).count();
        let is_cut_off = live.is_empty() && lately > 1;
        let alone_after = if is_cut_off {
            DEAD_TO_ONE_CUT_OFF_AFTER
        } else {
            DEAD_ALONE_AFTER
        };
        let silence = |store: &StoreId| self.by_store[store].silence(now);
        let is_dead = |store: &StoreId| {
            let may_know = live.iter().filter(|other| may_know(**other, *store));
            let (witnesses, deaf): (Vec<_>, Vec<_>) =
                may_know.partition(|other| !self.by_store[*other].unheard_by_it.contains(store));
            let mut witnesses = witnesses.into_iter();
            match witnesses.next() {
                // Those that have just started may yet hear it.
                None if !deaf.is_empty() => silence(store) >= DEAD_TO_ONE_CUT_OFF_AFTER,
                None => silence(store) >= alone_after,
                Some(first) => std::iter::once(first)
                    .chain(witnesses)
                    .any(|other| self.by_store[other].silent_to_it.contains(store)),
            }
        };
        self.silent(now).into_iter().filter(is_dead).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use simshard_topology::replication::ShardRecord;

    use super::*;

    const A: StoreId = StoreId([1; 16]);
    const B: StoreId = StoreId([2; 16]);

    fn both() -> BTreeSet<StoreId> {
        BTreeSet::from([A, B])
    }

    #[test]
    fn a_store_that_says_nothing_of_its_disk_has_no_delay() {
        let mut scene = Scene::new();
        let delay = Duration::from_millis(7);
        for (store, log_delay) in [(A, None), (B, Some(delay))] {
            let sign = Sign {
                log_delay,
                ..Sign::default()
            };
            let health = scene.others.by_store.get_mut(&store).unwrap();
            health.note(scene.now, sign);
        }
        let delays = scene.others.log_delays(scene.now);
        assert_eq!(delays, BTreeMap::from([(B, delay)]));
    }

    /// By the record before it may have been cold, with no tables to make.
    #[test]
    fn a_store_that_has_not_told_of_a_record_may_have_tables_to_make() {
        let shard = ShardId(7);
        let mut record = ShardRecord::first(0, &[A, B], 7);
        record.epoch.number += 1;
        let records = ShardRecords::from([(shard, Arc::new(record.clone()))]);
        let mut scene = Scene::new();
        let unbuilt = |scene: &Scene| scene.others.unbuilt(&records)[&A].contains(shard);
        assert!(unbuilt(&scene));
        let health = scene.others.by_store.get_mut(&A).unwrap();
        health.reports.insert(shard, record.epoch);
        assert!(!unbuilt(&scene));
    }

    /// Signs of life, of stores to which others are silent.
    struct Scene {
        others: Others,
        now: Instant,
    }

    impl Scene {
        fn new() -> Self {
            let mut scene = Self {
                others: Others::default(),
                now: Instant::now(),
            };
            scene.others.look(scene.now, &both());
            scene
        }

        /// Lets time pass in small steps, while these stores answer.
        fn pass(&mut self, time: Duration, answering: &[(StoreId, BTreeSet<StoreId>)]) {
            let end = self.now + time;
            while self.now < end {
                self.now += INTERVAL;
                self.others.look(self.now, &both());
                for (store, silent_stores) in answering {
                    let sign = Sign {
                        silent_stores: silent_stores.clone(),
                        ..Sign::default()
                    };
                    let health = self.others.by_store.get_mut(store).unwrap();
                    health.note(self.now, sign);
                }
            }
        }

        fn dead(&self) -> Vec<StoreId> {
            self.others
                .dead(self.now, |_, _| true)
                .into_iter()
                .collect()
        }
    }

    fn none() -> BTreeSet<StoreId> {
        BTreeSet::new()
    }

    /// PE1.
    #[test]
    fn a_store_is_dead_once_another_process_does_not_reach_it_either() {
        let mut scene = Scene::new();
        scene.pass(INTERVAL, &[(A, none()), (B, none())]);
        scene.pass(SILENT_AFTER * 5, &[(B, none())]);
        assert_eq!(scene.dead(), []);
        scene.pass(INTERVAL, &[(B, BTreeSet::from([A]))]);
        assert_eq!(scene.dead(), [A]);
        // The other one may not know: then time decides.
        assert_eq!(
            scene.others.dead(scene.now, |_, _| false),
            BTreeSet::from([A])
        );
    }

    /// PE1.
    #[test]
    fn it_takes_longer_if_there_is_no_witness() {
        let mut scene = Scene::new();
        scene.pass(INTERVAL, &[(A, none()), (B, none())]);
        let unknown = |scene: &Scene| scene.others.dead(scene.now, |_, _| false);
        scene.pass(SILENT_AFTER, &[(B, none())]);
        assert_eq!(unknown(&scene), none());
        scene.pass(DEAD_ALONE_AFTER - SILENT_AFTER, &[(B, none())]);
        assert_eq!(unknown(&scene), BTreeSet::from([A]));
        // It knows no other.
        let only = BTreeSet::from([A]);
        scene.others.look(scene.now, &only);
        assert_eq!(scene.dead(), [A]);
    }

    /// PE1: the others find it dead before.
    #[test]
    fn it_takes_much_longer_if_all_of_several_are_silent() {
        let mut scene = Scene::new();
        scene.pass(INTERVAL, &[(A, none()), (B, none())]);
        scene.pass(DEAD_TO_ONE_CUT_OFF_AFTER - INTERVAL, &[]);
        assert_eq!(scene.dead(), []);
        scene.pass(INTERVAL, &[]);
        assert_eq!(scene.dead(), [A, B]);
    }

    /// PE1: a bystander that is gone for long does not hold up the eviction of the next one.
    #[test]
    fn a_store_that_is_long_lost_tells_nothing_about_this_process() {
        let unknown = |scene: &Scene| scene.others.dead(scene.now, |_, _| false);
        let mut scene = Scene::new();
        // One that has yet to answer may be there.
        scene.pass(INTERVAL, &[(B, none())]);
        scene.pass(DEAD_ALONE_AFTER, &[]);
        assert_eq!(unknown(&scene), none());
        scene.pass(LONG_LOST_AFTER, &[(B, none())]);
        scene.pass(DEAD_ALONE_AFTER, &[]);
        assert!(unknown(&scene).contains(&B));
        scene.pass(INTERVAL, &[(A, none()), (B, none())]);
        scene.pass(LONG_LOST_AFTER, &[(B, none())]);
        // That this process was away excuses its silence, but it stays lost.
        scene.now += ABSENT_AFTER;
        scene.pass(INTERVAL, &[(B, none())]);
        scene.pass(DEAD_ALONE_AFTER - INTERVAL, &[]);
        assert_eq!(unknown(&scene), none());
        scene.pass(INTERVAL, &[]);
        assert!(unknown(&scene).contains(&B));
        // It is back, and both go at once.
        scene.pass(INTERVAL, &[(A, none()), (B, none())]);
        scene.pass(DEAD_ALONE_AFTER, &[]);
        assert_eq!(unknown(&scene), none());
    }

    /// PE1.
    #[test]
    fn a_process_that_never_heard_a_store_is_no_witness() {
        let mut scene = Scene::new();
        scene.pass(INTERVAL, &[(A, none()), (B, none())]);
        scene.pass(DEAD_ALONE_AFTER, &[(B, none())]);
        assert_eq!(scene.dead(), []);
        let has_not_heard = Sign {
            unheard_stores: BTreeSet::from([A]),
            ..Sign::default()
        };
        let note = |scene: &mut Scene, sign| {
            let health = scene.others.by_store.get_mut(&B).unwrap();
            health.note(scene.now, sign);
        };
        note(&mut scene, has_not_heard.clone());
        // It may yet hear it.
        assert_eq!(scene.dead(), []);
        scene.pass(DEAD_TO_ONE_CUT_OFF_AFTER, &[(B, none())]);
        assert_eq!(scene.dead(), []);
        note(&mut scene, has_not_heard);
        assert_eq!(scene.dead(), [A]);
    }

    /// PE2.
    #[test]
    fn what_happened_while_this_process_was_away_says_nothing() {
        let mut scene = Scene::new();
        scene.pass(INTERVAL, &[(A, none()), (B, none())]);
        scene.now += SILENT_AFTER * 100;
        scene.others.look(scene.now, &both());
        assert_eq!(scene.others.silent(scene.now), none());
        assert_eq!(scene.others.live(scene.now), none());
        scene.pass(INTERVAL, &[(B, none())]);
        assert_eq!(scene.others.live(scene.now), BTreeSet::from([B]));
        scene.pass(DEAD_TO_ONE_CUT_OFF_AFTER, &[]);
        assert_eq!(scene.dead(), [A, B]);
    }

    /// PE2: what decides about others may run before what looks at them.
    #[test]
    fn before_it_looks_again_a_process_that_was_away_takes_no_store_for_silent() {
        let mut scene = Scene::new();
        scene.pass(INTERVAL, &[(A, none()), (B, none())]);
        scene.pass(DEAD_TO_ONE_CUT_OFF_AFTER, &[]);
        assert_eq!(scene.dead(), [A, B]);
        scene.now += ABSENT_AFTER;
        assert_eq!(scene.dead(), []);
        assert_eq!(scene.others.silent(scene.now), none());
    }

    /// What it said before stays.
    #[test]
    fn a_store_with_too_much_to_do_to_say_more_lives() {
        let mut scene = Scene::new();
        let silent = BTreeSet::from([A]);
        scene.pass(INTERVAL, &[(A, none()), (B, silent.clone())]);
        for _ in 0..10 {
            scene.now += INTERVAL;
            scene.others.look(scene.now, &both());
            let health = scene.others.by_store.get_mut(&B).unwrap();
            health.note_life(scene.now);
        }
        assert_eq!(scene.others.live(scene.now), BTreeSet::from([B]));
        assert_eq!(scene.others.by_store[&B].silent_to_it, silent);
        assert_eq!(scene.dead(), [A]);
    }

    #[test]
    fn a_store_that_never_answered_has_time_to_start() {
        let mut scene = Scene::new();
        scene.pass(SILENT_AFTER_START - INTERVAL * 2, &[]);
        assert_eq!(scene.dead(), []);
        scene.pass(INTERVAL * 2, &[]);
        assert_eq!(scene.dead(), [A, B]);
    }

    /// PE2: only for the time that this process was away, as on a machine with too much to do.
    #[test]
    fn a_store_that_never_answered_is_silent_however_often_this_process_was_away() {
        let mut scene = Scene::new();
        let mut was_there = Duration::ZERO;
        while was_there < SILENT_AFTER_START - INTERVAL {
            assert_eq!(scene.dead(), []);
            scene.now += ABSENT_AFTER;
            scene.others.look(scene.now, &both());
            scene.pass(INTERVAL * 4, &[]);
            was_there += INTERVAL * 4;
        }
        scene.pass(INTERVAL * 2, &[]);
        assert_eq!(scene.dead(), [A, B]);
    }

    #[test]
    fn reports_never_decrease_and_those_of_an_earlier_start_do_not_count() {
        let now = Instant::now();
        let epoch = |number| Epoch {
            generation: 0,
            number,
        };
        let mut health = Health::new(now);
        for (incarnation, number, expected, live) in
            [(2, 5, 5, true), (1, 9, 5, false), (3, 4, 5, true)]
        {
            health.answered = None;
            let sign = Sign {
                incarnation,
                reports: Some(vec![(ShardId(7), epoch(number))]),
                ..Sign::default()
            };
            health.note(now, sign);
            assert_eq!(health.report(ShardId(7)), epoch(expected));
            assert_eq!(health.is_live(now), live);
        }
        assert_eq!(health.report(ShardId(8)), Epoch::NONE);
    }
}
