//! A corpus that does not change is read as a whole, again and again, while a cluster is disturbed. A stream that ends in
//! order lacks nothing.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures_util::TryStreamExt;
use simshard_client::{Client, ClientError, Documents, Fingerprint, Queries, v1};
use simshard_testkit::until;
use tokio::time::interval;

use super::oracle::Progress;
use super::short_lived::pairs;

const CORPUS: &str = "still";

/// Every second one is near the one before.
const DOCUMENTS: u64 = 2_000;

/// Between the beginnings of two streams.
const PAUSE: Duration = Duration::from_millis(50);

/// Makes the corpus.
pub(super) async fn make(client: &Client) {
    let create = v1::CreateCorpusRequest {
        name: CORPUS.to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    client.create_corpus(create).await.unwrap();
    let spread = |number: u64| {
        Fingerprint((number / 2 + 1).wrapping_mul(0xa076_1d64_78bd_642f) ^ (number % 2))
    };
    until("a corpus is filled", async || {
        let fingerprints = (0..DOCUMENTS).map(spread).collect();
        let documents = Documents {
            keys: Queries::Fingerprints(fingerprints),
            ids: vec![],
        };
        client.insert(CORPUS, documents).await.is_ok()
    })
    .await;
}

/// Who reads it.
pub(super) struct Reader {
    pub(super) random: Rng,
    pub(super) clients: Vec<Client>,
    pub(super) progress: Arc<Progress>,
}

impl Reader {
    /// Goes on until all is over. Answers how many streams ended in order.
    pub(super) async fn run(mut self) -> u64 {
        let mut ticks = interval(PAUSE);
        let mut whole = 0;
        while !self.progress.is_over() {
            ticks.tick().await;
            let client = &self.clients[self.random.usize(..self.clients.len())];
            let (read, expected) = if self.random.bool() {
                (pairs(client, CORPUS).await, DOCUMENTS / 2)
            } else {
                (scanned(client).await, DOCUMENTS)
            };
            if let Ok(count) = read {
                assert_eq!(count, expected, "a stream that ended in order");
                whole += 1;
            }
        }
        whole
    }
}

async fn scanned(client: &Client) -> Result<u64, ClientError> {
    let documents: Vec<_> = client.scan(CORPUS).await?.try_concat().await?;
    Ok(documents.len() as u64)
}
