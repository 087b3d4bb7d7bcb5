//! A store that does one thing after another on one thread, so that the same steps make the same calls.

use std::sync::Arc;

use super::super::shards_of;
use super::model::tables;
use super::owned;
use crate::element::Operation;
use crate::error::MaintenanceError;
use crate::log::tests::commit;
use crate::log::{Appender, Committed, Fault, LogOptions, Record, Sink as _};
use crate::store::{Holding, OpenError, Options, Store};
use crate::tests::ForgetfulDirectory;
use crate::writer::{Committer, Failure, Refusal, Sink};
use simshard_topology::replication::ShardRecords;

/// Small, so that a few changes fill files of the log. Memtables are written when a step says so, or for the log's sake.
const OPTIONS: Options = Options {
    memtable_bytes: usize::MAX,
    cache_bytes: 0,
    log: LogOptions {
        file_bytes: 1_500,
        allocate_bytes: 512,
        batch_bytes: 1 << 20,
        queue_bytes: 1 << 20,
    },
};

/// What is done to a store.
#[derive(Debug)]
pub(super) enum Step {
    /// Writes these to the log, with one sync, and applies them.
    Commit(Vec<Operation>),
    /// Writes a mark to the log, which is idle.
    Mark,
    /// Writes memtables to segments, and trims the log.
    Flush,
    /// Does all that there is to do: lets segments go, flushes, merges.
    Maintain,
}

/// Why a step was not done.
#[derive(Debug)]
pub(super) enum Failed {
    Log(#[expect(dead_code, reason = "shown")] Fault),
    Maintenance(#[expect(dead_code, reason = "shown")] MaintenanceError),
}

/// The metadata has no news.
fn as_installed() -> Holding {
    Holding {
        shards: owned(),
        records: Some(ShardRecords::new()),
    }
}

/// A store with the open end of its log.
pub(super) struct Machine {
    pub(super) store: Arc<Store>,
    appender: Appender,
    committer: Committer<Applier>,
}

impl Machine {
    /// Opens the store in a directory, or makes it.
    pub(super) fn start(directory: &ForgetfulDirectory) -> Result<Self, OpenError> {
        let store = Store::open_in(Arc::new(directory.clone()), as_installed(), OPTIONS)?;
        let store = Arc::new(store);
        let tail = store.take_tail().unwrap();
        Ok(Self {
            appender: Appender::new(tail, OPTIONS.log),
            committer: Committer::new(&store, &Arc::new(Applier(Arc::clone(&store)))),
            store,
        })
    }

    /// Does a step. When this returns without an error, it is acknowledged.
    pub(super) fn run(&mut self, step: &Step) -> Result<(), Failed> {
        let files = self.appender.files();
        let trim = |below| files.trim(below).map_err(MaintenanceError::Trim);
        let upkeep = || self.store.upkeep(self.store.disk.as_ref().unwrap(), &trim);
        let done = match step {
            Step::Commit(operations) => return self.commit(operations).map_err(Failed::Log),
            Step::Mark => return self.mark(),
            Step::Flush => upkeep().flush_and_trim(),
            Step::Maintain => upkeep().step(),
        };
        done.map_err(Failed::Maintenance)
    }

    /// Ends the log as a process does that is told to end.
    pub(super) fn finish(&mut self) -> Result<(), Failed> {
        let finished = self.appender.finish();
        finished.map_err(|error| Failed::Log(error.into()))
    }

    fn mark(&mut self) -> Result<(), Failed> {
        let marked = self.appender.mark();
        marked.map_err(|error| Failed::Log(error.into()))
    }

    fn commit(&mut self, operations: &[Operation]) -> Result<(), Fault> {
        let records = operations.iter().cloned().map(Record::Operation);
        let records: Vec<Record> = records.collect();
        for operation in operations {
            if let Operation::Install(installed) = operation {
                self.store.replicas().write().append(installed);
            }
        }
        let first = commit(&mut self.appender, &records)?;
        let batch = (first..).zip(records).map(|(sequence, record)| Committed {
            sequence,
            bytes: record.encode().unwrap().len(),
            record,
            ticket: (),
        });
        self.committer.committed(batch.collect());
        Ok(())
    }
}

/// Applies changes to the store alone, as there are no tables to search.
struct Applier(Arc<Store>);

impl Sink<()> for Applier {
    fn committed(&self, batch: Vec<(Operation, ())>) {
        for (operation, ()) in batch {
            let Operation::Change(change) = operation else {
                continue;
            };
            let corpora = self.0.corpora();
            let Some(corpus) = corpora.iter().find(|corpus| corpus.uid == change.corpus) else {
                continue;
            };
            let tables = tables(corpus.layout);
            for shard in change.shards.iter() {
                let is_in_shard = |fingerprint: &_| shards_of(tables, *fingerprint).contains(shard);
                let places = (0..).zip(&change.documents.fingerprints);
                let places = places.filter(|(_, fingerprint)| is_in_shard(*fingerprint));
                let places: Vec<u32> = places.map(|(place, _)| place).collect();
                let effects = self.0.apply(shard, &change, &places, |_| true);
                assert!(effects.error.is_none(), "{effects:?}");
            }
        }
    }

    fn refused(&self, _: Vec<()>, refusal: Refusal) {
        panic!("{refusal}");
    }

    fn failed(&self, _: Vec<()>, failure: Failure) {
        panic!("{failure}");
    }
}
