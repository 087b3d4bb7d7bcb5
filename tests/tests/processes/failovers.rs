//! One of three nodes dies under load: the others go on without it, it comes back with all that it missed, and no
//! request fails.

use std::fs;
use std::time::{Duration, Instant};

use simshard_cluster::{FileKeyValues, RegisteredStore, registered_stores};
use simshard_testkit::{End, ProcessCluster, Shape, until};
use simshard_topology::replication::{ShardRecord, StoreId};
use tokio::task::block_in_place;

use crate::load::{Load, create, until_found};
use crate::readiness::until_ready;
use crate::records::{records, until_all, until_in_sync, until_short};

/// Requests that are done before and after.
const SOME: u64 = 20;

/// Nodes ask each other for signs of life several times in this time.
const ACQUAINTED: Duration = Duration::from_secs(1);

/// How one of the nodes fails.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Killed,
    Frozen,
}

/// Waits until the nodes have heard of each other, and of the records that each has.
pub(crate) async fn get_acquainted(load: &Load) {
    let started = Instant::now();
    while started.elapsed() < ACQUAINTED {
        load.until_more(1).await;
    }
}

async fn lose_one(replicas: usize, fault: Fault) {
    lose_one_of(
        ProcessCluster::start(Shape::of(3).with_replicas(replicas)),
        replicas,
        fault,
    )
    .await;
}

async fn lose_one_of(mut cluster: ProcessCluster, replicas: usize, fault: Fault) {
    create(&cluster.client()).await;
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    let load = Load::start(&[client]);
    get_acquainted(&load).await;
    load.gaps();
    match fault {
        Fault::Killed => block_in_place(|| cluster.end_node(0, End::Killed)),
        Fault::Frozen => cluster.freeze_node(0),
    }
    load.until_more(SOME).await;
    println!("{replicas} replicas, one goes: {:?}", load.gaps());
    match fault {
        Fault::Killed => block_in_place(|| cluster.start_node(0)),
        // It believes in the old records at first.
        Fault::Frozen => cluster.thaw_node(0),
    }
    until_in_sync(&cluster, replicas).await;
    println!("{replicas} replicas, it comes back: {:?}", load.gaps());
    // What it has copied counts.
    block_in_place(|| cluster.end_node(1, End::Killed));
    load.until_more(SOME).await;
    load.end(&cluster.client()).await;
}

/// A node that is lost for good is replaced by those that are left. FM1: if it starts again all the same, it deletes what
/// it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_lost_node_held_others_take_after_a_while() {
    let mut cluster = ProcessCluster::start(Shape {
        replace_seconds: Some(1),
        ..Shape::of(4).with_replicas(2)
    });
    create(&cluster.client()).await;
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    let load = Load::start(&[client]);
    for lost in [0, 1] {
        get_acquainted(&load).await;
        block_in_place(|| cluster.end_node(lost, End::Killed));
        until_short(&cluster, 2).await;
        until_in_sync(&cluster, 2).await;
    }
    block_in_place(|| cluster.start_node_with_log(0));
    let log = cluster.folder().join("n1.log");
    until(
        "the node that is not needed has deleted its data",
        async || {
            let log = fs::read_to_string(&log).unwrap();
            let segments = fs::read_dir(cluster.data(0).join("segments")).unwrap();
            log.contains("has deleted what it had of shards") && segments.count() == 0
        },
    )
    .await;
    load.until_more(SOME).await;
    load.end(&cluster.client()).await;
}

/// A node whose directory is lost comes back with its name and an empty one, and copies what it held, at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_lost_its_directory_comes_back_with_an_empty_one() {
    for replicas in [2, 3] {
        let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(replicas));
        create(&cluster.client()).await;
        let client = cluster.client().with_timeout(Duration::from_secs(20));
        let load = Load::start(&[client]);
        get_acquainted(&load).await;
        block_in_place(|| {
            cluster.end_node(0, End::Killed);
            cluster.lose_data(0);
            cluster.start_node(0);
            // Another end, most often before it takes a shard, does not make it wait.
            cluster.end_node(0, End::Killed);
            cluster.start_node(0);
        });
        until_in_sync(&cluster, replicas).await;
        block_in_place(|| cluster.end_node(1, End::Killed));
        load.until_more(SOME).await;
        load.end(&cluster.client()).await;
    }
}

