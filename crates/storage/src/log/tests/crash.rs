//! A crash, a full disk or a failing device at every single call: what was committed is there afterwards.

use fastrand::Rng;

use super::{Fault, LogOptions, Numbered, commit, insert, open, recover, without_marks};
use crate::directory::{Directory, Opening};
use crate::log::appender::Appender;
use crate::log::{Record, file};
use crate::tests::is_long;
use crate::tests::{ForgetfulDirectory, Trouble};

/// Small, so that a few batches meet every kind of step.
const SMALL: LogOptions = LogOptions {
    file_bytes: 3_000,
    allocate_bytes: 512,
    batch_bytes: 1 << 20,
    queue_bytes: 1 << 20,
};
const BATCHES: u64 = 14;
const IMAGES: usize = 8;

/// What a log did.
#[derive(Default)]
struct History {
    committed: Numbered,
    /// The batch that was in flight when the log failed.
    in_flight: Vec<Record>,
    refused: usize,
    has_failed: bool,
}

/// Writes batches until the log fails, with marks here and there.
fn write(mut appender: Appender, mut rng: Rng) -> History {
    let mut history = History::default();
    for number in 0..BATCHES {
        let size = rng.u64(1..5);
        let records = (0..size).map(|place| insert(number * 100 + place, rng.u64(..20)));
        let batch: Vec<Record> = records.collect();
        history.add(&mut appender, batch);
        // Nothing may be done with a log that has failed.
        history.has_failed = history.has_failed || rng.bool() && appender.mark().is_err();
        if history.has_failed {
            return history;
        }
    }
    history.has_failed = appender.finish().is_err();
    history
}

impl History {
    fn add(&mut self, appender: &mut Appender, batch: Vec<Record>) {
        match commit(appender, &batch) {
            Ok(first) => self.committed.extend((first..).zip(batch)),
            Err(Fault::Shortage(_)) => self.refused += 1,
            Err(Fault::Failed(_)) => {
                self.has_failed = true;
                self.in_flight = batch;
            }
        }
    }

    /// L1, L2, L5, L7: recovery after a crash now finds all that was committed, then a prefix of what was under
    /// way, and nothing else. And again, after the log went on from there.
    fn check(&self, memory: &ForgetfulDirectory, rng: &mut Rng, context: &str) {
        for _ in 0..IMAGES {
            let image = memory.crash_image(rng);
            let (tail, read) = recover(&image, 1).unwrap_or_else(|e| panic!("{context}: {e}"));
            let places: Vec<u64> = read.iter().map(|(sequence, _)| *sequence).collect();
            assert!(places.into_iter().eq(1..tail.sequence), "{context}");
            let records = without_marks(&read);
            let (committed, more) = records.split_at(self.committed.len().min(records.len()));
            assert!(
                committed == self.committed,
                "{context}: not what was committed"
            );
            let more: Vec<Record> = more.iter().map(|(_, record)| record.clone()).collect();
            assert!(
                self.in_flight.starts_with(&more),
                "{context}: never written"
            );

            let later = insert(1_000_000, 3);
            let mut appender = Appender::new(tail, SMALL);
            let sequence = commit(&mut appender, std::slice::from_ref(&later)).unwrap();
            let (_, again) = recover(&image.crash_image(rng), 1).unwrap();
            let expected: Numbered = records.into_iter().chain([(sequence, later)]).collect();
            assert!(
                without_marks(&again) == expected,
                "{context}: it does not go on"
            );
        }
    }
}

fn seeds() -> std::ops::Range<u64> {
    if is_long() { 0..200 } else { 0..6 }
}

/// A log that has begun, and trouble some calls later.
fn begun(seed: u64, troubles: &[(usize, Trouble)]) -> (ForgetfulDirectory, Appender) {
    let memory = ForgetfulDirectory::default();
    if seed.is_multiple_of(3) {
        memory.forbid_allocation();
    }
    let appender = open(&memory, SMALL);
    let calls = memory.calls();
    for (call, trouble) in troubles {
        memory.trouble_at(calls + call, *trouble);
    }
    (memory, appender)
}

/// Does the same with a trouble at every call, as long as there are calls.
fn at_every_call(
    trouble: Trouble,
    mut check: impl FnMut(&ForgetfulDirectory, &History, &mut Rng, &str),
) {
    for seed in seeds() {
        let mut rng = Rng::with_seed(seed);
        for call in 0.. {
            let (memory, appender) = begun(seed, &[(call, trouble)]);
            let first = memory.calls();
            let history = write(appender, Rng::with_seed(seed));
            let context = format!("seed {seed}, {trouble:?} at call {call}");
            check(&memory, &history, &mut rng, &context);
            if memory.calls() <= first + call {
                assert!(call > 30, "{context}");
                break;
            }
        }
    }
}

/// L1, L2, L7.
#[test]
fn what_was_committed_survives_a_crash_at_any_call() {
    at_every_call(Trouble::Crash, |memory, history, rng, context| {
        history.check(memory, rng, context);
    });
}

/// L4: the log stops at the first error of the device, and a crash loses nothing that was committed.
#[test]
fn what_was_committed_survives_an_error_of_the_device_at_any_call() {
    at_every_call(Trouble::Device, |memory, history, rng, context| {
        history.check(memory, rng, context);
    });
}

