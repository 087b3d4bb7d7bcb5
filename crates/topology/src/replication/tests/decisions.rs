//! Decisions that need no search: what is refused, and why.

use std::sync::Arc;

use super::world::id;
use crate::replication::*;
use crate::version::Version;

fn record(in_sync: u8) -> ShardRecord {
    let entry = |store| InSync {
        store: id(store),
        since: Epoch::FIRST,
        hot: true,
    };
    ShardRecord {
        floor: Version::NONE,
        is_frozen: false,
        settled: Version::NONE,
        epoch: Epoch::FIRST,
        nonce: 1,
        in_sync: (0..in_sync).map(entry).collect(),
        learners: Vec::new(),
        previous: Vec::new(),
        want: in_sync,
        hot: in_sync,
        min_in_sync: 2,
    }
}

fn next(record: &ShardRecord, step: Step) -> Result<ShardRecord, StepError> {
    next_without(record, step, &[])
}

/// The same, by a process that takes some stores for lost.
fn next_without(record: &ShardRecord, step: Step, lost: &[u8]) -> Result<ShardRecord, StepError> {
    let is_lost = |store: StoreId| lost.contains(&store.0[0]);
    record.after(step, 2, |_| record.epoch, is_lost)
}

fn hot(record: &ShardRecord) -> Vec<bool> {
    record.in_sync.iter().map(|entry| entry.hot).collect()
}

/// EP1: a step that does not fit the record is refused, and the others change one store.
#[test]
fn a_step_takes_a_store_from_the_role_that_it_has() {
    let first = record(3);
    let added = next(&first, Step::AddLearner(id(3))).unwrap();
    assert_eq!(added.epoch, Epoch::FIRST.next());
    assert_eq!(added.in_sync, first.in_sync);
    assert_eq!(added.learner(id(3)).unwrap().added, added.epoch);
    assert_eq!(added.write_set().count(), 4);
    for (step, store) in [
        (Step::Evict(id(3)), id(3)),
        (Step::AddLearner(id(0)), id(0)),
        (Step::AddLearner(id(3)), id(3)),
        (Step::DropLearner(id(0)), id(0)),
    ] {
        assert_eq!(next(&added, step), Err(StepError::OtherRole(store)));
    }
    let dropped = next(&added, Step::DropLearner(id(3))).unwrap();
    assert!(dropped.learners.is_empty());
    assert_eq!(next(&dropped, Step::Adjust).unwrap().in_sync, first.in_sync);
}

/// EP2.
#[test]
fn a_step_waits_for_the_seal_of_the_one_before() {
    let second = next(&record(3), Step::Evict(id(2))).unwrap();
    let reported = |stores: u8| {
        let synced = |store: StoreId| {
            let has = store.0[0] < stores;
            if has { second.epoch } else { Epoch::FIRST }
        };
        second.after(Step::Adjust, 3, synced, |_| false)
    };
    assert_eq!(reported(1), Err(StepError::NotSealed(second.epoch)));
    assert!(reported(2).is_ok());
}

/// EP3.
#[test]
fn an_eviction_leaves_the_least_number_and_one_store() {
    let two = next(&record(3), Step::Evict(id(0))).unwrap();
    let refused = StepError::TooFewLeft { min: 2, in_sync: 2 };
    assert_eq!(next(&two, Step::Evict(id(1))), Err(refused));
    let mut last = record(1);
    last.min_in_sync = 0;
    let refused = StepError::TooFewLeft { min: 1, in_sync: 1 };
    assert_eq!(next(&last, Step::Evict(id(0))), Err(refused));
}

/// EP4.
#[test]
fn the_word_of_an_earlier_addition_promotes_no_store() {
    let added = next(&record(1), Step::AddLearner(id(1))).unwrap();
    let dropped = next(&added, Step::DropLearner(id(1))).unwrap();
    let again = next(&dropped, Step::AddLearner(id(1))).unwrap();
    let promote = |copied| Step::Promote {
        store: id(1),
        copied,
    };
    let refused = Err(StepError::NotCopied(id(1)));
    assert_eq!(next(&again, promote(added.epoch)), refused);
    let promoted = next(&again, promote(again.epoch)).unwrap();
    assert_eq!(promoted.in_sync(id(1)).unwrap().since, promoted.epoch);
    assert!(promoted.learners.is_empty());
}

