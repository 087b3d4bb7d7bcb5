//! Clusters whose metadata is in a real etcd.

use std::net::TcpListener;
use std::process::Output;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use simshard_client::v1;
use simshard_client::{Client, ClientError, Documents, Queries, Reason, SearchSpec};
use simshard_simhash::Fingerprint;
use simshard_testkit::{End, EtcdServer, Process, ProcessCluster, Waiting, binary, run};

use crate::interruptions::until_reached;

/// Near fingerprints to be searched for, in every shard of some table.
const FINGERPRINTS: std::ops::Range<u64> = 0..256;

fn queries() -> Queries {
    let spread = |number: u64| Fingerprint(number.wrapping_mul(0x0101_0101_0101_0101));
    Queries::Fingerprints(FINGERPRINTS.map(spread).collect())
}

async fn create(client: &Client, name: &str) -> Result<v1::Corpus, ClientError> {
    let create = v1::CreateCorpusRequest {
        name: name.to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    client.create_corpus(create).await
}

fn documents(id: &str) -> Documents {
    Documents {
        keys: queries(),
        ids: FINGERPRINTS.map(|_| id.to_owned()).collect(),
    }
}

async fn insert(client: &Client, corpus: &str, id: &str) {
    client.insert(corpus, documents(id)).await.unwrap();
}

/// The ids of all documents.
async fn ids(client: &Client, corpus: &str) -> Vec<Vec<String>> {
    let options = SearchSpec {
        max_distance: Some(0),
        ..SearchSpec::default()
    };
    let find = async || client.find_all(corpus, queries(), options).await;
    let found = until_reached(find).await.unwrap().queries.into_iter();
    let ids = found.map(|query| query.matches.into_iter().flat_map(|found| found.ids));
    ids.map(|ids| ids.map(|id| id.to_string()).collect())
        .collect()
}

fn everywhere(ids: &[&str]) -> Vec<Vec<String>> {
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    FINGERPRINTS.map(|_| ids.clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_routers_see_the_corpora_in_etcd_and_serve_them_while_it_is_away() {
    let mut etcd = EtcdServer::start();
    let mut cluster = ProcessCluster::start_by_layout_at(2, &etcd.url());
    let other = cluster.add_router();
    let clients = [cluster.client(), cluster.client_of(other)];
    let [here, there] = &clients;
    create(here, "crawl").await.unwrap();
    insert(there, "crawl", "before").await;
    assert_eq!(ids(here, "crawl").await, everywhere(&["before"]));

    etcd.stop();
    insert(here, "crawl", "while").await;
    for client in &clients {
        assert_eq!(ids(client, "crawl").await, everywhere(&["before", "while"]));
        let failed = create(client, "news").await.unwrap_err();
        assert_eq!(failed.reason(), Some(Reason::MetadataFailed), "{failed}");
        assert!(failed.to_string().contains("etcd at 127."), "{failed}");
    }

    etcd.restart();
    cluster.restart_node(0, End::Killed);
    cluster.restart_router(End::Killed);
    let created = until_reached(async || create(there, "news").await).await;
    created.unwrap();
    insert(here, "news", "after").await;
    assert_eq!(ids(there, "news").await, everywhere(&["after"]));
    assert_eq!(ids(there, "crawl").await, everywhere(&["before", "while"]));
    here.delete_corpus("crawl").await.unwrap();
    let gone = there.find_all("crawl", queries(), SearchSpec::default());
    let gone = gone.await.unwrap_err();
    assert_eq!(gone.reason(), Some(Reason::CorpusNotFound), "{gone}");
    let listed = there.list_corpora().await.unwrap();
    let names: Vec<&str> = listed.iter().map(|corpus| corpus.name.as_str()).collect();
    assert_eq!(names, ["news"]);
}

/// Nodes that register themselves, each a process with a data directory of its own.
struct Registering {
    folder: tempfile::TempDir,
    metadata: String,
}

impl Registering {
    fn in_etcd(etcd: &EtcdServer) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            metadata: etcd.url(),
        }
    }

    /// On one machine.
    fn in_a_file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let metadata = format!("file:{}", folder.path().join("keys").display());
        Self { folder, metadata }
    }

    /// Starts a node in a thread of its own, for it waits until there is a cluster.
    fn start(&self, name: &str) -> JoinHandle<Process> {
        let args = self.node_args(name);
        thread::spawn(move || Process::serve(binary(), args))
    }

    fn node_args(&self, name: &str) -> Vec<String> {
        let data = self.folder.path().join(name);
        let role = ["serve", "node", "--listen", "127.0.0.1:0", "--name", name];
        let mut args: Vec<String> = role.map(str::to_owned).to_vec();
        let data = data.to_str().unwrap().to_owned();
        args.extend(["--data".to_owned(), data]);
        args.extend(["--metadata".to_owned(), self.metadata.clone()]);
        args
    }

    fn cluster(&self, args: &[&str]) -> Output {
        let all = [&["cluster"], args, &["--metadata", &self.metadata]].concat();
        run(binary(), all, "")
    }

    fn router(&self) -> Process {
        Process::serve(binary(), self.router_args())
    }

    fn router_args(&self) -> Vec<String> {
        let role = ["serve", "router", "--listen", "127.0.0.1:0", "--metadata"];
        let args = role.into_iter().chain([self.metadata.as_str()]);
        args.map(str::to_owned).collect()
    }
}

