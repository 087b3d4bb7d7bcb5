//! Of two replicas, one reaches nothing any more but the metadata. The other one goes on without it, not the reverse (PE1).

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use simshard_client::Client;
use simshard_cluster::{key_values_at, registered_stores, shard_records};
use simshard_hosts::Network;
use simshard_testkit::{ClusterPart, HostCluster, Shape, did_nothing, until};
use simshard_topology::ShardId;
use simshard_topology::replication::StoreId;
use tokio::runtime::Builder;
use tokio::task::block_in_place;

use super::oracle::until_served;
use super::{is_whole, ping};
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
        ..Shape::of(NODES).with_replicas(REPLICAS)
    };
    let mut cluster = block_in_place(|| HostCluster::start(shape, Some(network)));
    let client = cluster.client_of(0).with_timeout(Duration::from_secs(5));
    create(&client).await;
    let metadata = cluster.metadata();
    // Two nodes hold all shards, and the third one none.
    block_in_place(|| cluster.kill(ClusterPart::Node(NODES - 1)));
    until_two_hold_all(&metadata, ClusterPart::Node(NODES - 1)).await;
    cluster.start_part(ClusterPart::Node(NODES - 1));
    for _ in 0..ROUNDS {
        until_acquainted(&metadata).await;
        let node = holder(&metadata).await;
        cut_off(&cluster, node, &client).await;
    }
}

/// The node of a store.
async fn node_of(metadata: &str, store: StoreId) -> ClusterPart {
    let keys = key_values_at(metadata).unwrap();
    let stores = registered_stores(&*keys).await.unwrap();
    let known = stores.iter().find(|known| known.id == store).unwrap();
    let node = (0..NODES).find(|node| known.node.as_str() == format!("n{}", node + 1));
    ClusterPart::Node(node.unwrap())
}

/// The first node that holds shard 00 in sync.
async fn holder(metadata: &str) -> ClusterPart {
    let keys = key_values_at(metadata).unwrap();
    let records = shard_records(&*keys).await.unwrap();
    node_of(metadata, records[&ShardId(0)].in_sync[0].store).await
}

/// Waits until two nodes hold all shards, and this one none.
async fn until_two_hold_all(metadata: &str, without: ClusterPart) {
    let keys = key_values_at(metadata).unwrap();
    until("two nodes hold all shards", async || {
        let records = shard_records(&*keys).await.unwrap();
        let named = records.values().flat_map(|record| record.write_set());
        let named: BTreeSet<StoreId> = named.collect();
        for &store in &named {
            if node_of(metadata, store).await == without {
                return false;
            }
        }
        named.len() == REPLICAS
            && records
                .values()
                .all(|record| record.in_sync.len() == REPLICAS)
    })
    .await;
}

/// Waits until all nodes have their shards in sync, and hear each other.
async fn until_acquainted(metadata: &str) {
    until("all nodes hear each other", async || {
        if !is_whole(metadata, REPLICAS).await {
            return false;
        }
        let keys = key_values_at(metadata).unwrap();
        let stores = registered_stores(&*keys).await.unwrap();
        let hear_all = stores.iter().map(|store| hears_all(&store.address));
        join_all(hear_all).await.into_iter().all(|hears| hears)
    })
    .await;
}

async fn hears_all(address: &str) -> bool {
    let pong = ping(address).await;
    pong.is_some_and(|pong| pong.silent_stores.is_empty() && pong.unheard_stores.is_empty())
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
    // In the next round two nodes share all shards again.
    until_two_hold_all(&cluster.metadata(), node).await;
    for &other in &others {
        cluster.mend(node, other);
        cluster.mend(other, node);
    }
}
