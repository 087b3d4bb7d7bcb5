//! The layout file changes while processes run: those that read it before and those that read it after refuse each
//! other, and no answer misses what was acknowledged.
//!
//! Five rounds, or two hundred with `SIMSHARD_LONG`.

use std::collections::BTreeSet;

use simshard_client::{
    Client, ClientError, Documents, Fingerprint, Queries, Reason, SearchSpec, v1,
};
use simshard_testkit::{ForgetfulCluster, is_long};

const NODES: usize = 3;

/// Documents that each round tries to insert, one a request, through one router or the other.
const DOCUMENTS: usize = 60;

async fn create(client: &Client, name: &str) -> Result<(), ClientError> {
    let corpus = v1::CreateCorpusRequest {
        name: name.to_owned(),
        ..Default::default()
    };
    client.create_corpus(corpus).await.map(drop)
}

async fn insert(
    client: &Client,
    corpus: &str,
    fingerprint: Fingerprint,
) -> Result<u64, ClientError> {
    let documents = Documents {
        keys: Queries::Fingerprints(vec![fingerprint]),
        ids: vec![],
    };
    client.insert(corpus, documents).await
}

/// Whether a document is found, if the answer is complete.
async fn is_found(
    client: &Client,
    corpus: &str,
    fingerprint: Fingerprint,
) -> Result<bool, ClientError> {
    let queries = Queries::Fingerprints(vec![fingerprint]);
    let found = client.find_all(corpus, queries, SearchSpec::default());
    let found = found.await?;
    let mut matches = found.queries[0].matches.iter();
    Ok(matches.any(|found| found.fingerprint == fingerprint))
}

/// One router has read the layout file before a node was added, another one after: how many of the documents are
/// acknowledged through either, and found through the old one.
async fn round(seed: u64) -> (usize, usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut cluster = ForgetfulCluster::start(NODES);
    let old = Client::new(cluster.router.url()).unwrap();
    create(&old, "before").await.unwrap();
    cluster.add_node();
    let router = cluster.start_router();
    let new = Client::new(router.url()).unwrap();
    // Through either router one node at least refuses to make it.
    let made = create(&new, "after").await;
    assert_eq!(made.unwrap_err().reason(), Some(Reason::NotOwner));

    // A node that was restarted is of the new map, too.
    if random.bool() {
        let number = random.usize(0..NODES);
        drop(cluster.nodes.remove(number));
        let node = cluster.start_node(&format!("n{}", number + 1));
        cluster.nodes.insert(number, node);
    }
    let mut acknowledged = BTreeSet::new();
    for _ in 0..DOCUMENTS {
        let fingerprint = Fingerprint(random.u64(..));
        let client = if random.bool() { &old } else { &new };
        if insert(client, "before", fingerprint).await.is_ok() {
            acknowledged.insert(fingerprint);
        }
    }
    let mut found = 0;
    for &fingerprint in &acknowledged {
        for client in [&old, &new] {
            match is_found(client, "before", fingerprint).await {
                Ok(is_found) => {
                    assert!(is_found, "seed {seed}: {fingerprint:?} was missed");
                    found += 1;
                }
                // A node of the other map, or one that lost its memory, refuses: no answer is no wrong one.
                Err(error) => {
                    let refusals = [Some(Reason::NotOwner), Some(Reason::CorpusNotLoaded)];
                    assert!(refusals.contains(&error.reason()), "seed {seed}: {error}");
                }
            }
        }
    }
    (acknowledged.len(), found)
}

#[tokio::test]
async fn a_router_of_an_older_layout_misses_nothing_that_was_acknowledged() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let rounds = if is_long() { 200 } else { 5 };
    let (mut acknowledged, mut found) = (0, 0);
    for number in 0..rounds {
        let (of_round, found_of_round) = round(seed.wrapping_add(number)).await;
        acknowledged += of_round;
        found += found_of_round;
    }
    println!("{acknowledged} acknowledged, found {found} times");
    assert!(acknowledged > 0, "nothing was tested");
    assert!(found > 0, "nothing was tested");
}

/// The refusal names both maps, so that an operator sees which process is behind.
#[tokio::test]
async fn a_refusal_between_maps_names_both() {
    let mut cluster = ForgetfulCluster::start(NODES);
    cluster.add_node();
    let router = cluster.start_router();
    let client = Client::new(router.url()).unwrap();
    let refused = create(&client, "c").await.unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::NotOwner));
    let message = refused.to_string();
    let is_digest = |word: &&str| word.len() == 16 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let words = message.split(|c: char| !c.is_ascii_alphanumeric());
    let digests: BTreeSet<&str> = words.filter(is_digest).collect();
    assert_eq!(digests.len(), 2, "{message}");
}
