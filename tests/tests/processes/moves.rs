//! An operator moves shards and changes how many replicas they have, while inserts and searches go on.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Output;
use std::time::Duration;

use simshard_testkit::{End, ProcessCluster, Shape, binary, run, until};
use simshard_topology::replication::StoreId;
use tokio::task::block_in_place;

use crate::failovers::get_acquainted;
use crate::force::assert_says;
use crate::load::{Load, create};
use crate::records::{records, until_all};

/// Runs a command about the cluster, which must succeed.
pub(crate) fn operate(cluster: &ProcessCluster, command: &[&str]) -> String {
    let output = tell(cluster, command);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn tell(cluster: &ProcessCluster, command: &[&str]) -> Output {
    let metadata = format!("file:{}", cluster.metadata_file().display());
    let args = [&["cluster"], command, &["--metadata", &metadata]].concat();
    block_in_place(|| run(binary(), args, ""))
}

/// The stores that hold each shard in sync.
pub(crate) async fn holders(cluster: &ProcessCluster) -> Vec<BTreeSet<StoreId>> {
    let records = records(cluster).await.into_values();
    let stores = records.map(|record| record.in_sync.iter().map(|entry| entry.store).collect());
    stores.collect()
}

pub(crate) async fn loaded(nodes: usize, replicas: usize) -> (ProcessCluster, Load) {
    let cluster = ProcessCluster::start(Shape::of(nodes).with_replicas(replicas));
    create(&cluster.client()).await;
    let load = Load::start(&[cluster.client().with_timeout(Duration::from_secs(20))]);
    get_acquainted(&load).await;
    (cluster, load)
}

/// PE16: no request fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_of_one_replica_move_while_all_goes_on() {
    let (cluster, load) = loaded(3, 1).await;
    operate(&cluster, &["move", "--shards", "00-7f", "--to", "n3"]);
    let after = holders(&cluster).await;
    assert!(
        after[..128]
            .iter()
            .all(|stores| *stores == after[0] && stores.len() == 1)
    );
    load.until_more(20).await;
    let plan = operate(&cluster, &["rebalance", "plan"]);
    let head = "node\tshards before\tshards after\tdocuments before\tdocuments after\tto copy\tbytes to copy\n";
    assert!(plan.starts_with(head), "{plan}");
    assert_eq!(holders(&cluster).await, after);
    operate(&cluster, &["rebalance", "apply", "--yes"]);
    let counts = |stores: Vec<BTreeSet<StoreId>>| {
        let all: BTreeSet<StoreId> = stores.iter().flatten().copied().collect();
        let count = |store| {
            stores
                .iter()
                .filter(|holders| holders.contains(&store))
                .count()
        };
        all.into_iter().map(count).collect::<Vec<_>>()
    };
    let counts = counts(holders(&cluster).await);
    assert!(
        counts.len() == 3 && counts.iter().all(|count| (70..=93).contains(count)),
        "{counts:?}"
    );
    load.end(&cluster.client()).await;
}

/// The shards of each node, in the order of their names.
fn shares(plan: &str) -> Vec<u64> {
    let rows = plan.lines().skip(1);
    let after = rows.map(|row| row.split('\t').nth(2).unwrap().parse().unwrap());
    after.collect()
}

/// A plan knows what operators say of nodes, and how many documents each shard has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_know_zones_and_capacities_and_documents() {
    let (cluster, load) = loaded(4, 1).await;
    assert_eq!(shares(&operate(&cluster, &["rebalance", "plan"])), [64; 4]);
    operate(&cluster, &["set-capacity", "n1", "5"]);
    let shares_of = |command: &[&str]| shares(&operate(&cluster, command));
    let capable = shares_of(&["rebalance", "plan"]);
    assert!((145..=176).contains(&capable[0]), "{capable:?}");
    let nodes = operate(&cluster, &["nodes"]);
    assert!(nodes.contains("\tno\t\t5\tnone\n"), "{nodes}");
    operate(&cluster, &["set-capacity", "n1", "1"]);
    for (node, zone) in [("n1", "a"), ("n2", "a"), ("n3", "b"), ("n4", "b")] {
        operate(&cluster, &["set-zone", node, zone]);
    }
    operate(&cluster, &["set-replication", "--replicas", "2"]);
    let zones = zones_of(&cluster);
    until_all(&cluster, "replicas are in different zones", |record| {
        let stores = record.in_sync.iter();
        let zones: BTreeSet<&str> = stores
            .map(|entry| &*zones[&entry.store.to_string()])
            .collect();
        zones.len() == 2 && record.in_sync.len() == 2
    })
    .await;
    operate(&cluster, &["set-zone", "n1", "--none"]);
    refuse(&cluster, &["set-zone", "n9", "a"], "n9");
    load.end(&cluster.client()).await;
}

