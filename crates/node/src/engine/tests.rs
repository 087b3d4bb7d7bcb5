//! Requests that were planned by records of shards.

mod warming;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::TryStreamExt;
use simshard_cluster::{
    ClusterLayout, KeyValueMetadata, KeyValueStore, MemoryKeyValues, Node, published,
    random_corpus_uid,
};
use simshard_simhash::Tables;
use simshard_storage::{Change, ChangeKind, Documents, Holding, Options};
use simshard_topology::replication::{
    Epoch, Sent, ShardEpochs, ShardRecord, ShardRecords, StoreId,
};
use simshard_topology::{NodeId, Version};
use tempfile::TempDir;

use super::*;
use crate::registration::tests::store_of;
use crate::registration::{Registration, RegistrationError};
use crate::target::PlannedBy;

const DOCUMENT: Fingerprint = Fingerprint(0x0123_4567_89ab_cdef);

/// An engine that has installed the first records of all its shards.
struct Scene {
    engine: Arc<Engine>,
    store: StoreId,
    corpus: CorpusUid,
    directory: TempDir,
}

impl Scene {
    async fn new() -> Self {
        Self::with(Options::default()).await
    }

    async fn with(options: Options) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::claim(directory.path()).unwrap().store;
        let engine = start(&directory, records(store, 1), options);
        let scene = Self {
            engine: Arc::new(engine),
            store,
            corpus: random_corpus_uid(),
            directory,
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
        self.install_records(number, records(self.store, number))
            .await;
    }

    /// Installs records by which the node is hot, or is not.
    async fn heat(&self, number: u64, hot: bool) {
        self.install_records(number, heated(self.store, number, hot))
            .await;
    }

    /// Ends the engine, and starts another one over what is stored.
    fn restart(self, records: ShardRecords) -> Self {
        self.engine.close().unwrap();
        drop(self.engine);
        let engine = start(&self.directory, records, Options::default());
        Self {
            engine: Arc::new(engine),
            ..self
        }
    }

    async fn install_records(&self, number: u64, records: ShardRecords) {
        self.engine
            .install(&records, |_, _| Epoch::NONE)
            .await
            .unwrap();
        let mut installs = self.engine.installs.clone();
        let epochs = epochs(&[number]);
        let is_applied = installs.wait_for(|()| !self.engine.store.is_behind(&epochs));
        is_applied.await.unwrap();
    }

    async fn until_built(&self) {
        let mut installs = self.engine.installs.clone();
        let is_built = installs.wait_for(|()| self.engine.unbuilt().is_empty());
        is_built.await.unwrap();
    }

    async fn insert(&self, epochs: &ShardEpochs, version: u64) -> ChangeOutcome {
        self.change(epochs, ChangeKind::Insert, version).await
    }

    async fn change(&self, epochs: &ShardEpochs, kind: ChangeKind, version: u64) -> ChangeOutcome {
        let documents = Documents {
            fingerprints: vec![DOCUMENT],
            ids: Vec::new(),
        };
        self.change_all(epochs, kind, version, documents).await
    }

