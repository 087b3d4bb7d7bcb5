//! One of three nodes dies under load: the others go on without it, and no request fails.

use std::time::{Duration, Instant};

use simshard_testkit::{End, ProcessCluster};
use tokio::task::block_in_place;

use crate::load::{Load, create};

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

async fn lose_one(replicas: usize, fault: Fault) {
    let mut cluster = ProcessCluster::start_replicated(3, replicas);
    create(&cluster.client()).await;
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    let load = Load::start(&[client]);
    // Until the nodes have heard of each other.
    let started = Instant::now();
    while started.elapsed() < ACQUAINTED {
        load.until_more(1).await;
    }
    load.gaps();
    match fault {
        Fault::Killed => block_in_place(|| cluster.end_node(0, End::Killed)),
        Fault::Frozen => cluster.freeze_node(0),
    }
    load.until_more(SOME).await;
    println!("{replicas} replicas: {:?}", load.gaps());
    if fault == Fault::Frozen {
        // It believes in the old records at first.
        cluster.thaw_node(0);
        load.until_more(SOME).await;
    }
    load.end(&cluster.client()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_go_on_when_one_is_killed() {
    lose_one(2, Fault::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_go_on_when_one_is_killed() {
    lose_one(3, Fault::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_go_on_when_one_is_frozen() {
    lose_one(2, Fault::Frozen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_go_on_when_one_is_frozen() {
    lose_one(3, Fault::Frozen).await;
}
