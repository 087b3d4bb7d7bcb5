//! Group commit, with threads: batches, back-pressure, full disks, failures, and the end.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::{LogOptions, Numbered, STORE, insert, recover, without_marks};
use crate::directory::{Directory, DiskDirectory};
use crate::element::Operation;
use crate::log::record::EncodeError;
use crate::log::tail::Torn;
use crate::log::{AppendError, Committed, Log, LogError, Record, Sink, Tail, file};
use crate::shortage::Shortage;
use crate::tests::ends_by_abort;
use crate::tests::{ForgetfulDirectory, Trouble};

/// What a sink heard; tickets are numbers.
#[derive(Debug, PartialEq)]
enum Heard {
    Committed(Vec<(u64, Record, u64)>),
    Refused(Vec<u64>, Shortage),
    Failed(Vec<u64>),
}

impl Heard {
    fn tickets(&self) -> Vec<u64> {
        match self {
            Self::Committed(batch) => batch.iter().map(|(_, _, ticket)| *ticket).collect(),
            Self::Refused(tickets, _) | Self::Failed(tickets) => tickets.clone(),
        }
    }
}

impl Sink<u64> for Sender<Heard> {
    fn committed(&mut self, batch: Vec<Committed<u64>>) {
        let batch = batch.into_iter().map(|c| (c.sequence, c.record, c.ticket));
        self.send(Heard::Committed(batch.collect())).unwrap();
    }

    fn refused(&mut self, tickets: Vec<u64>, shortage: Shortage) {
        self.send(Heard::Refused(tickets, shortage)).unwrap();
    }

    fn failed(&mut self, tickets: Vec<u64>, _: std::io::Error) {
        self.send(Heard::Failed(tickets)).unwrap();
    }
}

fn start(memory: &ForgetfulDirectory, options: LogOptions) -> (Log<u64>, Receiver<Heard>) {
    let (sink, heard) = channel();
    let (tail, _) = recover(memory, 1).unwrap();
    (Log::start(tail, options, sink).unwrap(), heard)
}

/// Appends inserts with these numbers as tickets.
fn append(log: &Log<u64>, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        log.append(insert(number, 1), number).unwrap();
    }
}

fn batches(heard: &Receiver<Heard>) -> Vec<Vec<u64>> {
    heard.iter().map(|heard| heard.tickets()).collect()
}

/// L6, L10.
#[test]
fn what_queues_during_a_sync_goes_out_with_the_next_one() {
    let memory = ForgetfulDirectory::default();
    let (log, heard) = start(&memory, LogOptions::default());
    memory.hold_syncs();
    append(&log, [1]);
    memory.wait_for_syncs(1);
    append(&log, 2..=50);
    assert_eq!(log.on_its_way().number(), Some(1));
    memory.release_syncs();
    let first = heard.recv().unwrap();
    assert_eq!(first, Heard::Committed(vec![(1, insert(1, 1), 1)]));
    let second = heard.recv().unwrap();
    assert_eq!(second.tickets(), (2..=50).collect::<Vec<_>>());
    assert_eq!(memory.syncs(), 2);
    log.close().unwrap();
    let read = recover(&memory, 1).unwrap().1;
    let expected: Numbered = (1..=50).map(|number| (number, insert(number, 1))).collect();
    assert_eq!(without_marks(&read), expected, "L1");
}

/// L6: a batch has its bytes, or one record.
#[test]
fn a_batch_ends_where_it_has_its_bytes() {
    let memory = ForgetfulDirectory::default();
    let options = LogOptions {
        batch_bytes: 300,
        ..LogOptions::default()
    };
    let (log, heard) = start(&memory, options);
    memory.hold_syncs();
    append(&log, [1]);
    memory.wait_for_syncs(1);
    append(&log, 2..=6);
    log.append(insert(7, 100), 7).unwrap();
    append(&log, [8]);
    memory.release_syncs();
    log.close().unwrap();
    let expected = [vec![1], vec![2, 3], vec![4, 5], vec![6], vec![7], vec![8]];
    assert_eq!(batches(&heard), expected);
}

