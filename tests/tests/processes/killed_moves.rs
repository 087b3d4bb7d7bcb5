//! Processes that are killed at each step of a move of shards, on each side of it. The move completes, or an operator
//! ends it. Nothing is left behind then: no learner, no target that was not set, and no file of a shard that its node
//! does not hold. Documents change meanwhile, and what was acknowledged is found in the end.

mod leavings;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::slice;
use std::time::Duration;

use fastrand::Rng;
use simshard_client::{Client, Documents, Queries, SearchSpec};
use simshard_cluster::{FileKeyValues, Targets, registered_stores, shard_records, targets};
use simshard_simhash::Fingerprint;
use simshard_testkit::{End, ProcessCluster, Running, Shape, binary, is_long, until};
use simshard_topology::replication::{ShardRecord, StoreId};
use simshard_topology::{NodeId, ShardId};
use tokio::task::block_in_place;
use tokio::time::sleep;

use crate::interruptions::Lock;
use crate::load::{CORPUS, create};
use crate::moves::operate;
use crate::nemesis::oracle::{Oracle, until_served};
use crate::nemesis::seed;

use Ending::{Completed, Freed, MovedBack};
use Step::{Chosen, Copied, Copying, InSync, Left};
use Victim::{Destination, Operator, Source};

const NODES: usize = 3;

/// What is moved. The first one is large: its steps are those that count.
const MOVED: [ShardId; 3] = [ShardId(0), ShardId(0x40), ShardId(0x80)];

const SHARDS: &str = "00,40,80";

/// Documents of the first shard, with long ids.
const DOCUMENTS: u64 = 15_000;

const ID_BYTES: usize = 200;

/// Documents that are looked for after each case.
const SAMPLE: usize = 300;

/// How long what other nodes hold now is kept.
const REPLACE_SECONDS: u32 = 2;

/// A step that is over too soon is tried again.
const MOST_ATTEMPTS: usize = 5;

/// How far a move has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The target is set, and its node has not come.
    Chosen,
    /// The destination is a learner, and copies.
    Copying,
    /// It has copied all, and no record says so.
    Copied,
    /// It is in sync, and so is the source.
    InSync,
    /// The source has left, and has its files.
    Left,
}

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    /// The node that is to leave.
    Source,
    /// The node that comes.
    Destination,
    /// The command.
    Operator,
}

/// What becomes of the move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// What was killed starts again.
    Completed,
    /// An operator lets the shards be anywhere, before.
    Freed,
    /// An operator chooses the nodes that held them, before.
    MovedBack,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    step: Step,
    victim: Victim,
    ending: Ending,
}

/// The cases of a run: all of them in a long one, else one of each step.
fn cases(random: &mut Rng) -> Vec<Case> {
    let mut chosen = Vec::new();
    for step in [Chosen, Copying, Copied, InSync, Left] {
        let victims: &[Victim] = match step {
            Chosen | Copying => &[Source, Destination, Operator],
            Copied | InSync | Left => &[Source, Destination],
        };
        let of_victim = |victim: &Victim| {
            [Completed, Freed, MovedBack].map(|ending| Case {
                step,
                victim: *victim,
                ending,
            })
        };
        let mut all: Vec<Case> = victims.iter().flat_map(of_victim).collect();
        random.shuffle(&mut all);
        chosen.extend(all.into_iter().take(if is_long() { usize::MAX } else { 1 }));
    }
    chosen
}

/// Nodes, by their numbers.
type Nodes = BTreeSet<usize>;

fn names(nodes: &Nodes) -> String {
    let names: Vec<String> = nodes.iter().map(|node| name(*node)).collect();
    names.join(",")
}

fn name(node: usize) -> String {
    format!("n{}", node + 1)
}

/// A move, by the nodes.
struct Plan {
    before: Nodes,
    after: Nodes,
    source: usize,
    destination: usize,
}

/// A process that was killed, and a command that goes on.
struct Killed {
    node: Option<usize>,
    operator: Option<Running>,
}

