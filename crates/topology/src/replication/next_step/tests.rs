//! The rules, one by one.

use super::super::record::Learner;
use super::super::step::StepError;
use super::*;

const STORES: [StoreId; 3] = [StoreId([1; 16]), StoreId([2; 16]), StoreId([3; 16])];

const SHARD: ShardId = ShardId(7);

/// By places among the stores; the first one is the own one.
fn view(role: Role, live: &[usize], dead: &[usize]) -> View {
    let mut view = View::alone(STORES[0]);
    let some = |places: &[usize]| places.iter().map(|&place| STORES[place]).collect();
    view.live = some(live);
    view.reaching = some(live);
    view.dead = some(dead);
    view.silent = some(dead);
    view.roles.insert(SHARD, role);
    if let Role::Copied { added } = role {
        view.copied.insert(SHARD, added);
    }
    view
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
        view(Role::InSync, live, dead).step(SHARD, record)
    };
    assert_eq!(step(&[1], &[2], &record), evict);
    assert_eq!(step(&[1], &[], &record), None);
    let copying = with_learner();
    assert_eq!(step(&[1], &[2], &copying), evict);
    let begun = Role::Copying {
        added: copying.epoch,
    };
    assert_eq!(view(begun, &[], &[2]).step(SHARD, &copying), None);
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

/// PE22: by reports of its own store alone, no step follows the record by which it came.
#[test]
fn a_store_that_came_beside_one_takes_a_step_by_which_it_can_go_on_alone() {
    let mut came = ShardRecord::first(0, &[STORES[1], STORES[0]], 7);
    came.epoch = came.epoch.next();
    came.previous = vec![STORES[1]];
    let step = |own: usize, record: &ShardRecord| {
        let mut view = view(Role::InSync, &[1 - own], &[]);
        view.own = STORES[own];
        view.step(SHARD, record)
    };
    let goes_on_alone = |own: usize, record: &ShardRecord| {
        let of_own = |store| {
            if store == STORES[own] {
                record.epoch
            } else {
                Epoch::NONE
            }
        };
        let left = record.after(Step::Evict(STORES[1 - own]), 9, of_own, |_| false);
        assert!(
            matches!(left, Ok(_) | Err(StepError::NotSealed(_))),
            "{left:?}"
        );
        left.is_ok()
    };
    // The other one has moved there, and its former place may be gone.
    let mut moved = came.clone();
    moved.previous = vec![STORES[1], STORES[2], STORES[0]];
    let both = |of: &dyn Fn(usize) -> bool| [of(0), of(1)];
    for (record, alone) in [(came.clone(), [false, true]), (moved, [false, false])] {
        assert_eq!(both(&|own| goes_on_alone(own, &record)), alone);
        assert_eq!(both(&|own| step(own, &record).is_none()), alone);
        assert_eq!(step(0, &record), Some(Step::Confirm));
        let after = record.after(Step::Confirm, 8, |_| record.epoch, |_| false);
        let after = after.unwrap();
        assert_eq!(after.in_sync, record.in_sync);
        assert_eq!(both(&|own| goes_on_alone(own, &after)), [true; 2]);
        assert_eq!(both(&|own| step(own, &after).is_none()), [true; 2]);
    }
    // What is due comes first.
    let alone = view(Role::InSync, &[], &[1]);
    assert_eq!(alone.step(SHARD, &came), Some(Step::Evict(STORES[1])));
}

/// PE3, PE4: the one that is left cannot tell whether it is cut off. One that comes knows.
#[test]
fn a_dead_learner_leaves_by_the_store_that_takes_its_place() {
    let mut record = ShardRecord::first(0, &STORES[1..], 7).with_want(3);
    let learner = StoreId([4; 16]);
    record.learners.push(Learner {
        store: learner,
        added: record.epoch,
    });
    let left = view(Role::InSync, &[], &[2]);
    let mut left = View {
        own: STORES[1],
        ..left
    };
    left.dead.insert(learner);
    assert_eq!(left.step(SHARD, &record), None);
    let mut coming = view(Role::None, &[1], &[2]);
    assert_eq!(coming.step(SHARD, &record), None);
    coming.dead.insert(learner);
    let drop = Some(Step::DropLearner(learner));
    assert_eq!(coming.step(SHARD, &record), drop);
    record.learners.clear();
    let come = Some(Step::AddLearner(STORES[0]));
    assert_eq!(coming.step(SHARD, &record), come);
}

