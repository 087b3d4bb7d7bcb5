//! Corpora that are created while a node is away, or does not reach the metadata. Later it needs no metadata for them.

use simshard_testkit::{End, EtcdServer, Process, ProcessCluster, Shape, StallingProxy, binary};
use tokio::task::block_in_place;

use crate::interruptions::until_reached;
use crate::on_demand::{all, create, found, insert, of_the_first_node, record};
use crate::readiness::until_ready;

const NODE: usize = 1;

/// Three nodes with all shards, one of which reaches etcd by a link of its own.
struct Linked {
    cluster: ProcessCluster,
    link: StallingProxy,
    _node: Process,
}

impl Linked {
    async fn start(etcd: &EtcdServer) -> Self {
        let url = etcd.url();
        let mut cluster = ProcessCluster::start_at(Shape::of(3).with_replicas(3), &url);
        let link = StallingProxy::start(etcd.address());
        let node = block_in_place(|| {
            cluster.end_node(NODE, End::Stopped);
            let args = cluster.node_args(NODE).into_iter();
            let by_link = format!("etcd://{}", link.address());
            let args = args.map(|arg| if arg == url { by_link.clone() } else { arg });
            Process::serve(binary(), args)
        });
        until_ready(&cluster, NODE).await;
        Self {
            cluster,
            link,
            _node: node,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corpus_is_created_and_used_while_a_node_does_not_reach_the_metadata() {
    let etcd = EtcdServer::start();
    let linked = Linked::start(&etcd).await;
    let client = linked.cluster.client();
    linked.link.stall();
    create(&client, "crawl").await.unwrap();
    insert(&client, "crawl", all()).await.unwrap();
    assert_eq!(found(&client, "crawl", all()).await.unwrap(), 200);
}

/// No router told a node of this one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_goes_around_a_node_that_cannot_look_for_the_corpus() {
    let etcd = EtcdServer::start();
    let linked = Linked::start(&etcd).await;
    let client = linked.cluster.client();
    linked.link.stall();
    record(&etcd.url(), "crawl").await;
    assert_eq!(found(&client, "crawl", all()).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_away_makes_corpora_when_it_comes_back() {
    let mut etcd = EtcdServer::start();
    let mut cluster = ProcessCluster::start_at(Shape::of(3), &etcd.url());
    let client = cluster.client();
    cluster.end_node(NODE, End::Killed);
    create(&client, "crawl").await.unwrap();
    // The router needs the record once.
    insert(&client, "crawl", of_the_first_node()).await.unwrap();
    block_in_place(|| cluster.start_node(NODE));
    etcd.stop();
    let inserted = until_reached(async || insert(&client, "crawl", all()).await);
    inserted.await.unwrap();
    assert_eq!(found(&client, "crawl", all()).await.unwrap(), 200);
}

/// Without a restart: it looks now and then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_not_told_makes_corpora_after_a_while() {
    let mut etcd = EtcdServer::start();
    let cluster = ProcessCluster::start_at(Shape::of(2), &etcd.url());
    let client = cluster.client();
    record(&etcd.url(), "crawl").await;
    let held = async || {
        let corpora = client.list_stored_corpora().await.unwrap();
        corpora.iter().any(|corpus| corpus.nodes.len() == 2)
    };
    simshard_testkit::until("both nodes hold it", held).await;
    // The router needs the record once.
    assert_eq!(client.list_corpora().await.unwrap().len(), 1);
    assert_eq!(found(&client, "crawl", all()).await.unwrap(), 0);
    etcd.stop();
    insert(&client, "crawl", all()).await.unwrap();
}
