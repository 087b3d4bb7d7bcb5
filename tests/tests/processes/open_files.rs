//! A node that may open no more files while it serves.

#![cfg(target_os = "linux")]

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use simshard_client::{Client, ClientError, Documents, Queries, Reason, SearchSpec, v1};
use simshard_simhash::Fingerprint;
use simshard_testkit::{Process, binary, free_addresses, until, write_layout_file};

/// Documents of a batch.
const BATCH: u64 = 2000;

/// More batches than memory holds.
const MOST_BATCHES: u64 = 200;

fn batch(number: u64) -> Documents {
    let numbers = number * BATCH..(number + 1) * BATCH;
    let fingerprint = |number: u64| Fingerprint(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    Documents {
        keys: Queries::Fingerprints(numbers.clone().map(fingerprint).collect()),
        ids: numbers.map(|number| format!("{number:050}")).collect(),
    }
}

async fn assert_found(client: &Client, batches: std::ops::Range<u64>) {
    for number in batches {
        let found = client.find_all("c", batch(number).keys, SearchSpec::default());
        let found = found.await.unwrap();
        assert!(found.queries.iter().all(|query| !query.matches.is_empty()));
    }
}

fn assert_out_of_files(error: &ClientError) {
    assert_eq!(error.reason(), Some(Reason::Overloaded), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("file descriptors") && text.contains("ulimit -n"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_out_of_file_descriptors_refuses_inserts_and_goes_on_once_there_are_some() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (layout, data) = (path("cluster.toml"), path("data"));
    write_layout_file(layout.as_ref(), &free_addresses(1));
    let node = ["serve", "node", "--name", "n1", "--cluster", &layout];
    let node = [&node[..], &["--data", &data, "--memtable-mib", "1"]].concat();
    let process = Process::serve(binary(), &node);
    let router = ["serve", "router", "--cluster", &layout];
    let router = Process::serve(
        binary(),
        [&router[..], &["--listen", "127.0.0.1:0"]].concat(),
    );
    let client = Client::new(router.url()).unwrap();
    let create = v1::CreateCorpusRequest {
        name: "c".to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    client.create_corpus(create).await.unwrap();
    client.insert("c", batch(0)).await.unwrap();
    // The router has all its connections to the node now.
    assert_found(&client, 0..1).await;

    let limit = |limit| {
        let id = Pid::from_raw(i32::try_from(process.id()).unwrap());
        prlimit(id, Resource::Nofile, limit).unwrap()
    };
    let unlimited = limit(Rlimit {
        current: Some(0),
        maximum: Some(8192),
    });
    let mut inserted = 1;
    let error = loop {
        match client.insert("c", batch(inserted)).await {
            Ok(_) => inserted += 1,
            Err(error) => break error,
        }
        assert!(inserted < MOST_BATCHES, "memory holds more than it should");
    };
    assert_out_of_files(&error);
    assert_found(&client, 0..inserted).await;

    limit(Rlimit {
        maximum: Some(8192),
        current: unlimited.current.map(|current| current.min(8192)),
    });
    until("it may open files again", async || {
        let inserted = client.insert("c", batch(inserted)).await;
        inserted.inspect_err(assert_out_of_files).is_ok()
    })
    .await;
    assert_eq!(process.terminate(), Some(0));
    let process = Process::serve(binary(), &node);
    assert_found(&client, 0..inserted + 1).await;
    assert_eq!(process.terminate(), Some(0));
}
