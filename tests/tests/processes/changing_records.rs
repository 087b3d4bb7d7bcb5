//! Records of shards that change while requests are in flight: some processes hear of a record before others do. No
//! request fails, and what was acknowledged is found.

use simshard_cluster::{FileKeyValues, KeyValueStore, MAX_OPERATIONS, Outcome, Transaction};
use simshard_testkit::{ProcessCluster, Shape, is_long};

use crate::load::{Load, create};

const NODES: usize = 3;

/// Requests that are done between two changes of the records.
const BETWEEN: u64 = 4;

fn rounds() -> u64 {
    if is_long() { 400 } else { 25 }
}

/// Gives every shard the record of the next epoch. The replicas stay.
async fn advance(cluster: &ProcessCluster, epoch: u64) {
    let keys = FileKeyValues::at(cluster.metadata_file());
    let records = keys.read("shards/").await.unwrap().pairs;
    let before = format!("\"epoch\":\"0.{epoch}\"");
    let after = format!("\"epoch\":\"0.{}\"", epoch + 1);
    for some in records.chunks(MAX_OPERATIONS) {
        let mut change = Transaction::new();
        for record in some {
            assert!(record.value.contains(&before), "{}", record.value);
            change = change.put(&*record.key, record.value.replacen(&before, &after, 1));
        }
        let made = keys.commit(&change).await.unwrap();
        assert!(matches!(made, Outcome::Committed(_)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_the_records_of_shards_change() {
    let mut cluster = ProcessCluster::start(Shape::of(NODES));
    let other = cluster.add_router();
    create(&cluster.client()).await;
    let load = Load::start(&[cluster.client(), cluster.client_of(other)]);
    for round in 1..=rounds() {
        load.until_more(BETWEEN).await;
        advance(&cluster, round).await;
    }
    load.until_more(BETWEEN).await;
    load.end(&cluster.client_of(other)).await;
}
