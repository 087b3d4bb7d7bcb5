//! The threads of the log: one writes and syncs batches, another hands them to the sink, in order, while
//! the next batch is on its way.

use super::appender::{Appender, Fault, LogOptions};
use super::error::LogError;
use super::file::Files;
use super::frame::Body;
use super::queue::{Queue, Refusal};
use super::record::{EncodeError, Record};
use super::tail::Tail;
use crate::on_its_way::OnItsWay;
use crate::shortage::Shortage;
use crate::thread::Thread;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Batches that wait for the sink, besides the one that it deals with.
const HANDED_OVER: usize = 1;

/// A record that is on disk.
#[derive(Debug)]
pub(crate) struct Committed<T> {
    /// Its place in the log. Marks take places too, so there are gaps.
    pub(crate) sequence: u64,
    pub(crate) record: Record,
    /// Its bytes in the log.
    pub(crate) bytes: usize,
    /// The ticket that it was appended with.
    pub(crate) ticket: T,
}

/// Receives the results of records. Every ticket that the log accepted comes back once, through one of these,
/// which are called by one thread, in the order of the records. A sink that panics ends the process.
pub(crate) trait Sink<T>: Send + 'static {
    /// These records are on disk; each batch follows the one before.
    fn committed(&mut self, batch: Vec<Committed<T>>);
    /// The disk is full, say. These records were not written, and never will be; later ones are tried anew.
    fn refused(&mut self, tickets: Vec<T>, shortage: Shortage);
    /// The log has failed for good. Any of these records may be on disk, so the process must end and
    /// recover the log. This is the last call.
    fn failed(&mut self, tickets: Vec<T>, error: io::Error);
}

/// Why a record was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AppendError {
    /// It cannot be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error("too many bytes wait for the disk: try again later")]
    QueueFull,
    #[error("the log has failed: end the process")]
    Failed,
}

/// A log that is open for appending. Dropping it is closing it, without hearing how that went.
pub(crate) struct Log<T> {
    queue: Arc<Queue<Entry<T>>>,
    files: Arc<Files>,
    on_its_way: Arc<OnItsWay>,
    writer: Option<Thread<io::Result<()>>>,
}

struct Entry<T> {
    record: Record,
    body: Body,
    ticket: T,
}

impl<T: Send + 'static> Log<T> {
    /// Goes on where a log ended.
    pub(crate) fn start(
        tail: Tail,
        options: LogOptions,
        sink: impl Sink<T>,
    ) -> Result<Self, LogError> {
        let appender = Appender::new(tail, options);
        let files = appender.files();
        let queue = Arc::new(Queue::new(options.queue_bytes));
        let (outcomes, received) = sync_channel(HANDED_OVER);
        let on_its_way = Arc::new(OnItsWay::default());
        let writer = Writer {
            queue: Arc::clone(&queue),
            on_its_way: Arc::clone(&on_its_way),
            batch_bytes: appender.batch_bytes(),
            appender,
            outcomes,
        };
        let started = start_threads(writer, received, sink);
        let writer = started.map_err(|source| LogError::Io {
            action: "start a thread for the log in",
            path: files.directory().path().to_owned(),
            source,
        })?;
        Ok(Self {
            queue,
            files,
            on_its_way,
            writer: Some(writer),
        })
    }

    /// Queues a record. It is encoded here, so that the writer has less to do. The ticket comes back through
    /// the sink, or at once if the record is not accepted.
    pub(crate) fn append(&self, record: Record, ticket: T) -> Result<(), (T, AppendError)> {
        let body = match record.encode() {
            Ok(bytes) => Body::new(bytes, record.format()),
            Err(error) => return Err((ticket, error.into())),
        };
        let bytes = body.frame_bytes();
        let entry = Entry {
            record,
            body,
            ticket,
        };
        let pushed = self.queue.push(entry, bytes);
        pushed.map_err(|(entry, refusal)| match refusal {
            Refusal::Full => (entry.ticket, AppendError::QueueFull),
            Refusal::Ended => (entry.ticket, AppendError::Failed),
        })
    }

    /// The batches that are written and synced, one after the other.
    pub(crate) fn on_its_way(&self) -> &OnItsWay {
        &self.on_its_way
    }

    /// Deletes the files whose records are all below `sequence`, oldest first.
    pub(crate) fn trim(&self, below: u64) -> io::Result<()> {
        self.files.trim(below)
    }

    /// Writes what is queued and a mark, and returns once the sink has heard of everything.
    pub(crate) fn close(mut self) -> io::Result<()> {
        self.end()
    }
}

