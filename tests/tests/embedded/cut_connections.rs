//! Streams of changes over connections that are cut again and again.

use std::io::{self, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use futures_util::{TryStreamExt, stream};
use simshard_client::{Acknowledged, Client, Documents, Queries, SearchSpec};
use simshard_simhash::Fingerprint;
use simshard_simhash::synthetic::Data;
use simshard_testkit::TestCluster;

const BATCHES: usize = 60;

const DOCUMENTS: usize = 200;

/// Bytes of answers that a connection lets through, at least: those that open it, and more.
const LEAST_BYTES: u64 = 300;

/// Stands before a router, and cuts each connection after some bytes of answers.
struct Cutter {
    url: String,
    connections: Arc<AtomicUsize>,
}

impl Cutter {
    fn start(router: &str) -> Self {
        let router = router.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        thread::spawn(move || {
            for (client, number) in listener.incoming().zip(0..) {
                counter.fetch_add(1, Ordering::Relaxed);
                let (client, server) = (client.unwrap(), TcpStream::connect(&router).unwrap());
                thread::spawn(move || pass(&client, &server, LEAST_BYTES + number * 37 % 400));
            }
        });
        Self { url, connections }
    }
}

/// Passes bytes both ways until `answers` bytes have come back.
fn pass(client: &TcpStream, server: &TcpStream, answers: u64) {
    thread::scope(|scope| {
        scope.spawn(|| io::copy(&mut &*client, &mut &*server));
        let _ = io::copy(&mut server.take(answers), &mut &*client);
        let _ = client.shutdown(Shutdown::Both);
        let _ = server.shutdown(Shutdown::Both);
    });
}

fn batches() -> Vec<Documents> {
    let fingerprints = Data::Random.fingerprints(BATCHES * DOCUMENTS, 5);
    let batch = |(number, chunk): (usize, &[Fingerprint])| Documents {
        keys: Queries::Fingerprints(chunk.to_vec()),
        ids: vec![format!("batch {number}"); chunk.len()],
    };
    fingerprints
        .chunks(DOCUMENTS)
        .enumerate()
        .map(batch)
        .collect()
}

fn documents(acknowledged: &[Acknowledged]) -> u64 {
    acknowledged.iter().map(|one| one.document_count).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_changes_outlive_their_connections_and_nothing_is_lost() {
    let cluster = TestCluster::start(3).await;
    cluster.create_corpus("c", 5, 3).await;
    let cutter = Cutter::start(&cluster.url());
    let client = Client::new(&cutter.url).unwrap();
    let all = (BATCHES * DOCUMENTS) as u64;

    let answers = client.insert_stream("c", stream::iter(batches()));
    let acknowledged: Vec<_> = answers.try_collect().await.unwrap();
    assert_eq!(acknowledged.len(), BATCHES);
    assert_eq!(documents(&acknowledged), all);
    let cut = cutter.connections.load(Ordering::Relaxed);
    assert!(cut > 2, "{cut} connections");
    let shown = cluster.client.get_corpus("c").await.unwrap();
    assert_eq!(shown.document_count, Some(all));
    for batch in batches() {
        let found = cluster
            .client
            .find_all("c", batch.keys, SearchSpec::default());
        let found = found.await.unwrap().queries;
        let exact = |found: &simshard_client::QueryMatches| {
            let first = found.matches.first();
            first.is_some_and(|first| first.ids.contains(&batch.ids[0]))
        };
        assert!(found.iter().all(exact));
    }

    let answers = client.remove_stream("c", stream::iter(batches()));
    let acknowledged: Vec<_> = answers.try_collect().await.unwrap();
    assert_eq!(documents(&acknowledged), all);
    assert!(cutter.connections.load(Ordering::Relaxed) > cut + 2);
    let shown = cluster.client.get_corpus("c").await.unwrap();
    assert_eq!(shown.document_count, Some(0));
    cluster.stop().await;
}
