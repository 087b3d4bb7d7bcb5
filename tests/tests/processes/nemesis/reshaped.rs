//! A cluster grows and shrinks by the commands of its operator, while documents change, and processes die, freeze and are
//! cut off: the commands die as well. What was acknowledged is found in the end, and the shards are where they are to be.

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use simshard_cluster::{key_values_at, shard_records};
use simshard_hosts::Network;
use simshard_testkit::{HostCluster, Running, Shape, binary, did_nothing, is_long, until_within};
use tokio::runtime::Builder;
use tokio::task::block_in_place;
use tokio::time::{sleep, timeout};

use super::faults::Fault;
use super::oracle::{Oracle, until_served};
use super::seed;
use super::{floors, is_whole};
use crate::load::create;

const NODES: usize = 5;

const ROUTERS: usize = 2;

/// What the operator runs, one after the other, and how many nodes and replicas there are then.
const STEPS: [(&str, usize, usize); 15] = [
    ("drain n5", 4, 1),
    ("drain n4", 3, 1),
    ("drain n2", 2, 1),
    ("drain n3", 1, 1),
    ("undrain n2", 1, 1),
    ("undrain n3", 1, 1),
    ("rebalance plan", 1, 1),
    ("rebalance apply --yes", 3, 1),
    ("set-replication --replicas 3", 3, 3),
    ("undrain n4", 3, 3),
    ("undrain n5", 3, 3),
    ("rebalance plan", 3, 3),
    ("rebalance apply --yes", 5, 3),
    ("drain n2", 4, 3),
    ("drain n4", 3, 3),
];

/// A command that fails so often does not fail for a node that is away.
const MOST_ATTEMPTS: usize = 30;

/// How long a command may take that moves all shards twice, while processes die and other tests run.
const MOVING: Duration = Duration::from_secs(600);

/// Faults while a command runs.
fn faults() -> usize {
    if is_long() { 4 } else { 1 }
}

fn rounds() -> usize {
    if is_long() { 10 } else { 1 }
}

/// What happens while commands run.
struct Chaos {
    random: Rng,
    cluster: HostCluster,
    oracle: Oracle,
}

impl Chaos {
    /// Starts a command about the cluster.
    fn start(&self, command: &str) -> Running {
        let metadata = self.cluster.metadata();
        let args = ["cluster"].into_iter().chain(command.split(' '));
        Running::start(binary(), args.chain(["--metadata", &metadata]))
    }

    /// Runs a command while processes die, perhaps its own as well.
    async fn operate(&mut self, command: &str) {
        let mut running = self.start(command);
        for _ in 0..faults() {
            sleep(Duration::from_millis(self.random.u64(..600))).await;
            if self.random.u8(..3) == 0 {
                running.kill();
                self.disturb().await;
                running = self.start(command);
            } else {
                self.disturb().await;
            }
        }
        self.until_done(command, running).await;
    }

    /// Waits until a command succeeds, and repeats it if it fails, as it does while a node does not answer.
    async fn until_done(&mut self, command: &str, mut running: Running) {
        for _ in 0..MOST_ATTEMPTS {
            let what = format!("`{command}` ends");
            until_within(MOVING, &what, async || running.has_ended()).await;
            let output = running.output();
            let said = String::from_utf8_lossy(&output.stderr);
            // A plan leaves out an empty node that has just died.
            let is_full = !said.contains("so it gets no shards");
            // It was carried out, or moves nothing.
            let has_no_plan = said.contains("no plan is staged");
            if output.status.success() && is_full || has_no_plan {
                return;
            }
            println!("{command}: {said}");
            self.check_that_all_run();
            running = self.start(command);
        }
        panic!("{command} fails again and again: {}", self.state());
    }

    /// Does something to the cluster that loses no data, and takes it back.
    async fn disturb(&mut self) {
        let has_network = self.cluster.has_network();
        let fault = loop {
            let fault = Fault::any(&mut self.random, NODES, ROUTERS, has_network);
            if !fault.loses_data() && !matches!(fault, Fault::ShiftClock(..)) {
                break fault;
            }
        };
        println!("{fault:?}");
        let away = Duration::from_millis(self.random.u64(..2_000));
        block_in_place(|| fault.begin(&mut self.cluster, &self.oracle.skew));
        sleep(away).await;
        block_in_place(|| fault.end(&mut self.cluster, &self.oracle.skew));
        self.check_that_all_run();
    }

    fn check_that_all_run(&mut self) {
        if let Some((part, log)) = self.cluster.ended().pop() {
            panic!("{part:?} has ended: {log}");
        }
    }

    /// Where the shards are, and where they are to be.
    fn state(&self) -> String {
        let said = ["status", "nodes", "rebalance show"].map(|command| {
            let output = self.start(command).output();
            let said = [output.stdout, output.stderr].concat();
            format!("{command}: {}", String::from_utf8_lossy(&said))
        });
        said.join("\n")
    }

    /// Waits until the cluster is as a step leaves it.
    async fn until_placed(&self, nodes: usize, replicas: usize) {
        let metadata = self.cluster.metadata();
        let keys = key_values_at(&metadata).unwrap();
        let what = format!("{replicas} replicas of each shard are on {nodes} nodes");
        let is_placed = async || {
            let Ok(records) = shard_records(&*keys).await else {
                return false;
            };
            let entries = records.values().flat_map(|record| &record.in_sync);
            let holders: BTreeSet<_> = entries.map(|entry| entry.store).collect();
            let are_there = records.values().all(|record| record.learners.is_empty());
            are_there && holders.len() == nodes && is_whole(&metadata, replicas).await
        };
        let placed = timeout(MOVING, until_within(MOVING * 2, &what, is_placed)).await;
        assert!(placed.is_ok(), "never {what}: {}", self.state());
    }
}

async fn reshape(seed: u64, network: Option<Network>) {
    let shape = Shape {
        routers: ROUTERS,
        ..Shape::of(NODES).with_replicas(1)
    };
    let cluster = block_in_place(|| HostCluster::start(shape, network));
    create(&cluster.client_of(0)).await;
    let clients = [0, 1].map(|router| cluster.client_of(router));
    let clients = clients.map(|client| client.with_timeout(Duration::from_secs(15)));
    let mut random = Rng::with_seed(seed);
    let oracle = Oracle::begin(&mut random, &clients).await;
    let mut chaos = Chaos {
        random,
        cluster,
        oracle,
    };
    for round in 1..=rounds() {
        for (command, nodes, replicas) in STEPS {
            chaos.operate(command).await;
            chaos.until_placed(nodes, replicas).await;
            assert!(!chaos.oracle.has_failed(), "after {command}");
            println!("round {round}: {command}");
        }
        for command in [
            "set-replication --replicas 1 --yes",
            "undrain n2",
            "undrain n4",
            "rebalance plan",
            "rebalance apply --yes",
        ] {
            chaos.operate(command).await;
        }
        chaos.until_placed(NODES, 1).await;
        chaos.operate(floors::DROP).await;
    }
    until_served(&clients, true).await;
    floors::until_thawed(&chaos.cluster.metadata()).await;
    floors::check_settled(&chaos.cluster.metadata()).await;
    let mut knowledge = chaos.oracle.end().await;
    for client in &clients {
        knowledge.check(client).await;
    }
}

/// Nothing is lost, missed or invented meanwhile.
#[test]
fn a_cluster_grows_and_shrinks_while_processes_die() {
    let network = Network::make();
    let network =
        network.map_err(|error| did_nothing(&format!("no links are cut, only the rest: {error}")));
    // Its threads are on the network that this one is on.
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(reshape(seed(), network.ok()));
}
