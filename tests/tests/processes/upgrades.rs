//! Versions run beside each other while their programs are replaced one at a time, and go back, until an operator raises
//! the level of the cluster.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use simshard_client::{Client, ClientError, Documents, Fingerprint, Queries, SearchSpec};
use simshard_cluster::{FileKeyValues, KeyValueStore, Outcome, Transaction, registered_stores};
use simshard_testkit::{End, ProcessCluster, Shape, binary, did_nothing, run, until};
use tokio::task::{JoinHandle, block_in_place};

use crate::load::{CORPUS, create};
use crate::moves::{operate, refuse, tell};
use crate::records::until_in_sync;
use crate::replicas::documents;

/// The program of the earlier version: `cargo xtask test --long` builds it.
const EARLIER: &str = "SIMSHARD_TEST_EARLIER";

/// Documents in a batch.
const BATCH: usize = 60;

pub(crate) async fn put(cluster: &ProcessCluster, key: &str, text: &str) {
    commit(cluster, Transaction::new().put(key, text)).await;
}

async fn commit(cluster: &ProcessCluster, change: Transaction) {
    let keys = FileKeyValues::at(cluster.metadata_file());
    let outcome = keys.commit(&change).await.unwrap();
    assert!(matches!(outcome, Outcome::Committed(_)));
}

/// The id of the store of a node.
async fn store_of(cluster: &ProcessCluster, node: &str) -> String {
    let keys = FileKeyValues::at(cluster.metadata_file());
    let stores = registered_stores(&keys).await.unwrap();
    let store = stores.iter().find(|store| store.node.as_str() == node);
    store.unwrap().id.to_string()
}

/// What a command says on standard error. It must succeed.
fn said(cluster: &ProcessCluster, command: &[&str]) -> String {
    let output = tell(cluster, command);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    said
}

fn status(cluster: &ProcessCluster) -> String {
    operate(cluster, &["upgrade", "status"])
}

const FINALIZE: [&str; 3] = ["upgrade", "finalize", "--yes"];