/// RP2: and a store that holds no copy never gets in sync by a record alone, unless there is nothing to copy.
#[test]
fn records_are_installed_upwards_and_with_a_copy_only() {
    let first = Arc::new(record(2));
    let second = next(&first, Step::Adjust).unwrap();
    let mut replica = Replica::new(id(0));
    let check =
        |replica: &Replica, record: &ShardRecord| replica.check_install(record, |_| Epoch::NONE);
    let mut promoted = second.clone();
    promoted.in_sync[0].since = second.epoch;
    let no_copy = Err(InstallError::NoCopy(second.epoch));
    assert_eq!(check(&replica, &promoted), no_copy);
    assert_eq!(
        check(&replica, &second),
        Ok(()),
        "late, and in sync since the first record"
    );
    assert_eq!(check(&replica, &first), Ok(()));
    replica.append(&Entry::Install(Arc::clone(&first)));
    assert_eq!(check(&replica, &second), Ok(()));
    let not_newer = Err(InstallError::NotNewer(first.epoch));
    assert_eq!(check(&replica, &first), not_newer);
    let mut other = first.as_ref().clone();
    other.nonce += 1;
    let other_history = Err(InstallError::OtherHistory(first.epoch));
    assert_eq!(check(&replica, &other), other_history);
}

/// RP1, RP4: an entry ends earlier writes and proofs once it is appended, counts for writes and for a seal once synced,
/// and for reads once applied.
#[test]
fn an_entry_counts_at_three_times() {
    let first = Arc::new(record(1));
    let entry = Entry::Install(Arc::clone(&first));
    let mut replica = Replica::new(id(0));
    let seen = |replica: &Replica| {
        let confirms = replica.confirms() == Epoch::FIRST;
        let takes = replica.takes(Epoch::FIRST);
        assert_eq!(takes, replica.reports() == Epoch::FIRST);
        [confirms, takes, replica.answers(Epoch::FIRST)]
    };
    assert_eq!(seen(&replica), [false, false, false]);
    replica.append(&entry);
    assert_eq!(seen(&replica), [true, false, false]);
    replica.sync(&entry);
    assert_eq!(seen(&replica), [true, true, false]);
    assert!(!replica.apply(&entry), "there was nothing to set aside");
    assert_eq!(seen(&replica), [true, true, true]);
    let other = Epoch::FIRST.next();
    assert!(!replica.takes(other) && !replica.answers(other));
    let mut next = first.as_ref().clone();
    next.epoch = other;
    replica.append(&Entry::Install(Arc::new(next)));
    assert!(!replica.takes(Epoch::FIRST) && !replica.takes(other));
    replica.withdraw();
    assert!(replica.takes(Epoch::FIRST), "the log has refused the next");
}

/// RP5: the source refuses, so that no copy is made in vain.
#[test]
fn a_source_is_pinned_once_it_has_applied_the_addition() {
    let first = Arc::new(record(1));
    let added = next(&first, Step::AddLearner(id(1))).unwrap();
    let at = added.epoch;
    let installs = [first, Arc::new(added)].map(Entry::Install);
    let mut replica = Replica::new(id(0));
    for entry in &installs {
        assert_eq!(replica.pin(at), None);
        replica.append(entry);
        replica.sync(entry);
    }
    installs.iter().for_each(|entry| {
        replica.apply(entry);
    });
    let source = id(0);
    assert_eq!(replica.pin(at), Some(Pin { source, at }));
    assert_eq!(replica.pin(at.next()), None);
}

/// RP5: nor does one that is no more in sync, or copies itself.
#[test]
fn only_a_store_in_sync_is_pinned() {
    let first = Arc::new(record(3));
    let added = next(&first, Step::AddLearner(id(3))).unwrap();
    let at = added.epoch;
    let out = next(&added, Step::Evict(id(0))).unwrap();
    let pinned = |store: u8, records: &[&ShardRecord]| {
        let mut replica = Replica::new(id(store));
        for record in records {
            let entry = Entry::Install(Arc::new((*record).clone()));
            replica.append(&entry);
            replica.sync(&entry);
            replica.apply(&entry);
        }
        replica.pin(at).is_some()
    };
    assert!(pinned(0, &[&first, &added]));
    assert!(!pinned(0, &[&first, &added, &out]));
    assert!(pinned(1, &[&first, &added, &out]));
    assert!(!pinned(3, &[&added]));
}

