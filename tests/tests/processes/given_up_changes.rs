//! Changes that are given up while the link of their router to a node hangs: what others do meanwhile, and is
//! acknowledged, stays, however the link recovers.
//!
//! Two routers write to three nodes with data directories. Twenty rounds of each kind, or two hundred with
//! `SIMSHARD_LONG`.

use std::collections::BTreeSet;

use futures_util::{StreamExt, stream};
use simshard_client::{Client, Documents, Fingerprint, Queries, v1};
use simshard_cluster::{FileStore, MetadataStore};
use simshard_simhash::{Layout, Tables};
use simshard_testkit::{Process, ProcessCluster, StallingProxy, is_long};
use simshard_topology::{ShardId, ShardMap};
use tokio::task::block_in_place;

const CORPUS: &str = "c";

/// The node whose link hangs.
const HANGING: &str = "n1";

/// Writes on a link that was stalled, after which what was kept on it has been dealt with, and its outcome sent. Large
/// ones take turns on two connections.
const LATER_WRITES: usize = 6;

/// Documents of a request that is large to the router, which sends it on a connection for large ones.
const LARGE_DOCUMENTS: usize = 1100;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Insert,
    Remove,
}

/// How a change is sent that is given up.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// On the connection for small changes.
    Small,
    /// On one for large changes.
    Large,
    Stream,
}

/// Router A, whose link to a node can hang, and router B, whose links are fine.
struct Scene {
    a: Client,
    b: Client,
    link: StallingProxy,
    map: ShardMap,
    random: fastrand::Rng,
    /// What must be there.
    live: BTreeSet<Fingerprint>,
    _router: Process,
    _cluster: ProcessCluster,
}

impl Scene {
    async fn start() -> Self {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let cluster = ProcessCluster::start_by_layout(3);
        let b = cluster.client();
        let create = v1::CreateCorpusRequest {
            name: CORPUS.to_owned(),
            ..v1::CreateCorpusRequest::default()
        };
        b.create_corpus(create).await.unwrap();
        let mut nodes = cluster.node_addresses().to_vec();
        let link = StallingProxy::start(nodes[0]);
        nodes[0] = link.address();
        let router = cluster.start_router_to(&nodes);
        let layout = FileStore::open(cluster.layout()).await.unwrap();
        Self {
            a: Client::new(router.url()).unwrap(),
            b,
            link,
            map: layout.layout().await.unwrap().map().clone(),
            random: fastrand::Rng::with_seed(seed),
            live: BTreeSet::new(),
            _router: router,
            _cluster: cluster,
        }
    }

    /// `count` fingerprints, stored on the node whose link hangs, and on others.
    fn fingerprints(&mut self, count: usize) -> Vec<Fingerprint> {
        let random = std::iter::repeat_with(|| Fingerprint(self.random.u64(..)));
        let (map, tables) = (&self.map, Tables::new(Layout::default()));
        let is_on_several = |fingerprint: &Fingerprint| {
            let on: BTreeSet<&str> = shards(&tables, *fingerprint)
                .into_iter()
                .map(|shard| map.owner(shard).as_str())
                .collect();
            on.contains(HANGING) && on.len() > 1
        };
        random.filter(is_on_several).take(count).collect()
    }

    /// Changes documents through router A, and gives up once the change is on the link that hangs.
    async fn give_up(&self, kind: Kind, way: Way, fingerprints: &[Fingerprint]) {
        self.link.stall();
        let (client, documents) = (self.a.clone(), columns(fingerprints));
        let change = tokio::spawn(async move {
            match (way, kind) {
                (Way::Stream, Kind::Insert) => {
                    let batches = stream::iter([documents]);
                    let answers = client.insert_stream(CORPUS, batches);
                    answers
                        .for_each(async |answer| assert!(answer.is_ok()))
                        .await;
                }
                (Way::Stream, Kind::Remove) => {
                    let batches = stream::iter([documents]);
                    let answers = client.remove_stream(CORPUS, batches);
                    answers
                        .for_each(async |answer| assert!(answer.is_ok()))
                        .await;
                }
                (Way::Small | Way::Large, Kind::Insert) => {
                    client.insert(CORPUS, documents).await.unwrap();
                }
                (Way::Small | Way::Large, Kind::Remove) => {
                    client.remove(CORPUS, documents).await.unwrap();
                }
            }
        });
        block_in_place(|| self.link.until_it_keeps_some());
        change.abort();
        assert!(change.await.unwrap_err().is_cancelled());
        // On the same connection: the router has heard of it.
        self.a.list_corpora().await.unwrap();
    }