    async fn change_all(
        &self,
        epochs: &ShardEpochs,
        kind: ChangeKind,
        version: u64,
        documents: Documents,
    ) -> ChangeOutcome {
        let change = Change {
            kind,
            corpus: self.corpus,
            version: Version(version),
            shards: epochs.iter().map(|(shard, _)| *shard).collect(),
            documents,
        };
        let target = self.target(epochs);
        let changed = self
            .engine
            .change(target, change, Sent::ByRouter, false, None)
            .await;
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

/// An engine of all shards.
fn start(directory: &TempDir, records: ShardRecords, options: Options) -> Engine {
    let holding = Holding {
        shards: ShardSet::ALL,
        records: Some(records),
    };
    let opened = Store::open(directory.path(), holding, options).unwrap();
    let threads = Arc::new(Threads::start(4).unwrap());
    Engine::start(opened, MapDigest(0), None, threads, 1 << 20).unwrap()
}

/// Records by which a store is hot, or is not.
fn heated(store: StoreId, number: u64, hot: bool) -> ShardRecords {
    let records = records(store, number).into_iter();
    let heated = records.map(|(shard, record)| {
        let mut record = (*record).clone();
        record.in_sync[0].hot = hot;
        (shard, Arc::new(record))
    });
    heated.collect()
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
    // A disk may be slower than the request is patient.
    let mut waited = false;
    for number in 2..22 {
        let newer = epochs(&[number]);
        let (found, ()) = tokio::join!(scene.found(&newer), scene.install(number));
        waited |= matches!(found, Ok(0));
    }
    assert!(waited);
}

/// A shard that the node was never given.
#[tokio::test]
async fn a_shard_without_a_record_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let opened = Store::open(directory.path(), ShardSet::ALL, Options::default()).unwrap();
    assert_eq!(opened.unanswered(&epochs(&[1])).len(), epochs(&[1]).len());
}

/// HC1.
#[tokio::test]
async fn a_cold_shard_takes_changes_and_refuses_searches_until_its_tables_are_made() {
    let scene = Scene::new().await;
    scene.insert(&epochs(&[1]), 5).await;
    scene.heat(2, false).await;
    let shards = epochs(&[2]).iter().map(|(shard, _)| *shard).collect();
    let refused = scene.found(&epochs(&[2])).await.unwrap_err();
    assert!(matches!(refused, NodeError::Cold(_)), "{refused}");
    let query = PairQuery {
        target: scene.target(&epochs(&[2])),
        shards,
        max_distance: 3,
        wanted: simshard_simhash::PairsWanted::All,
    };
    let refused = scene.engine.pairs(query).await.map(drop);
    assert!(matches!(refused, Err(NodeError::Cold(_))));
    let corpus = scene.engine.corpora.get(scene.corpus).unwrap();
    let counts =
        |corpus: &NodeCorpus| -> u64 { corpus.counts().map(|(_, counts)| counts.documents).sum() };
    assert_eq!(counts(&corpus), 0);
    // It counts nothing, but knows what is newer.
    let outcome = scene.insert(&epochs(&[2]), 6).await;
    assert_eq!((outcome.changed, outcome.newer), (vec![], vec![]));
    let outcome = scene.change(&epochs(&[2]), ChangeKind::Remove, 4).await;
    assert!(
        !outcome.newer.is_empty()
            && outcome
                .newer
                .iter()
                .all(|(_, version)| *version == Version(6))
    );
    scene.heat(3, true).await;
    scene.until_built().await;
    assert_eq!(scene.found(&epochs(&[3])).await.unwrap(), 1);
    assert_eq!(counts(&corpus), shards.len() as u64);
    let outcome = scene.change(&epochs(&[3]), ChangeKind::Remove, 7).await;
    assert_eq!(outcome.changed, [0]);
    assert_eq!(scene.found(&epochs(&[3])).await.unwrap(), 0);
}

/// HC1: a shard that gets cold under a stream fails it, and is not empty instead.
#[tokio::test]
async fn a_look_up_in_a_shard_that_got_cold_meanwhile_fails() {
    let scene = Scene::new().await;
    scene.insert(&epochs(&[1]), 5).await;
    let look_up = async || {
        let home = ShardId((DOCUMENT.0 >> 56) as u8);
        let shards = ShardSet::from_iter([home]);
        let target = scene.target(&epochs(&[1]));
        let documents = scene.engine.look_up(target, shards, vec![DOCUMENT]);
        documents.await.unwrap()
    };
    let given = scene.engine.work_given();
    let found: Vec<Documents> = look_up().await.try_collect().await.unwrap();
    // Copies give way to it.
    assert!(scene.engine.work_given() > given);
    assert_eq!(found[0].fingerprints, [DOCUMENT]);
    let begun = look_up().await;
    scene.heat(2, false).await;
    let refused = begun.try_collect::<Vec<_>>().await.unwrap_err();
    assert!(matches!(refused, NodeError::Cold(_)), "{refused}");
}

/// The task that keeps this node in the records of its shards asks for them.
#[tokio::test]
async fn the_corpora_that_a_node_holds_are_known_while_a_shard_is_changed() {
    let scene = Scene::new().await;
    scene.insert(&epochs(&[1]), 5).await;
    let corpus = scene.engine.corpora.get(scene.corpus).unwrap();
    let _changing = corpus.write(epochs(&[1])[0].0).unwrap();
    assert_eq!(scene.engine.uids(), [scene.corpus]);
}

/// HC3.
#[tokio::test]
async fn a_damaged_shard_that_is_to_be_hot_stays_cold_and_the_others_are_searched() {
    let mut options = Options::default();
    options.memtable_bytes = 1;
    let scene = Scene::with(options).await;
    scene.insert(&epochs(&[1]), 5).await;
    scene.heat(2, false).await;
    let home = ShardId((DOCUMENT.0 >> 56) as u8);
    let segment = flushed(&scene, home);
    let store = scene.store;
    let scene = scene.restart(heated(store, 2, false));
    let mut bytes = std::fs::read(&segment).unwrap();
    // Within the only block, behind the header.
    bytes[70] ^= 4;
    std::fs::write(&segment, bytes).unwrap();

    let damaged = ShardSet::from_iter([home]);
    scene.heat(3, true).await;
    let mut installs = scene.engine.installs.clone();
    let is_noted = installs
        .wait_for(|()| scene.engine.unbuilt() == damaged && !scene.engine.heat.is_warming(home));
    is_noted.await.unwrap();
    check_damaged(&scene, home, 6).await;
    drop(installs);
    let scene = scene.restart(heated(store, 3, true));
    assert_eq!(scene.engine.unbuilt(), damaged);
    check_damaged(&scene, home, 7).await;
}

/// The segment of a shard, once it is on disk.
fn flushed(scene: &Scene, shard: ShardId) -> std::path::PathBuf {
    let folder = scene.directory.path().join("segments");
    let prefix = format!("{shard}-");
    let is_meant = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(&prefix) && name.ends_with(".seg")
    };
    loop {
        let entries = std::fs::read_dir(&folder).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        if let Some(path) = paths.find(is_meant) {
            return path;
        }
        std::thread::yield_now();
    }
}