struct World {
    cluster: ProcessCluster,
    replicas: usize,
    stores: Vec<StoreId>,
    random: Rng,
    /// The targets that are set.
    targets: Targets,
}

impl World {
    async fn new(replicas: usize, mut random: Rng) -> Self {
        let shape = Shape {
            replace_seconds: Some(REPLACE_SECONDS),
            ..Shape::of(NODES).with_replicas(replicas)
        };
        let shape = shape.with_hot(random.usize(1..=replicas));
        println!("{shape:?}");
        let cluster = ProcessCluster::start(shape);
        create(&cluster.client()).await;
        let mut world = Self {
            stores: vec![StoreId([0; 16]); NODES],
            targets: Targets::new(),
            cluster,
            replicas,
            random,
        };
        for store in registered_stores(&world.keys()).await.unwrap() {
            let number = (0..NODES).find(|node| store.node.as_str() == name(*node));
            world.stores[number.unwrap()] = store.id;
        }
        let first = (0..replicas).collect();
        world.operate_to(&first, &[]);
        insert(&world.client()).await;
        for node in 0..NODES {
            let limits = ["set-limits", &name(node), "--copy-rate", "1"];
            operate(&world.cluster, &limits);
        }
        world
    }

    /// A client that is patient, as the machine may be busy.
    fn client(&self) -> Client {
        self.cluster.client().with_timeout(Duration::from_secs(30))
    }

    /// A copy of the metadata. To read the file itself after the end of a lease takes the lock, which a test may hold.
    fn keys(&self) -> FileKeyValues {
        let copy = self.cluster.folder().join("copy-of-metadata");
        fs::copy(self.cluster.metadata_file(), &copy).unwrap();
        FileKeyValues::at(copy)
    }

    /// The record of the first shard that is moved.
    async fn record(&self) -> std::sync::Arc<ShardRecord> {
        let mut records = shard_records(&self.keys()).await.unwrap();
        records.remove(&MOVED[0]).unwrap()
    }

    /// The nodes that hold a shard in sync.
    fn holders(&self, record: &ShardRecord) -> Nodes {
        let is_there = |node: &usize| record.in_sync(self.stores[*node]).is_some();
        (0..NODES).filter(is_there).collect()
    }

    fn note_targets(&mut self, nodes: &Nodes) {
        let nodes: BTreeSet<NodeId> = nodes
            .iter()
            .map(|node| NodeId::new(&name(*node)).unwrap())
            .collect();
        self.targets = MOVED.map(|shard| (shard, nodes.clone())).into();
    }

    fn operate_to(&mut self, nodes: &Nodes, more: &[&str]) {
        let command = ["move", "--shards", SHARDS, "--to", &names(nodes)];
        operate(&self.cluster, &[&command, more].concat());
        self.note_targets(nodes);
    }

    async fn plan(&mut self) -> Plan {
        let before = self.holders(&*self.record().await);
        let others: Vec<usize> = (0..NODES).filter(|node| !before.contains(node)).collect();
        let destination = self.random.choice(others).unwrap();
        let source = self.random.choice(before.iter().copied()).unwrap();
        let mut after = before.clone();
        after.remove(&source);
        after.insert(destination);
        Plan {
            before,
            after,
            source,
            destination,
        }
    }

    /// Kills a process at a step, and does what the case says. Answers whether the step was met.
    async fn try_case(&mut self, case: Case) -> bool {
        let plan = self.plan().await;
        println!(
            "{case:?}: {} to {}",
            names(&plan.before),
            names(&plan.after)
        );
        let lock = Lock(self.cluster.corpora_lock());
        let operator = self.begin(&plan.after);
        let held = self.until_step(case.step, &plan, &lock).await;
        let is_met = self.is_at(case.step, &plan).await;
        let mut killed = Killed {
            node: None,
            operator: Some(operator),
        };
        self.kill(case.victim, &plan, &mut killed);
        let is_met = is_met && self.is_at(case.step, &plan).await;
        drop(held);
        self.end(case.ending, &plan, killed).await;
        let placed = self.placed(case, is_met, &plan);
        self.until_clean(&placed).await;
        is_met
    }

