//! Streams of changes that their client cancels: what it does then, on the same connection, stays.
//!
//! One router and three nodes. A hundred rounds, or two thousand with `SIMSHARD_LONG`.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::stream;
use simshard_client::v1;
use simshard_client::v1::corpus_service_client::CorpusServiceClient;
use simshard_testkit::{ProcessCluster, is_long};
use tokio::time::timeout;
use tonic::Streaming;
use tonic::transport::Channel;

const CORPUS: &str = "c";

/// Batches of a stream, of one document each: more than are in flight at once.
const BATCHES: usize = 40;

/// The latest moment at which a stream is cancelled, in microseconds after its start.
const LONGEST: u64 = 10_000;

/// The requests of a client that sends all of them at once, and resets the stream as soon as it drops the answers.
type Stub = CorpusServiceClient<Channel>;

fn rounds() -> usize {
    if is_long() { 2000 } else { 100 }
}

fn insert(fingerprints: &[u64]) -> v1::InsertRequest {
    v1::InsertRequest {
        corpus: CORPUS.to_owned(),
        fingerprints: fingerprints.to_vec(),
        ..v1::InsertRequest::default()
    }
}

fn remove(fingerprints: &[u64]) -> v1::RemoveRequest {
    v1::RemoveRequest {
        corpus: CORPUS.to_owned(),
        fingerprints: fingerprints.to_vec(),
        ..v1::RemoveRequest::default()
    }
}

/// Opens a stream that inserts each document in a batch of its own.
async fn begin(stub: &mut Stub, documents: &[u64]) -> Streaming<v1::InsertStreamResponse> {
    let batches = documents.chunks(1).map(insert);
    let batches = batches.map(|batch| v1::InsertStreamRequest {
        sequence: 0,
        batch: Some(batch),
    });
    let batches: Vec<_> = batches.collect();
    let answers = stub.insert_stream(stream::iter(batches)).await;
    answers.unwrap().into_inner()
}

async fn read_all(mut answers: Streaming<v1::InsertStreamResponse>) {
    while answers.message().await.unwrap().is_some() {}
}

async fn stored(stub: &mut Stub) -> BTreeSet<u64> {
    let request = v1::ScanRequest {
        corpus: CORPUS.to_owned(),
        ..v1::ScanRequest::default()
    };
    let mut pages = stub.scan(request).await.unwrap().into_inner();
    let mut all = BTreeSet::new();
    while let Some(page) = pages.message().await.unwrap() {
        all.extend(page.fingerprints);
    }
    all
}

/// CH1: the router reads that a stream was cancelled before it reads the next request of that connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_insert_stream_that_was_cancelled_does_not_undo_a_removal() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let cluster = ProcessCluster::start_by_layout(3);
    let create = v1::CreateCorpusRequest {
        name: CORPUS.to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    cluster.client().create_corpus(create).await.unwrap();
    let channel = Channel::from_shared(cluster.url()).unwrap();
    let mut stub = Stub::new(channel.connect().await.unwrap());
    let mut cancelled = 0;
    for round in 0..rounds() {
        let documents: Vec<u64> = std::iter::repeat_with(|| random.u64(..))
            .take(BATCHES)
            .collect();
        let answers = begin(&mut stub, &documents).await;
        let until = Duration::from_micros(random.u64(..LONGEST));
        let is_cancelled = timeout(until, read_all(answers)).await.is_err();
        cancelled += usize::from(is_cancelled);
        stub.remove(remove(&documents)).await.unwrap();
        // Nodes get it after whatever they got of the stream.
        stub.insert(insert(&[random.u64(..)])).await.unwrap();
        let stored = stored(&mut stub).await;
        let back = documents.iter().position(|one| stored.contains(one));
        assert_eq!(back, None, "round {round}, {until:?}, {is_cancelled}");
    }
    assert!(cancelled > 0, "every stream came to its end first");
}