/// L8.
#[test]
fn a_full_queue_gives_the_ticket_back_and_takes_more_later() {
    let memory = ForgetfulDirectory::default();
    let options = LogOptions {
        queue_bytes: 300,
        ..LogOptions::default()
    };
    let (log, heard) = start(&memory, options);
    memory.hold_syncs();
    append(&log, [1]);
    memory.wait_for_syncs(1);
    append(&log, [2, 3]);
    assert_eq!(
        log.append(insert(4, 1), 4),
        Err((4, AppendError::QueueFull))
    );
    memory.release_syncs();
    assert_eq!(heard.recv().unwrap().tickets(), [1]);
    assert_eq!(heard.recv().unwrap().tickets(), [2, 3]);
    // Alone it may have any size.
    log.append(insert(5, 1_000), 5).unwrap();
    log.close().unwrap();
    assert_eq!(batches(&heard), [[5]]);
}

#[test]
fn a_record_that_cannot_be_written_is_given_back() {
    let (log, _heard) = start(&ForgetfulDirectory::default(), LogOptions::default());
    let Record::Operation(Operation::Change(mut change)) = insert(1, 1) else {
        unreachable!()
    };
    change.documents.ids[0] = "x".repeat(1_025);
    let error = EncodeError::IdTooLong { bytes: 1_025 };
    assert_eq!(
        log.append(Record::change(change), 9),
        Err((9, AppendError::Encode(error)))
    );
}

/// L5, L10.
#[test]
fn a_full_disk_refuses_what_it_cannot_hold_and_nothing_else() {
    let memory = ForgetfulDirectory::default();
    let (log, heard) = start(&memory, LogOptions::default());
    memory.limit_space(Some(400));
    append(&log, [1]);
    assert_eq!(heard.recv().unwrap().tickets(), [1]);
    log.append(insert(2, 100), 2).unwrap();
    assert_eq!(
        heard.recv().unwrap(),
        Heard::Refused(vec![2], Shortage::Space)
    );
    append(&log, [3]);
    assert_eq!(heard.recv().unwrap().tickets(), [3]);
    memory.limit_space(None);
    log.append(insert(4, 100), 4).unwrap();
    assert_eq!(heard.recv().unwrap().tickets(), [4]);
    log.close().unwrap();
    let read = without_marks(&recover(&memory, 1).unwrap().1);
    let records: Vec<Record> = read.into_iter().map(|(_, record)| record).collect();
    assert_eq!(records, [insert(1, 1), insert(3, 1), insert(4, 100)]);
}

/// L5, L10: a refused caller learns which resource ran out.
#[test]
fn a_log_out_of_file_descriptors_refuses_what_needs_a_new_file_and_goes_on_once_there_are_some() {
    let memory = ForgetfulDirectory::default();
    let options = LogOptions {
        file_bytes: 500,
        ..LogOptions::default()
    };
    let (log, heard) = start(&memory, options);
    let writes = memory.writes();
    log.append(insert(1, 20), 1).unwrap();
    assert_eq!(heard.recv().unwrap().tickets(), [1]);
    // The record, and the mark of an idle log.
    memory.wait_for_writes(writes + 2);
    memory.trouble_at(memory.calls(), Trouble::NoFiles);
    log.append(insert(2, 20), 2).unwrap();
    assert_eq!(
        heard.recv().unwrap(),
        Heard::Refused(vec![2], Shortage::Files)
    );
    log.append(insert(3, 20), 3).unwrap();
    assert_eq!(heard.recv().unwrap().tickets(), [3]);
    log.close().unwrap();
    let read = without_marks(&recover(&memory, 1).unwrap().1);
    let records: Vec<Record> = read.into_iter().map(|(_, record)| record).collect();
    assert_eq!(records, [insert(1, 20), insert(3, 20)]);
}