    /// Lets the link recover, and waits until what was kept has come of it what may.
    async fn recover(&mut self, way: Way) {
        self.link.resume();
        for _ in 0..LATER_WRITES {
            let later = self.fingerprints(documents(way));
            self.a.insert(CORPUS, columns(&later)).await.unwrap();
            self.live.extend(later);
        }
    }

    /// Sees to it that all shards of all documents are as they must be.
    async fn check(&self, round: &str) {
        let shown = self.b.get_corpus(CORPUS).await.unwrap();
        let live = self.live.len() as u64;
        assert_eq!(shown.document_count, Some(live), "{round}");
        let tables = Tables::new(Layout::default());
        let copies = self
            .live
            .iter()
            .map(|one| shards(&tables, *one).len() as u64);
        let stored = shown.nodes.iter().flat_map(|node| &node.document_counts);
        assert_eq!(stored.sum::<u64>(), copies.sum::<u64>(), "{round}");
    }
}

fn shards(tables: &Tables, fingerprint: Fingerprint) -> BTreeSet<ShardId> {
    tables.document_shards(fingerprint).map(ShardId).collect()
}

fn columns(fingerprints: &[Fingerprint]) -> Documents {
    Documents {
        keys: Queries::Fingerprints(fingerprints.to_vec()),
        ids: Vec::new(),
    }
}

/// Rounds, with the ways to send what is given up in turn.
fn rounds() -> impl Iterator<Item = (usize, Way)> {
    let rounds = if is_long() { 200 } else { 20 };
    let ways = [Way::Small, Way::Large, Way::Small, Way::Stream];
    (0..rounds).zip(ways.into_iter().cycle())
}

fn documents(way: Way) -> usize {
    match way {
        Way::Small | Way::Stream => 1,
        Way::Large => LARGE_DOCUMENTS,
    }
}

/// CH1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_insert_that_was_given_up_does_not_undo_a_removal() {
    let mut scene = Scene::start().await;
    for (round, way) in rounds() {
        let documents = scene.fingerprints(documents(way));
        scene.give_up(Kind::Insert, way, &documents).await;
        scene.b.remove(CORPUS, columns(&documents)).await.unwrap();
        scene.recover(way).await;
        scene.check(&format!("round {round}, {way:?}")).await;
    }
}

/// CH1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_that_was_given_up_does_not_undo_an_insert() {
    let mut scene = Scene::start().await;
    for (round, way) in rounds() {
        let documents = scene.fingerprints(documents(way));
        scene.b.insert(CORPUS, columns(&documents)).await.unwrap();
        scene.give_up(Kind::Remove, way, &documents).await;
        scene.b.insert(CORPUS, columns(&documents)).await.unwrap();
        scene.live.extend(&documents);
        scene.recover(way).await;
        scene.check(&format!("round {round}, {way:?}")).await;
    }
}

/// CH1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_given_up_repeated_elsewhere_and_removed_there_stays_away() {
    let mut scene = Scene::start().await;
    for (round, way) in rounds() {
        let documents = scene.fingerprints(documents(way));
        scene.give_up(Kind::Insert, way, &documents).await;
        scene.b.insert(CORPUS, columns(&documents)).await.unwrap();
        let removed = scene.b.remove(CORPUS, columns(&documents)).await.unwrap();
        assert_eq!(removed, documents.len() as u64);
        scene.recover(way).await;
        scene.check(&format!("round {round}, {way:?}")).await;
    }
}

/// A change in flight is not called back: a caller that waits is answered, above what others did.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_caller_waits_passes_what_others_did_meanwhile() {
    let mut scene = Scene::start().await;
    let documents = scene.fingerprints(1);
    scene.link.stall();
    let (a, waiting) = (scene.a.clone(), columns(&documents));
    let insert = tokio::spawn(async move { a.insert(CORPUS, waiting).await });
    block_in_place(|| scene.link.until_it_keeps_some());
    scene.b.remove(CORPUS, columns(&documents)).await.unwrap();
    scene.link.resume();
    insert.await.unwrap().unwrap();
    scene.live.extend(&documents);
    scene.check("once it is answered").await;
}
