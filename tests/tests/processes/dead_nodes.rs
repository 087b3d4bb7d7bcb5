//! Nodes die for good, and an operator finds the way out by what the commands say: no refusal leads back to another one.

use std::collections::BTreeSet;

use serde_json::Value;
use simshard_testkit::{End, ProcessCluster, Shape, until};
use tokio::task::block_in_place;

use crate::force::assert_says;
use crate::moves::{loaded, operate, refuse, tell};
use crate::records::until_all;

/// Kills a node, and waits until the others have gone on without it.
async fn lose(cluster: &mut ProcessCluster, node: usize) {
    block_in_place(|| cluster.end_node(node, End::Killed));
    let name = Value::from(format!("n{}", node + 1));
    until("the others go on without it", async || {
        let shards = operate(cluster, &["shards", "--json"]);
        let mut groups = shards
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        groups.all(|group: Value| !group["in_sync"].as_array().unwrap().contains(&name))
    })
    .await;
}

fn names(cluster: &ProcessCluster) -> Vec<String> {
    let nodes = operate(cluster, &["nodes"]);
    let rows = nodes.lines().skip(1);
    rows.map(|row| row.split('\t').next().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_three_nodes_one_is_dead_and_fewer_replicas_are_the_way_out() {
    let (mut cluster, load) = loaded(3, 3).await;
    // Shards have targets, as after each move.
    operate(&cluster, &["set-replication", "--replicas", "3"]);
    lose(&mut cluster, 2).await;
    refuse(&cluster, &["remove", "n3"], "`simshard cluster drain n3`");
    refuse(
        &cluster,
        &["drain", "n3"],
        "`simshard cluster set-replication --replicas 2`",
    );
    let fewer = ["set-replication", "--replicas", "2"];
    let dry = operate(&cluster, &[&fewer[..], &["--dry-run", "--json"]].concat());
    let shares = dry.lines().map(|line| serde_json::from_str(line).unwrap());
    let shares: Vec<Value> = shares.collect();
    assert_eq!(shares[2]["before"], "00-ff");
    assert_eq!(shares[2]["after"], "none");
    refuse(
        &cluster,
        &fewer,
        "n3 does not answer, and loses shards 00-ff: start it first",
    );
    load.until_more(20).await;
    operate(&cluster, &[&fewer[..], &["--yes"]].concat());
    operate(&cluster, &["remove", "n3"]);
    assert_eq!(names(&cluster), ["n1", "n2"]);
    let status = operate(&cluster, &["status"]);
    assert!(status.contains("replicas\tyes\t"), "{status}");
    load.end(&cluster.client()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_five_nodes_two_are_dead_and_each_is_drained() {
    let (mut cluster, load) = loaded(5, 3).await;
    // No shard loses two of three at once: such shards wait until a node is forced to go on alone.
    operate(&cluster, &["move", "--shards", "00-7f", "--to", "n1,n3,n4"]);
    operate(&cluster, &["move", "--shards", "80-ff", "--to", "n2,n3,n4"]);
    lose(&mut cluster, 0).await;
    lose(&mut cluster, 1).await;
    let cluster = &cluster;
    operate(cluster, &["drain", "n1"]);
    operate(cluster, &["remove", "n1"]);
    operate(cluster, &["drain", "n2"]);
    operate(cluster, &["remove", "n2"]);
    assert_eq!(names(cluster), ["n3", "n4", "n5"]);
    until_all(cluster, "three replicas of each shard", |record| {
        record.in_sync.len() == 3 && record.learners.is_empty()
    })
    .await;
    load.end(&cluster.client()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_whose_only_node_is_dead_are_named_by_each_command() {
    let mut cluster = ProcessCluster::start(Shape::of(3));
    crate::load::create(&cluster.client()).await;
    operate(&cluster, &["move", "--shards", "00-ff", "--to", "n1"]);
    operate(&cluster, &["move", "--shards", "40-ff", "--to", "n2"]);
    block_in_place(|| cluster.end_node(0, End::Killed));
    let problem = "no node that answers holds shards 00-3f in sync";
    let refused = tell(&cluster, &["drain", "n1"]);
    assert_says(&refused, 1, problem);
    assert_says(
        &refused,
        1,
        "`simshard cluster force --rebuild --from NODE --stopped n1`",
    );
    refuse(&cluster, &["replace", "n1", "--with", "n3"], problem);
    refuse(
        &cluster,
        &["set-replication", "--replicas", "2", "--yes"],
        problem,
    );
    let scrubbed = tell(&cluster, &["scrub", "--shards", "07"]);
    assert_says(&scrubbed, 1, "shards 07 were not compared");
    // What others hold is drained all the same.
    operate(&cluster, &["drain", "n2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_done_is_said_the_same_way_by_each_verb() {
    let cluster = ProcessCluster::start(Shape::of(2));
    let apply = tell(&cluster, &["rebalance", "apply", "--yes"]);
    assert_says(
        &apply,
        1,
        "no plan is staged: `simshard cluster rebalance plan`",
    );
    for command in [
        &["drain", "n9"][..],
        &["undrain", "n9"],
        &["remove", "n9"],
        &["replace", "n9", "--with", "n1"],
        &["move", "--shards", "07", "--to", "n9"],
        &["shards", "--node", "n9"],
        &["set-zone", "n9", "a"],
        &["set-capacity", "n9", "2"],
        &["set-limits", "n9", "--none"],
    ] {
        let unknown = tell(&cluster, command);
        assert_says(&unknown, 2, "no node n9 has registered: there are n1,n2");
    }
    for (command, problem) in [
        (&["set-zone", "n1"][..], "<ZONE|--none>"),
        (
            &["set-zone", "n1", "Rack 1"],
            "a zone has 1 to 64 lower case",
        ),
        (&["set-limits", "n1"], "<--copy-rate <MB>|--none>"),
        (&["set-capacity", "n1", "0"], "a whole number from 1 to"),
        (
            &["set-replication", "--replicas", "x"],
            "a whole number from 1 to 5",
        ),
    ] {
        assert_says(&tell(&cluster, command), 2, problem);
    }
    let moved = ["move", "--shards", "00-7f", "--to", "n2", "--json"];
    let before = operate(&cluster, &["shards", "--json"]);
    let dry = operate(&cluster, &[&moved[..], &["--dry-run"]].concat());
    assert_eq!(operate(&cluster, &["shards", "--json"]), before);
    assert_eq!(operate(&cluster, &moved), dry);
    assert!(
        dry.contains(r#""node":"n2""#) && dry.contains(r#""to_copy":128"#),
        "{dry}"
    );
    // It holds nothing any more, and no shard moves for it.
    let epochs = |cluster: &ProcessCluster| -> BTreeSet<String> {
        let shards = operate(cluster, &["shards", "--json"]);
        shards.lines().map(str::to_owned).collect()
    };
    let before = epochs(&cluster);
    let drained = tell(&cluster, &["drain", "n1"]);
    assert_says(&drained, 0, "nothing is to move\nn1 holds nothing");
    assert_eq!(epochs(&cluster), before);
    let again = [&moved[..5], &["--no-wait"]].concat();
    assert_says(&tell(&cluster, &again), 0, "the shards are there already");
    let limited = tell(&cluster, &["set-limits", "n1", "--copy-rate", "50"]);
    assert_says(&limited, 0, "n1 copies 50 MB a second at most");
}
