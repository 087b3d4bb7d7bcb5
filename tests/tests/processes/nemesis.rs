//! A cluster with replicas is disturbed at random, while documents are inserted, removed and looked for, corpora come and
//! go, and others are read as a whole. What was acknowledged is found, what was removed is not, and each shard has all its
//! replicas in the end. While there is one fault only, requests succeed.

mod cut_off;
mod faults;
mod floors;
mod on_hosts;
mod operators;
pub(crate) mod oracle;
mod reshaped;
mod short_lived;
mod whole_reads;

use std::collections::BTreeSet;
use std::slice;
use std::time::Duration;

use fastrand::Rng;
use simshard_cluster::{key_values_at, registered_stores, shard_records};
use simshard_proto::shard::v1::shard_service_client::ShardServiceClient;
use simshard_proto::shard::v1::{PingRequest, PingResponse};
use simshard_testkit::{End, ProcessCluster, Shape, is_long, until};
use simshard_topology::ShardId;
use simshard_topology::replication::StoreId;
use tokio::task::block_in_place;
use tokio::time::{sleep, timeout};
use tonic::transport::Endpoint;

use crate::load::create;
use crate::readiness::is_ready;
use floors::Dropping;
use oracle::{Oracle, until_served};

const NODES: usize = 3;

/// How long a node has to say which records it has.
const ANSWER: Duration = Duration::from_secs(1);

fn faults() -> usize {
    if is_long() { 300 } else { 6 }
}

/// The seed of a run, which `SIMSHARD_SEED` may give.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("SIMSHARD_SEED").ok();
    let given = given.map(|seed| seed.parse().unwrap());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("seed {seed}");
    seed
}

/// Whether each shard has all its replicas in sync, and all of them live and have installed its record. Each node is ready:
/// it has heard that the others have. If a store was alone in sync and dies before, no other knows whether it had installed
/// the record that adds another.
async fn is_whole(metadata: &str, replicas: usize) -> bool {
    let keys = key_values_at(metadata).unwrap();
    let Ok(records) = shard_records(&*keys).await else {
        return false;
    };
    let mut counts = records.values().map(|record| record.in_sync.len());
    if counts.any(|count| count != replicas) {
        return false;
    }
    let mut reported = BTreeSet::new();
    for store in registered_stores(&*keys).await.unwrap_or_default() {
        if !is_ready(&store.address).await {
            return false;
        }
        reported.extend(reports(&store.address).await.unwrap_or_default());
    }
    let mut replicas = records.iter().flat_map(|(shard, record)| {
        let stores = record.in_sync.iter().map(|entry| entry.store);
        stores.map(|store| (store, *shard, record.epoch.number))
    });
    replicas.all(|replica| reported.contains(&replica))
}

/// Whether other nodes are in sync for each shard that this one, which has ended, is in sync for. Just before it ended
/// it may have evicted them.
async fn others_have_all(metadata: &str, node: usize) -> bool {
    let keys = key_values_at(metadata).unwrap();
    let name = format!("n{}", node + 1);
    let stores = registered_stores(&*keys).await.unwrap();
    let store = stores.iter().find(|store| store.node.as_str() == name);
    let store = store.unwrap().id;
    let records = shard_records(&*keys).await.unwrap();
    let is_last = records
        .values()
        .any(|record| record.in_sync.iter().all(|entry| entry.store == store));
    if is_last {
        println!("node {name} keeps its data: no other has all of them");
    }
    !is_last
}

/// The store of the node at this address, and the records of shards that it has on disk: the number of the epoch of each.
async fn reports(address: &str) -> Option<Vec<(StoreId, ShardId, u64)>> {
    let pong = ping(address).await?;
    let store = StoreId(pong.store.try_into().ok()?);
    let shards = pong.shards.iter().map(|&shard| ShardId(shard as u8));
    let reports = shards.zip(pong.epoch_numbers);
    Some(
        reports
            .map(|(shard, number)| (store, shard, number))
            .collect(),
    )
}

