//! Tombstones go from all nodes once their replicas and shards agree, and no document that was removed comes back.

use std::collections::BTreeSet;
use std::process::Output;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use simshard_client::{Documents, Queries};
use simshard_cluster::{FileKeyValues, Steps, registered_stores, take_steps};
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::shard_service_client::ShardServiceClient;
use simshard_testkit::{End, Oracle, ProcessCluster, Shape, until};
use simshard_topology::replication::{ShardRecord, Step};
use simshard_topology::{ShardId, ShardSet, Version};
use tokio::task::block_in_place;
use tonic::transport::Endpoint;

use super::half_written::answer_of;
use super::stores::{check_stores, elements};
use super::{Document, NODES, command, scrub, shards, tell};
use crate::load::{CORPUS, create};
use crate::records::{forget_corpora, records, until_in_sync};
use crate::replicas::{change, check, documents};

/// Drops the tombstones of what was removed these seconds ago, or longer.
const fn drop_of(seconds: &str) -> [&str; 4] {
    [
        "--repair",
        "--drop-tombstones",
        "--settled-seconds",
        seconds,
    ]
}

/// The version of a change of now, or of some seconds later.
fn version_in(seconds: u64) -> Version {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let then = now + Duration::from_secs(seconds);
    Version::of_wall_time(then.as_nanos() as u64)
}

fn shards_of(documents: &[Document]) -> ShardSet {
    let all = documents
        .iter()
        .flat_map(|(fingerprint, _)| shards(*fingerprint));
    all.collect::<BTreeSet<ShardId>>().into_iter().collect()
}

/// Freezes the first shard at a version, like a scrub that is killed then.
async fn freeze_first(cluster: &ProcessCluster, version: Version) {
    let freeze = |shard, record: &ShardRecord| {
        let is_meant = shard == ShardId(0) && !record.is_frozen;
        is_meant.then_some(Step::Freeze(version))
    };
    let (keys, last) = (
        FileKeyValues::at(cluster.metadata_file()),
        records(cluster).await,
    );
    let synced = |shard: ShardId, _| last[&shard].epoch;
    let mut steps = Steps::default();
    let frozen = take_steps(&keys, freeze, synced, |_, _, _| false, &mut steps).await;
    frozen.unwrap();
    assert_eq!(steps.taken.len(), 1);
}

/// Drops the tombstones of what was removed up to a version.
async fn drop_up_to(cluster: &ProcessCluster, version: Version) {
    until("a second has passed since then", async || {
        version_in(0).0 > version.0 + Version::of_wall_time(1_000_000_000).0
    })
    .await;
    let output = tell(cluster, &drop_of("1"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let last = printed.lines().last().unwrap();
    assert!(
        last.starts_with("shards 00-ff drop the tombstones of "),
        "{printed}"
    );
    let records = records(cluster).await;
    assert!(
        records
            .values()
            .all(|record| record.settled >= version && !record.is_frozen)
    );
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
    let inserted = version_in(0);
    // A node is away while documents are removed, and their tombstones go.
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
    drop_up_to(&cluster, version_in(0)).await;
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
        let [held, tombstones] = elements(&cluster.data(node), &last);
        assert_eq!(held, live);
        // The node that came back has copied no tombstone. The others may have had no time to merge all shards.
        let below = if node == 2 { 1 } else { removed.len() as u64 };
        assert!(tombstones < below, "node {node}: {tombstones}");
    }
}

/// What a dead router left in one shard is completed before its tombstones go: then it could not be any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_written_documents_are_completed_before_tombstones_go() {
    let cluster = ProcessCluster::start(Shape::of(NODES).with_replicas(NODES));
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    create(&client).await;
    let half = &documents(1)[..1];
    let version = version_in(0);
    let first = shards_of(half).iter().next().unwrap();
    let insert = pb::ChangeKind::Insert;
    for node in 0..NODES {
        let in_first = ShardSet::from_iter([first]);
        answer_of(&cluster, node, insert, half, in_first, version).await;
    }
    drop_up_to(&cluster, version).await;
    let mut oracle = Oracle::default();
    oracle.insert(half[0].0, &half[0].1);
    check(&client, &oracle).await;
    scrub(&cluster, "0", &[]).assert_agrees();
}

