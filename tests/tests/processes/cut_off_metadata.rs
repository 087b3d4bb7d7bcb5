//! The metadata cannot be reached by one of several nodes, which all others reach: changes go on, though no record comes
//! to it from there.

use std::time::Duration;

use simshard_testkit::{End, EtcdServer, Process, ProcessCluster, Shape, StallingProxy, binary};
use tokio::task::block_in_place;

use crate::failovers::get_acquainted;
use crate::load::{Load, create};
use crate::readiness::until_ready;

const NODE: usize = 1;

/// Requests that are done before and after.
const SOME: u64 = 20;

/// PE11: the records change as another node dies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_does_not_reach_the_metadata_learns_of_records_from_others() {
    let etcd = EtcdServer::start();
    let shape = Shape::of(3).with_replicas(3);
    let mut cluster = ProcessCluster::start_at(shape, &etcd.url());
    let (link, _node) = block_in_place(|| restart_behind_link(&mut cluster, &etcd.url()));
    let load = loaded(&cluster).await;
    link.stall();
    load.gaps();
    block_in_place(|| cluster.end_node(2, End::Killed));
    load.until_more(SOME).await;
    println!("a node goes: {:?}", load.gaps());
    // What comes back changes the records too.
    block_in_place(|| cluster.start_node(2));
    until_ready(&cluster, 2).await;
    load.until_more(SOME).await;
    println!("it comes back: {:?}", load.gaps());
    link.resume();
    load.until_more(SOME).await;
    load.end(&cluster.client()).await;
}

/// PE14: it holds the shards alone, so no other has a record on disk by which it could learn of the one that comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_left_alone_without_the_metadata_is_told_of_the_one_that_comes_back() {
    let etcd = EtcdServer::start();
    let shape = Shape::of(2).with_replicas(2);
    let mut cluster = ProcessCluster::start_at(shape, &etcd.url());
    let (link, _node) = block_in_place(|| restart_behind_link(&mut cluster, &etcd.url()));
    let load = loaded(&cluster).await;
    block_in_place(|| cluster.end_node(0, End::Killed));
    load.until_more(SOME).await;
    link.stall();
    load.gaps();
    block_in_place(|| cluster.start_node(0));
    until_ready(&cluster, 0).await;
    load.until_more(SOME).await;
    println!("a node comes back: {:?}", load.gaps());
    link.resume();
    load.until_more(SOME).await;
    load.end(&cluster.client()).await;
}

/// Changes and searches, which go on until they are told to end.
async fn loaded(cluster: &ProcessCluster) -> Load {
    until_ready(cluster, NODE).await;
    create(&cluster.client()).await;
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    let load = Load::start(&[client]);
    get_acquainted(&load).await;
    load
}

/// Starts the node anew, which reaches the metadata by a link of its own.
fn restart_behind_link(cluster: &mut ProcessCluster, url: &str) -> (StallingProxy, Process) {
    let server = url.trim_start_matches("etcd://");
    let link = StallingProxy::start(server.parse().unwrap());
    cluster.end_node(NODE, End::Stopped);
    let args = cluster.node_args(NODE).into_iter();
    let by_link = format!("etcd://{}", link.address());
    let args = args.map(|arg| if arg == url { by_link.clone() } else { arg });
    let node = Process::serve(binary(), args);
    (link, node)
}
