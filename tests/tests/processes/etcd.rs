//! The corpora of a cluster in a real etcd.

use simshard_client::v1;
use simshard_client::{Client, ClientError, Documents, Queries, Reason, SearchSpec};
use simshard_simhash::Fingerprint;
use simshard_testkit::{End, EtcdServer, ProcessCluster};

use crate::interruptions::until_reached;

/// Near fingerprints to be searched for, in every shard of some table.
const FINGERPRINTS: std::ops::Range<u64> = 0..256;

fn queries() -> Queries {
    let spread = |number: u64| Fingerprint(number.wrapping_mul(0x0101_0101_0101_0101));
    Queries::Fingerprints(FINGERPRINTS.map(spread).collect())
}

async fn create(client: &Client, name: &str) -> Result<v1::Corpus, ClientError> {
    let create = v1::CreateCorpusRequest {
        name: name.to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    client.create_corpus(create).await
}

async fn insert(client: &Client, corpus: &str, id: &str) {
    let documents = Documents {
        keys: queries(),
        ids: FINGERPRINTS.map(|_| id.to_owned()).collect(),
    };
    client.insert(corpus, documents).await.unwrap();
}

/// The ids of all documents.
async fn ids(client: &Client, corpus: &str) -> Vec<Vec<String>> {
    let options = SearchSpec {
        max_distance: Some(0),
        ..SearchSpec::default()
    };
    let find = async || client.find_all(corpus, queries(), options).await;
    let found = until_reached(find).await.unwrap().queries.into_iter();
    let ids = found.map(|query| query.matches.into_iter().flat_map(|found| found.ids));
    ids.map(|ids| ids.map(|id| id.to_string()).collect())
        .collect()
}

fn everywhere(ids: &[&str]) -> Vec<Vec<String>> {
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    FINGERPRINTS.map(|_| ids.clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_routers_see_the_corpora_in_etcd_and_serve_them_while_it_is_away() {
    let mut etcd = EtcdServer::start();
    let mut cluster = ProcessCluster::start_with_metadata(2, &etcd.url());
    let other = cluster.add_router();
    let clients = [cluster.client(), cluster.client_of(other)];
    let [here, there] = &clients;
    create(here, "crawl").await.unwrap();
    insert(there, "crawl", "before").await;
    assert_eq!(ids(here, "crawl").await, everywhere(&["before"]));

    etcd.stop();
    insert(here, "crawl", "while").await;
    for client in &clients {
        assert_eq!(ids(client, "crawl").await, everywhere(&["before", "while"]));
        let failed = create(client, "news").await.unwrap_err();
        assert_eq!(failed.reason(), Some(Reason::MetadataFailed), "{failed}");
        assert!(failed.to_string().contains("etcd at 127."), "{failed}");
    }

    etcd.restart();
    cluster.restart_node(0, End::Killed);
    cluster.restart_router(End::Killed);
    let created = until_reached(async || create(there, "news").await).await;
    created.unwrap();
    insert(here, "news", "after").await;
    assert_eq!(ids(there, "news").await, everywhere(&["after"]));
    assert_eq!(ids(there, "crawl").await, everywhere(&["before", "while"]));
    here.delete_corpus("crawl").await.unwrap();
    let gone = there.find_all("crawl", queries(), SearchSpec::default());
    let gone = gone.await.unwrap_err();
    assert_eq!(gone.reason(), Some(Reason::CorpusNotFound), "{gone}");
    let listed = there.list_corpora().await.unwrap();
    let names: Vec<&str> = listed.iter().map(|corpus| corpus.name.as_str()).collect();
    assert_eq!(names, ["news"]);
}
