//! The only replica of some shards is lost: another node begins them anew, and fills them with what the other shards have
//! of each document.

use std::collections::BTreeSet;
use std::process::Output;
use std::time::Duration;

use simshard_client::{Client, Documents, Fingerprint, Queries, SearchSpec};
use simshard_cluster::{FileKeyValues, registered_stores};
use simshard_simhash::{Layout, Tables};
use simshard_testkit::{End, Oracle, ProcessCluster, Running, Shape, binary, run, until};
use simshard_topology::ShardId;
use tokio::task::block_in_place;

use crate::force::assert_says;
use crate::load::create;
use crate::readiness::until_ready;
use crate::records::{forget_corpora, put_corpora_back, records};
use crate::replicas::{change, check, documents};

type Document = (Fingerprint, String);

/// The node that is lost. Some documents have their lowest shard there, and other ones too. Some have a lower one elsewhere.
const LOST: usize = 1;

/// The shards of a node, of a cluster with one replica of each.
async fn shards_of(cluster: &ProcessCluster, node: usize) -> BTreeSet<ShardId> {
    let keys = FileKeyValues::at(cluster.metadata_file());
    let stores = registered_stores(&keys).await.unwrap();
    let name = format!("n{}", node + 1);
    let store = stores.iter().find(|store| store.node.as_str() == name);
    let store = store.unwrap().id;
    let records = records(cluster).await.into_iter();
    let own = records.filter(|(_, record)| record.names(store));
    own.map(|(shard, _)| shard).collect()
}

/// Documents that have a shard other than these.
fn elsewhere(seed: u64, lost: &BTreeSet<ShardId>) -> Vec<Document> {
    let tables = Tables::new(Layout::default());
    let is_elsewhere = |document: &Document| {
        let mut shards = tables.document_shards(document.0).map(ShardId);
        shards.any(|shard| !lost.contains(&shard))
    };
    documents(seed).into_iter().filter(is_elsewhere).collect()
}

async fn remove(client: &Client, oracle: &mut Oracle, documents: &[Document]) {
    let (fingerprints, ids) = documents.iter().cloned().unzip();
    let keys = Queries::Fingerprints(fingerprints);
    client
        .remove("crawl", Documents { keys, ids })
        .await
        .unwrap();
    for (fingerprint, id) in documents {
        oracle.remove(*fingerprint, id);
    }
}

/// A command about a cluster, and its arguments.
fn command(cluster: &ProcessCluster, more: &[&str]) -> Vec<String> {
    let metadata = format!("file:{}", cluster.metadata_file().display());
    let args = [&["cluster"], more, &["--metadata", &metadata]].concat();
    args.into_iter().map(str::to_owned).collect()
}

fn ran(cluster: &ProcessCluster, more: &[&str]) -> Output {
    block_in_place(|| run(binary(), command(cluster, more), ""))
}

fn rebuild(cluster: &ProcessCluster, more: &[&str]) -> Output {
    ran(cluster, &[&["force", "--rebuild"], more].concat())
}

/// Begins the lost shards anew, and is killed before it fills them.
async fn begin_only(cluster: &ProcessCluster, args: &[&str]) {
    let args = [
        &["force", "--rebuild", "--old-writes-seconds", "3600"],
        args,
    ]
    .concat();
    let begun = Running::start(binary(), command(cluster, &args));
    until("shards begin anew", async || {
        let records = records(cluster).await;
        records.values().any(|record| record.is_rebuilt())
    })
    .await;
    begun.kill();
}

/// FO4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_that_are_lost_are_filled_from_the_others() {
    let mut cluster = ProcessCluster::start(Shape::of(3));
    let client = cluster.client().with_timeout(Duration::from_secs(5));
    create(&client).await;
    let lost = shards_of(&cluster, LOST).await;
    let [first, second, third] = [1, 2, 3].map(|seed| elsewhere(seed, &lost));
    let mut oracle = Oracle::default();
    change(&client, &mut oracle, &first).await.unwrap();
    remove(&client, &mut oracle, &first[..20]).await;
    let whole = rebuild(&cluster, &["--from", "n1"]);
    assert_says(&whole, 0, "nothing to do");

    block_in_place(|| cluster.end_node(LOST, End::Killed));
    cluster.lose_data(LOST);
    // It reaches the shards that are left.
    let refused = change(&client, &mut oracle.clone(), &second).await;
    refused.unwrap_err();
    let unsaid = rebuild(&cluster, &["--from", "n1"]);
    assert_says(&unsaid, 2, "add --stopped n2");
    let from = ["--from", "n1", "--stopped", "n2"];
    begin_only(&cluster, &from).await;
    // It takes changes, and answers no search.
    until("changes go on", async || {
        change(&client, &mut oracle, &third).await.is_ok()
    })
    .await;
    assert_eq!(change(&client, &mut oracle, &third).await.unwrap(), 0);
    let queries = oracle.documents().map(|(fingerprint, _)| fingerprint);
    let queries = Queries::Fingerprints(queries.collect());
    let refused = client.find_all("crawl", queries, SearchSpec::default());
    refused.await.unwrap_err();
    let resized = ran(&cluster, &["set-replication", "--replicas", "1", "--yes"]);
    assert_says(&resized, 1, "are being rebuilt");

    let rebuilt = [&from[..], &["--old-writes-seconds", "1"]].concat();
    // Without a record, the documents of a corpus are not read.
    let records = forget_corpora(&cluster).await;
    let refused = rebuild(&cluster, &rebuilt);
    assert_says(&refused, 1, "`simshard corpus recover`");
    put_corpora_back(&cluster, records).await;
    let filled = rebuild(&cluster, &rebuilt);
    assert_says(&filled, 0, "are filled by");
    change(&client, &mut oracle, &second).await.unwrap();
    check(&client, &oracle).await;
    assert_says(&rebuild(&cluster, &rebuilt), 0, "nothing to do");

    // The lost node comes back with an empty directory.
    block_in_place(|| cluster.start_node(LOST));
    until_ready(&cluster, LOST).await;
    check(&client, &oracle).await;
}

/// Else each pair of shards would wait for the dead nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_that_wait_for_dead_nodes_go_on_before_lost_ones_are_filled() {
    let mut cluster = ProcessCluster::start(Shape::of(4).with_replicas(3));
    let client = cluster.client().with_timeout(Duration::from_secs(5));
    create(&client).await;
    let held = shards_of(&cluster, 3).await;
    let lost = ShardId::all().filter(|shard| !held.contains(shard));
    let mut oracle = Oracle::default();
    let documents = elsewhere(7, &lost.collect());
    change(&client, &mut oracle, &documents).await.unwrap();
    let refuses = |cluster: &ProcessCluster, stopped: &str| {
        let refused = rebuild(cluster, &["--from", "n4", "--stopped", stopped]);
        let advice = "go on alone first, by `simshard cluster force --from NODE";
        assert_says(&refused, 2, advice);
    };
    block_in_place(|| (0..2).for_each(|node| cluster.end_node(node, End::Killed)));
    // None is lost yet, and some wait.
    refuses(&cluster, "n1,n2");
    block_in_place(|| cluster.end_node(2, End::Killed));
    refuses(&cluster, "n1,n2,n3");
    let from = ["--from", "n4", "--stopped", "n1,n2,n3"];
    let forced = ran(&cluster, &[&["force"], &from[..]].concat());
    assert_says(&forced, 0, "n4");
    let filled = rebuild(
        &cluster,
        &[&from[..], &["--old-writes-seconds", "1"]].concat(),
    );
    assert_says(&filled, 0, "are filled by");
    check(&client, &oracle).await;
}
