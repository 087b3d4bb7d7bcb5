//! What a scrub cannot compare it names, and it does not say that all is well.

use std::time::{Duration, Instant};

use simshard_client::Fingerprint;
use simshard_cluster::{FileKeyValues, KeyValueStore, Outcome, Transaction};
use simshard_proto::shard::v1 as pb;
use simshard_testkit::{End, Oracle, ProcessCluster, Shape, binary, run};
use simshard_topology::ShardSet;
use tokio::task::block_in_place;

use super::half_written::write_in;
use super::{NODES, Scrubbed, named, scrub, shards};
use crate::load::create;
use crate::replicas::{change, documents};

fn simshard(cluster: &ProcessCluster, args: &[&str]) -> String {
    let metadata = format!("file:{}", cluster.metadata_file().display());
    let all = [args, &["--metadata", &metadata]].concat();
    let output = block_in_place(|| run(binary(), all, ""));
    String::from_utf8(output.stdout).unwrap()
}

fn assert_says(scrubbed: &Scrubbed, parts: &[&str]) {
    let said = &scrubbed.said;
    assert_eq!(scrubbed.code, Some(1), "{said}");
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
}

/// No documents are compared of a corpus that the metadata does not know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corpus_whose_record_is_lost_is_named_though_its_shards_differ() {
    let cluster = ProcessCluster::start(Shape::of(2).with_replicas(2));
    let client = cluster.client();
    create(&client).await;
    let stored = documents(1);
    change(&client, &mut Oracle::default(), &stored)
        .await
        .unwrap();
    let half = &named("half", 2)[..1];
    let only = ShardSet::from_iter(shards(half[0].0).first().copied());
    for node in 0..2 {
        write_in(&cluster, node, pb::ChangeKind::Insert, half, only).await;
    }
    assert_says(&scrub(&cluster, "0", &[]), &["shards differ in"]);

    let keys = FileKeyValues::at(cluster.metadata_file());
    let records = keys.read("corpora/by-name/").await.unwrap().pairs;
    assert_eq!(records.len(), 1);
    let forgotten = Transaction::new().delete(&*records[0].key);
    let made = keys.commit(&forgotten).await.unwrap();
    assert!(matches!(made, Outcome::Committed(_)));
    for more in [&[][..], &["--repair"]] {
        let blind = scrub(&cluster, "0", more);
        let mut rows = blind.between.iter();
        assert!(rows.any(|row| row["corpus"].is_string() && row["state"] == "not compared"));
        assert_says(
            &blind,
            &[
                "has no record, so its documents are not compared",
                "simshard corpus recover",
            ],
        );
    }
    // The nodes registered before the corpus was created: only their answers name it.
    let status = simshard(&cluster, &["cluster", "status"]);
    assert!(status.contains("records missing of 1"), "{status}");

    let back = Transaction::new().put(&*records[0].key, &*records[0].value);
    let made = keys.commit(&back).await.unwrap();
    assert!(matches!(made, Outcome::Committed(_)));
    assert_says(&scrub(&cluster, "0", &[]), &["shards differ in"]);
    assert_eq!(scrub(&cluster, "0", &["--repair"]).code, Some(0));
    scrub(&cluster, "0", &[]).assert_agrees();
}

/// With two of three nodes frozen, no record can change: neither is taken out. Each shard would wait for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_are_silent_for_good_are_named_soon() {
    let cluster = ProcessCluster::start(Shape::of(NODES).with_replicas(NODES));
    let client = cluster.client();
    create(&client).await;
    change(
        &client,
        &mut Oracle::default(),
        &[(Fingerprint(7), "a".to_owned())],
    )
    .await
    .unwrap();
    cluster.freeze_node(1);
    cluster.freeze_node(2);
    let start = Instant::now();
    let silent = scrub(&cluster, "0", &["--shards", "00-3f", "--only", "replicas"]);
    let took = start.elapsed();
    println!("it took {took:?}");
    cluster.thaw_node(1);
    cluster.thaw_node(2);
    assert_says(
        &silent,
        &[
            "shards 00-3f were not compared",
            "n2 at ",
            "n3 at ",
            "not answer",
        ],
    );
    // One attempt, at most, for each node that reads: no attempt for each shard.
    assert!(took < Duration::from_secs(120), "{took:?}");
}

/// What it would have said is lost, so it is not well.
#[test]
fn a_scrub_whose_output_is_cut_off_fails() {
    let mut cluster = ProcessCluster::start(Shape::of(1));
    let metadata = cluster.metadata_file();
    let script = format!(
        "'{}' cluster scrub --metadata file:'{}' | true; exit ${{PIPESTATUS[0]}}",
        binary(),
        metadata.display()
    );
    let output = run("bash", ["-c", &script], "");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("standard output was closed"), "{said}");
    cluster.end_node(0, End::Killed);
}
