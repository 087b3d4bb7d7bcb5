//! Nodes and routers are killed while a corpus is deleted. A deletion is acknowledged once every node has it on disk.
//! Until then the name of the corpus is not free. So a router that remembers the old corpus cannot insert documents
//! that no search finds.
//!
//! Twenty rounds, or two hundred with `SIMSHARD_LONG`.

use std::time::Duration;

use simshard_client::v1::{self, CorpusState};
use simshard_client::{Client, ClientError, Documents, Queries, Reason, SearchSpec};
use simshard_simhash::Fingerprint;
use simshard_testkit::{ForgetfulCluster, ProcessCluster, Shape, is_long};

use crate::interruptions::{Moment, Victim, interrupted, until_reached};

const CORPUS: &str = "crawl";

const NODES: usize = 2;

/// A deletion takes about this long, in microseconds.
const DELETION: u64 = 30_000;

async fn create(client: &Client) -> Result<v1::Corpus, ClientError> {
    let create = v1::CreateCorpusRequest {
        name: CORPUS.to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    client.create_corpus(create).await
}

/// Documents in two batches, each of which concerns one node alone: the first byte of each of their blocks is 0, or
/// 255, whatever block leads.
fn batches(id: &str) -> [Documents; NODES] {
    [0, u64::MAX].map(|base| Documents {
        keys: Queries::Fingerprints((0..8).map(|low| Fingerprint(base ^ low)).collect()),
        ids: vec![id.to_owned(); 8],
    })
}

/// Inserts until it is acknowledged: connections to a node that has ended may have to be made anew.
async fn insert(client: &Client, id: &str) {
    for batch in batches(id) {
        let insert = async || client.insert(CORPUS, batch.clone()).await;
        until_reached(insert).await.unwrap();
    }
}

/// Checks that all documents of this id are there, and no others.
async fn check(client: &Client, id: &str, context: &str) {
    for batch in batches(id) {
        let options = SearchSpec {
            max_distance: Some(0),
            ..SearchSpec::default()
        };
        let find = async || client.find_all(CORPUS, batch.keys.clone(), options).await;
        for query in until_reached(find).await.unwrap().queries {
            let ids: Vec<&str> = query
                .matches
                .iter()
                .flat_map(|found| found.ids.iter().map(String::as_str))
                .collect();
            assert_eq!(ids, [id], "{context}: {:?}", query.query);
        }
    }
}

/// The state of the corpus as a router lists it.
async fn state(client: &Client) -> Option<CorpusState> {
    let corpora = client.list_corpora().await.unwrap();
    let corpus = corpora.iter().find(|corpus| corpus.name == CORPUS);
    corpus.map(v1::Corpus::state)
}

fn is_gone<T>(outcome: &Result<T, ClientError>) -> bool {
    outcome.as_ref().is_err_and(|error| {
        error.reason() == Some(Reason::CorpusNotFound) && error.corpus_state().is_none()
    })
}

/// Whether a request is refused for a corpus that is being deleted.
fn is_refused<T>(outcome: &Result<T, ClientError>, reason: Reason) -> bool {
    outcome.as_ref().is_err_and(|error| {
        error.reason() == Some(reason) && error.corpus_state() == Some(CorpusState::Deleting)
    })
}

/// Deletes until it is acknowledged, or was by a request whose answer was lost.
async fn complete(client: &Client) {
    let deleted = until_reached(async || client.delete_corpus(CORPUS).await).await;
    assert!(deleted.is_ok() || is_gone(&deleted), "{deleted:?}");
}

/// Deletes through the second router, and kills a process meanwhile.
async fn interrupted_deletion(
    cluster: &mut ProcessCluster,
    moment: Moment,
    victim: Victim,
) -> Result<(), ClientError> {
    let client = cluster.client_of(1);
    let deletion = async move { client.delete_corpus(CORPUS).await };
    interrupted(cluster, deletion, moment, victim).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_document_goes_into_a_corpus_whose_deletion_was_interrupted() {
    interrupt_deletions_of(ProcessCluster::start_by_layout(NODES)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_document_goes_into_a_deleted_corpus_of_registered_nodes() {
    interrupt_deletions_of(ProcessCluster::start(Shape::of(NODES))).await;
}

async fn interrupt_deletions_of(mut cluster: ProcessCluster) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let rounds = if is_long() { 200 } else { 20 };
    assert_eq!(cluster.add_router(), 1);
    // This router remembers the corpus, and hears of its end from nodes only.
    let remembers = cluster.client_of(0);
    let deletes = cluster.client_of(1);
    for round in 0..rounds {
        until_reached(async || create(&deletes).await)
            .await
            .unwrap();
        insert(&remembers, "old").await;
        let moment = match round % 2 {
            0 => Moment::InTheStore,
            _ => Moment::After(Duration::from_micros(random.u64(0..DELETION))),
        };
        let victim = match random.usize(0..=NODES) {
            NODES => Victim::Router,
            node => Victim::Node(node),
        };
        let outcome = interrupted_deletion(&mut cluster, moment, victim).await;
        victim.start(&mut cluster);
        println!("{moment:?} {victim:?}: {outcome:?}");
        if outcome.is_ok() {
            assert_eq!(state(&deletes).await, None, "round {round}");
        } else {
            complete(&deletes).await;
        }
        until_reached(async || create(&deletes).await)
            .await
            .unwrap();
        insert(&remembers, "new").await;
        check(&deletes, "new", &format!("round {round}")).await;
        complete(&deletes).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_a_node_missed_holds_the_name_until_any_router_completes_it() {
    let mut cluster = ProcessCluster::start_by_layout(NODES);
    let (one, two) = (cluster.client_of(0), cluster.add_router());
    let two = cluster.client_of(two);
    create(&two).await.unwrap();
    insert(&one, "old").await;

    let victim = Victim::Node(1);
    let outcome = interrupted_deletion(&mut cluster, Moment::InTheStore, victim).await;
    let error = outcome.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::NodeUnreachable), "{error}");
    assert_eq!(error.nodes(), ["n2"]);
    let message = error.to_string();
    assert!(message.contains("repeat the deletion"), "{message}");
    let error = two.delete_corpus(CORPUS).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::NodeUnreachable), "{error}");
    victim.start(&mut cluster);

    let documents = || batches("lost")[0].clone();
    for client in [&one, &two] {
        assert_eq!(state(client).await, Some(CorpusState::Deleting));
        let created = create(client).await;
        assert!(is_refused(&created, Reason::CorpusExists), "{created:?}");
        let inserted = client.insert(CORPUS, documents()).await;
        assert!(
            is_refused(&inserted, Reason::CorpusNotFound),
            "{inserted:?}"
        );
        let options = SearchSpec::default();
        let found = client.find_all(CORPUS, documents().keys, options).await;
        assert!(is_refused(&found, Reason::CorpusNotFound), "{found:?}");
        let shown = client.get_corpus(CORPUS).await;
        assert!(is_refused(&shown, Reason::CorpusNotFound), "{shown:?}");
        let streamed = client.scan(CORPUS).await.map(drop);
        assert!(
            is_refused(&streamed, Reason::CorpusNotFound),
            "{streamed:?}"
        );
    }

    // Whichever router has begun it.
    until_reached(async || one.delete_corpus(CORPUS).await)
        .await
        .unwrap();
    let repeated = two.delete_corpus(CORPUS).await;
    assert!(is_gone(&repeated), "{repeated:?}");
    assert_eq!(state(&two).await, None);
    create(&two).await.unwrap();
    insert(&one, "new").await;
    check(&two, "new", "made anew").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn routers_that_delete_and_create_at_once_leave_a_corpus_that_all_agree_on() {
    let cluster = ForgetfulCluster::start(NODES);
    let other = cluster.start_router();
    let [one, two] = [cluster.router.url(), other.url()].map(|url| Client::new(url).unwrap());
    create(&one).await.unwrap();
    for round in 0..10 {
        insert(&two, "old").await;
        let (a, b) = tokio::join!(one.delete_corpus(CORPUS), two.delete_corpus(CORPUS));
        assert!(a.is_ok() || b.is_ok(), "round {round}: {a:?}, {b:?}");
        for deleted in [a, b] {
            assert!(deleted.is_ok() || is_gone(&deleted), "{deleted:?}");
        }
        let (a, b) = tokio::join!(create(&one), create(&two));
        assert_ne!(a.is_ok(), b.is_ok(), "round {round}: {a:?}, {b:?}");
        insert(&one, "new").await;
        for client in [&one, &two] {
            check(client, "new", &format!("round {round}")).await;
        }
        // One deletes what the other creates, again and again.
        let (deleted, created) = tokio::join!(one.delete_corpus(CORPUS), create(&two));
        deleted.unwrap();
        if created.is_err() {
            create(&two).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corpus_too_many_is_refused_until_another_is_gone() {
    let limit = ["--max-corpora", "2"];
    let cluster = ForgetfulCluster::start_with(1, &[], &limit);
    let client = Client::new(cluster.router.url()).unwrap();
    let create = async |name: &str| {
        let create = v1::CreateCorpusRequest {
            name: name.to_owned(),
            ..v1::CreateCorpusRequest::default()
        };
        client.create_corpus(create).await
    };
    create("a").await.unwrap();
    create("b").await.unwrap();
    let error = create("c").await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::TooManyCorpora), "{error}");
    assert!(error.to_string().contains("max_corpora"), "{error}");
    let error = create("a").await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::CorpusExists), "{error}");
    client.delete_corpus("a").await.unwrap();
    create("c").await.unwrap();
}
