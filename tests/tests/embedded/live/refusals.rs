//! What every stream about a whole corpus refuses, and how it ends early.

use std::time::Duration;

use futures_util::stream;
use simshard_client::{
    Client, ClientError, Documents, Fingerprint, Queries, Reason, SearchSpec, v1,
};
use simshard_simhash::synthetic::Data;
use simshard_testkit::{TestCluster, until};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::scene::{all, end, fill, insert_heavy, stub};

fn scan(corpus: &str, recipe: &str) -> v1::ScanRequest {
    v1::ScanRequest {
        corpus: corpus.to_owned(),
        recipe: recipe.to_owned(),
    }
}

/// Waits until the router is no longer busy with other streams: it hears of their end a little later.
async fn until_served(stub: &mut v1::corpus_service_client::CorpusServiceClient<Channel>) {
    until("a stream is served", async || {
        let Err(status) = stub.scan(scan("c", "")).await else {
            return true;
        };
        assert_eq!(Reason::of(&status), Some(Reason::Overloaded));
        false
    })
    .await;
}

fn pairs(corpus: &str, recipe: &str) -> v1::FindPairsRequest {
    v1::FindPairsRequest {
        corpus: corpus.to_owned(),
        recipe: recipe.to_owned(),
        max_distance: None,
    }
}

fn clusters(corpus: &str, recipe: &str) -> v1::FindClustersRequest {
    v1::FindClustersRequest {
        corpus: corpus.to_owned(),
        recipe: recipe.to_owned(),
        max_distance: None,
    }
}

/// The reasons that all kinds of streams of one corpus give.
async fn reasons(cluster: &TestCluster, corpus: &str, recipe: &str) -> Vec<Option<Reason>> {
    let mut stub = stub(cluster);
    let refused = |status: Result<(), Status>| Reason::of(&status.unwrap_err());
    vec![
        refused(stub.scan(scan(corpus, recipe)).await.map(drop)),
        refused(stub.find_pairs(pairs(corpus, recipe)).await.map(drop)),
        refused(stub.find_clusters(clusters(corpus, recipe)).await.map(drop)),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corpora_that_are_not_there_and_other_recipes_are_refused() {
    let cluster = TestCluster::start(1).await;
    cluster.create_corpus("c", 5, 3).await;
    for (corpus, recipe, expected) in [
        ("", "", Reason::InvalidRequest),
        ("none", "", Reason::CorpusNotFound),
        ("c", "leonsim-4", Reason::RecipeMismatch),
    ] {
        for reason in reasons(&cluster, corpus, recipe).await {
            assert_eq!(reason, Some(expected), "{corpus} {recipe}");
        }
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_one_recipe_is_refused_corpora_of_others() {
    let cluster = TestCluster::start(1).await;
    cluster.create_corpus("c", 5, 3).await;
    let client = cluster.client.clone().with_recipe("leonsim-4");
    let mut errors = failures(&client).await;
    let queries = || Queries::Fingerprints(vec![Fingerprint(1)]);
    let documents = || Documents {
        keys: queries(),
        ids: Vec::new(),
    };
    let options = SearchSpec::default();
    errors.extend([
        client.insert("c", documents()).await.unwrap_err(),
        client.remove("c", documents()).await.unwrap_err(),
        client.find_all("c", queries(), options).await.unwrap_err(),
        client
            .find_first("c", queries(), options)
            .await
            .unwrap_err(),
        client
            .fingerprint("c", vec![String::new()])
            .await
            .unwrap_err(),
        client.recipe("c").await.unwrap_err(),
        end(Ok(client.insert_stream("c", stream::iter([documents()]))))
            .await
            .unwrap_err(),
        end(client
            .find_all_stream("c", stream::iter([queries()]), options)
            .await)
        .await
        .unwrap_err(),
    ]);
    for error in errors {
        assert_eq!(error.reason(), Some(Reason::RecipeMismatch), "{error}");
    }
    let right = cluster.client.clone().with_recipe("words-v1");
    assert_eq!(all(right.scan("c").await).await.unwrap(), []);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_distance_beyond_the_corpus_is_refused_by_its_field() {
    let cluster = TestCluster::start(1).await;
    cluster.create_corpus("c", 5, 3).await;
    let client = &cluster.client;
    for error in [
        end(client.find_pairs("c", Some(4)).await)
            .await
            .unwrap_err(),
        end(client.find_clusters("c", Some(4)).await)
            .await
            .unwrap_err(),
    ] {
        assert_eq!(error.reason(), Some(Reason::InvalidRequest));
        let message = error.to_string();
        assert!(message.contains("max_distance is 4"), "{message}");
    }
    cluster.stop().await;
}

async fn failures(client: &Client) -> Vec<ClientError> {
    vec![
        all(client.scan("c").await).await.unwrap_err(),
        end(client.find_pairs("c", None).await).await.unwrap_err(),
        end(client.find_clusters("c", None).await)
            .await
            .unwrap_err(),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_ends_every_stream() {
    let mut cluster = TestCluster::start(3).await;
    cluster.create_corpus("c", 5, 3).await;
    fill(&cluster.client, "c", Data::Clustered, 500).await;
    cluster.stop_node("n2").await;
    for error in failures(&cluster.client).await {
        assert_eq!(error.reason(), Some(Reason::NodeUnreachable), "{error}");
        let message = error.to_string();
        assert!(message.contains("node n2 (shards 5"), "{message}");
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_over_the_most_are_refused_until_one_ends() {
    let cluster = TestCluster::start(1).await;
    cluster.create_corpus("c", 5, 3).await;
    insert_heavy(&cluster.client, "c").await;
    let mut in_flight = Vec::new();
    for _ in 0..16 {
        let answers = stub(&cluster).scan(scan("c", "")).await.unwrap();
        in_flight.push(answers.into_inner());
    }
    for reason in reasons(&cluster, "c", "").await {
        assert_eq!(reason, Some(Reason::Overloaded));
    }
    in_flight.pop();
    let mut stub = stub(&cluster);
    until_served(&mut stub).await;
    drop(in_flight);
    cluster.stop().await;
}

/// SR2 from end to end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deadline_of_the_client_ends_the_work_of_an_unread_stream() {
    let cluster = TestCluster::start(1).await;
    cluster.create_corpus("c", 5, 3).await;
    insert_heavy(&cluster.client, "c").await;
    let mut in_flight = Vec::new();
    for _ in 0..16 {
        let mut request = Request::new(scan("c", ""));
        request.set_timeout(Duration::from_secs(2));
        let answers = stub(&cluster).scan(request).await.unwrap();
        in_flight.push(answers.into_inner());
    }
    let mut stub = stub(&cluster);
    until_served(&mut stub).await;
    let mut answers = in_flight.remove(0);
    let end = loop {
        match answers.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it came to its end"),
            Err(status) => break status,
        }
    };
    assert_eq!(Reason::of(&end), Some(Reason::DeadlineTooShort), "{end}");
    assert_eq!(end.code(), Code::DeadlineExceeded);
    cluster.stop().await;
}