/// RP5: what a source took after it had left, or before the learner came, may lack what was acknowledged.
#[test]
fn a_copy_ends_only_if_its_source_has_been_in_sync_since_it_was_pinned() {
    let first = record(3);
    let added = next(&first, Step::AddLearner(id(3))).unwrap();
    let at = added.epoch;
    let out = next(&added, Step::Evict(id(0))).unwrap();
    let back = next(&out, Step::AddLearner(id(0))).unwrap();
    let copied = back.epoch;
    let store = id(0);
    let again = next(&back, Step::Promote { store, copied }).unwrap();
    let ends = |at, records: &[&ShardRecord]| {
        let mut replica = Replica::new(id(3));
        for record in records {
            replica.append(&Entry::Install(Arc::new((*record).clone())));
        }
        let source = id(0);
        replica.end_of_copy(Pin { source, at })
    };
    let end = Some(Entry::Copied { added: at });
    assert_eq!(ends(at, &[&added]), end);
    assert_eq!(ends(Epoch::FIRST, &[&added]), None);
    assert_eq!(ends(at, &[&added, &out]), None);
    assert_eq!(ends(at, &[&added, &out, &back, &again]), None);
    assert_eq!(ends(again.epoch, &[&added, &again]), end);
}

/// RP3: also if it never had the record by which it had left.
#[test]
fn a_learner_that_is_added_again_begins_anew() {
    let first = record(1);
    let added = next(&first, Step::AddLearner(id(1))).unwrap();
    let dropped = next(&added, Step::DropLearner(id(1))).unwrap();
    let again = next(&dropped, Step::AddLearner(id(1))).unwrap();
    for has_copied in [false, true] {
        let mut replica = Replica::new(id(1));
        let mut take = |entry: Entry| {
            replica.append(&entry);
            replica.sync(&entry);
            replica.apply(&entry)
        };
        let install = |record: &ShardRecord| Entry::Install(Arc::new(record.clone()));
        assert!(!take(install(&added)), "there was nothing");
        let copied = Entry::Copied { added: added.epoch };
        assert!(!has_copied || !take(copied), "what it copied is kept");
        assert!(take(install(&again)), "all of before is set aside");
        assert_eq!(replica.is_copying(), Some(again.epoch));
        assert_eq!(replica.has_copied(), None);
    }
}

/// QW2: a change whose caller was told that it failed is neither acknowledged nor sent with a new version.
#[test]
fn a_change_that_failed_gets_no_new_version() {
    let state = State {
        version: Version(7),
        live: true,
    };
    let newer = Outcome::Newer(Version(9));
    let mut write = Write::new(state);
    assert_eq!(write.outdone_by(), None);
    write.answered(id(0), Epoch::FIRST, state, newer);
    assert_eq!(write.outdone_by(), Some(Version(9)));
    let mut told = write.clone();
    told.tell_failure();
    assert_eq!(told.outdone_by(), None);
    told.answered(id(0), Epoch::FIRST, state, Outcome::Done);
    assert!(!told.may_acknowledge(&record(1)));
    write.restamp(Version(10));
    assert_eq!(write.outdone_by(), None);
    write.answered(id(0), Epoch::FIRST, state, Outcome::Done);
    assert!(!write.may_acknowledge(&record(1)), "of the old version");
    let state = write.state();
    write.answered(id(0), Epoch::FIRST, state, Outcome::Done);
    assert!(write.may_acknowledge(&record(1)));
}

/// QR1: only stores in sync by the query's record count, and one answer.
#[test]
fn a_learner_neither_answers_nor_confirms() {
    let added = next(&record(1), Step::AddLearner(id(1))).unwrap();
    let mut read = Read::new(Arc::new(added));
    assert!(!read.answered(id(1)));
    read.confirmed(id(1), read.epoch());
    assert!(read.answered(id(0)) && !read.answered(id(0)));
    assert!(!read.is_proven());
    read.confirmed(id(0), read.epoch().next());
    assert!(!read.is_proven());
    read.confirmed(id(0), Epoch::FIRST);
    assert!(read.is_proven());
}

fn at_least_one(mut record: ShardRecord) -> ShardRecord {
    record.min_in_sync = 1;
    record
}

