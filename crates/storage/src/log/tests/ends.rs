//! The length of the last file of a log. Recovery accepts every short file that a crash can leave. A survey reports
//! a file that something else may have cut short.

use std::sync::Arc;

use super::{LogOptions, STORE, commit, insert, open, recover, shared};
use crate::directory::{Directory, DiskDirectory, Opening};
use crate::log::appender::Fault;
use crate::log::recover::Survey;
use crate::log::{LogError, begin, file};
use crate::shortage::Shortage;
use crate::tests::{ForgetfulDirectory, Trouble};

/// Small, so that a second record may begin a second file.
const SMALL: LogOptions = LogOptions {
    file_bytes: 500,
    allocate_bytes: 512,
    batch_bytes: 1 << 20,
    queue_bytes: 1 << 20,
};

fn survey(memory: &ForgetfulDirectory) -> Survey {
    let before = memory.file_names().into_iter();
    let before: Vec<_> = before.map(|name| memory.bytes(&name)).collect();
    let visit = |_, _| Ok::<(), LogError>(());
    let survey = crate::log::survey(shared(memory), STORE, 1, visit).unwrap();
    let after = memory.file_names().into_iter();
    let after: Vec<_> = after.map(|name| memory.bytes(&name)).collect();
    assert!(before == after, "a survey changes nothing");
    survey
}

/// Where the log ends abruptly.
fn abrupt_end(memory: &ForgetfulDirectory) -> Option<u64> {
    survey(memory).abrupt_end.map(|end| end.bytes)
}

/// A log of one record and a mark, closed.
fn closed() -> (ForgetfulDirectory, usize) {
    let memory = ForgetfulDirectory::default();
    let mut appender = open(&memory, SMALL);
    commit(&mut appender, &[insert(1, 3)]).unwrap();
    appender.finish().unwrap();
    let bytes = memory.bytes(&file::name(1));
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    // The body of a mark is one byte.
    (memory, end.next_multiple_of(8))
}

#[test]
fn zeros_behind_the_last_frame_show_that_writing_ended_there() {
    let (memory, end) = closed();
    let bytes = memory.bytes(&file::name(1));
    assert!(bytes.len() > end + 8);
    for length in end + 1..=bytes.len() {
        let memory = ForgetfulDirectory::with([(file::name(1), bytes[..length].to_vec())]);
        assert_eq!(abrupt_end(&memory), None, "{length}");
    }
}

#[test]
fn a_file_that_ends_with_its_frames_or_within_one_may_have_been_cut_short() {
    let (memory, end) = closed();
    let bytes = memory.bytes(&file::name(1));
    for length in file::START as usize..=end {
        let memory = ForgetfulDirectory::with([(file::name(1), bytes[..length].to_vec())]);
        assert_eq!(abrupt_end(&memory), Some(length as u64), "{length}");
        // A write that was cut off leaves the same where nothing is allocated ahead.
        recover(&memory, 1).unwrap();
    }
}

#[test]
fn a_write_that_was_torn_within_allocated_space_does_not_end_abruptly() {
    let (memory, end) = closed();
    let mut bytes = memory.bytes(&file::name(1));
    let half = file::START as usize + 60;
    bytes[half..end].fill(0);
    let survey = survey(&ForgetfulDirectory::with([(file::name(1), bytes)]));
    assert_eq!(survey.torn.unwrap().offset, file::START as usize);
    assert_eq!(survey.abrupt_end, None);
}

/// The header of a frame tells how far it goes; where that is gone, the last byte of the file has to.
#[test]
fn a_file_that_ends_within_a_write_whose_first_bytes_are_gone_may_have_been_cut_short() {
    let (memory, end) = closed();
    let mut bytes = memory.bytes(&file::name(1));
    let start = file::START as usize;
    bytes[start..start + 8].fill(0);
    bytes[end - 9] = 1;
    for (length, is_abrupt) in [(end - 8, true), (end + 8, false)] {
        let cut = ForgetfulDirectory::with([(file::name(1), bytes[..length].to_vec())]);
        assert_eq!(abrupt_end(&cut).is_some(), is_abrupt, "{length}");
    }
}

#[test]
fn files_that_are_only_read_are_opened_for_reading() {
    let directory = tempfile::tempdir().unwrap();
    let looking = Arc::new(DiskDirectory::read_only(directory.path()));
    let opened: Arc<dyn Directory> = Arc::new(DiskDirectory::open(directory.path()).unwrap());
    begin(&opened, STORE).unwrap();
    let visit = |_, _| Ok::<(), LogError>(());
    let survey = crate::log::survey(looking, STORE, 1, visit).unwrap();
    assert_eq!((survey.files, survey.next_sequence), (1, 1));
}

/// Why a short file is not refused: each of these leaves one, and nothing in it says which one it was.
#[test]
fn logs_end_abruptly_for_many_reasons_and_are_read() {
    let new = ForgetfulDirectory::default();
    open(&new, SMALL);

    let not_allocated = ForgetfulDirectory::default();
    not_allocated.forbid_allocation();
    let mut appender = open(&not_allocated, SMALL);
    commit(&mut appender, &[insert(1, 3)]).unwrap();
    appender.finish().unwrap();

    let full = ForgetfulDirectory::default();
    full.limit_space(Some(400));
    let mut appender = open(&full, SMALL);
    commit(&mut appender, &[insert(1, 3)]).unwrap();
    let refused = commit(&mut appender, &[insert(2, 9)]);
    assert!(
        matches!(refused, Err(Fault::Shortage(Shortage::Space))),
        "{refused:?}"
    );

    // The header of the second file, its sync, the cut of the first one, its sync, and the new name.
    let rotating = ForgetfulDirectory::default();
    let mut appender = open(&rotating, SMALL);
    commit(&mut appender, &[insert(1, 9)]).unwrap();
    rotating.trouble_at(rotating.calls() + 5, Trouble::Crash);
    commit(&mut appender, &[insert(2, 9)]).unwrap_err();
    assert!(!rotating.file_names().contains(&file::name(2)));

    let (torn, end) = closed();
    torn.open(&file::name(1), Opening::Write)
        .unwrap()
        .write_at(&[1], end as u64)
        .unwrap();
    assert!(recover(&torn, 1).unwrap().0.cut().is_some());

    for memory in [new, not_allocated, full, rotating, torn] {
        let names = memory.file_names();
        let length = memory.bytes(&file::name(1)).len();
        assert_eq!(abrupt_end(&memory), Some(length as u64), "{names:?}");
        let image = memory.copy();
        recover(&image, 1).unwrap();
    }
}
