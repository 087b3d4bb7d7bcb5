//! Replicas that differ are found by `simshard cluster scrub`, and healed with `--repair`, while all goes on. What was
//! acknowledged stays, and no document that was removed comes back.

mod between;
mod floors;
mod half_written;
mod incomplete;
pub(crate) mod stores;

use std::collections::BTreeSet;
use std::process::Output;

use serde_json::Value;
use simshard_client::Fingerprint;
use simshard_simhash::{Layout, Tables};
use simshard_storage::ChangeKind;
use simshard_testkit::{End, Oracle, ProcessCluster, Shape, binary, run};
use simshard_topology::ShardId;
use tokio::task::block_in_place;

use crate::load::create;
use crate::records::{records, until_in_sync};
use crate::replicas::{change, check, documents};
use stores::{check_stores, edit};

const NODES: usize = 3;

type Document = (Fingerprint, String);

/// A document that replicas of a shard have different states of, and which of the nodes have it live.
type Difference = (ShardId, Document, BTreeSet<String>);

/// What a scrub printed and said.
struct Scrubbed {
    code: Option<i32>,
    differences: BTreeSet<Difference>,
    /// Shards, how they are, and elements that were compared.
    shards: Vec<(String, String, u64)>,
    repaired: u64,
    /// What is printed of shards that were compared with each other.
    between: Vec<Value>,
    said: String,
}

impl Scrubbed {
    /// Whether all shards are so.
    fn are_all(&self, state: &str) -> bool {
        self.shards.iter().all(|(_, other, _)| other == state)
    }

    fn compared(&self) -> u64 {
        self.shards.iter().map(|(.., compared)| compared).sum()
    }

    #[track_caller]
    fn assert_agrees(&self) {
        assert_eq!(self.code, Some(0), "{}", self.said);
        assert_eq!(self.differences, BTreeSet::new());
        assert!(self.are_all("agrees"), "{:?}", self.shards);
    }
}

pub(crate) fn tell(cluster: &ProcessCluster, more: &[&str]) -> Output {
    block_in_place(|| command(cluster, more))
}

fn command(cluster: &ProcessCluster, more: &[&str]) -> Output {
    let metadata = format!("file:{}", cluster.metadata_file().display());
    let args = ["cluster", "scrub", "--metadata", &metadata];
    run(binary(), [&args[..], more].concat(), "")
}

/// Scrubs all shards, and compares what was changed this many seconds ago.
fn scrub(cluster: &ProcessCluster, settled: &str, more: &[&str]) -> Scrubbed {
    let settled = ["--json", "--at-once", "4", "--settled-seconds", settled];
    let output = tell(cluster, &[&settled[..], more].concat());
    let mut scrubbed = Scrubbed {
        code: output.status.code(),
        differences: BTreeSet::new(),
        shards: Vec::new(),
        repaired: 0,
        between: Vec::new(),
        said: String::from_utf8(output.stderr).unwrap(),
    };
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        let text = |field: &str| value[field].as_str().unwrap().to_owned();
        let is_of_corpus = value["corpus"].is_string() && value["state"].is_string();
        if value["with"].is_string() || value["between"].is_array() || is_of_corpus {
            scrubbed.between.push(value);
            continue;
        }
        if value["shards"].is_string() {
            let compared = value["compared"].as_u64().unwrap();
            scrubbed.repaired += value["repaired"].as_u64().unwrap();
            scrubbed
                .shards
                .push((text("shards"), text("state"), compared));
            continue;
        }
        let states = value["states"].as_object().unwrap().iter();
        let live = states.filter(|(_, state)| state["live"].as_bool() == Some(true));
        let shard = u8::from_str_radix(&text("shard"), 16).unwrap();
        let document = (text("fingerprint").parse().unwrap(), text("id"));
        let live = live.map(|(node, _)| node.clone()).collect();
        let is_new = scrubbed
            .differences
            .insert((ShardId(shard), document, live));
        assert!(is_new, "{line} comes twice");
    }
    scrubbed
}

/// The shards of a document.
pub(crate) fn shards(fingerprint: Fingerprint) -> BTreeSet<ShardId> {
    let tables = Tables::new(Layout::default());
    tables.document_shards(fingerprint).map(ShardId).collect()
}

/// These documents differ in each of their shards, and are live on these nodes.
fn expected(documents: &[Document], live: &[&str]) -> BTreeSet<Difference> {
    let live: BTreeSet<String> = live.iter().map(|&node| node.to_owned()).collect();
    let of_document = |document: &Document| {
        let (document, live) = (document.clone(), live.clone());
        let shards = shards(document.0).into_iter();
        shards.map(move |shard| (shard, document.clone(), live.clone()))
    };
    documents.iter().flat_map(of_document).collect()
}

/// Documents that the tests name.
fn named(name: &str, seed: u64) -> Vec<Document> {
    let documents = documents(seed).into_iter().take(20);
    documents
        .map(|(fingerprint, id)| (fingerprint, format!("{name} {id}")))
        .collect()
}