/// EP5.
#[test]
fn cold_stores_get_hot_where_hot_ones_leave_and_come_back_cold() {
    let first = record(3).with_hot(2);
    assert_eq!(hot(&first), [true, true, false]);
    assert!(!first.is_hot(id(2)) && !first.is_too_cold());
    let evicted = next(&at_least_one(first.clone()), Step::Evict(id(0))).unwrap();
    assert_eq!(hot(&evicted), [true, true]);
    let added = next(&evicted, Step::AddLearner(id(0))).unwrap();
    assert!(!added.is_hot(id(0)));
    let copied = added.epoch;
    let back = next(
        &added,
        Step::Promote {
            store: id(0),
            copied,
        },
    )
    .unwrap();
    assert_eq!(hot(&back), [true, true, false]);
    // One that goes while it is cold makes no other one hot.
    let evicted = next(&first, Step::Evict(id(2))).unwrap();
    assert_eq!(hot(&evicted), [true, true]);
    // A learner is hot where hot stores lack.
    let alone = next(&at_least_one(evicted), Step::Evict(id(0))).unwrap();
    assert_eq!(hot(&alone), [true]);
    let added = next(&alone, Step::AddLearner(id(0))).unwrap();
    assert!(added.is_hot(id(0)));
    let copied = added.epoch;
    let back = next(
        &added,
        Step::Promote {
            store: id(0),
            copied,
        },
    )
    .unwrap();
    assert_eq!(hot(&back), [true, true]);
    // Records of before know no wish.
    let mut old = first;
    old.in_sync[0].hot = false;
    assert!(old.is_too_cold());
    assert_eq!(hot(&next(&old, Step::Adjust).unwrap()), [true, true, false]);
}

/// EP5, EP6: two of three stores die, and the hot one cannot be evicted.
#[test]
fn a_cold_store_gets_hot_beside_hot_ones_that_are_lost_until_they_are_back() {
    use Searched::{Lost, Unsure, Well};
    let first = record(3).with_hot(1);
    let second = next(&first, Step::Evict(id(2))).unwrap();
    assert!(!second.may_evict());
    let heating = |record: &ShardRecord, own: u8, searched: [Searched; 2]| {
        let searched = |store: StoreId| searched[usize::from(store.0[0])];
        record.heating(id(own), searched, Some(id(1)))
    };
    assert_eq!(heating(&second, 1, [Well, Well]), None);
    assert_eq!(heating(&second, 1, [Unsure, Well]), None);
    assert_eq!(heating(&second, 1, [Lost, Lost]), None);
    assert_eq!(heating(&second, 1, [Lost, Well]), Some(Step::Adjust));
    let third = next_without(&second, Step::Adjust, &[0]).unwrap();
    assert_eq!(hot(&third), [true, true]);
    for searched in [[Lost, Well], [Unsure, Well], [Well, Unsure]] {
        assert_eq!(heating(&third, 1, searched), None);
        assert_eq!(heating(&third, 0, searched), None);
    }
    let cool = Step::Cool(id(1));
    assert_eq!(heating(&third, 1, [Well, Well]), None);
    assert_eq!(heating(&third, 0, [Well, Well]), Some(cool));
    assert_eq!(third.heating(id(0), |_| Well, None), None);
    let fourth = next(&third, cool).unwrap();
    assert_eq!(hot(&fourth), [true, false]);
    for store in [0, 1] {
        let refused = Err(StepError::OtherRole(id(store)));
        assert_eq!(next(&fourth, Step::Cool(id(store))), refused);
    }
    // One that gets hot in the place of another is the only one too many.
    let warmed = next(&first, Step::Warm(id(1))).unwrap();
    assert_eq!(hot(&warmed), [true, true, false]);
    for (record, store) in [(&first, 0), (&first, 7), (&warmed, 2)] {
        let refused = Err(StepError::OtherRole(id(store)));
        assert_eq!(next(record, Step::Warm(id(store))), refused);
    }
    // The eviction of the lost one leaves no more hot ones than wished.
    let evicted = next(&at_least_one(third), Step::Evict(id(0))).unwrap();
    assert_eq!(hot(&evicted), [true]);
}

/// EP5: two of three stores die at once, so that no second step is sealed.
#[test]
fn the_eviction_of_one_of_two_lost_stores_makes_the_third_one_hot() {
    let first = record(3).with_hot(1);
    for (lost, evicted, expected) in [
        ([0, 1], 0, [false, true]),
        ([0, 1], 1, [true, true]),
        ([0, 2], 0, [true, false]),
        ([0, 2], 2, [true, true]),
        ([1, 2], 1, [true, false]),
    ] {
        let second = next_without(&first, Step::Evict(id(evicted)), &lost).unwrap();
        assert_eq!(hot(&second), expected, "{lost:?} {evicted}");
    }
}

