//! Requests that were planned by records of shards.

use simshard_cluster::random_corpus_uid;
use simshard_simhash::Tables;
use simshard_storage::{Change, ChangeKind, Documents, Holding, Options};
use simshard_topology::Version;
use simshard_topology::replication::{Epoch, ShardEpochs, ShardRecord, ShardRecords, StoreId};
use tempfile::TempDir;

use super::*;

const DOCUMENT: Fingerprint = Fingerprint(0x0123_4567_89ab_cdef);

/// An engine that has installed the first records of all its shards.
struct Scene {
    engine: Arc<Engine>,
    store: StoreId,
    corpus: CorpusUid,
    _directory: TempDir,
}

impl Scene {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::claim(directory.path()).unwrap().store;
        let holding = Holding {
            shards: ShardSet::ALL,
            records: Some(records(store, 1)),
        };
        let opened = Store::open(directory.path(), holding, Options::default()).unwrap();
        let threads = Arc::new(Threads::start(2).unwrap());
        let engine = Engine::start(opened, MapDigest(0), None, threads, 1 << 20).unwrap();
        let scene = Self {
            engine: Arc::new(engine),
            store,
            corpus: random_corpus_uid(),
            _directory: directory,
        };
        let whole = Target {
            planned_by: PlannedBy::Map(MapDigest(0)),
            ..scene.target(&[])
        };
        scene.engine.create_corpus(whole).await.unwrap();
        scene
    }

    fn target(&self, epochs: &[(ShardId, Epoch)]) -> Target {
        Target {
            corpus: self.corpus,
            blocks: 5,
            distance: 3,
            planned_by: PlannedBy::Records(epochs.into()),
        }
    }

    /// Installs records, and waits until they are applied.
    async fn install(&self, number: u64) {
        let records = records(self.store, number);
        self.engine
            .install(&records, |_, _| Epoch::NONE)
            .await
            .unwrap();
        let mut installs = self.engine.installs.clone();
        let epochs = epochs(&[number]);
        let is_applied = installs.wait_for(|()| !self.engine.store.is_behind(&epochs));
        is_applied.await.unwrap();
    }

    async fn insert(&self, epochs: &ShardEpochs, version: u64) -> ChangeOutcome {
        let change = Change {
            kind: ChangeKind::Insert,
            corpus: self.corpus,
            version: Version(version),
            shards: epochs.iter().map(|(shard, _)| *shard).collect(),
            documents: Documents {
                fingerprints: vec![DOCUMENT],
                ids: Vec::new(),
            },
        };
        let target = self.target(epochs);
        let changed = self.engine.change(target, change, false, None).await;
        changed.unwrap()
    }

    /// How many matches the document has, by these records.
    async fn found(&self, epochs: &ShardEpochs) -> Result<usize, NodeError> {
        let query = NearQuery {
            target: self.target(epochs),
            shards: epochs.iter().map(|(shard, _)| *shard).collect(),
            active: simshard_simhash::LeadGroups::all(Layout::new(5, 3).unwrap()),
            spec: simshard_proto::SearchSpec::default(),
            fingerprints: vec![DOCUMENT],
        };
        let found = self.engine.find(query, None).await?;
        let matches = simshard_proto::matches_from_bytes(found).unwrap();
        Ok(matches.fingerprints.len())
    }
}

/// Records of all shards, of epoch 0.`number`.
fn records(store: StoreId, number: u64) -> ShardRecords {
    let record = |shard| {
        let mut record = ShardRecord::first(0, &[store], number);
        record.epoch.number = number;
        (shard, Arc::new(record))
    };
    ShardId::all().map(record).collect()
}

/// The shards of the document, by records of these epochs in turn.
fn epochs(numbers: &[u64]) -> ShardEpochs {
    let tables = Tables::new(Layout::new(5, 3).unwrap());
    let shards: ShardSet = tables.document_shards(DOCUMENT).map(ShardId).collect();
    let epoch = |&number| Epoch {
        generation: 0,
        number,
    };
    let numbers = numbers.iter().cycle().map(epoch);
    shards.iter().zip(numbers).collect()
}

/// N8.
#[tokio::test]
async fn a_change_takes_place_in_the_shards_whose_records_are_those_of_the_router() {
    let scene = Scene::new().await;
    scene.install(2).await;
    // Every second shard is meant by an older record.
    let mixed = epochs(&[1, 2]);
    let older = mixed.iter().filter(|(_, epoch)| epoch.number == 1);
    let older: ShardSet = older.map(|(shard, _)| *shard).collect();
    assert!(older.len() > 1 && older.len() < mixed.len());
    let outcome = scene.insert(&mixed, 5).await;
    assert_eq!(outcome.refused, older);
    let corpus = scene.engine.corpora.get(scene.corpus).unwrap();
    for (shard, epoch) in &mixed {
        let holds = corpus.read(*shard).unwrap().is_some();
        assert_eq!(holds, epoch.number == 2, "{shard}");
    }
    // All are refused, and nothing is queued.
    let outcome = scene.insert(&epochs(&[1]), 6).await;
    assert_eq!(outcome.refused.len(), mixed.len());
    let outcome = scene.insert(&epochs(&[2]), 5).await;
    assert_eq!(outcome.refused, ShardSet::EMPTY);
}

/// N8.
#[tokio::test]
async fn reads_by_other_records_are_refused_and_never_empty() {
    let scene = Scene::new().await;
    scene.insert(&epochs(&[1]), 5).await;
    assert_eq!(scene.found(&epochs(&[1])).await.unwrap(), 1);
    scene.install(2).await;
    for other in [epochs(&[1]), epochs(&[2, 1]), epochs(&[3])] {
        let refused = scene.found(&other).await.unwrap_err();
        assert!(matches!(refused, NodeError::WrongEpoch(_)), "{refused}");
        let target = scene.target(&other);
        let shards = other.iter().map(|(shard, _)| *shard).collect();
        let refused = scene.engine.scan(target, shards).await.map(drop);
        assert!(matches!(refused, Err(NodeError::WrongEpoch(_))));
    }
    assert_eq!(scene.found(&epochs(&[2])).await.unwrap(), 1);
}

/// The router may hear of a record before the node.
#[tokio::test]
async fn a_request_waits_for_a_record_that_the_node_is_about_to_install() {
    let scene = Scene::new().await;
    let newer = epochs(&[2]);
    let (found, ()) = tokio::join!(scene.found(&newer), scene.install(2));
    assert_eq!(found.unwrap(), 0);
}

/// A shard that the node was never given.
#[tokio::test]
async fn a_shard_without_a_record_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let opened = Store::open(directory.path(), ShardSet::ALL, Options::default()).unwrap();
    assert_eq!(opened.unanswered(&epochs(&[1])).len(), epochs(&[1]).len());
}