/// Of an engine with records of number 3: a shard is damaged.
async fn check_damaged(scene: &Scene, damaged: ShardId, version: u64) {
    let mut all = epochs(&[3]);
    let refused = scene.found(&all).await.unwrap_err();
    assert!(
        matches!(&refused, NodeError::Cold(cold) if *cold == ShardSet::from_iter([damaged])),
        "{refused}"
    );
    // It takes changes as a cold shard does.
    let outcome = scene.insert(&all, version).await;
    assert_eq!(outcome, ChangeOutcome::default());
    all.retain(|(shard, _)| *shard != damaged);
    scene.found(&all).await.unwrap();
    let corpus = scene.engine.corpora.get(scene.corpus).unwrap();
    for (shard, _) in &all {
        let held = corpus.read(*shard).unwrap().unwrap().counts().documents;
        assert_eq!(held, 1, "{shard}");
    }
    assert!(scene.engine.failed.borrow().is_none());
}

/// HC1: while tables are made, documents are counted by what is stored.
#[tokio::test]
async fn a_shard_whose_tables_are_made_counts_what_changes() {
    let scene = Scene::new().await;
    scene.insert(&epochs(&[1]), 5).await;
    scene.heat(2, false).await;
    let home = ShardId((DOCUMENT.0 >> 56) as u8);
    let engine = Arc::clone(&scene.engine);
    let (held, is_held) = oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let holding = std::thread::spawn(move || {
        let _turn = engine.heat.turn(home);
        let _ = held.send(());
        let _ = released.recv();
    });
    is_held.await.unwrap();
    scene.heat(3, true).await;
    let refused = scene.found(&epochs(&[3])).await.unwrap_err();
    assert!(matches!(refused, NodeError::Cold(_)), "{refused}");
    drop(release);
    holding.join().unwrap();
    let outcome = scene.change(&epochs(&[3]), ChangeKind::Remove, 7).await;
    assert_eq!(outcome.changed, [0]);
    let outcome = scene.change(&epochs(&[3]), ChangeKind::Remove, 8).await;
    assert_eq!(outcome.changed, [0; 0]);
}

