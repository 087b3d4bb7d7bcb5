//! Real processes and a real etcd, each on a host of its own: killed, frozen, cut off, with lost disks and wrong clocks.

use std::time::{Duration, Instant};

use fastrand::Rng;
use simshard_client::Client;
use simshard_hosts::Network;
use simshard_testkit::{ClusterPart, HostCluster, Shape, did_nothing, is_long, until};
use tokio::runtime::Builder;
use tokio::task::block_in_place;
use tokio::time::sleep;

use super::faults::Fault;
use super::floors::{self, Dropping};
use super::oracle::{Oracle, until_served};
use super::{is_whole, others_have_all, seed};
use crate::load::create;

/// Clusters of some shapes.
const SHAPES: [[usize; 3]; 4] = [[3, 3, 2], [3, 3, 2], [3, 2, 2], [4, 3, 2]];

const ROUTERS: usize = 2;

/// How long a cluster is disturbed.
fn time() -> Duration {
    Duration::from_secs(if is_long() { 3600 } else { 120 })
}

struct World {
    cluster: HostCluster,
    shape: Shape,
    oracle: Oracle,
    random: Rng,
    begun: Instant,
}

impl World {
    async fn begin(seed: u64, network: Option<Network>) -> Self {
        let mut random = Rng::with_seed(seed);
        let [nodes, replicas, hot] = SHAPES[random.usize(..SHAPES.len())];
        let shape = Shape {
            routers: ROUTERS,
            replace_seconds: Some(3),
            ..Shape::of(nodes).with_replicas(replicas).with_hot(hot)
        };
        println!("{shape:?}");
        let cluster = block_in_place(|| HostCluster::start(shape, network));
        create(&cluster.client_of(0)).await;
        let oracle = Oracle::begin(&mut random, &clients(&cluster)).await;
        Self {
            cluster,
            shape,
            oracle,
            random,
            begun: Instant::now(),
        }
    }

    /// Says what happens, and when.
    fn say(&self, what: &str, fault: &Fault) {
        println!(
            "{:8.3} {what} {fault:?}",
            self.begun.elapsed().as_secs_f64()
        );
    }

    async fn start(&mut self, fault: &Fault) {
        self.say("begin", fault);
        block_in_place(|| fault.begin(&mut self.cluster, &self.oracle.skew));
        if let Fault::Wipe(node) = fault {
            self.lose_data(fault, *node).await;
        }
    }

    async fn take_back(&mut self, fault: &Fault) {
        self.say("end", fault);
        if let Fault::RollBack(node, _) = fault {
            self.cluster.kill(ClusterPart::Node(*node));
            self.lose_data(fault, *node).await;
        }
        block_in_place(|| fault.end(&mut self.cluster, &self.oracle.skew));
    }

    async fn lose_data(&mut self, fault: &Fault, node: usize) {
        if others_have_all(&self.cluster.metadata(), node).await {
            fault.lose_data(&mut self.cluster);
        }
    }

    async fn pass(&mut self) {
        let time = self.random.u64(..4_000);
        sleep(Duration::from_millis(time)).await;
        self.look();
    }

    /// Nothing ends by itself, and no answer is wrong.
    fn look(&mut self) {
        if let Some((part, log)) = self.cluster.ended().pop() {
            panic!("{part:?} has ended: {log}");
        }
        assert!(!self.oracle.has_failed(), "an answer was wrong: see above");
    }

    async fn until_whole(&mut self) {
        let (metadata, replicas) = (self.cluster.metadata(), self.shape.replicas);
        until("each shard has all its replicas", async || {
            self.look();
            is_whole(&metadata, replicas).await
        })
        .await;
        println!("{:8.3} all is well", self.begun.elapsed().as_secs_f64());
    }

    /// Waits until the loss of a disk leaves all others knowing enough.
    /// One fault, or two at once. Data are lost only while all others have them.
    async fn disturb(&mut self, was_whole: bool) {
        let first = self.fault(|fault| was_whole || !fault.loses_data());
        if first.loses_data() {
            self.until_whole().await;
        }
        self.start(&first).await;
        self.pass().await;
        if self.random.u8(..3) == 0 {
            let second = self.fault(|fault| fault.goes_with(&first) && !fault.loses_data());
            self.start(&second).await;
            self.pass().await;
            self.take_back(&first).await;
            self.pass().await;
            self.take_back(&second).await;
        } else {
            if was_whole {
                let clients = clients(&self.cluster);
                until_served(&clients, first.lets_change()).await;
            }
            if matches!(first, Fault::RollBack(..)) {
                self.until_whole().await;
            }
            self.take_back(&first).await;
        }
        if first.loses_data() {
            self.until_whole().await;
        }
    }

    fn fault(&mut self, may_be: impl Fn(&Fault) -> bool) -> Fault {
        let Shape { nodes, routers, .. } = self.shape;
        // While clocks differ little is known, so that they are right in the end.
        let may_skew = self.begun.elapsed() < time() / 2;
        loop {
            let has_network = self.cluster.has_network();
            let fault = Fault::any(&mut self.random, nodes, routers, has_network);
            if may_be(&fault) && (may_skew || !matches!(fault, Fault::ShiftClock(..))) {
                return fault;
            }
        }
    }
}

fn clients(cluster: &HostCluster) -> Vec<Client> {
    let clients = (0..ROUTERS).map(|router| cluster.client_of(router));
    let clients = clients.map(|client| client.with_timeout(Duration::from_secs(5)));
    clients.collect()
}

async fn survive(seed: u64, network: Option<Network>) {
    let mut world = World::begin(seed, network).await;
    world.pass().await;
    let mut dropping = Dropping::begin(&world.cluster.metadata());
    let mut waits = true;
    while world.begun.elapsed() < time() {
        dropping.go_on();
        world.disturb(waits).await;
        // Sometimes the next one comes before all is well.
        waits = world.random.u8(..3) > 0;
        if waits {
            world.until_whole().await;
            for client in clients(&world.cluster) {
                until_served(&[client], true).await;
            }
        }
    }
    world.until_whole().await;
    let World {
        mut cluster,
        shape,
        oracle,
        ..
    } = world;
    let mut knowledge = oracle.end().await;
    dropping.end().await;
    // Whichever node is lost now, the others know everything.
    let clients = clients(&cluster);
    for node in 0..shape.nodes {
        block_in_place(|| cluster.kill(ClusterPart::Node(node)));
        knowledge.check(&clients[0]).await;
        cluster.start_part(ClusterPart::Node(node));
        let metadata = cluster.metadata();
        until("each shard has all its replicas", async || {
            is_whole(&metadata, shape.replicas).await
        })
        .await;
    }
    if is_long() {
        let kill = |node| cluster.kill(ClusterPart::Node(node));
        block_in_place(|| (0..shape.nodes).for_each(kill));
        let directories = (0..shape.nodes).map(|node| cluster.data(node));
        floors::check_dropped(&cluster.metadata(), directories, &knowledge.removed()).await;
    }
}

#[test]
fn replicas_on_hosts_of_their_own_survive_what_happens_to_them() {
    let network = Network::make();
    let network =
        network.map_err(|error| did_nothing(&format!("no links are cut, only the rest: {error}")));
    // Its threads are on the network that this one is on.
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(survive(seed(), network.ok()));
}