/// FD2: a clock that is wrong closes no shard. What asks for too much is refused, and says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floors_are_not_ahead_of_clocks_and_no_shard_stays_frozen() {
    let cluster = ProcessCluster::start(Shape::of(NODES).with_replicas(NODES));
    create(&cluster.client()).await;
    let before = records(&cluster).await;
    let keys = FileKeyValues::at(cluster.metadata_file());
    let stores = registered_stores(&keys).await.unwrap();
    let first = before[&ShardId(0)].in_sync[0].store;
    let node = stores.iter().find(|store| store.id == first).unwrap();
    let address = Endpoint::from_shared(node.address.clone()).unwrap();
    let mut node = ShardServiceClient::new(address.connect_lazy());
    let mut asked = pb::SettleShardsRequest {
        store: first.0.to_vec(),
        version: version_in(90).0,
        ..pb::SettleShardsRequest::default()
    };
    for shards in [vec![], vec![0]] {
        asked.shards = shards;
        let refused = node.settle_shards(asked.clone()).await.unwrap_err();
        let told = refused.message();
        assert!(told.contains("ahead of this node's clock"), "{told}");
    }
    // A shard whose floor was not raised before the scrub is not settled.
    (asked.version, asked.settles) = (version_in(0).0, true);
    let answer = node.settle_shards(asked).await.unwrap().into_inner();
    assert_eq!((answer.done_shards, answer.left_shards), (vec![], vec![0]));
    assert!(
        answer.problems[0].contains("its floor is not raised"),
        "{:?}",
        answer.problems
    );
    assert_eq!(records(&cluster).await, before);
    for (more, code, expected) in [
        (&["--drop-tombstones"][..], 2, "--repair"),
        (
            &["--repair", "--drop-tombstones", "--shards", "00"],
            2,
            "--shards",
        ),
        (
            &["--repair", "--drop-tombstones", "--settled-seconds", "0"],
            2,
            "1 or more",
        ),
    ] {
        let output = tell(&cluster, more);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

/// What a scrub that was killed left frozen takes repairs again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_scrub_settles_any_more_is_thawed() {
    let cluster = ProcessCluster::start(Shape::of(NODES).with_replicas(NODES));
    create(&cluster.client()).await;
    let floor = Version(9);
    freeze_first(&cluster, floor).await;
    until("the record is thawed", async || {
        !records(&cluster).await[&ShardId(0)].is_frozen
    })
    .await;
    assert_eq!(records(&cluster).await[&ShardId(0)].floor, floor);
}

/// FL3: each settles what it has compared, whatever floor the other one has raised.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_scrubs_at_once_drop_the_tombstones_of_their_own_times() {
    let cluster = ProcessCluster::start(Shape::of(NODES).with_replicas(NODES));
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    create(&client).await;
    let mut oracle = Oracle::default();
    change(&client, &mut oracle, &documents(1)).await.unwrap();
    let at_once = ["1", "100"];
    let outputs: Vec<Output> = block_in_place(|| {
        thread::scope(|threads| {
            let cluster = &cluster;
            let begin = |seconds| threads.spawn(move || command(cluster, &drop_of(seconds)));
            let running = at_once.map(begin).into_iter();
            running.map(|thread| thread.join().unwrap()).collect()
        })
    });
    for (seconds, output) in at_once.iter().zip(&outputs) {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{seconds}: {said}");
    }
    // A floor above the time of a scrub.
    let floor = version_in(30);
    freeze_first(&cluster, floor).await;
    let output = tell(&cluster, &drop_of("1"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let last = records(&cluster).await;
    let settled = last[&ShardId(1)].settled;
    assert_eq!(last[&ShardId(1)].floor, settled);
    let first = &last[&ShardId(0)];
    assert_eq!((first.settled, first.floor), (settled, floor.max(settled)));
    check(&client, &oracle).await;
}

/// Documents of such a corpus are not compared between shards. Once it is recovered, they would stay half-written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_tombstone_goes_while_a_corpus_has_lost_its_record() {
    let cluster = ProcessCluster::start(Shape::of(NODES).with_replicas(NODES));
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    create(&client).await;
    let mut oracle = Oracle::default();
    change(&client, &mut oracle, &documents(1)).await.unwrap();
    forget_corpora(&cluster).await;
    let output = tell(&cluster, &drop_of("1"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("`simshard corpus recover`"), "{said}");
    let last = records(&cluster).await;
    assert!(last.values().all(|record| record.floor == Version::NONE));
}
