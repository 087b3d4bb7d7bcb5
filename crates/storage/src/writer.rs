//! Changing a store: operations go through the log to the code that applies them.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use simshard_topology::replication::{Epoch, InstallError, Pin, Sent, ShardRecords, StoreId};
use simshard_topology::{CorpusUid, ShardId, ShardSet};

use crate::element::{Change, Operation, ShardCopy};
use crate::error::MaintenanceError;
use crate::gate::{Barred, pass_change, pass_entries};
use crate::log::{self, AppendError, Committed, Log, Record};
use crate::on_its_way::DiskWork;
use crate::shortage::Shortage;
use crate::store::{OpenError, Replicas, Store, entries_of};
use crate::thread::Thread;

/// Why an operation was not done. It left nothing behind, and may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is too little of something now.
    #[error(transparent)]
    Shortage(#[from] Shortage),
    /// Too much waits to be written.
    #[error("too many changes wait to be written")]
    QueueFull,
    /// No process could read it back.
    #[error("the change has more than one record can hold: send smaller batches")]
    TooLarge,
    /// The store is being closed.
    #[error("the store is being closed")]
    Closed,
}

/// Why records of shards were not installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstallFailure {
    /// A record does not follow the one that is installed.
    #[error("the record of shard {shard} does not follow the one that is installed: {problem}")]
    Record {
        /// The shard.
        shard: ShardId,
        /// Why not.
        problem: InstallError,
    },
    /// The operation was refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Why a store failed for good: nothing is acknowledged any more, and the process is to end. When it starts
/// anew it has all that was acknowledged, or says what is wrong.
#[derive(Clone, Debug)]
pub struct Failure(Arc<str>);

impl Failure {
    /// The failure that an error amounts to.
    #[must_use]
    pub fn new(error: &dyn std::error::Error) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Applies what was committed, and hears of what was not.
pub trait Sink<T>: Send + Sync + 'static {
    /// Operations that are durable, in order. All of them must be applied when this returns.
    fn committed(&self, batch: Vec<(Operation, T)>);

    /// Records of shards are applied: all that stands before them in the log was. These shards begin anew, or have a
    /// copy: what is derived of them must follow.
    fn installed(&self, _others: ShardSet) {}

    /// Operations that left nothing behind.
    fn refused(&self, tickets: Vec<T>, refusal: Refusal);

    /// The store has failed, and these operations may or may not be on disk. There are none if maintenance
    /// failed. Called at least once if the store fails.
    fn failed(&self, tickets: Vec<T>, failure: Failure);
}

/// What changes wait for, by a number that only this one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A batch of the log.
    Batch(u64),
    /// A write or a sync of a segment, say: memory is full until memtables are on disk.
    Write(u64),
}

/// The way to change a store. `T` is whatever stands for an operation until it is done.
pub struct Writer<T: Send + 'static> {
    store: Arc<Store>,
    log: Arc<RwLock<Option<Log<T>>>>,
    /// The threads that flush, compact and scrub.
    maintenance: Mutex<Vec<Thread<()>>>,
}