/// UP1, UP3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_level_is_raised_once_all_processes_know_it() {
    let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(2));
    let new = status(&cluster);
    assert!(
        new.contains("cluster\t\t\t2\tyes\tnothing is to be done"),
        "{new}"
    );
    assert!(said(&cluster, &FINALIZE).contains("nothing to do"));
    // From here on, it is a cluster that an earlier version began.
    put(&cluster, "cluster", r#"{"schema":1,"id":"x"}"#).await;
    let ready = status(&cluster);
    assert!(
        ready.contains("cluster\t\t\t1\tyes\t`simshard cluster upgrade finalize` raises"),
        "{ready}"
    );
    for name in ["n1", "n2", "n3", &cluster.url()] {
        let row = ready.lines().find(|row| row.contains(name)).unwrap();
        assert!(row.contains("\t1-2\tyes\t"), "{row}");
    }
    let rebuild = ["force", "--rebuild", "--from", "n1"];
    refuse(&cluster, &rebuild, "needs level 2, and the cluster is at");
    for command in [
        "rebalance plan",
        "rebalance pause",
        "move --shards 00 --to n1",
        "drain n3",
        "set-zone n1 a",
        "set-capacity n1 2",
        "set-limits n1 --copy-rate 5",
        "set-replication --replicas 1 --yes",
    ] {
        let command: Vec<&str> = command.split(' ').collect();
        refuse(&cluster, &command, "needs level 2");
    }
    refuse(&cluster, &FINALIZE[..2], "Does no other router run");

    block_in_place(|| cluster.end_node(2, End::Stopped));
    refuse(&cluster, &FINALIZE, "node n3 does not answer: start it");
    let wrong = [&FINALIZE[..], &["--stopped", "n2"]].concat();
    refuse(&cluster, &wrong, "node n3 does not answer: start it");
    let stopped = [&FINALIZE[..], &["--stopped", "n3"]].concat();
    assert!(said(&cluster, &stopped).contains("the cluster is at level 2"));
    put(&cluster, "cluster", r#"{"schema":1,"id":"x"}"#).await;
    block_in_place(|| cluster.start_node(2));
    let versions = operate(&cluster, &["status"]);
    assert!(versions.contains("versions\tyes\tlevel 1; "), "{versions}");
    cluster.client().list_corpora().await.unwrap();
    until("all nodes are ready", async || {
        !status(&cluster).contains("\tno\t")
    })
    .await;
    assert!(said(&cluster, &FINALIZE).contains("the cluster is at level 2"));
    // No process needs a restart.
    create(&cluster.client()).await;
    assert!(said(&cluster, &rebuild).contains("nothing to do"));
    block_in_place(|| cluster.restart_node(1, End::Killed));
    until_in_sync(&cluster, 2).await;
}

/// UP1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_do_not_know_the_level_are_named() {
    let mut cluster = ProcessCluster::start(Shape::of(2));
    put(&cluster, "cluster", r#"{"schema":1,"id":"x"}"#).await;
    // It looks as if the node went back to the earlier version: what the later one shows is of another start.
    let shown = format!("processes/{}", store_of(&cluster, "n2").await);
    let stale = r#"{"version":"9","oldest":1,"newest":9,"start":{"incarnation":1,"nonce":"00"}}"#;
    put(&cluster, &shown, stale).await;
    refuse(&cluster, &FINALIZE, "node n2 runs an earlier version");
    let router = "processes/router";
    let old = r#"{"version":"0.0.1","oldest":1,"newest":1,"router":"http://10.0.0.9:1"}"#;
    put(&cluster, router, old).await;
    let named = status(&cluster);
    for told in [
        "cluster\t\t\t1\tno\tto be at level 2, it waits for n2,http://10.0.0.9:1",
        "node\tn2\t\t\tno\truns an earlier version: upgrade it",
        "router\thttp://10.0.0.9:1\t0.0.1\t1-1\tno\tdoes not know level 2",
    ] {
        assert!(named.contains(told), "{named}");
    }
    let json = operate(&cluster, &["upgrade", "status", "--json"]);
    assert!(json.contains(r#""waits_for":["n2","#), "{json}");
    block_in_place(|| cluster.restart_node(1, End::Stopped));
    refuse(
        &cluster,
        &FINALIZE,
        "router http://10.0.0.9:1 does not know",
    );
    commit(&cluster, Transaction::new().delete(router)).await;
    until("the node is ready", async || {
        tell(&cluster, &FINALIZE).status.success()
    })
    .await;
}

/// UP2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_starts_in_a_cluster_of_a_later_level() {
    let mut cluster = ProcessCluster::start(Shape::of(2).with_replicas(2));
    block_in_place(|| {
        cluster.end_node(1, End::Stopped);
        cluster.end_router(0, End::Stopped);
    });
    let later = r#"{"schema":3,"id":"x","version":"9.1.0"}"#;
    put(&cluster, "cluster", later).await;
    let told = "knows levels 1 to 2: install Simshard 9.1.0, or a later one";
    refuse(&cluster, &["status"], told);
    refuse(&cluster, &FINALIZE, told);
    for args in [cluster.node_args(1), cluster.router_args(0)] {
        let refused = block_in_place(|| run(binary(), args, ""));
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.contains(told), "{said}");
        assert_eq!(refused.status.code(), Some(2), "{said}");
    }
}

/// Requests that go on meanwhile, of which none fails.
struct Work {
    progress: Arc<Progress>,
    tasks: Vec<JoinHandle<Left>>,
}

#[derive(Default)]
struct Progress {
    batches: AtomicU64,
    requests: AtomicU64,
    /// Those of them that another router answered.
    repeated: AtomicU64,
    is_over: AtomicBool,
}

/// The documents that are there at the end, and those that were removed.
#[derive(Default)]
struct Left {
    kept: Vec<(Fingerprint, String)>,
    removed: Vec<(Fingerprint, String)>,
}

/// Some routers. A request goes to the next one if the first is away, as it is while its program is replaced.
#[derive(Clone)]
struct Routers {
    clients: Vec<Client>,
    progress: Arc<Progress>,
}

impl Routers {
    async fn ask<T, F: Future<Output = Result<T, ClientError>>>(
        &self,
        work: impl Fn(Client) -> F,
    ) -> T {
        self.progress.requests.fetch_add(1, Ordering::Relaxed);
        let mut away = Vec::new();
        for client in &self.clients {
            match work(client.clone()).await {
                Err(error @ ClientError::NoRouter { .. }) => {
                    self.progress.repeated.fetch_add(1, Ordering::Relaxed);
                    away.push(error);
                }
                answered => return answered.unwrap(),
            }
        }
        panic!("no router is there: {away:?}");
    }

    async fn insert(&self, some: &[(Fingerprint, String)]) {
        let insert = |client: Client| {
            let documents = keyed(some);
            async move { client.insert(CORPUS, documents).await }
        };
        self.ask(insert).await;
    }

    async fn remove(&self, some: &[(Fingerprint, String)]) {
        let remove = |client: Client| {
            let documents = keyed(some);
            async move { client.remove(CORPUS, documents).await }
        };
        self.ask(remove).await;
    }

    /// How many of these are found.
    async fn count(&self, some: &[(Fingerprint, String)]) -> usize {
        let exact = SearchSpec {
            max_distance: Some(0),
            ..SearchSpec::default()
        };
        let find = |client: Client| {
            let queries = keyed(some).keys;
            async move { client.find_all(CORPUS, queries, exact).await }
        };
        let found = self.ask(find).await;
        let found = found.queries.iter().zip(some).filter(|(query, (_, id))| {
            let mut matches = query.matches.iter();
            matches.any(|found| found.ids.iter().any(|other| **other == **id))
        });
        found.count()
    }

    /// Inserts documents, and removes half of them, again and again.
    async fn work(self, first: u64) -> Left {
        let mut left = Left::default();
        let mut seed = first;
        while !self.progress.is_over.load(Ordering::Relaxed) {
            seed += 2;
            let all = &documents(seed)[..BATCH];
            self.insert(all).await;
            assert_eq!(self.count(all).await, BATCH);
            let (removed, kept) = all.split_at(BATCH / 2);
            self.remove(removed).await;
            assert_eq!(self.count(removed).await, 0);
            left.removed.extend_from_slice(removed);
            left.kept.extend_from_slice(kept);
            self.progress.batches.fetch_add(1, Ordering::Relaxed);
        }
        left
    }
}

fn keyed(some: &[(Fingerprint, String)]) -> Documents {
    let (fingerprints, ids) = some.iter().cloned().unzip();
    let keys = Queries::Fingerprints(fingerprints);
    Documents { keys, ids }
}

impl Work {
    fn start(cluster: &ProcessCluster) -> Self {
        let progress = Arc::<Progress>::default();
        let clients = [0, 1].map(|router| {
            let client = cluster.client_of(router);
            client.with_timeout(Duration::from_secs(20))
        });
        let tasks = [0, 1].map(|first| {
            let mut clients = clients.to_vec();
            clients.rotate_left(first);
            let progress = Arc::clone(&progress);
            tokio::spawn(Routers { clients, progress }.work(first as u64))
        });
        let tasks = tasks.into();
        Self { progress, tasks }
    }

    /// Waits until this many more batches are done.
    async fn until_more(&self, more: u64) {
        let enough = self.progress.batches.load(Ordering::Relaxed) + more;
        until("batches are done", async || {
            assert!(self.tasks.iter().all(|task| !task.is_finished()));
            self.progress.batches.load(Ordering::Relaxed) >= enough
        })
        .await;
    }

    /// All that was acknowledged is found, and nothing that was removed.
    async fn end(self, cluster: &ProcessCluster) {
        self.progress.is_over.store(true, Ordering::Relaxed);
        let routers = Routers {
            clients: vec![cluster.client().with_timeout(Duration::from_secs(20))],
            progress: Arc::default(),
        };
        for task in self.tasks {
            let left = task.await.unwrap();
            for some in left.kept.chunks(BATCH) {
                assert_eq!(routers.count(some).await, some.len());
            }
            for some in left.removed.chunks(BATCH) {
                assert_eq!(routers.count(some).await, 0);
            }
        }
        let [batches, requests, repeated] = [
            &self.progress.batches,
            &self.progress.requests,
            &self.progress.repeated,
        ]
        .map(|count| count.load(Ordering::Relaxed));
        println!("{batches} batches, {requests} requests, {repeated} at the other router");
    }
}

/// Replaces the program of a node in the order of an operator.
async fn replace_node(cluster: &mut ProcessCluster, number: usize, program: &str, work: &Work) {
    cluster.use_program(program);
    block_in_place(|| cluster.restart_node(number, End::Stopped));
    until_in_sync(cluster, 3).await;
    work.until_more(5).await;
}

/// UP1-UP3: no request fails, and what was acknowledged is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_the_earlier_version_is_upgraded_while_all_goes_on() {
    let Ok(earlier) = env::var(EARLIER) else {
        did_nothing(
            "there is no program of the earlier version: `cargo xtask test --long` makes it",
        );
        return;
    };
    let shape = Shape {
        routers: 2,
        ..Shape::of(3).with_replicas(3).with_hot(2)
    };
    let mut cluster = ProcessCluster::start_of(shape, &earlier);
    create(&cluster.client()).await;
    let work = Work::start(&cluster);
    work.until_more(5).await;
    refuse(&cluster, &FINALIZE, "node n1 runs an earlier version");
    for node in 0..3 {
        replace_node(&mut cluster, node, binary(), &work).await;
        let (done, left) = (node + 1, 2 - node);
        let now = status(&cluster);
        assert_eq!(now.matches("\t1-2\tyes\t").count(), done, "{now}");
        assert_eq!(now.matches("\truns an earlier").count(), left, "{now}");
    }
    for router in 0..2 {
        block_in_place(|| {
            cluster.end_router(router, End::Stopped);
            cluster.start_router(router);
        });
        work.until_more(5).await;
    }
    // One goes back, and comes again.
    replace_node(&mut cluster, 1, &earlier, &work).await;
    refuse(&cluster, &FINALIZE, "node n2 runs an earlier version");
    refuse(
        &cluster,
        &["force", "--rebuild", "--from", "n1"],
        "needs level 2",
    );
    replace_node(&mut cluster, 1, binary(), &work).await;
    let now = status(&cluster);
    for router in 0..2 {
        assert!(now.contains(&cluster.url_of(router)), "{now}");
    }
    assert!(said(&cluster, &FINALIZE).contains("the cluster is at level 2"));
    work.until_more(5).await;
    refuse_earlier(&mut cluster, &earlier);
    until_in_sync(&cluster, 3).await;
    work.until_more(5).await;
    work.end(&cluster).await;
}

/// Neither a node nor a router of the earlier version starts.
fn refuse_earlier(cluster: &mut ProcessCluster, earlier: &str) {
    block_in_place(|| {
        cluster.end_node(0, End::Stopped);
        cluster.end_router(0, End::Stopped);
        for args in [cluster.node_args(0), cluster.router_args(0)] {
            let refused = run(earlier, args, "");
            let said = String::from_utf8_lossy(&refused.stderr);
            assert!(said.contains("its schema is 2"), "{said}");
            assert!(!refused.status.success());
        }
        cluster.start_node(0);
        cluster.start_router(0);
    });
}