/// The zone of each store.
fn zones_of(cluster: &ProcessCluster) -> BTreeMap<String, String> {
    let nodes = operate(cluster, &["nodes"]);
    let columns = nodes
        .lines()
        .skip(1)
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let zones = columns.map(|columns| (columns[2].to_owned(), columns[5].to_owned()));
    zones.collect()
}

/// PE16.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_emptied_and_stops_for_good() {
    let (mut cluster, load) = loaded(3, 2).await;
    let before = holders(&cluster).await;
    operate(&cluster, &["drain", "n1", "--dry-run"]);
    assert_eq!(holders(&cluster).await, before);
    operate(&cluster, &["drain", "n1"]);
    let two = all_of(&holders(&cluster).await);
    assert_eq!(two.len(), 2);
    // It gets nothing back, though it runs.
    let plan = tell(&cluster, &["rebalance", "plan"]);
    assert_says(&plan, 0, "nothing is to move, so there is no plan to apply");
    refuse(
        &cluster,
        &["rebalance", "apply", "--yes"],
        "no plan is staged",
    );
    refuse(
        &cluster,
        &["set-replication", "--replicas", "1"],
        "add --yes",
    );
    operate(&cluster, &["set-replication", "--replicas", "1", "--yes"]);
    assert_eq!(all_of(&holders(&cluster).await), two);
    refuse(&cluster, &["remove", "n1"], "n1 still runs: stop it");
    block_in_place(|| cluster.end_node(0, End::Stopped));
    load.until_more(20).await;
    let status = operate(&cluster, &["status"]);
    assert!(
        status.contains("nodes\tno\t2 of 3 answer; silent, without shards: n1:"),
        "{status}"
    );
    assert!(status.contains("changes\tyes\t"), "{status}");
    operate(&cluster, &["remove", "n1"]);
    let nodes = operate(&cluster, &["nodes"]);
    assert!(!nodes.contains("\nn1\t"), "{nodes}");
    load.end(&cluster.client()).await;
}

fn all_of(holders: &[BTreeSet<StoreId>]) -> BTreeSet<StoreId> {
    holders.iter().flatten().copied().collect()
}

