//! The file of corpora is damaged, lost or wrong beside real processes: nothing is answered as complete that is not,
//! nothing is taken that would not be found, and `corpus recover` restores what nodes store.

use std::fs;
use std::path::{Path, PathBuf};

use simshard_client::{
    Client, ClientError, Documents, Fingerprint, Queries, Reason, SearchSpec, v1,
};
use simshard_cluster::{FileKeyValues, KeyValueStore, Outcome, Transaction};
use simshard_testkit::{End, ProcessCluster, Shape, binary, run, until};
use tokio::task::block_in_place;

use crate::moves::refuse;
use crate::records::forget_corpora;

const DOCUMENTS: u64 = 200;

/// Spread over all nodes.
fn fingerprint(number: u64) -> Fingerprint {
    Fingerprint(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn all() -> Queries {
    Queries::Fingerprints((0..DOCUMENTS).map(fingerprint).collect())
}

async fn insert(client: &Client, corpus: &str) -> Result<u64, ClientError> {
    let documents = Documents {
        keys: all(),
        ids: vec![],
    };
    client.insert(corpus, documents).await
}

/// How many of the documents are found, in an answer that says it is complete.
async fn found(client: &Client, corpus: &str) -> Result<usize, ClientError> {
    let found = client.find_all(corpus, all(), SearchSpec::default());
    let queries = found.await?.queries;
    Ok(queries
        .iter()
        .filter(|query| !query.matches.is_empty())
        .count())
}

async fn create(client: &Client, name: &str) -> Result<v1::Corpus, ClientError> {
    let request = v1::CreateCorpusRequest {
        name: name.to_owned(),
        ..Default::default()
    };
    client.create_corpus(request).await
}

/// Three nodes and a router, and corpora `a` and `b`, of which `a` holds all documents.
async fn cluster() -> (ProcessCluster, Client) {
    let cluster = ProcessCluster::start_by_layout(3);
    let client = cluster.client();
    create(&client, "a").await.unwrap();
    create(&client, "b").await.unwrap();
    assert_eq!(insert(&client, "a").await.unwrap(), DOCUMENTS);
    (cluster, client)
}

async fn uid_of(client: &Client, name: &str) -> String {
    let stored = client.list_stored_corpora().await.unwrap();
    let corpus = stored.into_iter().find(|corpus| corpus.name == name);
    corpus.unwrap().uid
}

fn corpora_file(cluster: &ProcessCluster) -> PathBuf {
    cluster.folder().join("cluster.corpora.toml")
}

fn edit(file: &Path, edit: impl Fn(&str) -> String) {
    let text = fs::read_to_string(file).unwrap();
    let edited = edit(&text);
    assert_ne!(edited, text);
    fs::write(file, edited).unwrap();
}

fn restart_router(cluster: &mut ProcessCluster) {
    tokio::task::block_in_place(|| cluster.restart_router(End::Killed));
}

/// The text of a file of version 1, which has no checksum, with these blocks and this distance for both corpora.
fn version_1(version_2: &str, blocks: u32, distance: u32) -> String {
    let mut text = String::new();
    for line in version_2.lines() {
        let key = line.split(' ').next();
        match key {
            Some("version") => text.push_str("version = 1\n"),
            Some("revision" | "checksum") => {}
            Some("blocks") => text.push_str(&format!("blocks = {blocks}\n")),
            Some("distance") => text.push_str(&format!("distance = {distance}\n")),
            _ => text.push_str(&format!("{line}\n")),
        }
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_in_the_file_of_corpora_is_refused_and_never_answered() {
    let (mut cluster, client) = cluster().await;
    let file = corpora_file(&cluster);
    edit(&file, |text| text.replacen("blocks = 5", "blocks = 4", 1));
    restart_router(&mut cluster);
    for outcome in [
        found(&client, "a").await.map(drop),
        insert(&client, "a").await.map(drop),
        create(&client, "c").await.map(drop),
        client.list_corpora().await.map(drop),
        client.delete_corpus("a").await,
    ] {
        let error = outcome.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::MetadataFailed), "{error}");
        assert!(error.to_string().contains("corpus recover"), "{error}");
    }
    edit(&file, |text| text.replacen("blocks = 4", "blocks = 5", 1));
    assert_eq!(found(&client, "a").await.unwrap(), DOCUMENTS as usize);
}

/// A file without a checksum that was damaged before it was read: the nodes know better.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_refuse_a_corpus_of_another_layout() {
    let (mut cluster, client) = cluster().await;
    let file = corpora_file(&cluster);
    let whole = fs::read_to_string(&file).unwrap();
    for (blocks, distance) in [(4, 3), (5, 2), (6, 3)] {
        fs::write(&file, version_1(&whole, blocks, distance)).unwrap();
        restart_router(&mut cluster);
        for outcome in [
            found(&client, "a").await.map(drop),
            insert(&client, "a").await.map(drop),
            client.get_corpus("a").await.map(drop),
            client.delete_corpus("a").await,
        ] {
            let error = outcome.unwrap_err();
            assert_eq!(error.reason(), Some(Reason::CorpusDiffers), "{error}");
        }
    }
    // What the router remembers gives way to the mended file, without a restart.
    fs::write(&file, version_1(&whole, 5, 3)).unwrap();
    assert_eq!(found(&client, "a").await.unwrap(), DOCUMENTS as usize);
    assert_eq!(insert(&client, "a").await.unwrap(), 0);
}

/// The file of corpora is removed; one of two corpora with documents is restored.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_not_made_anew_until_all_documents_have_a_record() {
    let (mut cluster, client) = cluster().await;
    insert(&client, "b").await.unwrap();
    let (a, b) = (uid_of(&client, "a").await, uid_of(&client, "b").await);
    fs::remove_file(corpora_file(&cluster)).unwrap();
    for restarted in [false, true] {
        if restarted {
            restart_router(&mut cluster);
        } else {
            recover(&cluster.url(), &[&a, "--name", "a", "--recipe", "words-v1"]).unwrap();
        }
        let error = create(&client, "b").await.unwrap_err();
        assert!(error.to_string().contains(&b), "{error}");
        assert!(!error.to_string().contains(&a), "{error}");
    }
    recover(&cluster.url(), &[&b, "--name", "b", "--recipe", "words-v1"]).unwrap();
    create(&client, "c").await.unwrap();
    assert_eq!(found(&client, "b").await.unwrap(), DOCUMENTS as usize);
}

