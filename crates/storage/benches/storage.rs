//! What the storage of a node takes: appending to the log, looking ids up in segments, and starting anew.
//!
//! `cargo bench -p simshard-storage` runs all of it, on the disk that holds the target folder.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use criterion::{BenchmarkId, Criterion, Throughput};
use simshard_simhash::{Fingerprint, Layout};
use simshard_storage::{
    Change, ChangeKind, Documents, Failure, Operation, Options, Refusal, SharedChange, Sink, Store,
    Writer,
};
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};
use tempfile::TempDir;

const CORPUS: CorpusUid = CorpusUid([1; 16]);

/// The only shard: what is measured is the same for each.
const SHARD: ShardId = ShardId(0);

/// Documents of the directories that are opened and searched.
const DOCUMENTS: u64 = 1_000_000;

/// Documents of a change when these are made.
const BATCH: u64 = 4096;

/// Changes that wait for one sync.
const CHANGES_A_SYNC: usize = 32;

/// Applies what is committed, if there is a store, and says that it is done.
struct Applier(Option<Arc<Store>>);

impl Sink<Sender<()>> for Applier {
    fn committed(&self, batch: Vec<(Operation, Sender<()>)>) {
        for (operation, ticket) in batch {
            if let (Some(store), Operation::Change(change)) = (&self.0, &operation) {
                let places: Vec<u32> = (0..).take(change.documents.fingerprints.len()).collect();
                store.apply(SHARD, &SharedChange::new(change), &places, |_| false);
            }
            ticket.send(()).unwrap();
        }
    }

    fn refused(&self, _: Vec<Sender<()>>, refusal: Refusal) {
        panic!("{refusal}");
    }

    fn failed(&self, _: Vec<Sender<()>>, failure: Failure) {
        panic!("{failure}");
    }
}

/// The fingerprint of a document, in order of neither numbers nor time.
fn fingerprint(number: u64) -> Fingerprint {
    Fingerprint(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8)
}

/// Inserts documents from a number on.
fn insert(first: u64, count: u64) -> Operation {
    let numbers = first..first + count;
    Operation::Change(Change {
        kind: ChangeKind::Insert,
        corpus: CORPUS,
        version: Version(first + 1),
        shards: ShardSet::from_iter([SHARD]),
        documents: Documents {
            fingerprints: numbers.clone().map(fingerprint).collect(),
            ids: numbers
                .map(|number| format!("https://example.org/{number:012}"))
                .collect(),
        },
    })
}

fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn open(directory: &Path, memtable_bytes: usize, cache_bytes: u64) -> Arc<Store> {
    let mut options = Options::default();
    options.memtable_bytes = memtable_bytes;
    options.cache_bytes = cache_bytes;
    let owned = ShardSet::from_iter([SHARD]);
    Arc::new(Store::open(directory, owned, options).unwrap())
}

fn start(store: &Arc<Store>) -> Writer<Sender<()>> {
    Writer::start(store, Applier(Some(Arc::clone(store)))).unwrap()
}

/// Appends operations, and waits until all are durable.
fn commit(writer: &Writer<Sender<()>>, operations: impl IntoIterator<Item = Operation>) {
    let (ticket, done) = channel();
    for operation in operations {
        writer.append(operation, ticket.clone()).unwrap();
    }
    drop(ticket);
    while done.recv().is_ok() {}
}

/// A directory whose documents are all in the log.
fn logged() -> TempDir {
    let folder = folder();
    let writer = start(&open(folder.path(), usize::MAX, 0));
    let layout = Layout::new(5, 3).unwrap();
    let uid = CORPUS;
    commit(&writer, [Operation::CreateCorpus { uid, layout }]);
    for first in (0..DOCUMENTS).step_by(BATCH as usize) {
        commit(&writer, [insert(first, BATCH.min(DOCUMENTS - first))]);
    }
    folder
}

/// A directory whose documents are in one segment.
fn flushed() -> TempDir {
    let folder = logged();
    let writer = start(&open(folder.path(), 1, 0));
    // The second one is taken once all before the first is being written.
    for number in [DOCUMENTS, DOCUMENTS + 1] {
        commit(&writer, [insert(number, 1)]);
    }
    writer.close();
    folder
}

/// Changes of one document, of some, and of many: one at a time, and many behind one sync.
fn append(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("append");
    for documents in [1, 100, 4096] {
        for together in [1, CHANGES_A_SYNC] {
            let folder = folder();
            let store = open(folder.path(), usize::MAX, 0);
            let writer = Writer::start(&store, Applier(None)).unwrap();
            let changes = vec![insert(0, documents); together];
            group.throughput(Throughput::Elements(documents * together as u64));
            let id = BenchmarkId::new(format!("{together} at once"), documents);
            group.bench_function(id, |bencher| {
                bencher.iter_batched(
                    || changes.clone(),
                    |changes| commit(&writer, changes),
                    criterion::BatchSize::LargeInput,
                );
            });
        }
    }
}

/// The ids of one fingerprint of a million, in one segment.
fn look_up(criterion: &mut Criterion) {
    let folder = flushed();
    let mut group = criterion.benchmark_group("live_ids");
    for (name, cache_bytes) in [("cached", 1 << 30), ("not cached", 0)] {
        let store = open(folder.path(), usize::MAX, cache_bytes);
        let ids = |number| {
            let most = NonZeroUsize::new(10);
            store.live_ids(SHARD, CORPUS, fingerprint(number), most)
        };
        let mut number = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                number = (number + 7919) % DOCUMENTS;
                let ids = ids(number).unwrap();
                assert_eq!(ids.len(), 1);
                black_box(ids)
            });
        });
    }
}

/// Opening a directory, with all documents in the log or in a segment, and reading all of them as a node does.
fn recover(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("recover a million");
    group.sample_size(10);
    for (name, folder) in [("log", logged()), ("segment", flushed())] {
        group.bench_function(BenchmarkId::new(name, "open"), |bencher| {
            bencher.iter_with_large_drop(|| open(folder.path(), usize::MAX, 0));
        });
        let store = open(folder.path(), usize::MAX, 0);
        group.bench_function(BenchmarkId::new(name, "scan"), |bencher| {
            bencher.iter(|| {
                let mut count = 0;
                store.scan(SHARD, CORPUS, |_, _| count += 1).unwrap();
                assert!(count >= DOCUMENTS);
            });
        });
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    append(&mut criterion);
    look_up(&mut criterion);
    recover(&mut criterion);
    criterion.final_summary();
}