/// L4, L10.
#[test]
fn after_a_failed_sync_everything_fails_and_nothing_is_tried_again() {
    let memory = ForgetfulDirectory::default();
    let (log, heard) = start(&memory, LogOptions::default());
    append(&log, [1]);
    assert_eq!(heard.recv().unwrap().tickets(), [1]);
    memory.hold_syncs();
    append(&log, [2]);
    memory.wait_for_syncs(2);
    append(&log, [3, 4]);
    memory.fail_syncs();
    memory.release_syncs();
    assert_eq!(heard.recv().unwrap(), Heard::Failed(vec![2, 3, 4]));
    let calls = memory.calls();
    assert_eq!(log.append(insert(5, 1), 5), Err((5, AppendError::Failed)));
    assert!(log.close().is_err());
    assert_eq!(memory.calls(), calls);
    assert!(heard.recv().is_err(), "that was the last call");
}

/// L3: a mark shows that the last record was on disk. It is not synced, and it is no reason for another.
#[test]
fn an_idle_log_leaves_one_mark() {
    let memory = ForgetfulDirectory::default();
    let (log, heard) = start(&memory, LogOptions::default());
    let writes = memory.writes();
    append(&log, [1]);
    assert_eq!(heard.recv().unwrap().tickets(), [1]);
    memory.wait_for_writes(writes + 2);
    assert_eq!(memory.syncs(), 1);
    let marked = [(1, insert(1, 1)), (2, Record::Mark)];
    assert_eq!(recover(&memory.copy(), 1).unwrap().1, marked);
    log.close().unwrap();
    assert_eq!(memory.syncs(), 2);
    assert_eq!(recover(&memory, 1).unwrap().1, marked);
    start(&memory, LogOptions::default()).0.close().unwrap();
    assert_eq!(recover(&memory, 1).unwrap().1, marked);
}

/// L3: whatever a crash left is on disk once it was read.
#[test]
fn a_log_that_was_not_closed_is_marked_when_it_starts() {
    let memory = ForgetfulDirectory::default();
    let mut appender = super::open(&memory, LogOptions::default());
    super::commit(&mut appender, &[insert(1, 1)]).unwrap();
    drop(appender);
    assert_eq!(recover(&memory, 1).unwrap().1.len(), 1);
    let writes = memory.writes();
    let (log, _heard) = start(&memory, LogOptions::default());
    // What was not surely on disk, and the mark.
    memory.wait_for_writes(writes + 2);
    let marked = [(1, insert(1, 1)), (2, Record::Mark)];
    assert_eq!(recover(&memory.copy(), 1).unwrap().1, marked);
    log.close().unwrap();
    assert_eq!(recover(&memory, 1).unwrap().1, marked);
}

/// A sink that waits before it takes what was committed.
struct Slow(Receiver<()>);

impl Sink<u64> for Slow {
    fn committed(&mut self, _: Vec<Committed<u64>>) {
        self.0.recv().unwrap();
    }

    fn refused(&mut self, _: Vec<u64>, _: Shortage) {}

    fn failed(&mut self, _: Vec<u64>, _: std::io::Error) {}
}

/// L8: batches that wait for the sink are bounded.
#[test]
fn the_next_batches_are_synced_while_the_sink_is_busy_and_then_the_log_waits() {
    let memory = ForgetfulDirectory::default();
    let (go, wait) = channel();
    let (tail, _) = recover(&memory, 1).unwrap();
    let options = LogOptions {
        batch_bytes: 1,
        queue_bytes: 2_000,
        ..LogOptions::default()
    };
    let log = Log::start(tail, options, Slow(wait)).unwrap();
    // If this test fails, the sink must not wait for it.
    let go = go;
    let mut accepted = 0;
    // One batch in the sink's hands, one that waits, one that the writer holds, and a full queue.
    while log.append(insert(7, 1), 7).is_ok() || memory.syncs() < 3 {
        accepted += 1;
        thread::yield_now();
        assert!(accepted < 1_000_000);
    }
    assert_eq!(memory.syncs(), 3);
    drop(thread::spawn(move || while go.send(()).is_ok() {}));
    log.close().unwrap();
}

struct Panicking;

impl Sink<u64> for Panicking {
    fn committed(&mut self, _: Vec<Committed<u64>>) {
        panic!("a test of what happens then");
    }

    fn refused(&mut self, _: Vec<u64>, _: Shortage) {}