/// A copy of the file is put back that is older than a corpus, but not older than what a router knows of the file.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_not_made_anew_after_an_older_file_was_put_back() {
    let (mut cluster, client) = cluster().await;
    let other = cluster.add_router();
    let other = cluster.client_of(other);
    let older = fs::read(corpora_file(&cluster)).unwrap();
    create(&other, "c").await.unwrap();
    assert_eq!(insert(&other, "c").await.unwrap(), DOCUMENTS);
    let uid = uid_of(&client, "c").await;
    fs::write(corpora_file(&cluster), older).unwrap();

    let error = create(&client, "c").await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::MetadataFailed), "{error}");
    assert!(error.to_string().contains(&uid), "{error}");
    recover(
        &cluster.url(),
        &[&uid, "--name", "c", "--recipe", "words-v1"],
    )
    .unwrap();
    assert_eq!(found(&client, "c").await.unwrap(), DOCUMENTS as usize);
}

/// Another router remembers an empty corpus, and would write to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_not_made_anew_while_nodes_hold_its_empty_corpus_without_a_record() {
    let (mut cluster, client) = cluster().await;
    let other = cluster.add_router();
    let other = cluster.client_of(other);
    assert_eq!(found(&other, "b").await.unwrap(), 0);
    let (a, b) = (uid_of(&client, "a").await, uid_of(&client, "b").await);
    fs::remove_file(corpora_file(&cluster)).unwrap();
    recover(&cluster.url(), &[&a, "--name", "a", "--recipe", "words-v1"]).unwrap();

    let error = create(&client, "b").await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::MetadataFailed), "{error}");
    assert!(error.to_string().contains(&b), "{error}");
    assert_eq!(insert(&other, "b").await.unwrap(), DOCUMENTS);
    recover(&cluster.url(), &[&b, "--name", "b", "--recipe", "words-v1"]).unwrap();
    assert_eq!(found(&client, "b").await.unwrap(), DOCUMENTS as usize);
    create(&client, "c").await.unwrap();
}