/// PE21. It has some of its shards in sync by then, and another node that holds others comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_lost_its_directory_and_ends_half_way_takes_the_rest_too() {
    let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(2));
    let [away, lost] = [0, 1];
    let away_store = store_of(&cluster, "n1").await;
    let lost_store = store_of(&cluster, "n2").await;
    block_in_place(|| cluster.end_node(lost, End::Killed));
    until_all(&cluster, "all go on without the lost node", |record| {
        !record.names(lost_store)
    })
    .await;
    block_in_place(|| {
        cluster.end_node(away, End::Killed);
        cluster.lose_data(lost);
        cluster.start_node(lost);
    });
    let is_done = |record: &ShardRecord| match record.in_sync(away_store) {
        Some(_) => record.in_sync.len() == 1,
        None => record.in_sync.len() == 2,
    };
    until_all(&cluster, "what can be copied is in sync", is_done).await;
    let is_short = |record: &ShardRecord| record.in_sync.len() == 1;
    assert!(
        records(&cluster)
            .await
            .values()
            .any(|record| is_short(record))
    );
    assert!(is_replacement(&cluster, "n2").await);
    block_in_place(|| {
        cluster.end_node(lost, End::Killed);
        cluster.start_node(away);
        cluster.start_node(lost);
    });
    until_in_sync(&cluster, 2).await;
    until("the node is as any other", async || {
        !is_replacement(&cluster, "n2").await
    })
    .await;
}

/// PE22, PE5. It had come back beside the other one, and hears from no store any more that this was sealed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_goes_on_alone_after_both_died_and_the_other_lost_its_directory() {
    let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(2));
    let [lost, left] = [0, 1];
    let lost_store = store_of(&cluster, "n1").await;
    let left_store = store_of(&cluster, "n2").await;
    block_in_place(|| cluster.end_node(left, End::Killed));
    until_all(&cluster, "all go on without it", |record| {
        !record.names(left_store)
    })
    .await;
    block_in_place(|| cluster.start_node(left));
    until_in_sync(&cluster, 2).await;
    until_ready(&cluster, left).await;
    block_in_place(|| {
        cluster.end_node(lost, End::Killed);
        cluster.end_node(left, End::Killed);
        cluster.lose_data(lost);
        cluster.start_node(left);
    });
    until_all(&cluster, "shards go on without the lost store", |record| {
        !record.names(lost_store)
    })
    .await;
    block_in_place(|| cluster.start_node(lost));
    until_in_sync(&cluster, 2).await;
}

async fn store_of(cluster: &ProcessCluster, node: &str) -> StoreId {
    let stores = registered(cluster).await;
    let mut stores = stores.iter();
    let store = stores.find(|store| store.node.as_str() == node);
    store.unwrap().id
}

/// Whether a node has lost the store that it had, and shards have lacked replicas ever since.
async fn is_replacement(cluster: &ProcessCluster, node: &str) -> bool {
    let mut stores = registered(cluster).await.into_iter();
    stores.any(|store| store.node.as_str() == node && store.is_replacement)
}

async fn registered(cluster: &ProcessCluster) -> Vec<RegisteredStore> {
    let keys = FileKeyValues::at(cluster.metadata_file());
    registered_stores(&keys).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_go_on_when_one_is_killed_and_take_it_back() {
    lose_one(2, Fault::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_go_on_when_one_is_killed_and_take_it_back() {
    lose_one(3, Fault::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_go_on_when_one_is_frozen_and_take_it_back() {
    lose_one(2, Fault::Frozen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_go_on_when_one_is_frozen_and_take_it_back() {
    lose_one(3, Fault::Frozen).await;
}

/// HC1, EP5: the two that are left have tables of all shards, and again when the next one dies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_of_which_two_are_hot_go_on_when_one_is_killed_and_take_it_back() {
    let cluster = ProcessCluster::start(Shape::of(3).with_replicas(3).with_hot(2));
    lose_one_of(cluster, 3, Fault::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_of_which_one_is_hot_go_on_when_one_is_killed_and_take_it_back() {
    let cluster = ProcessCluster::start(Shape::of(3).with_replicas(2).with_hot(1));
    lose_one_of(cluster, 2, Fault::Killed).await;
}

fn hot(record: &ShardRecord) -> usize {
    record.in_sync.iter().filter(|entry| entry.hot).count()
}

/// EP5, EP6, PE10: the second one that dies cannot be taken out, and is the only hot one of some shards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_go_on_where_the_only_hot_one_of_two_replicas_that_are_left_dies() {
    let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(3).with_hot(1));
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    create(&client).await;
    let load = Load::start(std::slice::from_ref(&client));
    get_acquainted(&load).await;
    load.until_more(SOME).await;
    let batches = load.end(&client).await;
    block_in_place(|| cluster.end_node(2, End::Killed));
    until_all(&cluster, "two are left, one of them hot", |record| {
        record.in_sync.len() == 2 && hot(record) == 1
    })
    .await;
    until_found(&client, batches).await;
    block_in_place(|| cluster.end_node(0, End::Killed));
    until_found(&client, batches).await;
    block_in_place(|| {
        cluster.start_node(0);
        cluster.start_node(2);
    });
    until_all(&cluster, "all are back, one of them hot", |record| {
        record.in_sync.len() == 3 && hot(record) == 1
    })
    .await;
    until_found(&client, batches).await;
}
