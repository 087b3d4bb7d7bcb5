//! Tombstones go from all nodes once their replicas agree, and no document that was removed comes back.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use simshard_client::{Documents, Queries};
use simshard_proto::shard::v1 as pb;
use simshard_testkit::{End, Oracle, ProcessCluster, Shape, until};
use simshard_topology::{ShardId, ShardSet, Version};
use tokio::task::block_in_place;

use super::half_written::answer_of;
use super::stores::{check_stores, elements};
use super::{Document, NODES, scrub, shards};
use crate::load::{CORPUS, create};
use crate::records::{records, until_in_sync};
use crate::replicas::{change, check, documents};

/// Looks for tombstones that are this old, as often.
const SECONDS: u32 = 2;

fn now() -> Version {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Version::of_wall_time(now.as_nanos() as u64)
}

/// Starts all nodes anew, which drop tombstones soon.
fn restart(cluster: &mut ProcessCluster) {
    let settings = cluster.folder().join("floors.toml");
    fs::write(&settings, format!("floor_seconds = {SECONDS}\n")).unwrap();
    let settings = settings.to_str().unwrap().to_owned();
    for node in 0..NODES {
        cluster.end_node(node, End::Killed);
        cluster.start_node_with(node, &["--config", &settings]);
    }
}

/// Waits until these shards are settled up to a version.
async fn until_settled(cluster: &ProcessCluster, shards: ShardSet, version: Version) {
    until("the shards are settled", async || {
        let records = records(cluster).await;
        shards
            .iter()
            .all(|shard| records[&shard].settled >= version)
    })
    .await;
}

fn shards_of(documents: &[Document]) -> ShardSet {
    let all = documents
        .iter()
        .flat_map(|(fingerprint, _)| shards(*fingerprint));
    all.collect::<BTreeSet<ShardId>>().into_iter().collect()
}

/// FL2, FD1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tombstones_go_and_what_was_removed_stays_away() {
    let mut cluster = ProcessCluster::start(Shape::of(NODES).with_replicas(NODES));
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    create(&client).await;
    let mut oracle = Oracle::default();
    let (stored, removed) = (documents(1), documents(2));
    change(&client, &mut oracle, &stored[..40]).await.unwrap();
    change(&client, &mut oracle, &removed).await.unwrap();
    let inserted = now();
    // A node is away while documents are removed, and their tombstones go.
    block_in_place(|| restart(&mut cluster));
    until_in_sync(&cluster, NODES).await;
    block_in_place(|| cluster.end_node(2, End::Killed));
    until_in_sync(&cluster, NODES - 1).await;
    let (fingerprints, ids) = removed.iter().cloned().unzip();
    let keys = Queries::Fingerprints(fingerprints);
    client
        .remove(CORPUS, Documents { keys, ids })
        .await
        .unwrap();
    for (fingerprint, id) in &removed {
        oracle.remove(*fingerprint, id);
    }
    let of_removed = shards_of(&removed);
    until_settled(&cluster, of_removed, inserted).await;
    block_in_place(|| cluster.start_node(2));
    until_in_sync(&cluster, NODES).await;
    check(&client, &oracle).await;
    scrub(&cluster, "0", &[]).assert_agrees();

    // An insert of before comes once more, by the records of now.
    for node in 0..NODES {
        let insert = pb::ChangeKind::Insert;
        let late = Version(inserted.0 - 1);
        let answer = answer_of(&cluster, node, insert, &removed, ShardSet::ALL, late).await;
        let all: Vec<u32> = (0..removed.len() as u32).collect();
        assert_eq!(
            (answer.refused_shards, answer.newer_documents),
            (vec![], all)
        );
    }
    check(&client, &oracle).await;
    scrub(&cluster, "0", &[]).assert_agrees();

    block_in_place(|| (0..NODES).for_each(|node| cluster.end_node(node, End::Killed)));
    let last = records(&cluster).await;
    check_stores(&cluster, &last, &oracle);
    let live = stored[..40]
        .iter()
        .map(|(fingerprint, _)| shards(*fingerprint).len());
    let live = live.sum::<usize>() as u64;
    for node in 0..NODES {
        let (held, tombstones) = (elements(&cluster, &last, node), removed.len() as u64);
        // What was not settled, as a shard had few of them, may be there.
        assert!(
            held < live + tombstones,
            "node {node}: {held}, {live} are live"
        );
    }
}