/// A node that holds no shards knows nothing of corpora.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_name_is_free_while_all_nodes_are_silent_and_all_records_of_corpora_are_lost() {
    let mut cluster = ProcessCluster::start(Shape::of(2).with_replicas(2));
    let client = cluster.client();
    create(&client, "a").await.unwrap();
    assert_eq!(insert(&client, "a").await.unwrap(), DOCUMENTS);
    for node in 0..2 {
        cluster.end_node(node, End::Killed);
    }
    forget_corpora(&cluster).await;
    restart_router(&mut cluster);
    for outcome in [
        client.list_corpora().await.map(drop),
        create(&client, "a").await.map(drop),
    ] {
        let error = outcome.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::NodeUnreachable), "{error}");
    }
    // One of them is enough to tell that the records are lost.
    block_in_place(|| cluster.start_node(0));
    until("the router reaches it", async || {
        let error = create(&client, "a").await.unwrap_err();
        error.reason() == Some(Reason::MetadataFailed)
    })
    .await;
}

/// They would end: each has a record of a shard, and finds another one of the same epoch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_cluster_begins_over_one_whose_nodes_serve_though_its_key_is_lost() {
    let mut cluster = ProcessCluster::start(Shape::of(2).with_replicas(2));
    let client = cluster.client();
    create(&client, "a").await.unwrap();
    assert_eq!(insert(&client, "a").await.unwrap(), DOCUMENTS);
    let keys = FileKeyValues::at(cluster.metadata_file());
    let lost = keys.commit(&Transaction::new().delete("cluster")).await;
    assert!(matches!(lost, Ok(Outcome::Committed(_))));
    refuse(&cluster, &["init", "--nodes", "2"], "serve by them: n1,n2.");
    assert_eq!(found(&client, "a").await.unwrap(), DOCUMENTS as usize);
    // What the error advises.
    for node in 0..2 {
        block_in_place(|| cluster.end_node(node, End::Stopped));
    }
    block_in_place(|| cluster.begin());
    restart_router(&mut cluster);
    assert_eq!(found(&client, "a").await.unwrap(), DOCUMENTS as usize);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_whose_record_cannot_be_written_leaves_nothing() {
    let (cluster, client) = cluster().await;
    let in_the_way = cluster.folder().join("cluster.corpora.lock");
    fs::remove_file(&in_the_way).unwrap();
    fs::create_dir(&in_the_way).unwrap();
    let error = create(&client, "c").await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::MetadataFailed), "{error}");
    fs::remove_dir(&in_the_way).unwrap();
    assert_eq!(client.list_stored_corpora().await.unwrap().len(), 2);
    create(&client, "c").await.unwrap();
}

