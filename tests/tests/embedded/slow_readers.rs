//! Clients that do not read, give up, or stay when the router stops: they do
//! not disturb other clients.

use std::num::NonZeroU32;
use std::time::Duration;

use simshard_client::{Client, Documents, Fingerprint, Queries, Reason, SearchSpec, v1};
use simshard_testkit::TestCluster;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Request;
use tonic::transport::Channel;
use v1::corpus_service_client::CorpusServiceClient;

type Stub = CorpusServiceClient<Channel>;

fn stub(cluster: &TestCluster) -> Stub {
    let channel = Channel::from_shared(cluster.url()).unwrap().connect_lazy();
    Stub::new(channel).max_decoding_message_size(32 << 20)
}

/// Many ids behind one fingerprint: each answer about it has some megabytes.
async fn insert_heavy(client: &Client, fingerprint: u64) {
    for part in 0..12_u32 {
        let ids = (0..1000).map(|id| format!("{part}-{id}-{}", "x".repeat(1000)));
        let documents = Documents {
            keys: Queries::Fingerprints(vec![Fingerprint(fingerprint); 1000]),
            ids: ids.collect(),
        };
        client.insert("c", documents).await.unwrap();
    }
}

fn find(fingerprints: Vec<u64>) -> v1::FindAllRequest {
    v1::FindAllRequest {
        corpus: "c".to_owned(),
        fingerprints,
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_streams_block_no_other_request() {
    let cluster = TestCluster::start(1).await;
    cluster.create_corpus("c", 5, 3).await;
    insert_heavy(&cluster.client, 9).await;

    let mut stalled = Vec::new();
    for _ in 0..8 {
        let batches = (0..6).map(|sequence| v1::FindAllStreamRequest {
            sequence,
            batch: Some(find(vec![9])),
        });
        let batches: Vec<_> = batches.collect();
        let mut stub = stub(&cluster);
        let answers = stub.find_all_stream(tokio_stream::iter(batches));
        let mut answers = answers.await.unwrap().into_inner();
        answers.message().await.unwrap().unwrap();
        stalled.push(answers);
    }
    let client = cluster.client.clone().with_timeout(Duration::from_secs(10));
    for query in 0..20 {
        let queries = Queries::Fingerprints(vec![Fingerprint(1 << 40 | query)]);
        client
            .find_all("c", queries, SearchSpec::default())
            .await
            .unwrap();
    }
    // Those that read on get everything.
    let mut first = stalled.remove(0);
    for _ in 1..6 {
        first.message().await.unwrap().unwrap();
    }
    assert!(first.message().await.unwrap().is_none());
    drop(stalled);
    cluster.stop().await;
}

/// All 41,664 fingerprints at distance 3 from a base, asked for 65,536 times:
/// more than a client waits for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_that_was_given_up_ends() {
    let cluster = TestCluster::start(1).await;
    cluster.create_corpus("c", 5, 3).await;
    let mut near = Vec::new();
    for a in 0..64_u64 {
        for b in a + 1..64 {
            for c in b + 1..64 {
                near.push(Fingerprint(1 << a | 1 << b | 1 << c));
            }
        }
    }
    let documents = Documents {
        keys: Queries::Fingerprints(near),
        ids: vec![],
    };
    cluster.client.insert("c", documents).await.unwrap();

    let impatient = cluster
        .client
        .clone()
        .with_timeout(Duration::from_millis(300));
    let options = SearchSpec {
        limit: NonZeroU32::new(1),
        ..SearchSpec::default()
    };
    for _ in 0..3 {
        let queries = Queries::Fingerprints(vec![Fingerprint(0); 65_536]);
        let error = impatient.find_all("c", queries, options).await.unwrap_err();
        assert_ne!(error.reason(), Some(Reason::AnswerTooLarge), "{error}");
    }
    let client = cluster.client.clone().with_timeout(Duration::from_secs(10));
    let queries = Queries::Fingerprints(vec![Fingerprint(7)]);
    let found = client.find_all("c", queries, options).await.unwrap();
    assert!(found.queries[0].truncated);
    cluster.stop().await;
}

/// CH1: after its deadline a client counts as gone, whether its cancellation arrives or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_batches_ends_at_the_deadline_of_its_client() {
    let cluster = TestCluster::start(2).await;
    cluster.create_corpus("c", 5, 3).await;
    let (sender, batches) = mpsc::channel(1);
    let mut request = Request::new(ReceiverStream::new(batches));
    request.set_timeout(Duration::from_secs(1));
    let answers = stub(&cluster).insert_stream(request).await;
    let mut answers = answers.unwrap().into_inner();
    let end = tokio::time::timeout(Duration::from_secs(10), answers.message());
    let status = end.await.unwrap().unwrap_err();
    assert_eq!(
        Reason::of(&status),
        Some(Reason::DeadlineTooShort),
        "{status:?}"
    );
    drop::<mpsc::Sender<v1::InsertStreamRequest>>(sender);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_is_told_that_the_router_stops_after_what_it_has_read() {
    let cluster = TestCluster::start(2).await;
    cluster.create_corpus("c", 5, 3).await;
    let (sender, batches) = mpsc::channel(1);
    let mut stub = stub(&cluster);
    let answers = stub.insert_stream(ReceiverStream::new(batches));
    let batch = |sequence, fingerprint| v1::InsertStreamRequest {
        sequence,
        batch: Some(v1::InsertRequest {
            corpus: "c".to_owned(),
            fingerprints: vec![fingerprint],
            ..Default::default()
        }),
    };
    sender.send(batch(1, 11)).await.unwrap();
    let mut answers = answers.await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap().sequence, 1);

    // The stream stays open: it must not delay the stop.
    let stopping = tokio::time::timeout(Duration::from_secs(5), cluster.stop());
    stopping.await.unwrap();
    let status = answers.message().await.unwrap_err();
    assert_eq!(Reason::of(&status), Some(Reason::Stopping), "{status:?}");
    drop(sender);
}
