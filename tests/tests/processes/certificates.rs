//! A cluster whose processes know each other by certificates.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use simshard_testkit::{Certificates, End, ProcessCluster, Shape, binary, run, until};
use tokio::task::block_in_place;

use crate::failovers::get_acquainted;
use crate::load::{Load, create};
use crate::records::until_in_sync;

const NODES: usize = 3;

fn certificates() -> Certificates {
    Certificates::of_server(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

async fn certified() -> ProcessCluster {
    let shape = Shape::of(NODES).with_replicas(2);
    let cluster = ProcessCluster::start_certified(shape, certificates());
    create(&cluster.client()).await;
    cluster
}

/// Runs a command of an operator with a certificate, if any.
fn tell(cluster: &ProcessCluster, command: &str, owner: Option<&str>) -> Output {
    let metadata = format!("file:{}", cluster.metadata_file().display());
    let mut args = vec!["cluster".to_owned()];
    args.extend(command.split(' ').map(str::to_owned));
    args.extend(["--metadata".to_owned(), metadata]);
    if let Some(owner) = owner {
        args.extend(cluster.certificates().cluster_args(owner));
    }
    block_in_place(|| run(binary(), args, ""))
}

/// CT1, AU5: nodes copy from each other, routers search and change, and operators repair, all by their certificates.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_with_certificates_moves_repairs_and_loses_nothing() {
    let mut cluster = certified().await;
    let load = Load::start(&[cluster.client().with_timeout(Duration::from_secs(20))]);
    get_acquainted(&load).await;
    let operate = |cluster: &ProcessCluster, command: &str| {
        let told = tell(cluster, command, Some("client"));
        let said = String::from_utf8_lossy(&told.stderr).into_owned();
        assert!(told.status.success(), "{command}: {said}");
        String::from_utf8(told.stdout).unwrap()
    };
    operate(&cluster, "set-replication --replicas 3 --yes");
    until_in_sync(&cluster, NODES).await;
    block_in_place(|| cluster.restart_node(0, End::Killed));
    until_in_sync(&cluster, NODES).await;
    operate(
        &cluster,
        "scrub --repair --shards 00-0f --settled-seconds 0",
    );
    let listed = operate(&cluster, "nodes");
    assert_eq!(listed.matches("https://").count(), NODES, "{listed}");
    load.end(&cluster.client()).await;
    drop(cluster);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_without_the_right_certificate_is_told_so() {
    let cluster = certified().await;
    let scrub = "scrub --shards 00 --only replicas --settled-seconds 0";
    for (owner, said) in [
        (None, "--cluster-cert"),
        (
            Some("router"),
            "the certificate of this client is one of router",
        ),
    ] {
        let told = tell(&cluster, scrub, owner);
        assert!(!told.status.success());
        let error = String::from_utf8_lossy(&told.stderr).into_owned();
        assert!(error.contains(said), "{error}");
    }
    drop(cluster);
}

/// All files of an authority that comes after another one, in the folder of the earlier ones.
fn replace(folder: &Path, next: &Certificates, files: &[&str]) {
    for file in files {
        fs::copy(next.folder().join(file), folder.join(file)).unwrap();
    }
}

/// TL2, CT1: first all trust both authorities, then all show certificates of the next one. Nothing is restarted until then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_is_replaced_while_all_goes_on() {
    let mut cluster = certified().await;
    let load = Load::start(&[cluster.client().with_timeout(Duration::from_secs(20))]);
    get_acquainted(&load).await;
    let (folder, next) = (cluster.certificates().folder().to_owned(), certificates());
    let both = ["ca.pem"].map(|file| {
        let one = fs::read_to_string(folder.join(file)).unwrap();
        one + &fs::read_to_string(next.folder().join(file)).unwrap()
    });
    fs::write(folder.join("ca.pem"), &both[0]).unwrap();
    until_read_again(&cluster, 1).await;
    let pairs = [
        "server.pem",
        "server.key",
        "router.pem",
        "router.key",
        "client.pem",
        "client.key",
    ];
    replace(&folder, &next, &pairs);
    until_read_again(&cluster, 2).await;
    for node in 0..NODES {
        block_in_place(|| cluster.restart_node(node, End::Stopped));
        until_in_sync(&cluster, 2).await;
    }
    // What trusts the next one alone reaches all.
    replace(&folder, &next, &["ca.pem"]);
    let listed = tell(&cluster, "nodes --json", Some("client"));
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(
        listed.matches("\"answers\":true").count(),
        NODES,
        "{listed}"
    );
    load.end(&cluster.client()).await;
    drop(cluster);
}

async fn until_read_again(cluster: &ProcessCluster, times: usize) {
    until("all nodes have read the files again", async || {
        (0..NODES).all(|node| {
            let log = cluster.node_log(node);
            log.matches("were read again").count() >= times
        })
    })
    .await;
}