/// FO1, FO2.
#[test]
fn a_forced_record_names_one_store_that_was_in_sync_and_waits_for_those_that_answer() {
    let second = next(&record(3), Step::Evict(id(2))).unwrap();
    let answers = |store: StoreId| store != id(1);
    let refused = |store| second.forced(store, 5, answers).unwrap_err();
    assert_eq!(refused(id(2)), ForceError::NotInSync(id(2)));
    assert_eq!(refused(id(1)), ForceError::Silent(id(1)));
    let forced = second.forced(id(0), 5, answers).unwrap();
    assert_eq!(forced.epoch.to_string(), "1.3");
    assert_eq!(
        (forced.previous.as_slice(), forced.min_in_sync),
        (&[id(0), id(2)][..], 2)
    );
    assert!(forced.is_forced() && !second.is_forced());
    let mut replica = Replica::new(id(0));
    replica.append(&Entry::Install(Arc::new(record(3))));
    let synced = |epoch| move |_| epoch;
    let waits = Err(InstallError::NotFenced(forced.epoch));
    assert_eq!(replica.check_install(&forced, synced(second.epoch)), waits);
    assert_eq!(replica.check_install(&forced, synced(forced.epoch)), Ok(()));
    let half = |store| {
        if store == id(2) {
            forced.epoch
        } else {
            second.epoch
        }
    };
    assert!(!forced.is_sealed(half));
    let copied = Replica::new(id(0)).check_install(&forced, synced(forced.epoch));
    assert_eq!(copied, Err(InstallError::NoCopy(forced.epoch)));
    // What it leaves out installs it at once.
    assert_eq!(
        Replica::new(id(2)).check_install(&forced, synced(Epoch::NONE)),
        Ok(())
    );
}

/// FO4.
#[test]
fn a_shard_begins_anew_with_a_store_that_never_held_it_once_none_in_sync_answers() {
    let lost = next(&record(2), Step::AddLearner(id(2))).unwrap();
    let refused = |store, answering: &[u8]| {
        let answers = |store: StoreId| answering.contains(&store.0[0]);
        lost.rebuilt(store, 5, answers).unwrap_err()
    };
    assert_eq!(refused(id(3), &[1, 3]), ForceError::Answers(id(1)));
    assert_eq!(refused(id(3), &[2]), ForceError::Silent(id(3)));
    let emptied = lost.rebuilt(id(3), 5, |store| store.0[0] > 1).unwrap();
    assert_eq!(emptied.epoch.to_string(), "1.1");
    assert!(emptied.is_rebuilt() && !emptied.is_forced() && !lost.is_rebuilt());
    assert!(emptied.is_sealed(|_| Epoch::NONE));
    assert_eq!((emptied.want, emptied.write_set().count()), (2, 1));
    // One that has had a record of the shard has something, or lost it.
    let mut held = Replica::new(id(3));
    let none = |_| Epoch::NONE;
    assert_eq!(held.check_install(&emptied, none), Ok(()));
    held.append(&Entry::Install(Arc::new(record(2))));
    let no_copy = Err(InstallError::NoCopy(emptied.epoch));
    assert_eq!(held.check_install(&emptied, none), no_copy);

    // No step makes a store hot, until an operator does.
    let searched = |_| Searched::Well;
    assert_eq!(emptied.heating(id(3), searched, None), None);
    let kept = next(&emptied, Step::Adjust).unwrap();
    let learning = next(&emptied, Step::AddLearner(id(4))).unwrap();
    assert!(!learning.is_hot(id(4)));
    assert_eq!((hot(&kept), hot(&learning)), (vec![false], vec![false]));
    let forced = kept.forced(id(3), 9, |store| store == id(3)).unwrap();
    assert!(!forced.is_hot(id(3)) && forced.is_rebuilt());
    let opened = kept.wishing(2, 1).heating(id(3), searched, None);
    assert_eq!(opened, Some(Step::Adjust));
}

#[test]
fn a_shard_is_stuck_only_where_no_step_leads_on() {
    let first = record(3);
    let second = next(&first, Step::Evict(id(2))).unwrap();
    let learning = next(&second, Step::AddLearner(id(2))).unwrap();
    let mut pair = record(2);
    pair.min_in_sync = 1;
    let forced = second.forced(id(0), 5, |store| store != id(1)).unwrap();
    let stuck = |record: &ShardRecord, live: &[u8]| {
        let reports = |store: StoreId| live.contains(&store.0[0]).then_some(Epoch::FIRST);
        record.is_stuck(reports)
    };
    for (record, live, expected) in [
        (&first, &[0, 1, 2][..], false),
        (&first, &[0, 1], false),
        (&first, &[0], true),
        (&second, &[0, 1], false),
        // The eviction before is not sealed.
        (&second, &[0], true),
        // One may leave at least two.
        (&second, &[0, 2], true),
        (&learning, &[0, 2], false),
        (&pair, &[0], false),
        // It waits for the one that answered.
        (&forced, &[0], true),
        (&forced, &[0, 2], false),
    ] {
        assert_eq!(stuck(record, live), expected, "{record:?} {live:?}");
    }
}
