//! Two of three nodes are gone for good: an operator lets the last one go on alone, and the others come back empty-handed.

use std::process::Output;
use std::time::Duration;

use simshard_client::{Client, Documents, Fingerprint, Queries, SearchSpec};
use simshard_testkit::{End, ProcessCluster, Shape, binary, run, until};
use tokio::task::block_in_place;

use crate::load::{CORPUS, create};
use crate::records::until_in_sync;

fn some(from: u64) -> Queries {
    let spread = |place: u64| Fingerprint(place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    Queries::Fingerprints((from..from + 100).map(spread).collect())
}

async fn insert(client: &Client, from: u64) -> Result<u64, simshard_client::ClientError> {
    let (keys, ids) = (some(from), vec![]);
    client.insert(CORPUS, Documents { keys, ids }).await
}

async fn until_inserted(client: &Client, from: u64) {
    until("documents are inserted", async || {
        insert(client, from).await.is_ok()
    })
    .await;
}

async fn found(client: &Client, from: u64) -> usize {
    let found = client.find_all(CORPUS, some(from), SearchSpec::default());
    let queries = found.await.unwrap().queries.into_iter();
    queries.filter(|query| !query.matches.is_empty()).count()
}

fn force(cluster: &ProcessCluster, more: &[&str]) -> Output {
    let metadata = format!("file:{}", cluster.metadata_file().display());
    let args = ["cluster", "force", "--metadata", &metadata];
    block_in_place(|| run(binary(), [&args[..], more].concat(), ""))
}

/// A command ended with this code, and said this among other things.
#[track_caller]
pub(crate) fn assert_says(output: &Output, code: i32, part: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(part), "{said}");
}

/// FO1-FO3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_of_three_nodes_goes_on_alone_once_an_operator_says_so() {
    let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(3).with_hot(2));
    let client = cluster.client().with_timeout(Duration::from_secs(5));
    create(&client).await;
    assert_eq!(insert(&client, 0).await.unwrap(), 100);
    let all = force(&cluster, &["--from", "n3"]);
    assert_says(&all, 0, "nothing to do");
    let running = force(&cluster, &["--from", "n3", "--stopped", "n1"]);
    assert_says(&running, 1, "n1 answers at");
    let unknown = force(&cluster, &["--from", "n4"]);
    assert_says(&unknown, 2, "no node n4 has registered: there are n1,n2,n3");

    block_in_place(|| {
        cluster.end_node(0, End::Killed);
        cluster.end_node(1, End::Killed);
    });
    insert(&client, 100).await.unwrap_err();
    let dead = force(&cluster, &["--from", "n1"]);
    assert_says(&dead, 1, "n1 does not answer at");
    let unsaid = force(&cluster, &["--from", "n3", "--stopped", "n2"]);
    assert_says(&unsaid, 2, "add --stopped n1,n2");
    insert(&client, 100).await.unwrap_err();

    let forced = force(&cluster, &["--from", "n3", "--stopped", "n1,n2"]);
    assert_says(&forced, 0, "n3 goes on alone with shards 00-ff");
    until_inserted(&client, 100).await;
    assert_eq!(found(&client, 0).await + found(&client, 100).await, 200);
    let again = force(&cluster, &["--from", "n3", "--stopped", "n1,n2"]);
    assert_says(&again, 0, "nothing to do");

    // The others are learners first, whatever they held.
    block_in_place(|| {
        cluster.start_node(0);
        cluster.start_node(1);
    });
    until_in_sync(&cluster, 3).await;
    assert_eq!(insert(&client, 200).await.unwrap(), 100);
    block_in_place(|| cluster.end_node(2, End::Killed));
    until_inserted(&client, 300).await;
    for from in [0, 100, 200, 300] {
        assert_eq!(found(&client, from).await, 100);
    }
}

/// FO2: a node that answers loses what it held in sync, and copies it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_five_replicas_two_that_live_do_not_disagree() {
    let mut cluster = ProcessCluster::start(Shape::of(5).with_replicas(5));
    let client = cluster.client().with_timeout(Duration::from_secs(5));
    create(&client).await;
    assert_eq!(insert(&client, 0).await.unwrap(), 100);
    block_in_place(|| {
        for node in [0, 1, 2] {
            cluster.end_node(node, End::Killed);
        }
    });
    insert(&client, 100).await.unwrap_err();
    let forced = force(&cluster, &["--from", "n4", "--stopped", "n1,n2,n3"]);
    assert_says(&forced, 0, "n4 goes on alone");
    until_in_sync(&cluster, 2).await;
    until_inserted(&client, 100).await;
    assert_eq!(found(&client, 0).await + found(&client, 100).await, 200);
}