/// HC1, HC2: hot and cold by turns, a node holds and counts what one does that is always hot.
#[tokio::test]
async fn tables_that_are_made_anew_hold_what_changed_while_there_were_none() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut options = Options::default();
    options.memtable_bytes = 20_000;
    let scene = Scene::with(options).await;
    let mut model = Model::default();
    let (mut number, mut hot) = (1, true);
    let mut versions: Vec<u64> = (1..=300).collect();
    random.shuffle(&mut versions);
    // Most are newer than those before.
    versions[50..].sort_unstable();
    for version in versions {
        if random.u8(..10) == 0 {
            (number, hot) = (number + 1, !hot);
            scene.heat(number, hot).await;
        }
        let is_insert = random.u8(..3) > 0;
        let kind = if is_insert {
            ChangeKind::Insert
        } else {
            ChangeKind::Remove
        };
        let keys = some_keys(&mut random);
        let documents = Documents {
            fingerprints: keys.iter().map(|(value, _)| Fingerprint(*value)).collect(),
            ids: keys.iter().map(|(_, id)| id.clone()).collect(),
        };
        let epoch = Epoch {
            generation: 0,
            number,
        };
        let epochs = ShardId::all().map(|shard| (shard, epoch)).collect();
        let outcome = scene.change_all(&epochs, kind, version, documents).await;
        let (changed, newer) = model.change(keys, version, is_insert);
        let told: BTreeSet<u32> = outcome.newer.iter().map(|(place, _)| *place).collect();
        assert_eq!(told, newer);
        let told: BTreeSet<u32> = outcome.changed.into_iter().collect();
        assert_eq!(told, if hot { changed } else { BTreeSet::new() });
    }
    scene.heat(number + 1, true).await;
    scene.until_built().await;
    model.check(&scene.engine.corpora.get(scene.corpus).unwrap());
}

/// A replica that was left out may not know that a corpus is deleted.
#[tokio::test]
async fn a_node_that_has_dropped_a_corpus_confirms_no_read_of_it() {
    let scene = Scene::new().await;
    let shard = ShardId(1);
    let refused = |read| {
        let epochs = [(shard, Epoch::FIRST)];
        scene.engine.unconfirmed(scene.store, &epochs, read)
    };
    let (read, other) = (Some(scene.corpus), Some(random_corpus_uid()));
    assert_eq!(refused(read), ShardSet::EMPTY);
    scene.engine.drop_corpus(scene.corpus).await.unwrap();
    assert_eq!(refused(read), ShardSet::from_iter([shard]));
    assert_eq!([refused(other), refused(None)], [ShardSet::EMPTY; 2]);
}

/// A fingerprint and an id.
type Key = (u64, String);

