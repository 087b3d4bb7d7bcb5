//! Changes while tables of a shard are made.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use tokio::time::timeout;

use super::*;
use crate::shard::Shard;

/// The shard where the documents are at home.
const HOME: ShardId = ShardId(1);

/// Tables of a shard that a thread makes, step by step.
struct Making {
    steps: mpsc::Receiver<()>,
    go_on: mpsc::Sender<()>,
    thread: JoinHandle<bool>,
}

impl Making {
    /// Makes a shard hot, though its record does not, and begins to make its tables. The snapshot is taken then, and
    /// nothing of it read.
    fn begin(scene: &Scene, shard: ShardId) -> Self {
        let Engine {
            store,
            corpora,
            heat,
            ..
        } = &*scene.engine;
        let warming = Warming {
            store: Arc::clone(store),
            corpora: Arc::clone(corpora),
            heat: Arc::clone(heat),
            built: watch::channel(()).0,
        };
        let only = ShardSet::from_iter([shard]);
        assert_eq!(heat.follow(only, ShardSet::EMPTY, corpora), only);
        let ((at, steps), (go_on, may_go_on)) = (mpsc::channel(), mpsc::channel());
        let thread = thread::spawn(move || {
            // If the test has failed, nothing waits.
            let step = || {
                let _ = at.send(());
                let _ = may_go_on.recv();
            };
            let pin = || warming.store.snapshot(shard).unwrap();
            let load = |pinned| {
                step();
                let loaded = warming.load(shard, &pinned);
                step();
                loaded
            };
            let built = warming.heat.build(shard, &warming.corpora, pin, load);
            built.unwrap()
        });
        steps.recv().unwrap();
        Self {
            steps,
            go_on,
            thread,
        }
    }

    /// Reads the snapshot.
    fn read(&self) {
        self.go_on.send(()).unwrap();
        self.steps.recv().unwrap();
    }

    /// Answers whether the tables count.
    fn end(self) -> bool {
        self.go_on.send(()).unwrap();
        self.thread.join().unwrap()
    }
}

/// HC2.
#[tokio::test]
async fn changes_of_all_shards_are_answered_while_tables_of_one_are_made() {
    let scene = Scene::new().await;
    scene.heat(2, false).await;
    scene.insert(&epochs(&[2]), 5).await;
    let making = Making::begin(&scene, HOME);
    let (own, others): (ShardEpochs, ShardEpochs) =
        epochs(&[2]).iter().partition(|(shard, _)| *shard == HOME);
    assert!(!own.is_empty() && !others.is_empty());
    let first: &[u32] = &[0];
    let steps = [(&own, first), (&others, &[]), (&own, &[])];
    for (version, (epochs, places)) in (6..).zip(steps) {
        let changed = scene.change(epochs, ChangeKind::Remove, version);
        let changed = timeout(Duration::from_secs(20), changed).await;
        assert_eq!(changed.expect("it waits for the tables").changed, places);
    }
    making.read();
    assert!(making.end());
    let corpus = scene.engine.corpora.get(scene.corpus).unwrap();
    let counts = corpus.read(HOME).unwrap().unwrap().counts();
    assert_eq!(counts, ShardCounts::default());
}

/// HC1: with changes before, between and after all steps.
#[tokio::test]
async fn tables_that_are_made_while_documents_change_equal_those_that_are_made_afterwards() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut options = Options::default();
    options.memtable_bytes = 20_000;
    let mut changing = Changing {
        scene: Scene::with(options).await,
        random: fastrand::Rng::with_seed(seed),
        model: Model::default(),
        version: 0,
    };
    changing.scene.heat(2, false).await;
    for _ in 0..30 {
        changing.some(false).await;
        let making = Making::begin(&changing.scene, HOME);
        changing.some(true).await;
        making.read();
        changing.some(true).await;
        assert!(making.end());
        changing.check();
        changing.some(true).await;
        changing.check();
        let Engine { heat, corpora, .. } = &*changing.scene.engine;
        heat.follow(ShardSet::EMPTY, ShardSet::EMPTY, corpora);
    }
}

/// Random changes, and a model of them.
struct Changing {
    scene: Scene,
    random: fastrand::Rng,
    model: Model,
    version: u64,
}

impl Changing {
    /// Inserts and removes documents at home in one shard, which counts them or does not.
    async fn some(&mut self, counts: bool) {
        let epoch = Epoch {
            generation: 0,
            number: 2,
        };
        let epochs = ShardId::all().map(|shard| (shard, epoch)).collect();
        for _ in 0..self.random.usize(..6) {
            let is_insert = self.random.bool();
            let kind = if is_insert {
                ChangeKind::Insert
            } else {
                ChangeKind::Remove
            };
            // Every other version, some of them late.
            self.version += 20;
            let late = 2 * self.random.u64(..20) * u64::from(self.random.u8(..4) == 0);
            let version = (self.version + 1).saturating_sub(late) + u64::from(is_insert);
            let keys = self.keys();
            let documents = Documents {
                fingerprints: keys.iter().map(|(value, _)| Fingerprint(*value)).collect(),
                ids: keys.iter().map(|(_, id)| id.clone()).collect(),
            };
            let outcome = self.scene.change_all(&epochs, kind, version, documents);
            let changed: BTreeSet<u32> = outcome.await.changed.into_iter().collect();
            let (expected, _) = self.model.change(keys, version, is_insert);
            assert_eq!(changed, if counts { expected } else { BTreeSet::new() });
        }
    }

    fn keys(&mut self) -> BTreeSet<Key> {
        let random = &mut self.random;
        let mut key = || {
            let value = u64::from(HOME.0) << 56 | random.u64(..20);
            (value, ["", "a", "b"][random.usize(..3)].to_owned())
        };
        (0..8).map(|_| key()).collect()
    }

    /// Compares the tables with the model, and with those that are made now.
    fn check(&self) {
        let Engine { corpora, store, .. } = &*self.scene.engine;
        let corpus = corpora.get(self.scene.corpus).unwrap();
        self.model.check(&corpus);
        let (anew, unread) = NodeCorpora::load(store, ShardSet::from_iter([HOME]));
        assert!(unread.is_empty());
        let anew = anew.get(self.scene.corpus).unwrap();
        let (made, anew) = (corpus.read(HOME).unwrap(), anew.read(HOME).unwrap());
        let (Some(made), Some(anew)) = (made, anew) else {
            assert!(self.model.0.values().all(|(_, live)| !live));
            return;
        };
        assert_eq!(made.counts(), anew.counts());
        assert_eq!(made.repeated().len(), anew.repeated().len());
        assert!(anew.is_bare() || !made.is_bare());
        for table in 0..corpus.tables().unwrap().len() {
            let entries = |shard: &Shard| BTreeSet::from_iter(shard.entries(table));
            assert_eq!(entries(&made), entries(&anew));
        }
    }
}