/// L5.
#[test]
fn what_a_full_disk_refused_never_shows_up_and_the_rest_goes_on() {
    let mut refused = 0;
    at_every_call(Trouble::Full, |memory, history, rng, context| {
        // A sync that fails for lack of space is a sync that fails.
        if !history.has_failed {
            refused += history.refused;
            assert!(history.in_flight.is_empty(), "{context}");
        }
        history.check(memory, rng, context);
    });
    assert!(refused > 20, "only {refused} batches were refused");
}

/// L5: a crash after a full disk, while other records take the place of those that were refused.
#[test]
fn what_a_full_disk_refused_does_not_return_in_a_crash_later() {
    for seed in seeds() {
        let mut rng = Rng::with_seed(seed);
        for _ in 0..150 {
            let full = rng.usize(..60);
            let crash = full + rng.usize(1..12);
            let troubles = [(full, Trouble::Full), (crash, Trouble::Crash)];
            let (memory, appender) = begun(seed, &troubles);
            let history = write(appender, Rng::with_seed(seed));
            let context = format!("seed {seed}, full at call {full}, crash at {crash}");
            history.check(&memory, &mut rng, &context);
        }
    }
}

/// L4, L5: only when the next file is to be made is it sure that nothing is half done.
#[test]
fn a_log_that_can_make_no_file_goes_on_and_one_that_lacks_memory_elsewhere_does_not() {
    for trouble in [Trouble::NoFiles, Trouble::NoMemory] {
        let (mut refused, mut made) = (0, 0);
        at_every_call(trouble, |memory, history, rng, context| {
            match (history.refused, history.has_failed) {
                // The trouble would have come after the last call.
                (0, false) => made += memory.file_names().len() - 1,
                (0, true) => {}
                (1, false) => refused += 1,
                _ => panic!("{context}: it failed, and went on"),
            }
            history.check(memory, rng, context);
        });
        assert!(made > 5, "only {made} files were made");
        assert_eq!(refused, made, "{trouble:?}");
    }
}

/// L2: a recovery that is itself cut off changes nothing for the next one.
#[test]
fn recovery_may_crash_too() {
    for seed in 0..200 {
        let mut rng = Rng::with_seed(seed);
        let (memory, appender) = begun(seed, &[(rng.usize(..80), Trouble::Crash)]);
        let history = write(appender, Rng::with_seed(seed));
        let image = memory.crash_image(&mut rng);
        image.trouble_at(rng.usize(..4), Trouble::Crash);
        // It may have had nothing to change.
        let _ = recover(&image, 1);
        history.check(&image, &mut rng, &format!("seed {seed}"));
    }
}

/// L11: what a process wrote and did not sync before it ended is read by the next one, and served. So it has to be
/// on disk by then, whether or not something had to be cut off.
#[test]
fn what_was_read_is_on_disk() {
    for is_torn in [false, true] {
        let (memory, mut appender) = begun(1, &[(2, Trouble::Device)]);
        let failed = commit(&mut appender, &[insert(1, 3)]);
        assert!(
            matches!(failed, Err(Fault::Failed(_))),
            "the third call is the sync"
        );
        if is_torn {
            memory
                .open(&file::name(1), Opening::Write)
                .unwrap()
                .write_at(&[1], 500)
                .unwrap();
        }
        let (tail, read) = recover(&memory, 1).unwrap();
        assert_eq!(read, [(1, insert(1, 3))]);
        assert_eq!(tail.cut().is_some(), is_torn);
        for seed in 0..50 {
            let image = memory.crash_image(&mut Rng::with_seed(seed));
            assert_eq!(recover(&image, 1).unwrap().1, read);
        }
    }
}

/// L11: a sync that failed leaves bytes that the system takes for written.
#[test]
fn what_is_read_after_an_error_of_the_device_survives_a_crash_later() {
    at_every_call(Trouble::Device, |memory, _, rng, context| {
        // Where the log met no error this may do so, and be tried again.
        let recovered = recover(memory, 1).or_else(|_| recover(memory, 1));
        let (_, read) = recovered.unwrap_or_else(|e| panic!("{context}: {e}"));
        for _ in 0..IMAGES {
            let (_, again) = recover(&memory.crash_image(rng), 1).unwrap();
            assert!(again == read, "{context}: something that was read is gone");
        }
    });
}

/// L5: a log that meets the end of the disk for real, allocating ahead or not.
#[test]
fn a_log_fills_the_disk_and_goes_on_once_there_is_space() {
    for cannot_allocate in [false, true] {
        let memory = ForgetfulDirectory::default();
        if cannot_allocate {
            memory.forbid_allocation();
        }
        memory.limit_space(Some(5_000));
        let mut appender = open(&memory, SMALL);
        let mut history = History::default();
        for number in 0..40 {
            history.add(&mut appender, vec![insert(number, 9)]);
        }
        let written = history.committed.len();
        assert!(history.refused > 5 && written > 5, "{written}");
        memory.limit_space(None);
        for number in 40..50 {
            history.add(&mut appender, vec![insert(number, 9)]);
        }
        assert_eq!(history.committed.len(), written + 10);
        history.check(&memory, &mut Rng::with_seed(1), "after the disk was full");
    }
}
