//! The rules, one by one.

use super::super::record::Learner;
use super::*;

const STORES: [StoreId; 3] = [StoreId([1; 16]), StoreId([2; 16]), StoreId([3; 16])];

const SHARD: ShardId = ShardId(7);

/// By places among the stores; the first one is the own one.
fn members(role: Role, live: &[usize], dead: &[usize]) -> Members {
    let mut members = Members::alone(STORES[0]);
    let some = |places: &[usize]| places.iter().map(|&place| STORES[place]).collect();
    members.live = some(live);
    members.reaching = some(live);
    members.dead = some(dead);
    members.silent = some(dead);
    members.roles.insert(SHARD, role);
    if let Role::Copied { added } = role {
        members.copied.insert(SHARD, added);
    }
    members
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

/// PE3, PE4: the one that is left cannot tell whether it is cut off. One that comes knows.
#[test]
fn a_dead_learner_leaves_by_the_store_that_takes_its_place() {
    let mut record = ShardRecord::first(0, &STORES[1..], 7).with_want(3);
    let learner = StoreId([4; 16]);
    record.learners.push(Learner {
        store: learner,
        added: record.epoch,
    });
    let left = members(Role::InSync, &[], &[2]);
    let mut left = Members {
        own: STORES[1],
        ..left
    };
    left.dead.insert(learner);
    assert_eq!(left.step(SHARD, &record), None);
    let mut coming = members(Role::None, &[1], &[2]);
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
    let short = ShardRecord::first(0, &STORES[1..], 7).with_want(3);
    let mut members_of = members(Role::None, &[1], &[]);
    members_of.has_room_for_copies = false;
    assert_eq!(members_of.step(SHARD, &short), None);
    let record = with_learner();
    let added = record.epoch;
    for role in [Role::Copying { added }, Role::Copied { added }] {
        let mut filling = members(role, &[1], &[]);
        filling.has_room_for_copies = false;
        filling.copied.clear();
        assert_eq!(filling.step(SHARD, &record), None);
        filling.full.insert(STORES[0]);
        let drop = Some(Step::DropLearner(STORES[0]));
        assert_eq!(filling.step(SHARD, &record), drop);
    }
}

/// PE15.
#[test]
fn a_store_whose_disk_is_nearly_full_leaves_where_the_others_have_room() {
    let record = ShardRecord::first(0, &STORES, 7);
    let full = |live: &[usize], full: &[usize]| {
        let mut members = members(Role::InSync, live, &[]);
        members.full = full.iter().map(|&place| STORES[place]).collect();
        members
    };
    let step = |live: &[usize], places: &[usize], record: &ShardRecord| {
        full(live, places).step(SHARD, record)
    };
    let leaves = Some((Step::Evict(STORES[0]), Some(Cause::NoRoom)));
    assert_eq!(full(&[1, 2], &[0]).step_and_cause(SHARD, &record), leaves);
    // Another one is full as well, or does not answer: inserts would still be refused, or hang on fewer stores.
    assert_eq!(step(&[1, 2], &[0, 1], &record), None);
    assert_eq!(step(&[1], &[0], &record), None);
    assert_eq!(step(&[1, 2], &[1], &record), None);
    // Only one would be left.
    let two = ShardRecord::first(0, &STORES[..2], 7);
    assert_eq!(step(&[1], &[0], &two), None);
    let mut lately = full(&[1, 2], &[0]);
    lately.lately_left = ShardSet::from_iter([SHARD]);
    assert_eq!(lately.step(SHARD, &record), None);
    // No other would answer searches.
    assert_eq!(step(&[1, 2], &[0], &record.with_hot(1)), None);
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
    let step =
        |live: &[usize], places: &[usize]| damaged(Role::InSync, live, places).step(SHARD, &record);
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
    let back =
        |role, live: &[usize], record: &ShardRecord| members(role, live, &[]).step(SHARD, record);
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
    early.copied.clear();
    assert_eq!(early.step(SHARD, &record), None);
    // It would be taken for dead again.
    let mut unreached = members(Role::None, &[1], &[]);
    let short = ShardRecord::first(0, &STORES[1..], 7).with_want(3);
    unreached.reaching = BTreeSet::from([STORES[2]]);
    assert!(unreached.is_wanted(SHARD, &short));
    assert_eq!(unreached.step(SHARD, &short), None);
    let earlier = Role::Copied { added: Epoch::NONE };
    assert_eq!(back(earlier, &[1], &record), None);
}