/// PE3: it could not write down that the other has left, which may come back and has all.
#[test]
fn a_store_whose_disk_is_late_takes_no_dead_one_out_to_be_alone() {
    let mut late = view(Role::InSync, &[], &[1]);
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
        let mut view = view(Role::None, &[], &[]);
        view.silent = silent.iter().map(|&place| STORES[place]).collect();
        view.step(SHARD, &record)
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
    let copied = view(Role::Copied { added }, &[1], &[2]);
    assert_eq!(copied.step(SHARD, &record), Some(promote));
    record.min_in_sync = 1;
    let evict = Some(Step::Evict(STORES[2]));
    assert_eq!(copied.step(SHARD, &record), evict);
}

/// PE6.
#[test]
fn a_store_without_room_is_no_learner() {
    let short = ShardRecord::first(0, &STORES[1..], 7).with_want(3);
    let come = Some(Step::AddLearner(STORES[0]));
    let mut back = view(Role::None, &[1], &[]);
    assert_eq!(back.step(SHARD, &short), come);
    back.has_room = false;
    assert_eq!(back.step(SHARD, &short), None);
    // What it never held is a copy of all.
    let mut new = view(Role::None, &[1], &[]);
    new.roles.clear();
    new.long_short.insert(SHARD);
    assert_eq!(new.step(SHARD, &short), come);
    new.has_room_for_copies = false;
    assert_eq!(new.step(SHARD, &short), None);
    let record = with_learner();
    let added = record.epoch;
    for role in [Role::Copying { added }, Role::Copied { added }] {
        let mut full = view(role, &[1], &[]);
        full.has_room = false;
        let drop = Some(Step::DropLearner(STORES[0]));
        assert_eq!(full.step(SHARD, &record), drop);
    }
}

/// PE15.
#[test]
fn a_store_that_lacks_room_leaves_where_the_others_have_some() {
    let record = ShardRecord::first(0, &STORES, 7);
    let lacking = |live: &[usize], places: &[usize]| {
        let mut view = view(Role::InSync, live, &[]);
        view.lacking_room = places.iter().map(|&place| STORES[place]).collect();
        view
    };
    let step = |live: &[usize], places: &[usize], record: &ShardRecord| {
        lacking(live, places).step(SHARD, record)
    };
    let leaves = Some((Step::Evict(STORES[0]), Some(Cause::NoRoom)));
    let found = lacking(&[1, 2], &[0]).step_and_cause(SHARD, &record);
    assert_eq!(found, leaves);
    // Another one lacks room as well, or does not answer: nothing would be gained.
    assert_eq!(step(&[1, 2], &[0, 1], &record), None);
    assert_eq!(step(&[1], &[0], &record), None);
    assert_eq!(step(&[1, 2], &[1], &record), None);
    // Only one would be left.
    let two = ShardRecord::first(0, &STORES[..2], 7);
    assert_eq!(step(&[1], &[0], &two), None);
    let mut lately = lacking(&[1, 2], &[0]);
    lately.lately_left = ShardSet::from_iter([SHARD]);
    assert_eq!(lately.step(SHARD, &record), None);
    // No other would answer searches.
    assert_eq!(step(&[1, 2], &[0], &record.with_hot(1)), None);
}

/// PE15: a dead store cannot leave without it.
#[test]
fn a_store_that_lacks_room_comes_where_it_is_needed_and_stays_until_then() {
    let lacking = |role, live: &[usize], dead: &[usize]| {
        let mut view = view(role, live, dead);
        view.lacking_room.insert(STORES[0]);
        view
    };
    let short = ShardRecord::first(0, &STORES[1..], 7).with_want(3);
    let mut away = lacking(Role::None, &[1, 2], &[]);
    assert_eq!(away.step(SHARD, &short), None);
    away.lacking_room.insert(STORES[1]);
    let come = Some(Step::AddLearner(STORES[0]));
    assert_eq!(away.step(SHARD, &short), come, "all lack room");
    let mut needed = lacking(Role::None, &[1], &[2]);
    needed.rests = true;
    assert_eq!(needed.step(SHARD, &short), come);
    let mut record = with_learner();
    record.min_in_sync = 2;
    let copying = Role::Copying {
        added: record.epoch,
    };
    assert_eq!(lacking(copying, &[1], &[2]).step(SHARD, &record), None);
    let drop = Some(Step::DropLearner(STORES[0]));
    assert_eq!(lacking(copying, &[1, 2], &[]).step(SHARD, &record), drop);
}

