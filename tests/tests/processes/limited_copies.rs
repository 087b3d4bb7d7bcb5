//! An operator says how fast nodes may copy shards.

use std::time::{Duration, Instant};

use simshard_client::{Client, Documents, Queries};
use simshard_simhash::Fingerprint;
use simshard_testkit::{ProcessCluster, Shape};

use crate::load::{CORPUS, create};
use crate::moves::{operate, refuse};

const DOCUMENTS: u64 = 15_000;

const ID_BYTES: usize = 200;

/// Documents of shard 00, with long ids.
async fn insert(client: &Client) {
    let numbers: Vec<u64> = (0..DOCUMENTS).collect();
    for some in numbers.chunks(1000) {
        // The first byte is 0.
        let fingerprints = some
            .iter()
            .map(|number| Fingerprint(number.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 8));
        let documents = Documents {
            keys: Queries::Fingerprints(fingerprints.collect()),
            ids: some
                .iter()
                .map(|number| format!("{number:0ID_BYTES$}"))
                .collect(),
        };
        client.insert(CORPUS, documents).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_sends_and_receives_no_faster_than_it_may() {
    let cluster = ProcessCluster::start(Shape::of(3).with_replicas(1));
    create(&cluster.client()).await;
    operate(&cluster, &["move", "--shards", "00", "--to", "n1"]);
    insert(&cluster.client()).await;
    let least = Duration::from_secs_f64((DOCUMENTS * ID_BYTES as u64) as f64 / 1e6);
    // The first one sends, the last one receives: it has not held the shard before.
    for (limited, to) in [("n1", "n2"), ("n3", "n3")] {
        operate(&cluster, &["set-limits", limited, "--copy-rate", "1"]);
        let begin = Instant::now();
        operate(&cluster, &["move", "--shards", "00", "--to", to]);
        assert!(begin.elapsed() > least, "to {to}");
    }
    operate(&cluster, &["set-limits", "n1", "--none"]);
    let nodes = operate(&cluster, &["nodes"]);
    assert!(
        nodes.contains("\t1\t1\n") && nodes.contains("\t1\tnone\n"),
        "{nodes}"
    );
    refuse(&cluster, &["set-limits", "n9", "--none"], "n9");
}
