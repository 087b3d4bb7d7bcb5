//! The data directories of nodes that do not run, read and changed by the storage itself.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{SystemTime, UNIX_EPOCH};

use simshard_client::Fingerprint;
use simshard_storage::{
    Change, ChangeKind, CopyRange, Corpus, Documents, Element, Failure, Holding, Operation,
    Options, Refusal, SharedChange, Sink, Store, Writer,
};
use simshard_testkit::{Oracle, ProcessCluster};
use simshard_topology::replication::{Epoch, ShardRecords};
use simshard_topology::{ShardId, ShardSet, Version};

use super::{Document, shards};

/// Applies what is committed, as a node does.
struct Applied {
    store: Arc<Store>,
    done: mpsc::Sender<()>,
}

impl Sink<()> for Applied {
    fn committed(&self, batch: Vec<(Operation, ())>) {
        for (operation, ()) in batch {
            let Operation::Change(change) = operation else {
                panic!("{operation:?}");
            };
            let shared = SharedChange::new(&change);
            for shard in ShardId::all() {
                let fingerprints = change.documents.fingerprints.iter();
                let places = (0..).zip(fingerprints);
                let places =
                    places.filter(|(_, fingerprint)| shards(**fingerprint).contains(&shard));
                let places: Vec<u32> = places.map(|(place, _)| place).collect();
                let effects = self.store.apply(shard, &shared, &places, |_| true);
                assert!(effects.error.is_none());
            }
            self.done.send(()).unwrap();
        }
    }

    fn installed(&self, _: ShardSet) {}

    fn refused(&self, _: Vec<()>, refusal: Refusal) {
        panic!("{refusal}");
    }

    fn failed(&self, _: Vec<()>, failure: Failure) {
        panic!("{failure}");
    }
}

/// The store in a directory, of which each shard goes on by its record.
pub(crate) fn open(data: &Path, records: &ShardRecords) -> Store {
    let holding = Holding {
        shards: ShardSet::ALL,
        records: Some(records.clone()),
    };
    Store::open(data, holding, Options::default()).unwrap()
}

/// Changes documents in all their shards, on one node only.
pub(super) fn edit(
    cluster: &ProcessCluster,
    records: &ShardRecords,
    node: usize,
    kind: ChangeKind,
    documents: &[Document],
) {
    let store = Arc::new(open(&cluster.data(node), records));
    let (done, is_done) = mpsc::channel();
    let applied = Applied {
        store: Arc::clone(&store),
        done,
    };
    let writer = Writer::start(&store, applied).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let (fingerprints, ids) = documents.iter().cloned().unzip();
    let change = Change {
        kind,
        corpus: store.corpora()[0].uid,
        version: Version::of_wall_time(now.as_nanos() as u64),
        shards: ShardSet::ALL,
        documents: Documents { fingerprints, ids },
    };
    writer.append(Operation::Change(change), ()).unwrap();
    is_done.recv().unwrap();
    writer.close();
}

/// How many live documents a store has in its shards, and how many tombstones.
pub(crate) fn elements(directory: &Path, records: &ShardRecords) -> [u64; 2] {
    let store = open(directory, records);
    let all = |corpus: &Corpus| CopyRange {
        corpus: corpus.uid,
        first: Fingerprint(0),
        last: Fingerprint(u64::MAX),
    };
    let mut counts = [0; 2];
    for shard in ShardId::all() {
        if let Some(pinned) = store.pin(shard, Epoch::NONE).unwrap() {
            let ranges: Vec<CopyRange> = pinned.corpora.iter().map(all).collect();
            let count = |_, element: Element<'_>| {
                counts[usize::from(!element.live)] += 1;
                true
            };
            pinned.visit(&ranges, Version::MAX, count).unwrap();
        }
    }
    counts
}

/// Each node has each document in all its shards, and no other one.
pub(super) fn check_stores(cluster: &ProcessCluster, records: &ShardRecords, oracle: &Oracle) {
    let expected: BTreeSet<(ShardId, Document)> = oracle
        .documents()
        .flat_map(|(fingerprint, id)| {
            let shards = shards(fingerprint).into_iter();
            shards.map(move |shard| (shard, (fingerprint, id.to_owned())))
        })
        .collect();
    for node in 0..cluster.node_addresses().len() {
        let store = open(&cluster.data(node), records);
        let corpus = store.corpora()[0].uid;
        let mut held = BTreeSet::new();
        for shard in ShardId::all() {
            let visit = |fingerprint: Fingerprint, id: &str| {
                held.insert((shard, (fingerprint, id.to_owned())));
            };
            store.scan(shard, corpus, visit).unwrap();
        }
        assert!(
            held == expected,
            "node {node} holds {} documents, not {}",
            held.len(),
            expected.len()
        );
    }
}