/// PE19.
#[test]
fn a_store_that_stops_leaves_what_goes_on_without_it() {
    let stopping = |role, live: &[usize]| View {
        stops: true,
        ..view(role, live, &[])
    };
    let leave = Some(Step::Evict(STORES[0]));
    let record = ShardRecord::first(0, &STORES, 7);
    let cause = stopping(Role::InSync, &[1, 2]).step_and_cause(SHARD, &record);
    assert_eq!(cause, leave.map(|leave| (leave, Some(Cause::Stops))));
    let mut damaged = stopping(Role::InSync, &[1, 2]);
    damaged.damaged = BTreeMap::from([(STORES[2], ShardSet::from_iter([SHARD]))]);
    assert_eq!(damaged.step(SHARD, &record), None);
    assert_eq!(stopping(Role::InSync, &[1]).step(SHARD, &record), None);
    let two = ShardRecord::first(0, &STORES[..2], 7);
    assert_eq!(stopping(Role::InSync, &[1]).step(SHARD, &two), None);
    let mut last_hot = record.clone();
    for entry in &mut last_hot.in_sync {
        entry.hot = entry.store == STORES[0];
    }
    last_hot.hot = 1;
    let stays = stopping(Role::InSync, &[1, 2]).step(SHARD, &last_hot);
    assert_eq!(stays, None);
    // The others may stop as well.
    let mut silent = stopping(Role::InSync, &[]);
    silent.dead = BTreeSet::from([STORES[1], STORES[2]]);
    assert_eq!(silent.step(SHARD, &record), None);
    silent.live.insert(STORES[1]);
    silent.dead.remove(&STORES[1]);
    assert_eq!(silent.step(SHARD, &record), None);
    // It does not come back.
    let short = ShardRecord::first(0, &STORES[1..], 7).with_want(3);
    assert_eq!(stopping(Role::None, &[1, 2]).step(SHARD, &short), None);
    let learner = with_learner();
    let copying = Role::Copying {
        added: learner.epoch,
    };
    let dropped = stopping(copying, &[1, 2]).step(SHARD, &learner);
    assert_eq!(dropped, Some(Step::DropLearner(STORES[0])));
}

