//! Scrubs beside inserts and removes: these are no differences, and what a router left half-written is one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use simshard_client::{Client, Documents, Fingerprint, Queries};
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::shard_service_client::ShardServiceClient;
use simshard_simhash::Layout;
use simshard_testkit::{End, Oracle, ProcessCluster, Shape, is_long, until};
use simshard_topology::{ShardSet, Version};
use tokio::task::{JoinHandle, block_in_place};
use tonic::transport::{Channel, Endpoint};

use super::stores::check_stores;
use super::{Document, NODES, expected, named, scrub};
use crate::load::{CORPUS, create};
use crate::records::records;
use crate::replicas::{change, check, documents};

/// Documents of a writer, which insert and remove them again and again.
const DOCUMENTS: u64 = 400;

/// Changes until it ends, each acknowledged.
struct Writers {
    is_over: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    tasks: Vec<JoinHandle<Vec<Document>>>,
}

impl Writers {
    fn start(client: &Client) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicU64::new(0));
        let tasks = (0..2).map(|writer| {
            let (client, is_over, done) = (client.clone(), Arc::clone(&is_over), Arc::clone(&done));
            tokio::spawn(write(client, writer, is_over, done))
        });
        Self {
            tasks: tasks.collect(),
            is_over,
            done,
        }
    }

    async fn until_more(&self, more: u64) {
        let enough = self.done.load(Ordering::Relaxed) + more;
        until("documents are changed", async || {
            self.done.load(Ordering::Relaxed) >= enough
                || self.tasks.iter().any(JoinHandle::is_finished)
        })
        .await;
    }

    /// The documents that are there.
    async fn end(self) -> Vec<Document> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut live = Vec::new();
        for task in self.tasks {
            live.extend(task.await.unwrap());
        }
        live
    }
}

fn columns(documents: &[Document]) -> Documents {
    let (fingerprints, ids) = documents.iter().cloned().unzip();
    Documents {
        keys: Queries::Fingerprints(fingerprints),
        ids,
    }
}

