//! Nodes and routers are killed while a corpus is deleted. A deletion is acknowledged once every node has it on disk.
//! Until then the name of the corpus is not free. So a router that remembers the old corpus cannot insert documents
//! that no search finds.
//!
//! Twenty rounds, or two hundred with `SIMSHARD_LONG`.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use simshard_client::v1::{self, CorpusState};
use simshard_client::{Client, ClientError, Documents, Queries, Reason, SearchSpec};
use simshard_simhash::Fingerprint;
use simshard_testkit::{End, ForgetfulCluster, ProcessCluster};
use tokio::task::block_in_place;

const CORPUS: &str = "crawl";

const NODES: usize = 2;

/// How long a test waits for a cluster to do what it should.
const PATIENCE: Duration = Duration::from_secs(60);

/// A deletion takes about so long, in microseconds.
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

/// Does it until no node and no router is away.
async fn until_reached<T>(
    work: impl AsyncFn() -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let reached = async {
        loop {
            match work().await {
                Err(error) if error.reason() == Some(Reason::NodeUnreachable) => {}
                // The connection to a router that was killed.
                Err(ClientError::NoRouter { .. }) => {}
                outcome => break outcome,
            }
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap()
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
        error.reason() == Some(Reason::CorpusNotFound) && !error.is_about_deletion()
    })
}

/// Whether a request is refused for a corpus that is being deleted.
fn is_refused<T>(outcome: &Result<T, ClientError>, reason: Reason) -> bool {
    outcome
        .as_ref()
        .is_err_and(|error| error.reason() == Some(reason) && error.is_about_deletion())
}

/// Deletes until it is acknowledged, or was by a request whose answer was lost.
async fn complete(client: &Client) {
    let deleted = until_reached(async || client.delete_corpus(CORPUS).await).await;
    assert!(deleted.is_ok() || is_gone(&deleted), "{deleted:?}");
}

/// The file that a router locks while it changes the corpora.
struct Lock(PathBuf);

impl Lock {
    fn take(&self) -> File {
        let file = File::options().create(true).append(true).open(&self.0);
        let file = file.unwrap();
        file.lock().unwrap();
        file
    }

    /// Whether another process waits for it.
    fn is_waited_for(&self) -> bool {
        let inode = format!(":{} ", fs::metadata(&self.0).unwrap().ino());
        let locks = fs::read_to_string("/proc/locks").unwrap();
        let mut waiting = locks.lines().filter(|lock| lock.contains("-> FLOCK"));
        waiting.any(|lock| lock.contains(&inode))
    }
}

/// When a process is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So long after the deletion began, if it takes so long.
    After(Duration),
    /// Once the router has heard that all nodes answer, and before it has told any to drop the corpus.
    InTheStore,
}

/// A process that is killed, and can be started again.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Node(usize),
    /// The router that deletes.
    Router,
}

impl Victim {
    fn end(self, cluster: &mut ProcessCluster) {
        block_in_place(|| match self {
            Self::Node(node) => cluster.end_node(node, End::Killed),
            Self::Router => cluster.end_router(1, End::Killed),
        });
    }

    fn start(self, cluster: &mut ProcessCluster) {
        block_in_place(|| match self {
            Self::Node(node) => cluster.start_node(node),
            Self::Router => cluster.start_router(1),
        });
    }
}

/// Deletes through the second router, and kills a process meanwhile.
async fn interrupted(
    cluster: &mut ProcessCluster,
    moment: Moment,
    victim: Victim,
) -> Result<(), ClientError> {
    let lock = Lock(cluster.folder().join("cluster.corpora.lock"));
    let held = matches!(moment, Moment::InTheStore).then(|| lock.take());
    let client = cluster.client_of(1);
    let mut deletion = tokio::spawn(async move { client.delete_corpus(CORPUS).await });
    match moment {
        Moment::After(duration) => {
            if let Ok(outcome) = tokio::time::timeout(duration, &mut deletion).await {
                victim.end(cluster);
                return outcome.unwrap();
            }
        }
        Moment::InTheStore => {
            let waited_for = async {
                while !lock.is_waited_for() {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(PATIENCE, waited_for).await.unwrap();
        }
    }
    victim.end(cluster);
    drop(held);
    deletion.await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_document_goes_into_a_corpus_whose_deletion_was_interrupted() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let rounds = match std::env::var_os("SIMSHARD_LONG") {
        Some(_) => 200,
        None => 20,
    };
    let mut cluster = ProcessCluster::start(NODES);
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
        let outcome = interrupted(&mut cluster, moment, victim).await;
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
    let mut cluster = ProcessCluster::start(NODES);
    let (one, two) = (cluster.client_of(0), cluster.add_router());
    let two = cluster.client_of(two);
    create(&two).await.unwrap();
    insert(&one, "old").await;

    let victim = Victim::Node(1);
    let outcome = interrupted(&mut cluster, Moment::InTheStore, victim).await;
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
