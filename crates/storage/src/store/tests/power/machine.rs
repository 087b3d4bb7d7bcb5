//! A store that does one thing after another on one thread, so that the same steps make the same calls.

use std::sync::Arc;

use super::super::shards_of;
use super::model::{copied, tables};
use super::{OWN, owned};
use crate::delta::{Compared, RangeElements, Versions, compare};
use crate::element::{Operation, ShardCopy};
use crate::error::MaintenanceError;
use crate::log::tests::commit;
use crate::log::{Appender, Committed, Fault, LogOptions, Record, Sink as _};
use crate::memtable::Memtable;
use crate::merge::Cursor;
use crate::store::{CopyBase, CopyError, Holding, OpenError, Options, Store, entries_of};
use crate::stored::{SharedChange, Stored};
use crate::tests::ForgetfulDirectory;
use crate::writer::{Committer, Failure, Refusal, Sink};
use simshard_topology::replication::{Epoch, Role, ShardRecord, ShardRecords, StoreId};
use simshard_topology::{ShardId, Version};

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
    Copy(#[expect(dead_code, reason = "shown")] CopyError),
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
    pub(super) fn run(&mut self, step: &mut Step) -> Result<(), Failed> {
        if let Step::Commit(operations) = step
            && let Err(failed) = self.prepare(operations)
        {
            operations.clear();
            return Err(failed);
        }
        let files = self.appender.files();
        let trim = |below| files.trim(below).map_err(MaintenanceError::Trim);
        let upkeep = || self.store.upkeep(self.store.disk.as_ref().unwrap(), &trim);
        let done = match step {
            Step::Commit(operations) => {
                return self.commit(operations).map_err(Failed::Log);
            }
            Step::Mark => return self.mark(),
            Step::Flush => upkeep().flush_and_trim(),
            Step::Maintain => upkeep().step(),
        };
        done.map_err(Failed::Maintenance)
    }

    /// Names the store where records name [`OWN`], and makes the copies that end. A copy that no learner waits for does
    /// not.
    fn prepare(&self, operations: &mut Vec<Operation>) -> Result<(), Failed> {
        let own = self.store.replicas().read().store();
        let may_copy = operations.len() == 1;
        let mut kept = Vec::new();
        for mut operation in std::mem::take(operations) {
            match &mut operation {
                Operation::Install(installed) => {
                    for (_, record) in installed {
                        name(Arc::make_mut(record), own);
                    }
                }
                Operation::Copied(copy) => {
                    let role = self.store.role(copy.shard);
                    if !may_copy || role != Some(Role::Copying { added: copy.added }) {
                        continue;
                    }
                    *copy = self.copy(copy.shard, copy.added)?;
                }
                Operation::CreateCorpus { .. }
                | Operation::DropCorpus { .. }
                | Operation::Change(_) => {}
            }
            kept.push(operation);
        }
        *operations = kept;
        Ok(())
    }

    /// Copies from a source that has a few elements.
    fn copy(&self, shard: ShardId, added: Epoch) -> Result<ShardCopy, Failed> {
        let base = match self.copy_base(shard, added)? {
            Some(base) => base,
            None => {
                self.flush().map_err(Failed::Maintenance)?;
                self.copy_base(shard, added)?.unwrap()
            }
        };
        let made = self.copy_from(&base, shard, added);
        made.map_err(Failed::Copy)
    }

    fn copy_base(&self, shard: ShardId, added: Epoch) -> Result<Option<CopyBase>, Failed> {
        let base = self.store.copy_base(shard, added);
        base.map_err(|error| Failed::Copy(error.into()))
    }

    fn copy_from(
        &self,
        base: &CopyBase,
        shard: ShardId,
        added: Epoch,
    ) -> Result<ShardCopy, CopyError> {
        let corpora = self.store.corpora();
        let layouts = corpora.iter().map(|corpus| (corpus.uid, corpus.layout));
        let mut source = Memtable::default();
        for (corpus, fingerprint, id, state) in copied(layouts, shard, added) {
            source.put(corpus, Stored::new(fingerprint, id, state));
        }
        let until = base.until();
        let corpora: Vec<_> = corpora.iter().map(|corpus| corpus.uid).collect();
        let mut writer = base.begin(corpora.clone())?;
        let mut failed = Ok(());
        let visit = |corpus, compared: Compared<'_>| {
            failed = match compared {
                Compared::Later(element) => writer.push(corpus, element),
                Compared::RangeEnd(last, digest) => writer.end_range(corpus, last, digest),
            };
            failed.is_ok()
        };
        let mut elements = source.cursor(|_| true);
        let settled = Version::NONE;
        let versions = Versions { until, settled };
        compare(&mut elements, corpora.into_iter(), versions, 2, visit)?;
        failed?;
        let ranges = writer.end_ranges()?.to_vec();
        let mut part = RangeElements::within(source.cursor(|_| true), &ranges, until)?;
        while let Some((corpus, element)) = part.element() {
            writer.push(corpus, element)?;
            part.advance()?;
        }
        writer.finish()
    }

    fn flush(&self) -> Result<(), MaintenanceError> {
        let files = self.appender.files();
        let trim = |below| files.trim(below).map_err(MaintenanceError::Trim);
        let disk = self.store.disk.as_ref().unwrap();
        self.store.upkeep(disk, &trim).flush_and_trim()
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
            if let Some(entries) = entries_of(operation) {
                self.store.replicas().write().append(&entries);
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

/// Puts a store in the place of [`OWN`].
fn name(record: &mut ShardRecord, own: StoreId) {
    let in_sync = record.in_sync.iter_mut().map(|entry| &mut entry.store);
    let learners = record.learners.iter_mut().map(|entry| &mut entry.store);
    for store in in_sync.chain(learners).filter(|store| **store == OWN) {
        *store = own;
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
                let effects = self
                    .0
                    .apply(shard, &SharedChange::new(&change), &places, |_| true);
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