fn some_keys(random: &mut fastrand::Rng) -> BTreeSet<Key> {
    let number = random.usize(1..20);
    let mut key = || {
        let value = random.u64(..40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (value, random.u8(..3).to_string())
    };
    (0..number).map(|_| key()).collect()
}

/// The version of each document, and whether it is live.
#[derive(Default)]
struct Model(BTreeMap<Key, (u64, bool)>);

impl Model {
    /// Answers the places of those that changed, and of those that have a newer version.
    fn change(
        &mut self,
        keys: BTreeSet<Key>,
        version: u64,
        is_insert: bool,
    ) -> (BTreeSet<u32>, BTreeSet<u32>) {
        let (mut changed, mut newer) = (BTreeSet::new(), BTreeSet::new());
        for (place, key) in (0..).zip(keys) {
            let state = self.0.entry(key).or_default();
            let differs = state.1 != is_insert;
            if state.0 < version {
                *state = (version, is_insert);
                changed.extend(differs.then_some(place));
            } else {
                newer.extend((version < state.0 || differs).then_some(place));
            }
        }
        (changed, newer)
    }

    /// Compares what a corpus counts.
    fn check(&self, corpus: &NodeCorpus) {
        let live = self.0.iter().filter(|(_, (_, live))| *live);
        let mut documents: BTreeMap<u64, u64> = BTreeMap::new();
        for ((value, _), _) in live {
            *documents.entry(*value).or_default() += 1;
        }
        let counts: Vec<ShardCounts> = corpus.counts().map(|(_, counts)| counts).collect();
        let sum = |count: fn(&ShardCounts) -> u64| counts.iter().map(count).sum::<u64>();
        let all: u64 = documents.values().sum();
        assert_eq!(sum(|counts| counts.home_documents), all);
        let distinct = documents.len() as u64;
        assert_eq!(sum(|counts| counts.home_fingerprints), distinct);
        for (value, documents) in documents {
            let home = ShardId((value >> 56) as u8);
            let shard = corpus.read(home).unwrap().unwrap();
            assert_eq!(shard.documents(Fingerprint(value)), documents);
        }
    }
}

/// Its map is that of its start, and no record says yet what it holds.
#[tokio::test]
async fn a_node_that_has_registered_itself_compares_no_maps_before_its_first_records() {
    let node = Node {
        id: NodeId::new("n1").unwrap(),
        address: "http://127.0.0.1:7470".to_owned(),
    };
    let layout = Arc::new(ClusterLayout::planned(vec![node], 1).unwrap());
    let metadata = KeyValueMetadata::with_layout(layout, Arc::new(MemoryKeyValues::new()));
    let metadata = Arc::new(metadata);
    let start = |corpus_records| {
        let threads = Arc::new(Threads::start(2).unwrap());
        let store = Store::in_memory(ShardSet::ALL);
        let engine = Engine::start(store, MapDigest(0), corpus_records, threads, 1 << 20);
        Arc::new(engine.unwrap())
    };
    let registered = start(Some(CorpusRecords::new(metadata)));
    let router = MapDigest(1);
    assert!(
        registered
            .list(router, HashSet::new())
            .await
            .unwrap()
            .is_empty()
    );
    let listed = start(None).list(router, HashSet::new()).await;
    assert!(
        matches!(listed, Err(NodeError::OtherMap { .. })),
        "{listed:?}"
    );
    let target = Target {
        corpus: random_corpus_uid(),
        blocks: 5,
        distance: 3,
        planned_by: PlannedBy::Map(router),
    };
    registered.create_corpus(target.clone()).await.unwrap();
    // It holds no shard yet.
    assert!(registered.unbuilt().is_empty());
    assert!(registered.counts(target.clone()).await.unwrap().is_empty());
    let refused = registered.open_to_change(&target, ShardSet::ALL).await;
    assert!(matches!(refused, Err(NodeError::WrongEpoch(ShardSet::ALL))));
}

/// RG5: a broken copy, which never served, does not keep the right directory from starting.
#[tokio::test]
async fn a_directory_that_lacks_a_segment_begins_no_start() {
    let mut options = Options::default();
    options.memtable_bytes = 1;
    let scene = Scene::with(options).await;
    scene.insert(&epochs(&[1]), 5).await;
    let segment = flushed(&scene, ShardId((DOCUMENT.0 >> 56) as u8));
    scene.engine.close().unwrap();
    drop(scene.engine);
    let keys: Arc<dyn KeyValueStore> = Arc::new(MemoryKeyValues::new());
    let start = async || {
        let mut claim = Store::claim(scene.directory.path()).unwrap();
        let store = store_of(&claim);
        Registration::enter(&keys, &mut claim, store, false, Duration::MAX).await
    };
    let known = async || published(&*keys, scene.store).await.unwrap().unwrap().1;
    start().await.unwrap();
    let before = known().await;
    let bytes = std::fs::read(&segment).unwrap();
    std::fs::remove_file(&segment).unwrap();
    let refused = start().await.unwrap_err();
    assert!(matches!(refused, RegistrationError::Open(_)), "{refused}");
    assert_eq!(known().await, before);
    std::fs::write(&segment, bytes).unwrap();
    start().await.unwrap();
}