/// Runs a command about the cluster, which must fail and say so.
pub(crate) fn refuse(cluster: &ProcessCluster, command: &[&str], problem: &str) {
    let output = tell(cluster, command);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{command:?}");
    assert!(said.contains(problem), "{command:?}: {said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_takes_the_place_of_another() {
    let (cluster, load) = loaded(3, 1).await;
    // All that the third one holds goes to the first one, which is free then to take the place of the second one.
    operate(&cluster, &["drain", "n3"]);
    operate(&cluster, &["undrain", "n3"]);
    for (by, problem) in [
        ("n2", "n2 cannot replace itself"),
        ("n9", "no node n9 has registered"),
    ] {
        refuse(&cluster, &["replace", "n2", "--with", by], problem);
    }
    let before = holders(&cluster).await;
    operate(&cluster, &["replace", "n2", "--with", "n3"]);
    let after = holders(&cluster).await;
    let changed: Vec<usize> = (0..256)
        .filter(|&shard| before[shard] != after[shard])
        .collect();
    // All that it held, which is half by weight: documents count, too.
    let held = (0..256).filter(|&shard| before[shard] == before[changed[0]]);
    assert_eq!(changed, held.collect::<Vec<usize>>());
    assert!((120..=136).contains(&changed.len()), "{changed:?}");
    assert!(
        changed
            .iter()
            .all(|&shard| after[shard] == after[changed[0]])
    );
    refuse(
        &cluster,
        &["replace", "n9", "--with", "n1"],
        "no node n9 has registered: there are n1,n2,n3; if n9 was removed, `simshard cluster rebalance plan`",
    );
    refuse(
        &cluster,
        &["move", "--shards", "07", "--to", "n2"],
        "node n2 is drained",
    );
    // n2 is drained, and n1 stays as it is.
    for dry_run in [&["--dry-run"][..], &[]] {
        let replace = [&["replace", "n1", "--with", "n2"], dry_run].concat();
        refuse(&cluster, &replace, "n2 is drained");
    }
    let nodes = operate(&cluster, &["nodes"]);
    let n1 = nodes.lines().find(|line| line.starts_with("n1\t")).unwrap();
    assert_eq!(n1.split('\t').nth(4), Some("no"), "{nodes}");
    operate(&cluster, &["drain", "n1"]);
    refuse(
        &cluster,
        &["drain", "n3"],
        "1 are needed, and there would be 0",
    );
    load.end(&cluster.client()).await;
}

/// PE16.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_under_way_go_elsewhere_if_an_operator_says_so() {
    let (cluster, load) = loaded(4, 1).await;
    for (shards, to) in [("00-ff", "n3"), ("00-ff", "n4"), ("00-7f", "n2")] {
        operate(
            &cluster,
            &["move", "--shards", shards, "--to", to, "--no-wait"],
        );
    }
    operate(&cluster, &["move", "--shards", "80-ff", "--to", "n1"]);
    operate(&cluster, &["move", "--shards", "00-7f", "--to", "n2"]);
    let after = holders(&cluster).await;
    assert!(after[..128].iter().all(|stores| *stores == after[0]));
    assert!(after[128..].iter().all(|stores| *stores == after[128]));
    // Wherever they are, the move ends.
    operate(
        &cluster,
        &["move", "--shards", "00-7f", "--to", "n3", "--no-wait"],
    );
    operate(&cluster, &["move", "--shards", "00-7f", "--free"]);
    until_all(&cluster, "one replica, and none to come", |record| {
        record.in_sync.len() == 1 && record.learners.is_empty()
    })
    .await;
    load.end(&cluster.client()).await;
}

/// PE16.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_get_more_replicas_and_fewer_again_while_all_goes_on() {
    // With four nodes, some shards go to nodes that do not hold them.
    let (cluster, load) = loaded(4, 1).await;
    for (replicas, hot) in [("3", "2"), ("1", "1")] {
        let wish = [
            "set-replication",
            "--replicas",
            replicas,
            "--hot",
            hot,
            "--yes",
        ];
        operate(&cluster, &wish);
        until_all(&cluster, "replicas are as wished", |record| {
            record.in_sync.len().to_string() == replicas && record.learners.is_empty()
        })
        .await;
        load.until_more(20).await;
        until("nodes search equal parts", async || {
            parts_searched(&cluster).await.into_values().all(is_fair)
        })
        .await;
    }
    load.end(&cluster.client()).await;
}

/// Of how many shards each store is hot, and how many it holds in sync; and how many replicas of a shard are hot, of all.
async fn parts_searched(cluster: &ProcessCluster) -> BTreeMap<StoreId, [usize; 4]> {
    let mut parts: BTreeMap<StoreId, [usize; 4]> = BTreeMap::new();
    for record in records(cluster).await.values() {
        for entry in &record.in_sync {
            let [hot, held, wished, of] = parts.entry(entry.store).or_default();
            *hot += usize::from(entry.hot);
            *held += 1;
            (*wished, *of) = (record.hot.into(), record.want.into());
        }
    }
    parts
}

/// PE20: a sixteenth is tolerated between any two.
fn is_fair([hot, held, wished, of]: [usize; 4]) -> bool {
    (hot * of).abs_diff(wished * held) <= held * of / 16 + of
}