/// SB1, SB2: the data of nodes that do not run is changed, on some of them only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_that_some_replicas_lack_are_found_and_healed() {
    let mut cluster = ProcessCluster::start(Shape::of(NODES).with_replicas(NODES).with_hot(2));
    let client = cluster.client();
    create(&client).await;
    let mut oracle = Oracle::default();
    let stored = documents(1);
    change(&client, &mut oracle, &stored).await.unwrap();
    scrub(&cluster, "0", &[]).assert_agrees();

    // No node is left that could take another one for dead.
    block_in_place(|| (0..NODES).for_each(|node| cluster.end_node(node, End::Killed)));
    let before = records(&cluster).await;
    let (added, lost) = (named("added", 2), named("lost", 3));
    // The first half was removed on most nodes, the other on one.
    let (removed, removed_alone) = (&stored[..20], &stored[20..40]);
    edit(&cluster, &before, 1, ChangeKind::Insert, &added);
    for node in [0, 2] {
        edit(&cluster, &before, node, ChangeKind::Insert, &lost);
        edit(&cluster, &before, node, ChangeKind::Remove, removed);
    }
    edit(&cluster, &before, 2, ChangeKind::Remove, removed_alone);
    block_in_place(|| (0..NODES).for_each(|node| cluster.start_node(node)));

    let damage: BTreeSet<Difference> = [
        expected(&added, &["n2"]),
        expected(&lost, &["n1", "n3"]),
        expected(removed, &["n2"]),
        expected(removed_alone, &["n1", "n2"]),
    ]
    .into_iter()
    .flatten()
    .collect();
    // They are too young to count.
    scrub(&cluster, "3600", &[]).assert_agrees();
    let found = scrub(&cluster, "0", &[]);
    assert_eq!((found.code, found.repaired), (Some(1), 0), "{}", found.said);
    let said = format!("replicas differ in {} documents", damage.len());
    assert!(found.said.contains(&said), "{}", found.said);
    assert_eq!(found.differences, damage);

    let healed = scrub(&cluster, "0", &["--repair"]);
    assert_eq!(healed.code, Some(0), "{}", healed.said);
    assert_eq!(healed.differences, damage);
    assert_eq!(healed.repaired, damage.len() as u64);
    scrub(&cluster, "0", &[]).assert_agrees();
    // No replica left and copied the shard.
    assert_eq!(records(&cluster).await, before);

    for (fingerprint, id) in added.iter().chain(&lost) {
        oracle.insert(*fingerprint, id);
    }
    for (fingerprint, id) in removed.iter().chain(removed_alone) {
        oracle.remove(*fingerprint, id);
    }
    check(&client, &oracle).await;
    block_in_place(|| (0..NODES).for_each(|node| cluster.end_node(node, End::Killed)));
    check_stores(&cluster, &before, &oracle);
}

/// A node holds few of the documents that differ in memory: the others are found once these are repaired.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_documents_than_a_node_may_hold_are_healed_in_turns() {
    let mut cluster = ProcessCluster::start(Shape::of(2).with_replicas(2));
    let client = cluster.client();
    create(&client).await;
    let mut oracle = Oracle::default();
    change(&client, &mut oracle, &documents(1)).await.unwrap();
    block_in_place(|| (0..2).for_each(|node| cluster.end_node(node, End::Killed)));
    let before = records(&cluster).await;
    // They share a fingerprint, and so their shards.
    let lost: Vec<Document> = (0..10)
        .map(|number| (Fingerprint(7), number.to_string()))
        .collect();
    edit(&cluster, &before, 1, ChangeKind::Insert, &lost);
    block_in_place(|| (0..2).for_each(|node| cluster.start_node(node)));

    let few = ["--most-differences", "4"];
    let found = scrub(&cluster, "0", &few);
    assert_eq!(found.code, Some(1), "{}", found.said);
    assert!(
        found.said.contains("replicas differ in more than"),
        "{}",
        found.said
    );
    assert_eq!(found.differences.len(), 4 * shards(Fingerprint(7)).len());
    let healed = scrub(&cluster, "0", &[&few[..], &["--repair"]].concat());
    assert_eq!(healed.code, Some(0), "{}", healed.said);
    assert_eq!(healed.differences, expected(&lost, &["n2"]));
    scrub(&cluster, "0", &[]).assert_agrees();
    for (fingerprint, id) in &lost {
        oracle.insert(*fingerprint, id);
    }
    check(&client, &oracle).await;
}

/// A node that dies leaves the shards, and the others are compared. Where no step is possible, nothing is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_are_left_are_compared_once_a_node_has_died() {
    let mut cluster = ProcessCluster::start(Shape::of(NODES).with_replicas(NODES));
    let client = cluster.client();
    create(&client).await;
    change(&client, &mut Oracle::default(), &documents(1))
        .await
        .unwrap();
    block_in_place(|| cluster.end_node(0, End::Killed));
    scrub(&cluster, "0", &["--shards", "00-0f"]).assert_agrees();
    until_in_sync(&cluster, NODES - 1).await;
    block_in_place(|| cluster.end_node(1, End::Killed));
    let none = scrub(&cluster, "0", &["--shards", "00"]);
    assert_eq!(none.code, Some(1), "{}", none.said);
    let said = "shards 00 were not compared";
    assert!(none.said.contains(said), "{}", none.said);
    assert!(none.are_all("not compared"), "{:?}", none.shards);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_with_one_replica_has_nothing_to_compare() {
    let cluster = ProcessCluster::start(Shape::of(1));
    let alone = scrub(&cluster, "0", &["--repair"]);
    assert_eq!(alone.code, Some(0), "{}", alone.said);
    let row = ("00-ff".to_owned(), "one replica".to_owned(), 0);
    assert_eq!(alone.shards, [row]);
}
