//! A node is ready once it holds all its shards in sync, so a rolling restart can wait for it.

use std::time::Duration;

use simshard_cluster::{FileKeyValues, shard_records};
use simshard_testkit::{End, ProcessCluster, Shape, until};
use tokio::task::block_in_place;
use tonic::transport::Endpoint;
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::failovers::get_acquainted;
use crate::load::{Load, create};
use crate::records::until_short;

/// A node that lives answers in this time.
const ANSWER: Duration = Duration::from_secs(1);

/// PE5: the health of a node that comes back follows its shards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_comes_back_is_ready_once_it_is_in_sync() {
    let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(2));
    create(&cluster.client()).await;
    until_ready(&cluster, 0).await;
    let client = cluster.client().with_timeout(Duration::from_secs(20));
    let load = Load::start(&[client]);
    get_acquainted(&load).await;
    block_in_place(|| cluster.end_node(0, End::Killed));
    until_short(&cluster, 2).await;
    let log = block_in_place(|| cluster.start_node_with_log(0));
    until_ready(&cluster, 0).await;
    let records = shard_records(&FileKeyValues::at(cluster.metadata_file()))
        .await
        .unwrap();
    let short: Vec<_> = records
        .iter()
        .filter(|(_, record)| record.in_sync.len() < 2)
        .collect();
    assert_eq!(short, [], "{log}");
    load.end(&cluster.client()).await;
}

/// Asks a node until it answers that it is ready.
pub(crate) async fn until_ready(cluster: &ProcessCluster, node: usize) {
    let address = format!("http://{}", cluster.node_addresses()[node]);
    until("the node is ready", async || is_ready(&address).await).await;
}

/// Whether the node at an address answers that it is ready.
pub(crate) async fn is_ready(address: &str) -> bool {
    let channel = Endpoint::from_shared(address.to_owned()).unwrap();
    let mut health = HealthClient::new(channel.timeout(ANSWER).connect_lazy());
    let service = "simshard.shard.v1.ShardService".to_owned();
    let status = health.check(HealthCheckRequest { service }).await;
    status.is_ok_and(|status| status.get_ref().status == ServingStatus::Serving as i32)
}
