//! A cluster grows and shrinks by the commands of its operator, while documents change and processes die: the commands as
//! well. What was acknowledged is found in the end, and the shards are where they are to be.

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use simshard_testkit::{End, ProcessCluster, Running, Shape, binary, is_long, until_within};
use tokio::task::block_in_place;
use tokio::time::{sleep, timeout};

use super::is_whole;
use super::oracle::{Oracle, until_served};
use super::seed;
use crate::load::create;
use crate::records::records;

const NODES: usize = 5;

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
    cluster: ProcessCluster,
}

impl Chaos {
    /// Starts a command about the cluster.
    fn start(&self, command: &str) -> Running {
        let metadata = format!("file:{}", self.cluster.metadata_file().display());
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
    async fn until_done(&self, command: &str, mut running: Running) {
        for _ in 0..MOST_ATTEMPTS {
            let what = format!("`{command}` ends");
            until_within(MOVING, &what, async || running.has_ended()).await;
            let output = running.output();
            let said = String::from_utf8_lossy(&output.stderr);
            // A plan leaves out an empty node that has just died.
            let is_full = !said.contains("so it gets no shards");
            if output.status.success() && is_full {
                return;
            }
            println!("{command}: {said}");
            running = self.start(command);
        }
        panic!("{command} fails again and again");
    }

    /// Does something to a node or a router, and takes it back.
    async fn disturb(&mut self) {
        let node = self.random.usize(..NODES);
        let away = Duration::from_millis(self.random.u64(..2_000));
        let cluster = &mut self.cluster;
        match self.random.u8(..4) {
            0 => {
                cluster.freeze_node(node);
                sleep(away).await;
                cluster.thaw_node(node);
            }
            1 => {
                block_in_place(|| cluster.end_router(1, End::Killed));
                sleep(away).await;
                block_in_place(|| cluster.start_router(1));
            }
            number => {
                let end = [End::Stopped, End::Killed][usize::from(number % 2)];
                block_in_place(|| cluster.end_node(node, end));
                sleep(away).await;
                block_in_place(|| cluster.start_node(node));
            }
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
        let metadata = format!("file:{}", self.cluster.metadata_file().display());
        let what = format!("{replicas} replicas of each shard are on {nodes} nodes");
        let is_placed = async || {
            let records = records(&self.cluster).await;
            let entries = records.values().flat_map(|record| &record.in_sync);
            let holders: BTreeSet<_> = entries.map(|entry| entry.store).collect();
            let are_there = records.values().all(|record| record.learners.is_empty());
            are_there && holders.len() == nodes && is_whole(&metadata, replicas).await
        };
        let placed = timeout(MOVING, until_within(MOVING * 2, &what, is_placed)).await;
        assert!(placed.is_ok(), "never {what}: {}", self.state());
    }
}

/// Nothing is lost when processes die meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_grows_and_shrinks_while_processes_die() {
    let mut cluster = ProcessCluster::start(Shape::of(NODES).with_replicas(1));
    let other = cluster.add_router();
    create(&cluster.client()).await;
    let clients = [cluster.client(), cluster.client_of(other)];
    let clients = clients.map(|client| client.with_timeout(Duration::from_secs(15)));
    let mut random = Rng::with_seed(seed());
    let oracle = Oracle::begin(&mut random, &clients).await;
    let mut chaos = Chaos { random, cluster };
    for _ in 0..rounds() {
        for (command, nodes, replicas) in STEPS {
            chaos.operate(command).await;
            chaos.until_placed(nodes, replicas).await;
            assert!(!oracle.has_failed(), "after {command}");
            println!("{command}");
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
    }
    until_served(&clients, true).await;
    let mut knowledge = oracle.end().await;
    for client in &clients {
        knowledge.check(client).await;
    }
}