impl<T> Log<T> {
    fn end(&mut self) -> io::Result<()> {
        self.queue.end();
        self.writer.take().map_or(Ok(()), Thread::join)
    }
}

impl<T> Drop for Log<T> {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            let directory = self.files.directory().path().display();
            tracing::error!(%directory, %error, "the log was not closed");
        }
    }
}

/// Whether a batch was written.
enum BatchOutcome<T> {
    Committed(Vec<Committed<T>>),
    Refused(Vec<T>, Shortage),
    Failed(Vec<T>, io::Error),
}

/// Starts both threads. The one that writes waits for the other at its end.
fn start_threads<T: Send + 'static>(
    writer: Writer<T>,
    outcomes: Receiver<BatchOutcome<T>>,
    sink: impl Sink<T>,
) -> io::Result<Thread<io::Result<()>>> {
    let deliver = Thread::start("log-sink", move || deliver_all(&outcomes, sink))?;
    Thread::start("log-writer", move || {
        let result = writer.run();
        deliver.join();
        result
    })
}

fn deliver_all<T>(outcomes: &Receiver<BatchOutcome<T>>, mut sink: impl Sink<T>) {
    for outcome in outcomes {
        match outcome {
            BatchOutcome::Committed(batch) => sink.committed(batch),
            BatchOutcome::Refused(tickets, shortage) => sink.refused(tickets, shortage),
            BatchOutcome::Failed(tickets, error) => sink.failed(tickets, error),
        }
    }
}

/// The thread that writes.
struct Writer<T> {
    queue: Arc<Queue<Entry<T>>>,
    on_its_way: Arc<OnItsWay>,
    appender: Appender,
    outcomes: SyncSender<BatchOutcome<T>>,
    batch_bytes: usize,
}

impl<T> Writer<T> {
    fn run(mut self) -> io::Result<()> {
        let Err((mut tickets, error)) = self.write_all() else {
            return Ok(());
        };
        tickets.extend(tickets_of(self.queue.drain()));
        let reported = io::Error::new(error.kind(), error.to_string());
        // If the receiver has gone, `join` returns its error.
        let _ = self.outcomes.send(BatchOutcome::Failed(tickets, error));
        Err(reported)
    }

    /// Writes batches until the queue ends; while one is written the next one gathers. An error comes with
    /// the tickets of its batch.
    fn write_all(&mut self) -> Result<(), (Vec<T>, io::Error)> {
        let fail = |error| (Vec::new(), error);
        // All that was read at the start is on disk.
        self.appender.mark().map_err(fail)?;
        while let Some(batch) = self.queue.take(self.batch_bytes) {
            let on_its_way = Arc::clone(&self.on_its_way);
            let written =
                on_its_way.begin(|| self.appender.commit(batch.iter().map(|entry| &entry.body)));
            let outcome = match written {
                Ok(first) => BatchOutcome::Committed(committed(first, batch)),
                Err(Fault::Shortage(shortage)) => {
                    BatchOutcome::Refused(tickets_of(batch), shortage)
                }
                Err(Fault::Failed(error)) => return Err((tickets_of(batch), error)),
            };
            if self.outcomes.send(outcome).is_err() {
                return Err(fail(io::Error::other("the sink of the log is gone")));
            }
            if self.queue.is_empty() {
                let marked = on_its_way.go_on(|| self.appender.mark());
                marked.map_err(fail)?;
            }
        }
        self.appender.finish().map_err(fail)
    }
}

fn committed<T>(first: u64, batch: Vec<Entry<T>>) -> Vec<Committed<T>> {
    let placed = (first..).zip(batch);
    let committed = placed.map(|(sequence, entry)| Committed {
        sequence,
        bytes: entry.body.frame_bytes(),
        record: entry.record,
        ticket: entry.ticket,
    });
    committed.collect()
}

fn tickets_of<T>(batch: Vec<Entry<T>>) -> Vec<T> {
    batch.into_iter().map(|entry| entry.ticket).collect()
}
