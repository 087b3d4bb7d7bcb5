//! Documents that only some of their shards have: `simshard cluster scrub` compares shards with each other.

use std::collections::BTreeSet;

use simshard_client::Fingerprint;
use simshard_cluster::{FileKeyValues, recorded_corpora, registered_stores};
use simshard_proto::shard::v1 as pb;
use simshard_testkit::{End, Oracle, ProcessCluster, Shape, until_some};
use simshard_topology::replication::StoreId;
use simshard_topology::{ShardId, ShardSet};
use tokio::task::block_in_place;
use tonic::Status;

use super::half_written::{stub, write_in};
use super::stores::check_stores;
use super::{Document, NODES, Scrubbed, named, scrub, shards};
use crate::load::create;
use crate::records::records;
use crate::replicas::{change, check, documents};

/// A document, and two of its shards that differ in it.
type Difference = (Document, ShardId, ShardId);

/// What was printed of documents.
fn differences(scrubbed: &Scrubbed) -> BTreeSet<Difference> {
    let mut all = BTreeSet::new();
    for line in scrubbed
        .between
        .iter()
        .filter(|line| line["between"].is_array())
    {
        let text = |field: &str| line[field].as_str().unwrap();
        let shard = |place: usize| {
            let shard = line["between"][place].as_str().unwrap();
            ShardId(u8::from_str_radix(shard, 16).unwrap())
        };
        let document = (text("fingerprint").parse().unwrap(), text("id").to_owned());
        all.insert((document, shard(0), shard(1)));
    }
    all
}

fn repaired(scrubbed: &Scrubbed) -> u64 {
    let rows = scrubbed.between.iter();
    rows.filter(|line| line["with"].is_string())
        .filter_map(|line| line["repaired"].as_u64())
        .sum()
}

/// What differs between the lowest shard of each document and the others, if one of its shards was changed.
fn expected(
    documents: &[Document],
    changed: impl Fn(&BTreeSet<ShardId>) -> ShardId,
) -> BTreeSet<Difference> {
    let mut expected = BTreeSet::new();
    for document in documents {
        let shards = shards(document.0);
        let lowest = *shards.first().unwrap();
        let is_changed = |shard: ShardId| shard == changed(&shards);
        for &other in shards.range(lowest..).skip(1) {
            if is_changed(lowest) != is_changed(other) {
                expected.insert((document.clone(), lowest, other));
            }
        }
    }
    expected
}

fn lowest(shards: &BTreeSet<ShardId>) -> ShardId {
    *shards.first().unwrap()
}

fn highest(shards: &BTreeSet<ShardId>) -> ShardId {
    *shards.last().unwrap()
}

/// Changes each document in one of its shards, on the node that is first in sync there: as a router does that dies.
async fn half_write(
    cluster: &ProcessCluster,
    kind: pb::ChangeKind,
    documents: &[Document],
    changed: impl Fn(&BTreeSet<ShardId>) -> ShardId,
) {
    let records = records(cluster).await;
    for document in documents {
        let shard = changed(&shards(document.0));
        let node = node_of(cluster, records[&shard].in_sync[0].store).await;
        let only = ShardSet::from_iter([shard]);
        write_in(cluster, node, kind, std::slice::from_ref(document), only).await;
    }
}

/// The number of the node of a store.
async fn node_of(cluster: &ProcessCluster, store: StoreId) -> usize {
    let keys = FileKeyValues::at(cluster.metadata_file());
    let stores = registered_stores(&keys).await.unwrap();
    let store = stores.iter().find(|other| other.id == store).unwrap();
    let number: usize = store.node.as_str()[1..].parse().unwrap();
    number - 1
}

/// Documents of which one shard was changed.
struct Halves {
    low: Vec<Document>,
    high: Vec<Document>,
    removed_low: Vec<Document>,
    removed_high: Vec<Document>,
}

impl Halves {
    /// Inserts new documents in one of their shards, and removes stored ones in one of theirs.
    async fn write(cluster: &ProcessCluster, stored: &[Document]) -> Self {
        let halves = Self {
            low: named("low", 2),
            high: named("high", 3),
            removed_low: stored[..20].to_vec(),
            removed_high: stored[20..40].to_vec(),
        };
        let (insert, remove) = (pb::ChangeKind::Insert, pb::ChangeKind::Remove);
        half_write(cluster, insert, &halves.low, lowest).await;
        half_write(cluster, insert, &halves.high, highest).await;
        half_write(cluster, remove, &halves.removed_low, lowest).await;
        half_write(cluster, remove, &halves.removed_high, highest).await;
        halves
    }

    fn differences(&self) -> BTreeSet<Difference> {
        let all = [
            expected(&self.low, lowest),
            expected(&self.high, highest),
            expected(&self.removed_low, lowest),
            expected(&self.removed_high, highest),
        ];
        all.into_iter().flatten().collect()
    }