impl<T: Send + 'static> Writer<T> {
    /// Starts the threads that write and maintain a store; what is committed goes to `sink`.
    ///
    /// # Errors
    /// If the store has a writer already, or the system has no threads left.
    pub fn start(store: &Arc<Store>, sink: impl Sink<T>) -> Result<Self, OpenError> {
        let sink = Arc::new(sink);
        let tail = store.take_tail().ok_or(OpenError::HasWriter)?;
        let committer = Committer::new(store, &sink);
        let log = Log::start(tail, store.log_options(), committer)?;
        let log = Arc::new(RwLock::new(Some(log)));
        let maintain = {
            let (store, log) = (Arc::clone(store), Arc::clone(&log));
            move || {
                let trim = |below| match &*log.read() {
                    Some(log) => log.trim(below).map_err(MaintenanceError::Trim),
                    None => Ok(()),
                };
                if let Err(failure) = store.maintain(&trim) {
                    store.leave_word(&failure);
                    sink.failed(Vec::new(), failure);
                }
            }
        };
        let scrub = {
            let store = Arc::clone(store);
            move || store.scrub()
        };
        let maintain = Thread::start("storage", maintain).map_err(OpenError::Threads)?;
        let scrub = Thread::start("scrub", scrub).map_err(OpenError::Threads)?;
        Ok(Self {
            store: Arc::clone(store),
            log,
            maintenance: Mutex::new(vec![maintain, scrub]),
        })
    }

    /// Queues an operation. Its ticket comes back through the sink.
    ///
    /// # Errors
    /// If it is refused at once; the ticket is dropped then.
    pub fn append(&self, operation: Operation, ticket: T) -> Result<(), Refusal> {
        match operation {
            // Records wait meanwhile.
            Operation::Change(ref change) => {
                let version = change.version;
                let queue = |_| self.queue(operation, ticket);
                pass_change(self.store.replicas(), &[], version, Sent::ByRouter, queue)
            }
            Operation::CreateCorpus { .. }
            | Operation::DropCorpus { .. }
            | Operation::Install(_)
            | Operation::Copied(_) => self.queue(operation, ticket),
        }
    }

    /// Queues a change in those of its shards whose records have these epochs, unless its version is too low there (GA1,
    /// FL2). Answers the others. If no shard is left, the ticket comes back at once.
    ///
    /// # Errors
    /// If it is refused at once; the ticket is dropped then.
    pub fn change(
        &self,
        epochs: &[(ShardId, Epoch)],
        mut change: Change,
        sent: Sent,
        ticket: T,
    ) -> Result<(Barred, Option<T>), Refusal> {
        let version = change.version;
        pass_change(self.store.replicas(), epochs, version, sent, |barred| {
            let shards = change.shards.difference(&barred.refused);
            change.shards = shards.difference(&barred.late);
            if change.shards.is_empty() {
                return Ok((barred, Some(ticket)));
            }
            self.queue(Operation::Change(change), ticket)?;
            Ok((barred, None))
        })
    }

    fn queue(&self, operation: Operation, ticket: T) -> Result<(), Refusal> {
        if operation.takes_space()
            && let Some(shortage) = self.store.shortage()
        {
            return Err(shortage.into());
        }
        if matches!(operation, Operation::Change(_)) && self.store.is_overfull() {
            return Err(Refusal::QueueFull);
        }
        let log = self.log.read();
        let log = log.as_ref().ok_or(Refusal::Closed)?;
        let record = Record::Operation(operation);
        log.append(record, ticket)
            .map_err(|(_, error)| match error {
                AppendError::Encode(_) => Refusal::TooLarge,
                AppendError::QueueFull => Refusal::QueueFull,
                AppendError::Failed => Refusal::Closed,
            })
    }

    /// Queues those of these records that are news to the store, as one operation; answers whether any are. Those that add
    /// it as a learner wait for a report of a store in sync; `reported` tells the epoch of a shard that a store has. The
    /// ticket comes back through the sink. If it comes back refused, call [`Writer::withdraw`], then try again.
    ///
    /// # Errors
    /// If a record may not follow the one that is installed, or the operation is refused at once.
    pub fn install(
        &self,
        records: &ShardRecords,
        reported: impl Fn(ShardId, StoreId) -> Epoch,
        ticket: T,
    ) -> Result<bool, InstallFailure> {
        let find = |replicas: &Replicas| {
            let news = replicas.news(records, &reported);
            let news =
                news.map_err(|(shard, problem)| InstallFailure::Record { shard, problem })?;
            Ok((!news.is_empty()).then_some(news))
        };
        let queue = |install| Ok(self.queue(install, ticket)?);
        pass_entries(self.store.replicas(), find, Operation::Install, queue)
    }

    /// Queues the end of a copy of what was pinned; answers whether the shard may still have it. If not, pin again, and
    /// abandon the copy. The ticket comes back as with [`Writer::install`].
    ///
    /// # Errors
    /// If the operation is refused at once.
    pub fn end_copy(&self, pin: Pin, copy: ShardCopy, ticket: T) -> Result<bool, Refusal> {
        let (shard, added) = (copy.shard, copy.added);
        let find = |replicas: &Replicas| {
            let is_due = replicas.end_of_copy(shard, pin) == Some(added);
            Ok(is_due.then_some(()))
        };
        let queue = |copied| self.queue(copied, ticket);
        let copied = |()| Operation::Copied(copy);
        pass_entries(self.store.replicas(), find, copied, queue)
    }

    /// What the disk has not answered yet. As long as it stays the same, no change is acknowledged.
    #[must_use]
    pub fn awaited(&self) -> Option<Awaited> {
        let log = self.log.read();
        let batch = log.as_ref().and_then(|log| log.on_its_way().number());
        let write = || self.store.awaited_write().map(Awaited::Write);
        batch.map(Awaited::Batch).or_else(write)
    }

    /// The batches of the log that are on disk.
    #[must_use]
    pub fn log_batches(&self) -> DiskWork {
        let log = self.log.read();
        let done = log.as_ref().map(|log| log.on_its_way().done());
        done.unwrap_or_default()
    }

    /// How long the disk takes for a batch of the log; `None` if there was none.
    #[must_use]
    pub fn log_delay(&self) -> Option<Duration> {
        let log = self.log.read();
        log.as_ref()?.on_its_way().delay()
    }

    /// Takes back records that the log has refused for a shortage. No others may be queued.
    pub fn withdraw(&self) {
        self.store.replicas().write().withdraw();
    }

    /// Finishes what is queued, and ends the threads. Nothing can be appended any more.
    pub fn close(&self) {
        self.end_maintenance();
        let log = self.log.write().take();
        if let Some(Err(error)) = log.map(Log::close) {
            tracing::error!(%error, "the log was not closed");
        }
    }

    /// Lets a flush in flight finish, abandons a merge, and begins nothing else.
    pub(crate) fn end_maintenance(&self) {
        self.store.stop_maintenance();
        let mut threads = self.maintenance.lock();
        for thread in threads.drain(..) {
            thread.join();
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Writer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl<T: Send + 'static> Drop for Writer<T> {
    fn drop(&mut self) {
        self.close();
    }
}

/// Hands what the log has committed to the sink, and keeps account of it.
pub(crate) struct Committer<S> {
    store: Arc<Store>,
    sink: Arc<S>,
}

impl<S> Committer<S> {
    pub(crate) fn new(store: &Arc<Store>, sink: &Arc<S>) -> Self {
        Self {
            store: Arc::clone(store),
            sink: Arc::clone(sink),
        }
    }
}

impl<S> Committer<S> {
    /// Gives shards the records and copies of an operation.
    fn take_entries<T>(&self, sequence: u64, operation: &Operation)
    where
        S: Sink<T>,
    {
        match self.store.take_entries(operation, sequence) {
            Ok(others) => self.sink.installed(others),
            Err(error) => {
                let failure = Failure::new(&error);
                self.store.leave_word(&failure);
                self.sink.failed(Vec::new(), failure);
            }
        }
    }
}

impl<T: Send + 'static, S: Sink<T>> log::Sink<T> for Committer<S> {
    fn committed(&mut self, batch: Vec<Committed<T>>) {
        let last = batch.last().map(|committed| committed.sequence);
        let bytes = batch.iter().map(|committed| committed.bytes).sum();
        let mut dropped: Vec<CorpusUid> = Vec::new();
        let mut operations: Vec<(Operation, T)> = Vec::new();
        for committed in batch {
            let Record::Operation(operation) = committed.record else {
                continue;
            };
            let (sequence, ticket) = (committed.sequence, committed.ticket);
            dropped.extend(self.store.note(sequence, &operation));
            if entries_of(&operation).is_some() {
                // What stands before it is applied first, and what stands behind it later.
                self.sink.committed(std::mem::take(&mut operations));
                self.take_entries(sequence, &operation);
            }
            operations.push((operation, ticket));
        }
        self.sink.committed(operations);
        for corpus in dropped {
            self.store.forget(corpus);
        }
        if let Some(last) = last {
            self.store.note_applied(last, bytes);
        }
    }

    fn refused(&mut self, tickets: Vec<T>, shortage: Shortage) {
        self.sink.refused(tickets, shortage.into());
    }

    fn failed(&mut self, tickets: Vec<T>, error: io::Error) {
        let failure = self.store.log_failure(&error);
        self.store.leave_word(&failure);
        self.sink.failed(tickets, failure);
    }
}
