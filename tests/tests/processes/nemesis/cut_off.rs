//! Of two replicas, one reaches nothing any more but the metadata. The other one goes on without it, not the reverse (PE1).

use std::collections::BTreeSet;
use std::time::Duration;

use simshard_client::Client;
use simshard_cluster::{key_values_at, registered_stores, shard_records};
use simshard_hosts::Network;
use simshard_testkit::{ClusterPart, HostCluster, Shape, did_nothing, until};
use simshard_topology::ShardId;
use simshard_topology::replication::StoreId;
use tokio::runtime::Builder;
use tokio::task::block_in_place;

use super::is_whole;
use super::oracle::until_served;
use crate::load::create;

const NODES: usize = 3;

const REPLICAS: usize = 2;

/// If each could leave out the other one, the wrong one would be left out in one of these rounds, almost surely.
const ROUNDS: usize = 4;

#[test]
fn of_two_replicas_the_one_that_reaches_only_the_metadata_is_left_out() {
    let network = match Network::make() {
        Ok(network) => network,
        Err(error) => return did_nothing(&format!("no links are cut: {error}")),
    };
    // Its threads are on the network that this one is on.
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(cut_off_again_and_again(network));
}

async fn cut_off_again_and_again(network: Network) {
    let shape = Shape {
        replace_seconds: Some(1),
        ..Shape::of(NODES).with_replicas(REPLICAS).with_hot(REPLICAS)
    };
    let mut cluster = block_in_place(|| HostCluster::start(shape, Some(network)));
    let client = cluster.client_of(0).with_timeout(Duration::from_secs(5));
    create(&client).await;
    // Two nodes hold all shards, and the third one none.
    block_in_place(|| cluster.kill(ClusterPart::Node(NODES - 1)));
    until_two_hold_all(&cluster).await;
    cluster.start_part(ClusterPart::Node(NODES - 1));
    for _ in 0..ROUNDS {
        until_whole(&cluster).await;
        cut_off(&cluster, holder(&cluster).await, &client).await;
    }
    until_whole(&cluster).await;
}

async fn until_two_hold_all(cluster: &HostCluster) {
    let keys = key_values_at(&cluster.metadata()).unwrap();
    until("two nodes hold all shards", async || {
        let records = shard_records(&*keys).await.unwrap();
        let in_sync = records.values().flat_map(|record| &record.in_sync);
        let stores: BTreeSet<StoreId> = in_sync.map(|entry| entry.store).collect();
        stores.len() == REPLICAS
            && records
                .values()
                .all(|record| record.in_sync.len() == REPLICAS)
    })
    .await;
}

async fn until_whole(cluster: &HostCluster) {
    let metadata = cluster.metadata();
    until("each shard has all its replicas", async || {
        is_whole(&metadata, REPLICAS).await
    })
    .await;
}

/// The first node that holds shard 00 in sync.
async fn holder(cluster: &HostCluster) -> ClusterPart {
    let keys = key_values_at(&cluster.metadata()).unwrap();
    let records = shard_records(&*keys).await.unwrap();
    let store = records[&ShardId(0)].in_sync[0].store;
    let stores = registered_stores(&*keys).await.unwrap();
    let holder = stores.iter().find(|known| known.id == store).unwrap();
    let nodes = (0..NODES).find(|node| holder.node.as_str() == format!("n{}", node + 1));
    ClusterPart::Node(nodes.unwrap())
}

/// Cuts a node off all others and the router, while requests are served.
async fn cut_off(cluster: &HostCluster, node: ClusterPart, client: &Client) {
    println!("{node:?} is cut off");
    let nodes = (0..NODES).map(ClusterPart::Node);
    let others: Vec<ClusterPart> = nodes
        .chain([ClusterPart::Router(0)])
        .filter(|other| *other != node)
        .collect();
    for &other in &others {
        cluster.cut(node, other);
        cluster.cut(other, node);
    }
    until_served(std::slice::from_ref(client), true).await;
    for &other in &others {
        cluster.mend(node, other);
        cluster.mend(other, node);
    }
}
