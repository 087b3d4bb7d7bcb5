//! What documents take in a process without a data directory, which keeps their ids in memory.

use std::time::{Duration, Instant};

use simshard_client::{Client, Documents, Fingerprint, Queries, SearchSpec, v1};
use simshard_runtime::system::anonymous_memory_of;
use simshard_testkit::{Process, binary};

/// Most bytes of memory of a document whose id has 29 bytes, tables and process included.
const MOST_BYTES: u64 = 230;

const BATCH: u64 = 10_000;

/// The allocator has given back by then what it does not use.
const LONG: Duration = Duration::from_secs(30);

fn id(number: u64) -> String {
    format!("https://example.org/{number:09}")
}

fn spread(number: u64) -> Fingerprint {
    Fingerprint(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_with_an_id_of_29_bytes_takes_at_most_230_bytes() {
    assert_eq!(id(0).len(), 29);
    let count = 1_000_000;
    let process = Process::serve(binary(), ["serve", "--listen", "127.0.0.1:0"]);
    let client = Client::new(process.url()).unwrap();
    let corpus = v1::CreateCorpusRequest {
        name: "pages".to_owned(),
        blocks: Some(5),
        distance: Some(3),
        ..v1::CreateCorpusRequest::default()
    };
    client.create_corpus(corpus).await.unwrap();
    for start in (0..count).step_by(BATCH as usize) {
        let documents = start..(start + BATCH).min(count);
        let keys = Queries::Fingerprints(documents.clone().map(spread).collect());
        let ids = documents.map(id).collect();
        let inserted = client.insert("pages", Documents { keys, ids });
        assert!(inserted.await.unwrap() > 0);
    }
    let start = Instant::now();
    let mut bytes = u64::MAX;
    while bytes > MOST_BYTES * count {
        assert!(start.elapsed() < LONG, "{} bytes each", bytes / count);
        bytes = anonymous_memory_of(process.id()).unwrap();
    }
    println!("{} bytes each", bytes / count);
    let query = Queries::Fingerprints(vec![spread(7)]);
    let found = client.find_all("pages", query, SearchSpec::default());
    let found = found.await.unwrap();
    assert_eq!(found.queries[0].matches[0].ids, [id(7)]);
}
