//! A cluster whose etcd asks for certificates, a user and a password.

use std::fs;

use simshard_testkit::{EtcdServer, ProcessCluster, Shape, binary, run};
use tokio::task::block_in_place;

use crate::interruptions::until_reached;
use crate::on_demand::{all, create, found, insert};

const PASSWORD: &str = "right-word";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_runs_with_an_etcd_that_asks_for_certificates_and_a_password() {
    let mut etcd = EtcdServer::start_with_tls();
    etcd.ask_for_users("news", PASSWORD);
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("password");
    fs::write(&password, PASSWORD).unwrap();
    let certificates = etcd.certificates();
    let [certificate, key] = certificates.client();
    let files = [
        ("--metadata-ca", certificates.authority()),
        ("--metadata-cert", certificate),
        ("--metadata-key", key),
        ("--metadata-password-file", password),
    ];
    let files = files.map(|(flag, file)| format!("{flag}={}", file.display()));
    let access = [&files[..], &["--metadata-user=news".to_owned()]].concat();
    let cluster = ProcessCluster::start_at_with(Shape::of(2), &etcd.url(), access.clone());
    let client = cluster.client();
    create(&client, "crawl").await.unwrap();
    insert(&client, "crawl", all()).await.unwrap();
    assert_eq!(found(&client, "crawl", all()).await.unwrap(), 200);
    block_in_place(|| etcd.restart());
    let created = until_reached(async || create(&client, "other").await);
    created.await.unwrap();

    let status = |access: &[String]| {
        let mut args = ["cluster", "status", "--metadata"]
            .map(str::to_owned)
            .to_vec();
        args.push(etcd.url());
        args.extend(access.iter().cloned());
        run(binary(), args, "")
    };
    let told = status(&access);
    assert!(told.status.success(), "{told:?}");
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("nodes\tyes\t2 of 2 answer"), "{told}");
    let refused = status(&access[..4]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        said.contains("--metadata-user is missing") && !said.contains(PASSWORD),
        "{said}"
    );
}
