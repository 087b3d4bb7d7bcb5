//! Changes that are given up while the link to a node hangs: their memory counts until they end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use simshard_client::{Client, Reason, v1};
use simshard_cluster::{ClusterLayout, MemoryStore, Node};
use simshard_router::Dialer;
use simshard_router::{RouterConfig, Security, Web};
use simshard_runtime::observed::Observed;
use simshard_testkit::{StallingProxy, TestCluster};
use tokio::net::TcpListener;
use tokio::task::block_in_place;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::transport::Channel;
use v1::corpus_service_client::CorpusServiceClient;

type Stub = CorpusServiceClient<Channel>;

/// The router's memory: enough for one of the changes, not for two.
const BUDGET: usize = 3 << 20;

/// A longer wait means that the event will not come.
const LONG: Duration = Duration::from_secs(20);

/// A change of 2 MiB.
fn insert() -> v1::InsertRequest {
    v1::InsertRequest {
        corpus: "c".to_owned(),
        fingerprints: (0..2048).collect(),
        ids: vec!["i".repeat(1000); 2048],
        ..Default::default()
    }
}

/// A router with little memory, over a node behind the link.
async fn router(cluster: &TestCluster, link: &StallingProxy) -> Stub {
    let node = Node {
        address: format!("http://{}", link.address()),
        ..cluster.layout().nodes()[0].clone()
    };
    let layout = ClusterLayout::planned(vec![node], 1).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let config = RouterConfig {
        timeout: Duration::from_secs(60),
        max_corpora: 1000,
        in_flight_bytes: BUDGET,
        drain: Duration::from_secs(1),
        observed: Observed::default(),
        web: Web::default(),
        security: Security::default(),
        dialer: Dialer::PLAIN,
    };
    let (store, end) = (MemoryStore::new(layout), CancellationToken::new());
    tokio::spawn(simshard_router::serve(
        config,
        Arc::new(store),
        listener,
        end,
    ));
    let corpus = v1::CreateCorpusRequest {
        name: "c".to_owned(),
        ..Default::default()
    };
    let client = Client::new(&url).unwrap();
    client.create_corpus(corpus).await.unwrap();
    Stub::new(Channel::from_shared(url).unwrap().connect_lazy())
}

/// Inserts until the client is dropped.
async fn insert_as(is_stream: bool, mut stub: Stub) {
    if is_stream {
        let request = v1::InsertStreamRequest {
            sequence: 1,
            batch: Some(insert()),
        };
        let requests = stream::iter([request]).chain(stream::pending());
        let mut answers = stub.insert_stream(requests).await.unwrap().into_inner();
        answers.message().await.unwrap();
    } else {
        stub.insert(insert()).await.unwrap();
    }
}

fn is_overloaded<T>(answer: &Result<T, Status>) -> bool {
    let error = answer.as_ref().err();
    error.is_some_and(|status| Reason::of(status) == Some(Reason::Overloaded))
}

/// CH4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_was_given_up_counts_until_it_ends() {
    let cluster = TestCluster::start(1).await;
    let address = cluster.layout().nodes()[0].address.clone();
    let link = StallingProxy::start(address.trim_start_matches("http://").parse().unwrap());
    let mut stub = router(&cluster, &link).await;
    for is_stream in [false, true] {
        link.stall();
        let given_up = tokio::spawn(insert_as(is_stream, stub.clone()));
        block_in_place(|| link.until_it_keeps_some());
        given_up.abort();
        assert!(given_up.await.unwrap_err().is_cancelled());
        // On the same connection: the router has heard of it.
        let list = v1::ListCorporaRequest::default();
        stub.list_corpora(list).await.unwrap();
        let other = timeout(LONG, stub.insert(insert())).await;
        assert!(is_overloaded(&other.unwrap()), "stream: {is_stream}");

        link.resume();
        let another = async { while is_overloaded(&stub.insert(insert()).await) {} };
        timeout(LONG, another).await.unwrap();
    }
    cluster.stop().await;
}