/// A sign of life of the node at this address.
async fn ping(address: &str) -> Option<PingResponse> {
    let endpoint = Endpoint::from_shared(address.to_owned()).ok()?;
    let mut node = ShardServiceClient::new(endpoint.connect_lazy());
    let pong = timeout(ANSWER, node.ping(PingRequest::default()));
    Some(pong.await.ok()?.ok()?.into_inner())
}

/// A cluster whose metadata are in a file.
struct World {
    cluster: ProcessCluster,
    metadata: String,
    replicas: usize,
}

impl World {
    fn new(replicas: usize, hot: usize) -> Self {
        let shape = Shape {
            ..Shape::of(NODES).with_replicas(replicas).with_hot(hot)
        };
        let cluster = ProcessCluster::start(shape);
        Self {
            metadata: format!("file:{}", cluster.metadata_file().display()),
            cluster,
            replicas,
        }
    }

    async fn until_whole(&self) {
        until("each shard has all its replicas", async || {
            is_whole(&self.metadata, self.replicas).await
        })
        .await;
    }

    /// Kills a node, and starts it without its data, as after the loss of a disk.
    async fn lose_disk(&mut self, node: usize) {
        block_in_place(|| self.cluster.end_node(node, End::Killed));
        if others_have_all(&self.metadata, node).await {
            self.cluster.lose_data(node);
        }
        block_in_place(|| self.cluster.start_node(node));
    }

    /// Does something to a node, and takes it back. A disk is lost only if all others have what it had.
    async fn fault(&mut self, random: &mut Rng, was_whole: bool) {
        let node = random.usize(..NODES);
        let away = Duration::from_millis(random.u64(..3_000));
        let cluster = &mut self.cluster;
        match random.u8(..7) {
            0 | 1 => {
                cluster.freeze_node(node);
                sleep(away).await;
                cluster.thaw_node(node);
            }
            2 if was_whole => self.lose_disk(node).await,
            number => {
                let end = [End::Stopped, End::Killed][usize::from(number % 2)];
                block_in_place(|| cluster.end_node(node, end));
                sleep(away).await;
                block_in_place(|| cluster.start_node(node));
            }
        }
    }
}

async fn survive(mut world: World) {
    let mut random = Rng::with_seed(seed());
    let other = world.cluster.add_router();
    create(&world.cluster.client()).await;
    let clients = [world.cluster.client(), world.cluster.client_of(other)];
    let clients = clients.map(|client| client.with_timeout(Duration::from_secs(15)));
    let oracle = Oracle::begin(&mut random, &clients).await;
    sleep(Duration::from_secs(1)).await;
    let mut dropping = Dropping::begin(&world.metadata);
    let mut waits = true;
    for _ in 0..faults() {
        dropping.go_on();
        world.fault(&mut random, waits).await;
        // Sometimes the next one comes before all is well.
        waits = random.u8(..3) > 0;
        if waits {
            world.until_whole().await;
            for client in &clients {
                until_served(slice::from_ref(client), true).await;
            }
        }
    }
    world.until_whole().await;
    let mut knowledge = oracle.end().await;
    dropping.end().await;
    // Whichever node is lost now, the others know everything.
    for node in 0..NODES {
        block_in_place(|| world.cluster.end_node(node, End::Killed));
        knowledge.check(&clients[0]).await;
        block_in_place(|| world.cluster.start_node(node));
        world.until_whole().await;
    }
    if is_long() {
        let World {
            mut cluster,
            metadata,
            ..
        } = world;
        block_in_place(|| (0..NODES).for_each(|node| cluster.end_node(node, End::Killed)));
        let directories = (0..NODES).map(|node| cluster.data(node));
        floors::check_dropped(&metadata, directories, &knowledge.removed()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_survive_faults_one_after_the_other() {
    survive(World::new(2, 2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_survive_faults_one_after_the_other() {
    survive(World::new(3, 2)).await;
}