    /// Starts the command that moves the shards.
    fn begin(&mut self, to: &Nodes) -> Running {
        self.note_targets(to);
        let metadata = format!("file:{}", self.cluster.metadata_file().display());
        let command = ["cluster", "move", "--shards", SHARDS, "--to", &names(to)];
        Running::start(
            binary(),
            [&command[..], &["--metadata", &metadata]].concat(),
        )
    }

    /// Waits until a move has come to a step, and keeps it there if that takes the metadata.
    async fn until_step(&mut self, step: Step, plan: &Plan, lock: &Lock) -> Option<File> {
        let comes = self.stores[plan.destination];
        let logged = self.cluster.node_log(plan.destination).len();
        until(&format!("the move is at the step {step:?}"), async || {
            let record = self.record().await;
            match step {
                Chosen => self.are_targets_set().await,
                Copying | Copied => record.names(comes),
                InSync => record.in_sync(comes).is_some(),
                Left => self.holders(&record) == plan.after,
            }
        })
        .await;
        match step {
            Left => None,
            Copying => {
                sleep(Duration::from_millis(self.random.u64(..500))).await;
                None
            }
            // The record would go on at once.
            Chosen | InSync => Some(block_in_place(|| lock.take())),
            Copied => {
                let held = block_in_place(|| lock.take());
                if self.record().await.learner(comes).is_some() {
                    until("the shard is copied", async || {
                        has_copied(&self.cluster.node_log(plan.destination)[logged..])
                    })
                    .await;
                }
                Some(held)
            }
        }
    }

    /// Whether a move is at a step, by the records and the files.
    async fn is_at(&self, step: Step, plan: &Plan) -> bool {
        let record = self.record().await;
        let [leaves, comes] = [plan.source, plan.destination].map(|node| self.stores[node]);
        match step {
            Chosen => self.are_targets_set().await && !record.names(comes),
            Copying | Copied => record.learner(comes).is_some(),
            InSync => record.in_sync(leaves).is_some() && record.in_sync(comes).is_some(),
            Left => self.holders(&record) == plan.after && self.has_files(plan.source, MOVED[0]),
        }
    }

    async fn are_targets_set(&self) -> bool {
        targets(&self.keys(), |_| {}).await.unwrap() == self.targets
    }

    fn kill(&mut self, victim: Victim, plan: &Plan, killed: &mut Killed) {
        let node = match victim {
            Source => plan.source,
            Destination => plan.destination,
            Operator => {
                killed.operator.take().unwrap().kill();
                return;
            }
        };
        block_in_place(|| self.cluster.end_node(node, End::Killed));
        killed.node = Some(node);
    }

    /// Has an operator end the move if the case says so, and starts what was killed.
    async fn end(&mut self, ending: Ending, plan: &Plan, killed: Killed) {
        if ending == Freed {
            operate(&self.cluster, &["move", "--shards", SHARDS, "--free"]);
            self.targets.clear();
        }
        // A shard is sent to no node that does not answer.
        let is_source = killed.node == Some(plan.source);
        if ending == MovedBack && !is_source {
            self.operate_to(&plan.before, &["--no-wait"]);
        }
        sleep(Duration::from_millis(self.random.u64(..2_500))).await;
        if let Some(node) = killed.node {
            block_in_place(|| self.cluster.start_node(node));
        }
        if ending == MovedBack && is_source {
            self.operate_to(&plan.before, &["--no-wait"]);
        }
        let Some(mut operator) = killed.operator else {
            return;
        };
        until("the command ends", async || operator.has_ended()).await;
        let output = operator.output();
        let said = String::from_utf8_lossy(&output.stderr);
        let told = [
            "have been chosen for shards",
            "has taken this back for shards",
        ];
        let is_told = ending != Completed && told.iter().any(|told| said.contains(told));
        assert!(output.status.success() || is_told, "{said}");
    }

