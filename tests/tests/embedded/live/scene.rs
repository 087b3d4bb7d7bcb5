//! Corpora with all that makes streams hard: several documents of a fingerprint, some removed, crowds, extremes.

use futures_util::{Stream, TryStreamExt};
use simshard_client::{Client, ClientError, Documents, Fingerprint, Queries, v1};
use simshard_simhash::synthetic::Data;
use simshard_testkit::{Oracle, TestCluster};
use tonic::transport::Channel;
use v1::corpus_service_client::CorpusServiceClient;

/// The usual layouts, the fewest and the most bits of a prefix, blocks narrower than a byte; the last two have
/// prefixes that are shorter than a shard's byte.
pub(crate) const LAYOUTS: [(u32, u32); 9] = [
    (5, 3),
    (4, 2),
    (6, 3),
    (1, 0),
    (10, 7),
    (16, 1),
    (64, 1),
    (9, 8),
    (20, 18),
];

/// Fills a new corpus; what it holds then.
pub(crate) async fn fill(client: &Client, corpus: &str, data: Data, count: usize) -> Oracle {
    let mut set = data.fingerprints(count, 5);
    set.extend([0, 1, u64::MAX, u64::MAX - 1].map(Fingerprint));
    let mut oracle = Oracle::default();
    let mut documents = Vec::new();
    for (number, &fingerprint) in set.iter().enumerate() {
        documents.push((fingerprint, format!("document-{number}")));
        if number % 3 == 0 {
            documents.push((fingerprint, String::new()));
        }
        if number % 7 == 0 {
            let copies = (0..number % 5).map(|copy| (fingerprint, format!("copy-{copy}")));
            documents.extend(copies);
        }
    }
    for (fingerprint, id) in &documents {
        oracle.insert(*fingerprint, id);
    }
    client.insert(corpus, columns(&documents)).await.unwrap();
    // A tenth goes, of some fingerprints all.
    let gone: Vec<_> = documents.into_iter().step_by(10).collect();
    for (fingerprint, id) in &gone {
        oracle.remove(*fingerprint, id);
    }
    client.remove(corpus, columns(&gone)).await.unwrap();
    oracle
}

/// Documents in all shards.
pub(crate) fn everywhere() -> Vec<(Fingerprint, String)> {
    let document = |number: u64| (Fingerprint(number << 51 | 1), "more".to_owned());
    (0..5_000).map(document).collect()
}

pub(crate) fn columns(documents: &[(Fingerprint, String)]) -> Documents {
    let fingerprints = documents.iter().map(|(fingerprint, _)| *fingerprint);
    Documents {
        keys: Queries::Fingerprints(fingerprints.collect()),
        ids: documents.iter().map(|(_, id)| id.clone()).collect(),
    }
}

/// All that a stream yields.
pub(crate) async fn all<T>(
    stream: Result<impl Stream<Item = Result<Vec<T>, ClientError>>, ClientError>,
) -> Result<Vec<T>, ClientError> {
    stream?.try_concat().await
}

/// The end of a stream, after its answers.
pub(crate) async fn end<T>(
    stream: Result<impl Stream<Item = Result<T, ClientError>>, ClientError>,
) -> Result<(), ClientError> {
    stream?.try_for_each(async |_| Ok(())).await
}

/// A connection of its own, for streams that are not read.
pub(crate) fn stub(cluster: &TestCluster) -> CorpusServiceClient<Channel> {
    let channel = Channel::from_shared(cluster.url()).unwrap().connect_lazy();
    CorpusServiceClient::new(channel).max_decoding_message_size(32 << 20)
}

/// Many megabytes: more than all buffers between a node and a reader take.
pub(crate) async fn insert_heavy(client: &Client, corpus: &str) -> Oracle {
    let mut oracle = Oracle::default();
    for part in 0..48_u64 {
        let document = |number: u64| {
            let fingerprint = (part * 1000 + number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (
                Fingerprint(fingerprint),
                format!("{number}-{}", "x".repeat(1000)),
            )
        };
        let documents: Vec<_> = (0..1000).map(document).collect();
        for (fingerprint, id) in &documents {
            oracle.insert(*fingerprint, id);
        }
        client.insert(corpus, columns(&documents)).await.unwrap();
    }
    oracle
}
