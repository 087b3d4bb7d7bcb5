//! Corpora that are created, filled, read as a whole and deleted while a cluster is disturbed. What was deleted does not
//! come back, even where another corpus has its name.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures_util::TryStreamExt;
use simshard_client::{
    Client, ClientError, Documents, Fingerprint, Queries, Reason, SearchSpec, v1,
};
use tokio::time::{interval, timeout};

use super::oracle::Progress;

/// Corpora take turns with these many names.
const NAMES: u64 = 2;

/// Documents of a corpus: every second one is near the one before.
const DOCUMENTS: u64 = 40;

/// How long a request is tried. Streams about a whole corpus need a moment at which no record of a shard changes: while
/// all shards move, and other tests run, that may be long in coming.
const PATIENCE: Duration = Duration::from_secs(600);

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Who creates and deletes corpora.
pub(super) struct Maker {
    random: Rng,
    clients: Vec<Client>,
    progress: Arc<Progress>,
    /// Whether a request of this round failed: it may act later.
    has_failed: bool,
    /// What was answered in this round: to what is wrong, it adds how that came.
    story: Vec<String>,
}

/// What is asked about a corpus. The documents are those of a round.
#[derive(Clone, Copy, Debug)]
enum Request {
    Create,
    Insert(u64),
    Find(u64),
    FindPairs,
    Delete,
}

impl Maker {
    pub(super) fn new(random: Rng, clients: &[Client], progress: &Arc<Progress>) -> Self {
        Self {
            random,
            clients: clients.to_vec(),
            progress: Arc::clone(progress),
            has_failed: false,
            story: Vec::new(),
        }
    }

    /// Goes on until all is over. Answers how many corpora there were.
    pub(super) async fn run(mut self) -> u64 {
        let (mut round, mut names) = (0, 0);
        while !self.progress.is_over() {
            self.has_failed = false;
            self.story.clear();
            self.round(round, &format!("made-{names}-{}", round % NAMES))
                .await;
            round += 1;
            // What acts later has names of its own.
            names += u64::from(self.has_failed);
        }
        round
    }

    async fn round(&mut self, round: u64, name: &str) {
        let created = self.persist(name, Request::Create).await;
        // An attempt that failed may have created it.
        let is_there = created.is_ok() || self.has_failed && created == Err(Reason::CorpusExists);
        assert!(is_there, "{name}, round {round}: {:#?}", self.story);
        let before = round.checked_sub(NAMES);
        let mut requests = vec![
            (Request::Insert(round), None),
            (Request::Find(round), Some(DOCUMENTS)),
            (Request::FindPairs, Some(DOCUMENTS / 2)),
        ];
        requests.extend(before.map(|before| (Request::Find(before), Some(0))));
        for (request, expected) in requests {
            let answer = self.persist(name, request).await;
            let is_right = answer.is_ok_and(|count| expected.is_none_or(|right| count == right));
            assert!(is_right, "{name}, round {round}: {:#?}", self.story);
        }
        let deleted = self.persist(name, Request::Delete).await;
        // So may one have deleted it.
        let is_gone = deleted.is_ok() || self.has_failed && deleted == Err(Reason::CorpusNotFound);
        assert!(is_gone, "{name}, round {round}: {:#?}", self.story);
        let found = self.persist(name, Request::Find(round)).await;
        // A creation that failed may create another one.
        let is_gone = found == Err(Reason::CorpusNotFound) || self.has_failed && found == Ok(0);
        assert!(is_gone, "{name}, round {round}: {:#?}", self.story);
    }

    /// Sends a request, through any router, until it is done or refused for good.
    async fn persist(&mut self, name: &str, request: Request) -> Result<u64, Reason> {
        let mut ticks = interval(PAUSE);
        let answered = async {
            loop {
                ticks.tick().await;
                let router = self.random.usize(..self.clients.len());
                let (begun, answer) = (
                    Instant::now(),
                    request.send(&self.clients[router], name).await,
                );
                let took = begun.elapsed();
                self.story.push(format!(
                    "{request:?} at router {router} for {took:.1?}: {answer:?}"
                ));
                match answer {
                    Ok(count) => return Ok(count),
                    Err(error) => match error.reason().filter(|_| error.is_bad_request()) {
                        Some(reason) => return Err(reason),
                        None => self.has_failed = true,
                    },
                }
            }
        };
        let answer = timeout(PATIENCE, answered).await;
        answer.unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {name}, {:#?}", self.story))
    }
}

impl Request {
    /// Sends it once. Answers how many documents or pairs it was about.
    async fn send(self, client: &Client, name: &str) -> Result<u64, ClientError> {
        match self {
            Self::Create => {
                let create = v1::CreateCorpusRequest {
                    name: name.to_owned(),
                    ..v1::CreateCorpusRequest::default()
                };
                client.create_corpus(create).await.map(|_| 0)
            }
            Self::Insert(round) => {
                let documents = Documents {
                    keys: Queries::Fingerprints(fingerprints(round)),
                    ids: vec![],
                };
                client.insert(name, documents).await
            }
            Self::Find(round) => found(client, name, round).await,
            Self::FindPairs => pairs(client, name).await,
            Self::Delete => client.delete_corpus(name).await.map(|()| 0),
        }
    }
}

fn fingerprints(round: u64) -> Vec<Fingerprint> {
    let spread = |number: u64| {
        let pair = round * DOCUMENTS + number / 2;
        Fingerprint((pair + 1).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ (number % 2))
    };
    (0..DOCUMENTS).map(spread).collect()
}

/// How many documents of a round are found, in a complete answer.
async fn found(client: &Client, name: &str, round: u64) -> Result<u64, ClientError> {
    let all = fingerprints(round);
    let queries = Queries::Fingerprints(all.clone());
    let found = client.find_all(name, queries, SearchSpec::default());
    let found = found.await?;
    let with_own = found.queries.iter().zip(&all);
    let those = with_own.filter(|(query, own)| {
        let mut matches = query.matches.iter();
        matches.any(|found| found.fingerprint == **own)
    });
    Ok(those.count() as u64)
}

/// How many pairs a corpus has, by a stream that was read to its end.
pub(super) async fn pairs(client: &Client, name: &str) -> Result<u64, ClientError> {
    let mut count = 0;
    let mut batches = pin!(client.find_pairs(name, None).await?);
    while let Some(batch) = batches.try_next().await? {
        count += batch.iter().count() as u64;
    }
    Ok(count)
}