/// Runs `simshard corpus recover` with these arguments; what it prints.
fn recover(router: &str, args: &[&str]) -> Result<String, String> {
    let output = run(
        binary(),
        [&["corpus", "recover", "--router", router], args].concat(),
        "",
    );
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_file_of_corpora_beside_documents_is_an_error_that_names_their_uids() {
    let (mut cluster, client) = cluster().await;
    let created = client.get_corpus("a").await.unwrap().corpus.unwrap();
    fs::remove_file(corpora_file(&cluster)).unwrap();
    restart_router(&mut cluster);
    let url = cluster.url();
    let listed = recover(&url, &[]).unwrap();
    let rows: Vec<Vec<&str>> = listed
        .lines()
        .map(|row| row.split('\t').collect())
        .collect();
    let has_documents = |row: &&Vec<&str>| row[4] == DOCUMENTS.to_string();
    let row = rows.iter().find(has_documents).unwrap();
    assert_eq!(row[1..], ["", "5", "3", "200", "n1,n2,n3"], "{listed}");
    let uid = row[0];
    for outcome in [
        found(&client, "a").await.map(drop),
        insert(&client, "a").await.map(drop),
        create(&client, "a").await.map(drop),
        client.list_corpora().await.map(drop),
        client.delete_corpus("a").await,
    ] {
        let error = outcome.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::MetadataFailed), "{error}");
        assert!(error.to_string().contains(uid), "{error}");
    }

    let unknown = "00000000-0000-4000-8000-000000000000";
    let named = ["--name", "a", "--recipe", "words-v1"];
    let refused = recover(&url, &[&[unknown], &named[..]].concat()).unwrap_err();
    assert!(refused.contains(unknown), "{refused}");
    recover(&url, &[uid]).unwrap_err();
    recover(&url, &[&[uid], &named[..]].concat()).unwrap();
    let again = recover(&url, &[&[uid], &named[..]].concat()).unwrap_err();
    assert!(again.contains("nothing to recover"), "{again}");

    assert_eq!(found(&client, "a").await.unwrap(), DOCUMENTS as usize);
    let recovered = client.get_corpus("a").await.unwrap().corpus.unwrap();
    let as_before = v1::Corpus {
        create_time: recovered.create_time,
        ..created
    };
    assert_eq!(recovered, as_before);
    // The other one has no record yet.
    let listed = recover(&url, &[]).unwrap();
    let nameless = listed.lines().find(|row| row.contains("\t\t")).unwrap();
    let other = nameless.split('\t').next().unwrap();
    let error = create(&client, "c").await.unwrap_err();
    assert!(error.to_string().contains(other), "{error}");
    recover(
        &url,
        &[&[other], &["--name", "b", "--recipe", "words-v1"][..]].concat(),
    )
    .unwrap();
    create(&client, "c").await.unwrap();
}

/// A node whose directory was emptied says at its start what is missing, and what to do. So does a recovery.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_an_emptied_directory_says_what_it_lost() {
    let (mut cluster, client) = cluster().await;
    let uid = uid_of(&client, "a").await;
    tokio::task::block_in_place(|| {
        cluster.end_node(1, End::Stopped);
        let data = cluster.folder().join("n2");
        fs::remove_dir_all(&data).unwrap();
        let log = cluster.start_node_with_log(1);
        for told in ["corpus=a", "corpus=b", "data directory that it had"] {
            assert!(log.contains(told), "{log}");
        }
    });
    fs::remove_file(corpora_file(&cluster)).unwrap();
    let url = cluster.url();
    let recover = ["corpus", "recover", "--router", &url, &uid];
    let named = ["--name", "a", "--recipe", "words-v1"];
    let output = run(binary(), [&recover[..], &named].concat(), "");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("node n2 does not hold it"), "{told}");
    assert!(output.status.success(), "{told}");
}

/// An error travels in headers: one that named all corpora would be too long for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loss_of_hundreds_of_records_is_told() {
    let cluster = ProcessCluster::start_by_layout(1);
    let client = cluster.client();
    for number in 0..250 {
        create(&client, &format!("c{number}")).await.unwrap();
    }
    fs::remove_file(corpora_file(&cluster)).unwrap();
    let failed = client.list_corpora().await.unwrap_err();
    assert_eq!(failed.reason(), Some(Reason::MetadataFailed), "{failed}");
    let told = failed.to_string();
    assert!(told.contains("and 240 more corpora"), "{told}");
}
