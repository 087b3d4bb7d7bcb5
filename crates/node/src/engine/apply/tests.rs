//! When shards are made.

use std::path::Path;

use simshard_cluster::random_corpus_uid;
use simshard_simhash::{Fingerprint, Layout, Tables};
use simshard_storage::{ChangeKind, Documents, Options};
use simshard_topology::replication::Sent;
use simshard_topology::{MapDigest, ShardSet};

use super::*;
use crate::engine::{Engine, Threads};
use crate::target::{PlannedBy, Target};

const MAP: MapDigest = MapDigest(1);

const DOCUMENT: Fingerprint = Fingerprint(0x0123_4567_89ab_cdef);

fn all() -> ShardSet {
    ShardId::all().collect()
}

/// A corpus of its own, with 6 blocks and distance 3.
fn target() -> Target {
    Target {
        corpus: random_corpus_uid(),
        blocks: 6,
        distance: 3,
        planned_by: PlannedBy::Map(MAP),
    }
}

fn start(directory: &Path) -> Arc<Engine> {
    let store = Store::open(directory, all(), Options::default()).unwrap();
    let threads = Arc::new(Threads::start(2).unwrap());
    Arc::new(Engine::start(store, MAP, None, threads, 1 << 20).unwrap())
}

async fn change(engine: &Arc<Engine>, target: &Target, kind: ChangeKind, version: u64) {
    let change = Change {
        kind,
        corpus: target.corpus,
        version: Version(version),
        shards: all(),
        documents: Documents {
            fingerprints: vec![DOCUMENT],
            ids: Vec::new(),
        },
    };
    engine
        .change(target.clone(), change, Sent::ByRouter, false, None)
        .await
        .unwrap();
}

/// The shards of a corpus that take memory.
fn made(engine: &Engine, target: &Target) -> ShardSet {
    let corpus = engine.corpora.get(target.corpus).unwrap();
    let is_made = |id: &ShardId| corpus.shard(*id).unwrap().is_some();
    ShardId::all().filter(is_made).collect()
}

/// N6.
#[tokio::test]
async fn shards_are_made_by_their_first_documents_before_and_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let [empty, used] = [target(), target()];
    let layout = Layout::new(6, 3).unwrap();
    let shards = Tables::new(layout);
    let shards: ShardSet = shards.document_shards(DOCUMENT).map(ShardId).collect();
    let engine = start(directory.path());
    for target in [&empty, &used] {
        engine.create_corpus(target.clone()).await.unwrap();
    }
    change(&engine, &used, ChangeKind::Remove, 1).await;
    assert_eq!(made(&engine, &used), ShardSet::EMPTY);
    change(&engine, &used, ChangeKind::Insert, 2).await;
    assert_eq!(made(&engine, &used), shards);
    engine.close().unwrap();
    drop(engine);
    let engine = start(directory.path());
    assert_eq!(made(&engine, &used), shards);
    let empty = engine.corpora.get(empty.corpus).unwrap();
    assert!(empty.tables().is_none());
    let counts = engine.counts(used).await.unwrap();
    assert_eq!(counts.len(), ShardId::COUNT);
    let documents = counts.iter().map(|(_, counts)| counts.documents);
    assert_eq!(documents.sum::<u64>(), shards.len() as u64);
    engine.close().unwrap();
}
