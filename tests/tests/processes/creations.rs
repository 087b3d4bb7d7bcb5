//! A node or a router is killed while a corpus is created. The record comes first, so whatever nodes hold has one. The
//! corpus can be used once every node holds it, and any router completes its creation, or deletes it.

use std::time::Duration;

use simshard_client::v1::{self, CorpusState};
use simshard_client::{Client, ClientError, Documents, Fingerprint, Queries, Reason, SearchSpec};
use simshard_testkit::{ProcessCluster, Shape, is_long};

use crate::interruptions::{Moment, Victim, interrupted, until_reached};

const CORPUS: &str = "crawl";

/// A creation takes about this long, in microseconds.
const CREATION: u64 = 30_000;

async fn create(client: &Client, blocks: u32) -> Result<v1::Corpus, ClientError> {
    let create = v1::CreateCorpusRequest {
        name: CORPUS.to_owned(),
        blocks: Some(blocks),
        distance: Some(3),
        recipe: "words-v2".to_owned(),
    };
    client.create_corpus(create).await
}

fn documents() -> Documents {
    let spread = |number: u64| Fingerprint(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    Documents {
        keys: Queries::Fingerprints((0..100).map(spread).collect()),
        ids: vec![],
    }
}

/// Whether the corpus takes documents, and has them found.
async fn assert_usable(client: &Client) {
    let insert = async || client.insert(CORPUS, documents()).await;
    until_reached(insert).await.unwrap();
    let find = async || {
        let options = SearchSpec::default();
        client.find_all(CORPUS, documents().keys, options).await
    };
    let found = until_reached(find).await.unwrap();
    assert!(found.queries.iter().all(|query| !query.matches.is_empty()));
}

/// Whether it is refused as being created.
fn assert_refused<T>(outcome: Result<T, ClientError>, reason: Reason) {
    let error = outcome.map(drop).unwrap_err();
    assert_eq!(error.reason(), Some(reason), "{error}");
    assert_eq!(error.corpus_state(), Some(CorpusState::Creating), "{error}");
}

/// Creates through the second router, and kills a process meanwhile.
async fn interrupted_creation(
    cluster: &mut ProcessCluster,
    moment: Moment,
    victim: Victim,
) -> Result<v1::Corpus, ClientError> {
    let client = cluster.client_of(1);
    let creation = async move { create(&client, 5).await };
    interrupted(cluster, creation, moment, victim).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creation_that_a_node_missed_is_completed_or_deleted_by_any_router() {
    let mut cluster = ProcessCluster::start_by_layout(2);
    let (one, two) = (cluster.client_of(0), cluster.add_router());
    let two = cluster.client_of(two);
    for is_completed in [true, false] {
        let victim = Victim::Node(1);
        let moment = Moment::InTheStore;
        let error = interrupted_creation(&mut cluster, moment, victim).await;
        let error = error.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::NodeUnreachable), "{error}");
        assert_eq!(error.nodes(), ["n2"]);
        let message = error.to_string();
        assert!(message.contains("repeat the creation"), "{message}");
        victim.start(&mut cluster);
        let listed = one.list_corpora().await.unwrap();
        assert_eq!(listed[0].state(), CorpusState::Creating);

        let stored = async || one.list_stored_corpora().await;
        let stored = until_reached(stored).await.unwrap();
        let [stored] = &stored[..] else {
            panic!("{stored:?}");
        };
        assert_eq!(
            (stored.name.as_str(), &stored.nodes[..]),
            (CORPUS, &["n1".to_owned()][..])
        );
        for client in [&one, &two] {
            assert_refused(create(client, 6).await, Reason::CorpusExists);
            let inserted = client.insert(CORPUS, documents()).await;
            assert_refused(inserted, Reason::CorpusNotFound);
            let shown = client.get_corpus(CORPUS).await;
            assert_refused(shown, Reason::CorpusNotFound);
        }

        if is_completed {
            create(&one, 5).await.unwrap();
            assert_usable(&two).await;
        }
        one.delete_corpus(CORPUS).await.unwrap();
        assert!(two.list_corpora().await.unwrap().is_empty());
        assert!(two.list_stored_corpora().await.unwrap().is_empty());
    }
    create(&two, 6).await.unwrap();
    assert_usable(&one).await;
}

/// RC1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_killed_nodes_hold_no_corpus_without_a_record() {
    interrupt_creations_of(ProcessCluster::start_by_layout(2)).await;
}

/// RC1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_killed_registered_nodes_hold_no_corpus_without_a_record() {
    interrupt_creations_of(ProcessCluster::start(Shape::of(2))).await;
}

async fn interrupt_creations_of(mut cluster: ProcessCluster) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let rounds = if is_long() { 200 } else { 10 };
    assert_eq!(cluster.add_router(), 1);
    let (one, two) = (cluster.client_of(0), cluster.client_of(1));
    for round in 0..rounds {
        let moment = Moment::After(Duration::from_micros(random.u64(0..CREATION)));
        let victim = match random.usize(0..3) {
            2 => Victim::Router,
            node => Victim::Node(node),
        };
        let outcome = interrupted_creation(&mut cluster, moment, victim).await;
        victim.start(&mut cluster);
        println!("{round}: {moment:?} {victim:?}: {outcome:?}");
        let stored = until_reached(async || one.list_stored_corpora().await);
        for corpus in stored.await.unwrap() {
            assert_eq!(corpus.name, CORPUS, "round {round}: {corpus:?}");
        }
        if outcome.is_err() {
            let completed = until_reached(async || create(&one, 5).await).await;
            // The killed router had completed it.
            let is_made = |error: &ClientError| {
                error.reason() == Some(Reason::CorpusExists) && error.corpus_state().is_none()
            };
            assert!(
                completed.is_ok() || completed.as_ref().is_err_and(is_made),
                "round {round}: {completed:?}"
            );
        }
        assert_usable(&two).await;
        until_reached(async || one.delete_corpus(CORPUS).await)
            .await
            .unwrap();
    }
}
