//! Several operators run commands at once, with a real etcd, while documents change. Each command succeeds, or says that
//! another operator was faster. In the end the shards are where the last one wants them.

use fastrand::Rng;
use simshard_cluster::{key_values_at, shard_records, staged_plan};
use simshard_testkit::{HostCluster, Running, Shape, binary, is_long, until, until_within};
use tokio::task::block_in_place;
use tokio::time::Duration;

use super::is_whole;
use super::oracle::{Oracle, until_served};
use super::seed;
use crate::load::create;

const NODES: usize = 4;

const OPERATORS: usize = 3;

/// What an operator may run. Shards move from node to node.
const COMMANDS: [&str; 12] = [
    "rebalance plan",
    "rebalance plan",
    "rebalance apply --yes --no-wait",
    "rebalance apply --yes --no-wait",
    "rebalance abort",
    "rebalance pause",
    "rebalance resume",
    "move --shards 00-3f --to n1 --no-wait",
    "move --shards 20-9f --to n2 --no-wait",
    "move --shards 00-ff --free",
    "drain n4 --no-wait",
    "undrain n4",
];

/// What a command may say that does not succeed.
const REFUSALS: [&str; 8] = [
    "no plan is staged",
    "another plan is being carried out",
    "another operator has changed the plan meanwhile",
    "the plan is stale",
    "the plan was being taken back",
    "is drained",
    "nothing is left of the plan",
    "repeat the command",
];

/// Commands of each operator.
fn commands() -> usize {
    if is_long() { 200 } else { 12 }
}

struct Operators {
    cluster: HostCluster,
}

impl Operators {
    fn start(&self, command: &str) -> Running {
        let metadata = self.cluster.metadata();
        let args = ["cluster"].into_iter().chain(command.split(' '));
        Running::start(binary(), args.chain(["--metadata", &metadata]))
    }

    /// Runs commands at once, and checks what they say.
    async fn run_at_once(&self, commands: Vec<&str>) {
        let running: Vec<_> = commands.iter().map(|command| self.start(command)).collect();
        for (command, mut running) in commands.into_iter().zip(running) {
            until(command, async || running.has_ended()).await;
            let output = running.output();
            let said = String::from_utf8_lossy(&output.stderr);
            println!("{command}: {}: {}", output.status, said.trim_end());
            let is_refused = REFUSALS.iter().any(|refusal| said.contains(refusal));
            assert!(output.status.success() || is_refused, "{command}: {said}");
        }
    }

    /// One operator alone, whose command must succeed. A plan that moves nothing is none to apply.
    async fn operate(&self, command: &str) {
        let mut running = self.start(command);
        until_within(Duration::from_secs(300), command, async || {
            running.has_ended()
        })
        .await;
        let output = running.output();
        let said = String::from_utf8_lossy(&output.stderr);
        let applies = command.starts_with("rebalance apply");
        let moves_nothing = applies && said.contains("no plan is staged");
        assert!(
            output.status.success() || moves_nothing,
            "{command}: {said}"
        );
    }
}

/// SP1-SP4, TG1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_at_once_leave_what_the_last_one_wants() {
    let mut random = Rng::with_seed(seed());
    let shape = Shape::of(NODES).with_replicas(1);
    let cluster = block_in_place(|| HostCluster::start(shape, None));
    create(&cluster.client_of(0)).await;
    let clients = [cluster.client_of(0).with_timeout(Duration::from_secs(15))];
    let oracle = Oracle::begin(&mut random, &clients).await;
    let operators = Operators { cluster };
    for _ in 0..commands() {
        let chosen = (0..OPERATORS).map(|_| COMMANDS[random.usize(..COMMANDS.len())]);
        operators.run_at_once(chosen.collect()).await;
        assert!(!oracle.has_failed());
    }
    for command in [
        "rebalance resume",
        "rebalance abort",
        "undrain n4",
        "move --shards 00-ff --free",
        "rebalance plan",
        "rebalance apply --yes",
    ] {
        operators.operate(command).await;
    }
    let metadata = operators.cluster.metadata();
    until("each shard has its replica", async || {
        is_whole(&metadata, 1).await
    })
    .await;
    let keys = key_values_at(&metadata).unwrap();
    assert!(staged_plan(&*keys).await.unwrap().is_none());
    let records = shard_records(&*keys).await.unwrap();
    assert!(records.values().all(|record| record.learners.is_empty()));
    until_served(&clients, true).await;
    oracle.end().await.check(&clients[0]).await;
}