    fn failed(&mut self, _: Vec<u64>, _: std::io::Error) {}
}

/// L4, L10: no caller waits for a thread that is gone.
#[test]
fn a_writer_that_panics_ends_the_process() {
    let name = "log::tests::group::a_writer_that_panics_ends_the_process";
    ends_by_abort(name, || {
        let memory = ForgetfulDirectory::default();
        let (log, heard) = start(&memory, LogOptions::default());
        memory.trouble_at(memory.calls(), Trouble::Panic);
        append(&log, [1]);
        while heard.recv().is_ok() {}
        // The thread is about to end the process, and this would be too late.
        drop(log.close());
    });
}

/// L4, L10.
#[test]
fn a_sink_that_panics_ends_the_process() {
    let name = "log::tests::group::a_sink_that_panics_ends_the_process";
    ends_by_abort(name, || {
        let (tail, _) = recover(&ForgetfulDirectory::default(), 1).unwrap();
        let log = Log::start(tail, LogOptions::default(), Panicking).unwrap();
        append(&log, [1]);
        drop(log.close());
    });
}

/// L9.
#[test]
fn trimming_deletes_the_files_below_and_never_the_last() {
    let memory = ForgetfulDirectory::default();
    let options = LogOptions {
        file_bytes: 64 + 2 * 128,
        batch_bytes: 1,
        ..LogOptions::default()
    };
    let (log, heard) = start(&memory, options);
    for number in 1..=5 {
        append(&log, [number]);
        assert_eq!(heard.recv().unwrap().tickets(), [number]);
    }
    // A mark takes a place too, so it is the names that tell what is where.
    let files: Vec<u64> = memory
        .file_names()
        .iter()
        .filter_map(|n| file::first_of(n))
        .collect();
    assert!(files.len() > 2, "{files:?}");
    log.trim(files[1] - 1).unwrap();
    assert_eq!(memory.file_names().len(), files.len());
    log.trim(files[1]).unwrap();
    assert_eq!(
        memory.file_names(),
        files[1..]
            .iter()
            .map(|f| file::name(*f))
            .collect::<Vec<_>>()
    );
    assert!(recover(&memory, files[1]).is_ok());
    log.trim(u64::MAX).unwrap();
    assert_eq!(memory.file_names().len(), 1);
    append(&log, [6]);
    log.close().unwrap();
}

/// L1: files, threads and a real disk.
#[test]
fn a_log_on_disk_is_read_back_over_many_files_and_starts() {
    let directory = tempfile::tempdir().unwrap();
    let options = LogOptions {
        file_bytes: 4_096,
        allocate_bytes: 1_024,
        batch_bytes: 600,
        ..LogOptions::default()
    };
    let mut expected = Vec::new();
    let opened = DiskDirectory::open(directory.path()).unwrap();
    let opened: Arc<dyn Directory> = Arc::new(opened);
    crate::log::begin(&opened, STORE).unwrap();
    for start in 0..5 {
        let (tail, read) = recover_disk(&opened);
        assert_eq!(read, expected);
        let (sink, heard) = channel();
        let log = Log::start(tail, options, sink).unwrap();
        append(&log, 100 * start..100 * start + 50);
        log.close().unwrap();
        for batch in heard {
            let Heard::Committed(batch) = batch else {
                panic!("{batch:?}")
            };
            expected.extend(batch.into_iter().map(|(place, record, _)| (place, record)));
        }
    }
    let (tail, read) = recover_disk(&opened);
    assert_eq!(read.len(), 250);
    assert_eq!(read, expected);
    assert_eq!(tail.cut(), None::<&Torn>);
    assert!(std::fs::read_dir(directory.path()).unwrap().count() > 5);
}

fn recover_disk(directory: &Arc<dyn Directory>) -> (Tail, Numbered) {
    let mut read = Vec::new();
    let tail = crate::log::recover(Arc::clone(directory), STORE, 1, |sequence, record| {
        read.push((sequence, record));
        Ok::<(), LogError>(())
    });
    (tail.unwrap(), without_marks(&read))
}
