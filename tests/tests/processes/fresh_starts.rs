//! A node whose directory is older than its store, or whose disk has failed, begins anew by itself where other nodes hold
//! all that it held (RG4). Elsewhere it waits for its operator.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use simshard_storage::inspect;
use simshard_testkit::{End, ProcessCluster, Shape, binary, run};
use tokio::task::block_in_place;

use crate::failovers::get_acquainted;
use crate::load::{Load, create};
use crate::older_directories::{args_of_copy, copy, refusal};
use crate::readiness::until_ready;
use crate::records::{until_in_sync, until_short};

const SOME: u64 = 20;

const NODE: usize = 0;

/// The stores that were set aside in a directory.
fn set_aside(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("aside")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn store_in(data: &Path) -> String {
    inspect(data).unwrap().store.to_string()
}

/// Leaves what a store leaves that fails.
fn fail(data: &Path) {
    fs::write(data.join("FAILED"), "a write failed, for a test\n").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_begins_anew_where_others_hold_all_that_it_held() {
    let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(3));
    create(&cluster.client()).await;
    let (data, older) = (cluster.data(NODE), cluster.folder().join("older"));
    let load = Load::start(&[cluster.client().with_timeout(Duration::from_secs(20))]);
    get_acquainted(&load).await;
    block_in_place(|| cluster.while_stopped(NODE, |data| copy(data, &older)));
    for (lost, cause) in ["it is an older copy", "the store failed"]
        .iter()
        .enumerate()
    {
        until_ready(&cluster, NODE).await;
        get_acquainted(&load).await;
        let store = block_in_place(|| cluster.while_stopped(NODE, store_in));
        let log = block_in_place(|| {
            cluster.end_node(NODE, End::Killed);
            if lost == 0 {
                copy(&older, &data);
            } else {
                fail(&data);
            }
            cluster.start_node_with_log(NODE)
        });
        assert!(log.contains(cause), "{log}");
        assert!(log.contains("it begins anew"), "{log}");
        let aside = set_aside(&data);
        assert_eq!(aside.len(), lost + 1);
        assert!(aside.iter().any(|path| store_in(path) == store), "{store}");
        until_in_sync(&cluster, 3).await;
        until_ready(&cluster, NODE).await;
    }
    // What it has copied counts.
    block_in_place(|| cluster.end_node(1, End::Killed));
    load.until_more(SOME).await;
    load.end(&cluster.client()).await;
    block_in_place(|| {
        cluster.start_node(1);
    });
    until_in_sync(&cluster, 3).await;

    // A disk that fails again waits for its operator.
    block_in_place(|| cluster.end_node(NODE, End::Killed));
    fail(&data);
    let refused = run(binary(), cluster.node_args(NODE), "");
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(told.contains("an earlier store of this node"), "{told}");
    for aside in set_aside(&data) {
        fs::remove_dir_all(aside).unwrap();
    }
    block_in_place(|| cluster.start_node(NODE));
    until_in_sync(&cluster, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_holds_something_alone_waits_for_its_operator() {
    let mut cluster = ProcessCluster::start(Shape::of(2).with_replicas(2));
    create(&cluster.client()).await;
    let (data, other) = (cluster.data(NODE), cluster.folder().join("other"));
    block_in_place(|| cluster.while_stopped(NODE, |data| copy(data, &other)));
    until_ready(&cluster, NODE).await;
    // Its own store runs.
    let told = refusal(args_of_copy(&cluster, &other));
    assert!(told.contains("its store runs at http://"), "{told}");
    assert!(!other.join("aside").exists());

    block_in_place(|| cluster.end_node(1, End::Killed));
    until_short(&cluster, 2).await;
    until_in_sync(&cluster, 1).await;
    block_in_place(|| cluster.end_node(NODE, End::Killed));
    let newest = cluster.folder().join("newest");
    copy(&data, &newest);
    copy(&other, &data);
    let told = refusal(cluster.node_args(NODE));
    assert!(told.contains("no other node holds the shards"), "{told}");
    copy(&newest, &data);
    fail(&data);
    let refused = run(binary(), cluster.node_args(NODE), "");
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{told}");
    for part in [
        "no other node holds the shards",
        "storage verify",
        "delete that file",
    ] {
        assert!(told.contains(part), "{told}");
    }
    assert!(!data.join("aside").exists());
    fs::remove_file(data.join("FAILED")).unwrap();
    block_in_place(|| {
        cluster.start_node(NODE);
        cluster.start_node(1);
    });
    until_in_sync(&cluster, 2).await;
}