    /// Where the shards may be in the end.
    fn placed(&self, case: Case, is_met: bool, plan: &Plan) -> Vec<Nodes> {
        let Plan { before, after, .. } = plan;
        let (only_before, only_after) = (vec![before.clone()], vec![after.clone()]);
        // With another replica, one that holds the shard is taken for dead, and the third node takes its place.
        let holds = [Source, Destination][usize::from(case.step == Left)];
        let is_taken_over = self.replicas > 1 && case.victim == holds;
        match (case.ending, case.step) {
            (Completed, _) => only_after,
            (MovedBack, _) => only_before,
            (Freed, Chosen | Copying | Copied) if is_met && !is_taken_over => only_before,
            (Freed, Left) if is_met && !is_taken_over => only_after,
            (Freed, _) => [only_before, only_after].concat(),
        }
    }
}

/// Whether a node has said that it has copied what the first shard has.
fn has_copied(log: &str) -> bool {
    let mut lines = log
        .lines()
        .filter(|line| line.contains("this node has copied shards"));
    lines.any(|line| {
        let digits = line.split_once("bytes=").unwrap().1;
        let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap() > DOCUMENTS * ID_BYTES as u64 / 2
    })
}

fn fingerprint(number: u64) -> Fingerprint {
    // The first byte is 0.
    Fingerprint(number.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 8)
}

fn id(number: u64) -> String {
    format!("{number:0ID_BYTES$}")
}

async fn insert(client: &Client) {
    let numbers: Vec<u64> = (0..DOCUMENTS).collect();
    for some in numbers.chunks(1000) {
        let documents = Documents {
            keys: Queries::Fingerprints(some.iter().copied().map(fingerprint).collect()),
            ids: some.iter().copied().map(id).collect(),
        };
        client.insert(CORPUS, documents).await.unwrap();
    }
}

/// Looks for documents: each is found, and nothing else at its place.
async fn look_for(client: &Client, numbers: &[u64]) {
    let spec = || SearchSpec {
        max_distance: Some(0),
        ..SearchSpec::default()
    };
    for some in numbers.chunks(1000) {
        let queries = Queries::Fingerprints(some.iter().copied().map(fingerprint).collect());
        let found = client.find_all(CORPUS, queries, spec()).await.unwrap();
        for (number, query) in some.iter().zip(&found.queries) {
            let ids = query.matches.iter().flat_map(|found| &found.ids);
            assert!(ids.eq(slice::from_ref(&id(*number))), "document {number}");
        }
    }
}

async fn kill_at_each_step(replicas: usize) {
    let mut random = Rng::with_seed(seed());
    let mut world = World::new(replicas, random.fork()).await;
    let client = world.client();
    world.until_clean(&[(0..replicas).collect()]).await;
    let oracle = Oracle::begin(&mut random, slice::from_ref(&client)).await;
    for case in cases(&mut random) {
        let mut attempts = 1;
        while !world.try_case(case).await {
            assert!(attempts < MOST_ATTEMPTS, "never met: {case:?}");
            attempts += 1;
        }
        until_served(slice::from_ref(&client), true).await;
        let sample: Vec<u64> = (0..SAMPLE).map(|_| random.u64(..DOCUMENTS)).collect();
        look_for(&client, &sample).await;
        assert!(!oracle.has_failed(), "after {case:?}");
    }
    let mut knowledge = oracle.end().await;
    knowledge.check(&client).await;
    look_for(&client, &Vec::from_iter(0..DOCUMENTS)).await;
    world.check_directories();
}

/// PE16, FM1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_of_one_replica_survives_a_kill_at_each_step() {
    kill_at_each_step(1).await;
}

/// PE16, FM1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_of_one_of_two_replicas_survives_a_kill_at_each_step() {
    kill_at_each_step(2).await;
}