fn client_of(router: &Process) -> Client {
    let client = Client::new(router.url()).unwrap();
    client.with_timeout(Duration::from_secs(5))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_register_themselves_and_are_found_where_they_are_now() {
    let mut etcd = EtcdServer::start();
    let cluster = Registering::in_etcd(&etcd);
    let names = ["n1", "n2", "n3"];
    let starting = names.map(|name| cluster.start(name));
    let init = cluster.cluster(&["init", "--nodes", "3", "--replicas", "1"]);
    assert!(init.status.success(), "{}", said(&init));
    assert!(said(&init).contains("n1 has 00-55, n2 has 56-aa, n3 has ab-ff"));
    let [_n1, n2, _n3] = starting.map(|node| node.join().unwrap());
    let again = cluster.cluster(&["init", "--nodes", "3"]);
    assert_eq!(again.status.code(), Some(2), "{}", said(&again));
    let listed = cluster.cluster(&["nodes"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains(&format!("n2\t{}\t", n2.url())), "{listed}");

    let router = cluster.router();
    let client = client_of(&router);
    create(&client, "crawl").await.unwrap();
    insert(&client, "crawl", "here").await;
    let old = n2.url().trim_start_matches("http://").to_owned();
    assert_eq!(n2.terminate(), Some(0));
    let _taken = TcpListener::bind(old).unwrap();
    let _n2 = cluster.start("n2").join().unwrap();
    assert_eq!(ids(&client, "crawl").await, everywhere(&["here"]));

    etcd.stop();
    insert(&client, "crawl", "while").await;
    assert_eq!(ids(&client, "crawl").await, everywhere(&["here", "while"]));
    client.remove("crawl", documents("here")).await.unwrap();
    assert_eq!(ids(&client, "crawl").await, everywhere(&["while"]));
    let failed = [
        client.list_corpora().await.map(|_| ()),
        client.delete_corpus("crawl").await.map(|_| ()),
    ];
    for failed in failed {
        let failed = failed.unwrap_err();
        assert_eq!(failed.reason(), Some(Reason::MetadataFailed), "{failed}");
    }
    etcd.restart();
    client.list_corpora().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_serves_the_processes_of_one_machine() {
    let cluster = Registering::in_a_file();
    let starting = ["n1", "n2"].map(|name| cluster.start(name));
    let init = cluster.cluster(&["init", "--nodes", "2"]);
    assert!(init.status.success(), "{}", said(&init));
    let [n1, _n2] = starting.map(|node| node.join().unwrap());
    let routers = [cluster.router(), cluster.router()];
    let [here, there] = routers.each_ref().map(client_of);
    create(&here, "crawl").await.unwrap();
    insert(&there, "crawl", "here").await;
    n1.kill();
    let _n1 = cluster.start("n1").join().unwrap();
    assert_eq!(ids(&here, "crawl").await, everywhere(&["here"]));
    assert_eq!(ids(&there, "crawl").await, everywhere(&["here"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emptied_directory_does_not_pass_for_the_one_that_held_shards() {
    let etcd = EtcdServer::start();
    let cluster = Registering::in_etcd(&etcd);
    let starting = cluster.start("n1");
    assert!(cluster.cluster(&["init", "--nodes", "1"]).status.success());
    starting.join().unwrap().kill();
    let data = cluster.folder.path().join("n1");
    std::fs::rename(&data, cluster.folder.path().join("old")).unwrap();
    let role = ["serve", "node", "--listen", "127.0.0.1:0", "--name", "n1"];
    let place = [
        "--metadata",
        &cluster.metadata,
        "--data",
        data.to_str().unwrap(),
    ];
    let refused = run(binary(), [&role[..], &place].concat(), "");
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(
        said(&refused).contains("start it with the data directory"),
        "{}",
        said(&refused)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_with_a_layout_file_goes_on_without_it() {
    let etcd = EtcdServer::start();
    let mut old = ProcessCluster::start_by_layout(2);
    let client = old.client();
    create(&client, "crawl").await.unwrap();
    insert(&client, "crawl", "before").await;
    for node in 0..2 {
        old.end_node(node, End::Killed);
    }
    old.end_router(0, End::Killed);

    let cluster = Registering::in_etcd(&etcd);
    for name in ["n1", "n2"] {
        std::fs::rename(old.folder().join(name), cluster.folder.path().join(name)).unwrap();
    }
    let starting = ["n1", "n2"].map(|name| cluster.start(name));
    let layout = old.layout();
    let begun = cluster.cluster(&["init", "--cluster", layout.to_str().unwrap()]);
    assert!(begun.status.success(), "{}", said(&begun));
    let _nodes = starting.map(|node| node.join().unwrap());
    let router = cluster.router();
    let client = client_of(&router);
    assert_eq!(ids(&client, "crawl").await, everywhere(&["before"]));
    insert(&client, "crawl", "since").await;
    assert_eq!(
        ids(&client, "crawl").await,
        everywhere(&["before", "since"])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_starts_while_etcd_is_away_waits_for_it() {
    let mut etcd = EtcdServer::start();
    let cluster = Registering::in_etcd(&etcd);
    let starting = cluster.start("n1");
    assert!(cluster.cluster(&["init", "--nodes", "1"]).status.success());
    let node = starting.join().unwrap();
    let router = cluster.router();
    let client = client_of(&router);
    create(&client, "crawl").await.unwrap();
    insert(&client, "crawl", "before").await;
    node.kill();
    router.kill();

    etcd.stop();
    let waiting = [
        cluster.node_args("n1"),
        cluster.router_args(),
        cluster.node_args("n2"),
        cluster.router_args(),
    ];
    let waiting = waiting.map(|args| {
        let mut waiting = Waiting::start(binary(), args);
        waiting.until_logged("the metadata is away, waiting for it");
        waiting
    });
    let [node, router, other_node, other_router] = waiting;
    // A signal ends them all the same.
    assert_eq!(other_node.terminate(), Some(0));
    assert_eq!(other_router.terminate(), Some(0));
    etcd.restart();
    let (_node, router) = (node.listening(), router.listening());
    assert_eq!(
        ids(&client_of(&router), "crawl").await,
        everywhere(&["before"])
    );
}
