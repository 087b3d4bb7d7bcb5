//! A node that reaches all others, and that none of them reaches: it has registered the wrong address.

use std::time::Duration;

use simshard_testkit::{End, ProcessCluster, Shape, Waiting, binary, free_addresses};
use tokio::task::block_in_place;

use crate::failovers::get_acquainted;
use crate::load::{Load, create};
use crate::readiness::until_ready;
use crate::records::{records, until_all};

const NODE: usize = 1;

/// Without that rule it comes back within half a second.
const SECONDS_AWAY: u32 = 3;

/// PE4: it would hold up changes each time it comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_no_other_reaches_stays_away_until_one_does() {
    let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(3));
    create(&cluster.client()).await;
    until_ready(&cluster, NODE).await;
    let load = Load::start(&[cluster.client().with_timeout(Duration::from_secs(20))]);
    get_acquainted(&load).await;
    let unused = format!("http://{}", free_addresses(1)[0]);
    let mut unreached = block_in_place(|| {
        cluster.end_node(NODE, End::Killed);
        let args = cluster.node_args(NODE);
        let address = ["--address".to_owned(), unused];
        Waiting::start(binary(), args.into_iter().chain(address))
    });
    until_all(&cluster, "the node has left", |record| {
        record.write_set().count() == 2
    })
    .await;
    block_in_place(|| unreached.until_logged("no node that holds shards reaches this one"));
    let epochs = async || {
        let records = records(&cluster).await.into_iter();
        records
            .map(|(shard, record)| (shard, record.epoch))
            .collect::<Vec<_>>()
    };
    let before = epochs().await;
    for _ in 0..SECONDS_AWAY {
        get_acquainted(&load).await;
    }
    assert!(epochs().await == before, "records go on to change");
    block_in_place(|| unreached.terminate());
    block_in_place(|| cluster.start_node(NODE));
    until_ready(&cluster, NODE).await;
    load.end(&cluster.client()).await;
}
