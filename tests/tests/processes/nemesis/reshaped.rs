//! A cluster grows and shrinks by the commands of its operator, while documents change and processes die: the commands as
//! well. What was acknowledged is found in the end, and the shards are where they are to be.

use std::collections::BTreeSet;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fastrand::Rng;
use simshard_testkit::{End, ProcessCluster, Shape, binary, is_long, until};
use tokio::task::block_in_place;
use tokio::time::sleep;

use super::is_whole;
use super::oracle::{Oracle, until_served};
use super::seed;
use crate::load::create;
use crate::records::records;

const NODES: usize = 5;

/// What the operator runs, one after the other, and how many nodes and replicas there are then.
const STEPS: [(&str, usize, usize); 13] = [
    ("drain n5", 4, 1),
    ("drain n4", 3, 1),
    ("drain n2", 2, 1),
    ("drain n3", 1, 1),
    ("undrain n2", 1, 1),
    ("undrain n3", 1, 1),
    ("rebalance --yes", 3, 1),
    ("set-replication --replicas 3", 3, 3),
    ("undrain n4", 3, 3),
    ("undrain n5", 3, 3),
    ("rebalance --yes", 5, 3),
    ("drain n2", 4, 3),
    ("drain n4", 3, 3),
];

/// A command ends in this time after the last fault.
const PATIENCE: Duration = Duration::from_secs(120);

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
    /// Starts a command about the cluster. What it says goes into a file.
    fn start(&self, command: &str) -> Child {
        let said = File::create(self.cluster.folder().join("said")).unwrap();
        let metadata = format!("file:{}", self.cluster.metadata_file().display());
        Command::new(binary())
            .arg("cluster")
            .args(command.split(' '))
            .args(["--metadata", &metadata])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .unwrap()
    }

    /// Runs a command until it succeeds. It fails while a node does not answer.
    async fn operate(&mut self, command: &str) {
        let mut faults = faults();
        let mut last_fault = Instant::now();
        let mut child = self.start(command);
        loop {
            if faults > 0 {
                faults -= 1;
                sleep(Duration::from_millis(self.random.u64(..600))).await;
                if self.random.u8(..3) == 0 {
                    child.kill().unwrap();
                }
                self.disturb().await;
                last_fault = Instant::now();
            }
            match child.try_wait().unwrap() {
                Some(status) if status.success() => return,
                Some(status) => {
                    let said = self.cluster.folder().join("said");
                    let said = std::fs::read_to_string(said).unwrap();
                    assert!(
                        last_fault.elapsed() < PATIENCE,
                        "{command}: {status}: {said}"
                    );
                    child = self.start(command);
                }
                None => assert!(last_fault.elapsed() < PATIENCE, "{command} does not end"),
            }
            sleep(Duration::from_millis(100)).await;
        }
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

    /// Waits until the cluster is as a step leaves it.
    async fn until_placed(&self, nodes: usize, replicas: usize) {
        let metadata = format!("file:{}", self.cluster.metadata_file().display());
        let what = format!("{replicas} replicas of each shard are on {nodes} nodes");
        until(&what, async || {
            let records = records(&self.cluster).await;
            let entries = records.values().flat_map(|record| &record.in_sync);
            let holders: BTreeSet<_> = entries.map(|entry| entry.store).collect();
            let are_there = records.values().all(|record| record.learners.is_empty());
            are_there && holders.len() == nodes && is_whole(&metadata, replicas).await
        })
        .await;
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
        for command in ["set-replication --replicas 1", "undrain n2", "undrain n4"] {
            chaos.operate(command).await;
        }
        chaos.operate("rebalance --yes").await;
        chaos.until_placed(NODES, 1).await;
    }
    until_served(&clients, true).await;
    let mut knowledge = oracle.end().await;
    for client in &clients {
        knowledge.check(client).await;
    }
}