/// PE6, PE7.
#[test]
fn a_store_whose_disk_hangs_leaves_and_stays_away() {
    let hanging = |role, live: &[usize]| {
        let mut view = view(role, live, &[]);
        view.disk_hangs = true;
        view
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
        let mut view = view(Role::InSync, live, &[]);
        view.much_faster = faster.iter().map(|&place| STORES[place]).collect();
        view
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
    let mut slow = view(copying, &[1], &[]);
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
    let mut back = view(Role::None, &[1], &[]);
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
    let step = |view: &View, record: &ShardRecord| view.step(SHARD, record);
    let evict = Some(Step::Evict(STORES[1]));
    assert_eq!(step(&view(Role::InSync, &[2], &[1]), &record), evict);
    record.in_sync.truncate(2);
    let heat = Some(Step::Adjust);
    assert_eq!(step(&view(Role::InSync, &[], &[1]), &record), heat);
    assert_eq!(step(&view(Role::InSync, &[1], &[]), &record), None);
    assert_eq!(step(&view(Role::InSync, &[], &[]), &record), None);
    let mut damaged = view(Role::InSync, &[1], &[]);
    damaged.damaged = BTreeMap::from([(STORES[1], ShardSet::from_iter([SHARD]))]);
    assert_eq!(step(&damaged, &record), heat);
}

/// PE9.
#[test]
fn a_store_leaves_a_shard_that_is_damaged_if_another_one_is_whole() {
    let damaged = |role, live: &[usize], damaged: &[usize]| {
        let mut view = view(role, live, &[]);
        let shards = ShardSet::from_iter([SHARD]);
        let damaged = damaged.iter().map(|&place| (STORES[place], shards));
        view.damaged = damaged.collect();
        view
    };
    let record = ShardRecord::first(0, &STORES, 7);
    let evict = Some(Step::Evict(STORES[0]));
    let step =
        |live: &[usize], places: &[usize]| damaged(Role::InSync, live, places).step(SHARD, &record);
    assert_eq!(step(&[1], &[0]), evict);
    assert_eq!(step(&[1, 2], &[0, 1]), evict);
    assert_eq!(step(&[1, 2], &[1]), None);
    // Together they may still have all.
    assert_eq!(step(&[1], &[0, 1]), None);
    assert_eq!(step(&[], &[0]), None);
    let view = damaged(Role::InSync, &[1], &[0]);
    assert_eq!(view.step(ShardId(8), &record), None);
    let mut few = record.clone();
    few.in_sync.truncate(2);
    assert_eq!(view.step(SHARD, &few), None);
    few.min_in_sync = 1;
    assert_eq!(view.step(SHARD, &few), evict);
}

/// PE9, PE13: a store that leaves for its disk is to stay away.
#[test]
fn a_store_that_is_damaged_and_slow_leaves_for_the_cause_that_lets_it_leave() {
    let mut view = view(Role::InSync, &[1, 2], &[]);
    view.much_faster = BTreeSet::from([STORES[1], STORES[2]]);
    view.damaged = BTreeMap::from([(STORES[0], ShardSet::from_iter([SHARD]))]);
    let record = ShardRecord::first(0, &STORES, 7);
    let leaves = |view: &View, cause| {
        let step = view.step_and_cause(SHARD, &record);
        assert_eq!(step, Some((Step::Evict(STORES[0]), Some(cause))));
    };
    leaves(&view, Cause::SlowDisk);
    // Slow, it would stay.
    view.lately_left = ShardSet::from_iter([SHARD]);
    leaves(&view, Cause::Damage);
    view.disk_hangs = true;
    leaves(&view, Cause::DiskHangs);
}

/// PE9: what is damaged is set aside once the shard begins anew.
#[test]
fn a_store_comes_back_to_a_shard_that_was_damaged_and_leaves_again_if_its_copy_is() {
    let damaged = |role| {
        let mut view = view(role, &[1], &[]);
        view.damaged = BTreeMap::from([(STORES[0], ShardSet::from_iter([SHARD]))]);
        view
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
    let back =
        |role, live: &[usize], record: &ShardRecord| view(role, live, &[]).step(SHARD, record);
    assert_eq!(back(Role::None, &[1], &record), None);
    record.want = 3;
    let come = Some(Step::AddLearner(STORES[0]));
    assert_eq!(back(Role::None, &[1], &record), come);
    assert_eq!(back(Role::None, &[], &record), None);
    // One that it never held it takes later.
    let mut other = view(Role::None, &[1], &[]);
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
    let mut early = view(copied, &[1], &[]);
    early.copied.clear();
    assert_eq!(early.step(SHARD, &record), None);
    // It would be taken for dead again.
    let mut unreached = view(Role::None, &[1], &[]);
    let short = ShardRecord::first(0, &STORES[1..], 7).with_want(3);
    unreached.reaching = BTreeSet::from([STORES[2]]);
    assert!(unreached.is_wanted(SHARD, &short));
    assert_eq!(unreached.step(SHARD, &short), None);
    // FO4.
    let unfilled = short.wishing(3, 0);
    assert!(!unreached.is_wanted(SHARD, &unfilled));
    let earlier = Role::Copied { added: Epoch::NONE };
    assert_eq!(back(earlier, &[1], &record), None);
}

/// A view of a store in sync that knows the targets of the shard.
fn with_targets(own: usize, targets: &[usize]) -> View {
    let all: Vec<usize> = (0..3).filter(|place| *place != own).collect();
    let mut view = view(Role::InSync, &all, &[]);
    view.own = STORES[own];
    let targets = targets.iter().map(|&place| STORES[place]).collect();
    view.targets = Arc::new(BTreeMap::from([(SHARD, targets)]));
    view
}

/// The record of some stores, all hot, where one replica is wished for.
fn of_one(places: &[usize]) -> ShardRecord {
    let stores: Vec<StoreId> = places.iter().map(|&place| STORES[place]).collect();
    let mut record = ShardRecord::first(0, &stores, 7);
    record.want = 1;
    record.hot = 1;
    record
}

/// PE16.
#[test]
fn a_target_comes_beside_the_store_that_it_replaces() {
    let mut coming = with_targets(0, &[0]);
    coming.roles.clear();
    let come = Some(Step::AddLearner(STORES[0]));
    assert_eq!(coming.step(SHARD, &of_one(&[1])), come);
    assert_eq!(coming.step(SHARD, &of_one(&[1, 2])), None);
    coming.has_room_for_copies = false;
    assert_eq!(coming.step(SHARD, &of_one(&[1])), None);
    // The replaced one leaves, the target does not.
    let leave = Some(Step::Evict(STORES[1]));
    assert_eq!(with_targets(1, &[0]).step(SHARD, &of_one(&[1, 0])), leave);
    assert_eq!(with_targets(0, &[0]).step(SHARD, &of_one(&[1, 0])), None);
}

/// PE16: nothing else would ever let the target come.
#[test]
fn of_two_that_are_no_targets_the_last_one_leaves() {
    let record = of_one(&[0, 1]);
    let leave = Some(Step::Evict(STORES[1]));
    assert_eq!(with_targets(1, &[2]).step(SHARD, &record), leave);
    assert_eq!(with_targets(0, &[2]).step(SHARD, &record), None);
}

/// PE16: an operator has wished for fewer replicas meanwhile.
#[test]
fn of_more_targets_than_replicas_the_first_ones_stay() {
    let record = of_one(&[0, 1, 2]);
    let all = [0, 1, 2];
    let leave = Some(Step::Evict(STORES[2]));
    assert_eq!(with_targets(2, &all).step(SHARD, &record), leave);
    assert_eq!(with_targets(0, &all).step(SHARD, &record), None);
    // And the others do not come back.
    let mut away = with_targets(2, &all);
    away.roles.insert(SHARD, Role::None);
    assert_eq!(away.step(SHARD, &of_one(&[0])), None);
}

/// PE16.
#[test]
fn a_store_that_is_replaced_waits_for_tables_and_for_one_that_is_whole() {
    let record = of_one(&[1, 0]);
    let mut replaced = with_targets(1, &[0]);
    let tables = ShardSet::from_iter([SHARD]);
    replaced.unbuilt_by_others.insert(STORES[0], tables);
    assert_eq!(replaced.step(SHARD, &record), None);
    replaced.unbuilt_by_others.clear();
    let leave = Some(Step::Evict(STORES[1]));
    assert_eq!(replaced.step(SHARD, &record), leave);
    replaced.damaged.insert(STORES[0], tables);
    assert_eq!(replaced.step(SHARD, &record), None);
}

/// PE16: else fewer would be left that live than are wished for.
#[test]
fn a_store_that_is_replaced_waits_for_as_many_as_are_wished_for() {
    // The last one leaves, which is cold.
    let mut record = ShardRecord::first(0, &STORES, 7).wishing(2, 1);
    record.in_sync[2].hot = false;
    let leaving = with_targets(2, &[0, 1]);
    let leave = Some(Step::Evict(STORES[2]));
    assert_eq!(leaving.step(SHARD, &record), leave);
    for away in [0, 1] {
        let mut waiting = leaving.clone();
        waiting.live.remove(&STORES[away]);
        assert_eq!(waiting.step(SHARD, &record), None, "{away} is silent");
    }
}

/// PE16: the target was changed while it copied.
#[test]
fn a_learner_that_nothing_needs_leaves() {
    let mut record = of_one(&[1]);
    record.learners.push(Learner {
        store: STORES[0],
        added: record.epoch,
    });
    let learning = |targets: &[usize]| {
        let mut view = with_targets(0, targets);
        view.roles.insert(
            SHARD,
            Role::Copying {
                added: record.epoch,
            },
        );
        view
    };
    assert_eq!(learning(&[0]).step(SHARD, &record), None);
    let drop = Some(Step::DropLearner(STORES[0]));
    assert_eq!(learning(&[2]).step(SHARD, &record), drop);
    // The only other one is damaged.
    let mut needed = learning(&[2]);
    let tables = ShardSet::from_iter([SHARD]);
    needed.damaged.insert(STORES[1], tables);
    assert_eq!(needed.step(SHARD, &record), None);
}

/// PE16.
#[test]
fn a_drained_store_comes_only_where_it_is_a_target() {
    let short = ShardRecord::first(0, &STORES[1..], 7).with_want(3);
    let come = Some(Step::AddLearner(STORES[0]));
    let mut former = view(Role::None, &[1], &[]);
    assert_eq!(former.step(SHARD, &short), come);
    former.is_drained = true;
    assert_eq!(former.step(SHARD, &short), None);
    former.targets = with_targets(0, &[0]).targets;
    assert_eq!(former.step(SHARD, &short), come);
}