    /// What is there once all shards have the newest state of each.
    fn heal(&self, oracle: &mut Oracle) {
        for (fingerprint, id) in self.low.iter().chain(&self.high) {
            oracle.insert(*fingerprint, id);
        }
        for (fingerprint, id) in self.removed_low.iter().chain(&self.removed_high) {
            oracle.remove(*fingerprint, id);
        }
    }
}

async fn heal(replicas: usize) {
    let shape = Shape::of(NODES).with_replicas(replicas);
    let mut cluster = ProcessCluster::start(shape);
    let client = cluster.client();
    create(&client).await;
    let mut oracle = Oracle::default();
    let stored = documents(1);
    change(&client, &mut oracle, &stored).await.unwrap();
    let shards = ["--only", "shards"];
    scrub(&cluster, "0", &shards).assert_agrees();

    let halves = Halves::write(&cluster, &stored).await;
    let damage = halves.differences();
    // They are too young to count.
    let young = scrub(&cluster, "3600", &shards);
    assert_eq!(
        (young.code, differences(&young)),
        (Some(0), BTreeSet::new())
    );
    // One at a time is enough.
    let one = [&shards[..], &["--most-differences", "1"]].concat();
    let found = scrub(&cluster, "0", &one);
    assert_eq!(
        (found.code, repaired(&found)),
        (Some(1), 0),
        "{}",
        found.said
    );
    assert_eq!(differences(&found), damage);
    let said = format!("shards differ in {} documents", damage.len());
    assert!(found.said.contains(&said), "{}", found.said);

    // What differs between replicas is healed, too (SB3).
    let healed = scrub(&cluster, "0", &[&shards[..], &["--repair"]].concat());
    assert_eq!(healed.code, Some(0), "{}", healed.said);
    assert_eq!(differences(&healed), damage);
    assert_eq!(repaired(&healed), damage.len() as u64);
    let after = scrub(&cluster, "0", &[]);
    assert_eq!(after.code, Some(0), "{}", after.said);
    assert_eq!(differences(&after), BTreeSet::new());
    assert_eq!(after.differences, BTreeSet::new());

    halves.heal(&mut oracle);
    check(&client, &oracle).await;
    if replicas == NODES {
        let records = records(&cluster).await;
        block_in_place(|| (0..NODES).for_each(|node| cluster.end_node(node, End::Killed)));
        check_stores(&cluster, &records, &oracle);
    }
}

/// SB3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_that_some_of_their_shards_lack_are_found_and_healed() {
    heal(1).await;
}

/// SB3: replicas that were not read get them, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_replicas_of_all_shards_are_healed() {
    heal(NODES).await;
}

/// Has a store compare a shard with another one. Answers the documents that differ.
async fn compare(
    cluster: &ProcessCluster,
    store: StoreId,
    [shard, other]: [ShardId; 2],
    repairs: bool,
) -> Result<BTreeSet<Document>, Status> {
    let keys = FileKeyValues::at(cluster.metadata_file());
    let corpora = recorded_corpora(&keys).await.unwrap();
    let request = pb::ScrubShardRequest {
        store: store.0.to_vec(),
        shard: shard.0.into(),
        compared_version: u64::MAX,
        repairs,
        most_differences: 0,
        other_shards: vec![other.0.into()],
        corpora: corpora.records().flat_map(|record| record.uid.0).collect(),
    };
    let mut stub = stub(cluster, node_of(cluster, store).await);
    let mut answers = stub.scrub_shard(request).await?.into_inner();
    let mut found = BTreeSet::new();
    while let Some(answer) = answers.message().await? {
        let all = answer.differences.into_iter();
        found.extend(all.map(|one| (Fingerprint(one.fingerprint), one.id)));
    }
    Ok(found)
}

/// SB3: two stores of the shard that has the document do not answer. One of them stays in its record, as it needs two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_not_all_stores_of_a_shard_have_goes_to_no_other_shard() {
    let cluster = ProcessCluster::start(Shape::of(5).with_replicas(3));
    create(&cluster.client()).await;
    let records = records(&cluster).await;
    let holders = |shard| records[&shard].in_sync.iter().map(|entry| entry.store);
    // None of the two holds the other shard.
    let found = documents(1).into_iter().find_map(|document| {
        let mut shards = shards(document.0).into_iter();
        let shard = shards.next()?;
        let is_apart = |other: &ShardId| {
            let mut silent = holders(shard).skip(1);
            silent.all(|store| !records[other].names(store))
        };
        Some((document, [shard, shards.find(is_apart)?]))
    });
    let (document, pair) = found.unwrap();
    let one = std::slice::from_ref(&document);
    half_write(&cluster, pb::ChangeKind::Insert, one, lowest).await;
    let reader = holders(pair[0]).next().unwrap();
    for silent in holders(pair[0]).skip(1) {
        cluster.freeze_node(node_of(&cluster, silent).await);
    }
    let repaired = compare(&cluster, reader, pair, true).await;
    assert!(repaired.is_err(), "{repaired:?}");
    let lacking = until_some("the shards are compared", async || {
        compare(&cluster, reader, pair, false).await.ok()
    });
    assert_eq!(lacking.await, BTreeSet::from([document]));
}