/// Inserts and removes documents of one's own. Answers those that are there at the end.
async fn write(
    client: Client,
    writer: u64,
    is_over: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
) -> Vec<Document> {
    let document = |number: u64| {
        let spread = (writer * DOCUMENTS + number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (Fingerprint(spread), format!("w{writer}-{number}"))
    };
    let all: Vec<Document> = (0..DOCUMENTS).map(document).collect();
    let mut live = BTreeSet::new();
    let mut random = fastrand::Rng::with_seed(writer);
    while !is_over.load(Ordering::Relaxed) {
        let first = random.usize(..all.len() - 40);
        let some = &all[first..first + random.usize(1..40)];
        if random.bool() {
            client.insert(CORPUS, columns(some)).await.unwrap();
            live.extend(some.iter().cloned());
        } else {
            client.remove(CORPUS, columns(some)).await.unwrap();
            live.retain(|document| !some.contains(document));
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
    live.into_iter().collect()
}

/// The interface of a node.
pub(super) fn stub(cluster: &ProcessCluster, node: usize) -> ShardServiceClient<Channel> {
    let address = format!("http://{}", cluster.node_addresses()[node]);
    ShardServiceClient::new(Endpoint::from_shared(address).unwrap().connect_lazy())
}

/// Changes documents on one node only, as a router does that is killed between two nodes.
async fn half_write(
    cluster: &ProcessCluster,
    node: usize,
    kind: pb::ChangeKind,
    documents: &[Document],
) {
    write_in(cluster, node, kind, documents, ShardSet::ALL).await;
}

/// Changes documents in some shards on one node only.
pub(super) async fn write_in(
    cluster: &ProcessCluster,
    node: usize,
    kind: pb::ChangeKind,
    documents: &[Document],
    shards: ShardSet,
) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let version = Version::of_wall_time(now.as_nanos() as u64);
    let changed = answer_of(cluster, node, kind, documents, shards, version).await;
    assert_eq!(
        (changed.refused_shards, changed.newer_documents),
        (vec![], vec![])
    );
}

/// What one node answers to a change of documents in some shards.
pub(super) async fn answer_of(
    cluster: &ProcessCluster,
    node: usize,
    kind: pb::ChangeKind,
    documents: &[Document],
    shards: ShardSet,
    version: Version,
) -> pb::Changed {
    let mut stub = stub(cluster, node);
    let list = pb::ListCorporaRequest {
        node: format!("n{}", node + 1),
        ..pb::ListCorporaRequest::default()
    };
    let corpora = stub.list_corpora(list).await.unwrap().into_inner().corpora;
    let mut records = records(cluster).await;
    records.retain(|shard, _| shards.contains(*shard));
    let layout = Layout::default();
    let change = pb::Change {
        target: Some(pb::Target {
            corpus_uid: corpora[0].corpus_uid.clone(),
            blocks: layout.blocks(),
            distance: layout.distance(),
            epoch_numbers: records.values().map(|record| record.epoch.number).collect(),
            ..pb::Target::default()
        }),
        kind: kind.into(),
        shards: records.keys().map(|shard| shard.0.into()).collect(),
        fingerprints: documents
            .iter()
            .map(|(fingerprint, _)| fingerprint.0)
            .collect(),
        ids: documents.iter().map(|(_, id)| id.clone()).collect(),
        version: version.0,
        beyond_clock: false,
        repairs: false,
    };
    let item = pb::WorkItem {
        sequence: 1,
        timeout_micros: 10_000_000,
        work: Some(pb::work_item::Work::Change(Box::new(change))),
    };
    let request = tokio_stream::once(pb::WorkRequest { items: vec![item] });
    let mut answers = stub.work(request).await.unwrap().into_inner();
    let outcome = answers.message().await.unwrap().unwrap().outcomes.remove(0);
    let Some(pb::work_outcome::Outcome::Changed(changed)) = outcome.outcome else {
        panic!("{outcome:?}");
    };
    changed
}

/// Without an age, changes that are on their way are seen too. So that is for a cluster in which none are.
fn age(writers: Option<&Writers>) -> &'static str {
    writers.map_or("0", |_| "1")
}

/// What is on its way is left out, until it is old enough.
async fn check_agree(cluster: &ProcessCluster, writers: Option<&Writers>, stored: usize) {
    let compared = |age| {
        let scrubbed = scrub(cluster, age, &[]);
        scrubbed.assert_agrees();
        scrubbed.compared()
    };
    if writers.is_none() {
        assert!(compared("0") > stored as u64);
    }
    until("documents are a second old", async || {
        compared("1") > stored as u64
    })
    .await;
}

/// SB1, SB2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_on_their_way_are_no_differences_and_half_written_ones_are_healed_beside_them() {
    let mut cluster = ProcessCluster::start(Shape::of(NODES).with_replicas(NODES).with_hot(2));
    let client = cluster.client();
    create(&client).await;
    let mut oracle = Oracle::default();
    let stored = documents(1);
    change(&client, &mut oracle, &stored).await.unwrap();
    let before = records(&cluster).await;
    // On a busy machine a write may time out, and is half-written then. So only the long mode writes meanwhile.
    let writers = is_long().then(|| Writers::start(&client));
    if let Some(writers) = &writers {
        writers.until_more(100).await;
    }
    check_agree(&cluster, writers.as_ref(), stored.len()).await;

    let (added, removed) = (named("added", 2), &stored[..20]);
    half_write(&cluster, 0, pb::ChangeKind::Insert, &added).await;
    half_write(&cluster, 2, pb::ChangeKind::Remove, removed).await;
    let damage: BTreeSet<_> = [expected(&added, &["n1"]), expected(removed, &["n1", "n2"])]
        .into_iter()
        .flatten()
        .collect();
    let age = age(writers.as_ref());
    let half_written = Instant::now();
    until("what is half-written is a second old", async || {
        age == "0" || half_written.elapsed() > Duration::from_secs(1)
    })
    .await;
    let found = scrub(&cluster, age, &[]);
    assert_eq!(found.code, Some(1), "{}", found.said);
    assert_eq!(found.differences, damage);
    let healed = scrub(&cluster, age, &["--repair"]);
    assert_eq!(
        (healed.code, healed.repaired),
        (Some(0), damage.len() as u64),
        "{}",
        healed.said
    );
    assert_eq!(healed.differences, damage);
    if let Some(writers) = &writers {
        writers.until_more(100).await;
    }
    scrub(&cluster, age, &[]).assert_agrees();

    let written = match writers {
        Some(writers) => writers.end().await,
        None => Vec::new(),
    };
    for (fingerprint, id) in written.iter().chain(&added) {
        oracle.insert(*fingerprint, id);
    }
    for (fingerprint, id) in removed {
        oracle.remove(*fingerprint, id);
    }
    check(&client, &oracle).await;
    scrub(&cluster, "0", &[]).assert_agrees();
    assert_eq!(records(&cluster).await, before);
    block_in_place(|| (0..NODES).for_each(|node| cluster.end_node(node, End::Killed)));
    check_stores(&cluster, &before, &oracle);
}
