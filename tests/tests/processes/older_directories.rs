//! Nodes that register themselves notice that their directory is an older copy, or that a copy of it was started. However
//! they end, they start again with their own.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use simshard_client::{Client, ClientError, Documents, Fingerprint, Queries, SearchSpec, v1};
use simshard_cluster::{
    FileKeyValues, KeyValueStore, key_values_at, published, registered_stores, shard_records,
};
use simshard_proto::shard::v1::PingRequest;
use simshard_proto::shard::v1::shard_service_client::ShardServiceClient;
use simshard_storage::Store;
use simshard_testkit::{
    End, EtcdServer, Process, ProcessCluster, Running, Shape, binary, run_with_open_input, until,
};
use simshard_topology::replication::StoreId;
use tokio::task::block_in_place;
use tonic::transport::Endpoint;

use crate::interruptions::until_reached;
use crate::records::until_in_sync;

/// A node with no more arguments than these does not publish before it ends.
const PUBLISH_EACH_SECOND: &[&str] = &["--publish-seconds", "1"];

fn some(numbers: std::ops::Range<u64>) -> Queries {
    let spread = |number: u64| Fingerprint(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    Queries::Fingerprints(numbers.map(spread).collect())
}

pub(crate) async fn create(client: &Client, name: &str) {
    let create = || v1::CreateCorpusRequest {
        name: name.to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    let created = until_reached(async || client.create_corpus(create()).await);
    created.await.unwrap();
}

pub(crate) async fn insert(client: &Client, corpus: &str, numbers: std::ops::Range<u64>) {
    let documents = || Documents {
        keys: some(numbers.clone()),
        ids: vec![],
    };
    let inserted = until_reached(async || client.insert(corpus, documents()).await);
    inserted.await.unwrap();
}

/// How many of these are found, in an answer that says it is complete.
pub(crate) async fn found(client: &Client, corpus: &str, numbers: std::ops::Range<u64>) -> usize {
    let find = async || -> Result<usize, ClientError> {
        let options = SearchSpec {
            max_distance: Some(0),
            ..SearchSpec::default()
        };
        let found = client.find_all(corpus, some(numbers.clone()), options);
        let queries = found.await?.queries.into_iter();
        Ok(queries.filter(|query| !query.matches.is_empty()).count())
    };
    until_reached(find).await.unwrap()
}

/// Copies a directory with all that is in it, in place of what was there.
pub(crate) fn copy(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).unwrap();
    }
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (entry, target) = {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            (entry.path(), target)
        };
        if entry.is_dir() {
            copy(&entry, &target);
        } else {
            fs::copy(&entry, &target).unwrap();
        }
    }
}

/// Why a node does not start. One that starts is ended, and fails the test.
pub(crate) fn refusal(args: Vec<String>) -> String {
    let told = refusal_with(2, args);
    assert!(told.contains("--accept-lost-changes"), "{told}");
    told
}

/// The same, with this exit code.
pub(crate) fn refusal_with(code: i32, args: Vec<String>) -> String {
    let refused = run_with_open_input(binary(), args, "");
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(code), "{told}");
    told
}

/// The arguments of the first node, with another directory, at a free port.
pub(crate) fn args_of_copy(cluster: &ProcessCluster, data: &Path) -> Vec<String> {
    let (own, listen) = (cluster.data(0), cluster.node_addresses()[0].to_string());
    let args = cluster.node_args(0).into_iter().map(|arg| {
        if Path::new(&arg) == own {
            data.to_str().unwrap().to_owned()
        } else if arg == listen {
            "127.0.0.1:0".to_owned()
        } else {
            arg
        }
    });
    args.collect()
}

/// A copy of a data directory: which store it is of, and the last record of its log. It is locked for this once only, as
/// a process that starts at that moment has the lock too, for a while.
struct CopiedDirectory {
    store: StoreId,
    recovered: u64,
}

impl CopiedDirectory {
    fn of(directory: &Path, to: &Path) -> Self {
        copy(directory, to);
        let claim = Store::claim(to).unwrap();
        Self {
            store: claim.store,
            recovered: claim.recovered,
        }
    }

    /// Whether the store has published a later record than the copy has.
    async fn is_behind(&self, keys: &dyn KeyValueStore) -> bool {
        let read = published(keys, self.store).await.unwrap();
        let (_, published) = read.unwrap();
        published.synced > self.recovered
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_of_an_earlier_start_is_refused_until_the_loss_is_accepted() {
    let mut cluster = ProcessCluster::start(Shape::of(2));
    let client = cluster.client();
    create(&client, "old").await;
    insert(&client, "old", 0..100).await;
    let (data, older) = (cluster.data(0), cluster.folder().join("older"));
    block_in_place(|| cluster.while_stopped(0, |data| copy(data, &older)));
    create(&client, "new").await;
    insert(&client, "new", 0..100).await;

    for end in [End::Stopped, End::Killed] {
        block_in_place(|| cluster.end_node(0, end));
        let newest = cluster.folder().join("newest");
        copy(&data, &newest);
        copy(&older, &data);
        let told = refusal(cluster.node_args(0));
        assert!(told.contains(data.to_str().unwrap()), "{told}");
        assert!(told.contains("it is an older copy"), "{told}");
        // That it was tried changes nothing.
        copy(&newest, &data);
        block_in_place(|| cluster.start_node(0));
        assert_eq!(found(&client, "new", 0..100).await, 100);
    }

    block_in_place(|| {
        cluster.end_node(0, End::Killed);
        copy(&older, &data);
        cluster.start_node_with(0, &["--accept-lost-changes"]);
    });
    assert_eq!(found(&client, "old", 0..100).await, 100);
    insert(&client, "new", 0..100).await;
    assert_eq!(found(&client, "new", 0..100).await, 100);
    // The loss was accepted once, and of this directory.
    block_in_place(|| cluster.restart_node(0, End::Killed));
    assert_eq!(found(&client, "new", 0..100).await, 100);
    block_in_place(|| cluster.end_node(0, End::Killed));
    copy(&older, &data);
    refusal(cluster.node_args(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_of_the_same_start_is_refused_if_its_log_is_shorter() {
    let mut cluster = ProcessCluster::start(Shape::of(1));
    let client = cluster.client();
    create(&client, "crawl").await;
    let (data, older) = (cluster.data(0), cluster.folder().join("older"));
    let newest = cluster.folder().join("newest");
    let keys = FileKeyValues::at(cluster.metadata_file());
    for (round, more) in [PUBLISH_EACH_SECOND, &[]].into_iter().enumerate() {
        block_in_place(|| {
            cluster.end_node(0, End::Stopped);
            cluster.start_node_with(0, more);
        });
        let first = round as u64 * 100;
        insert(&client, "crawl", first..first + 50).await;
        let copied = CopiedDirectory::of(&data, &older);
        insert(&client, "crawl", first + 50..first + 100).await;
        if more.is_empty() {
            // What is not published at once is published in the end.
            block_in_place(|| cluster.end_node(0, End::Stopped));
        } else {
            until("a later record is published", async || {
                copied.is_behind(&keys).await
            })
            .await;
            block_in_place(|| cluster.end_node(0, End::Killed));
        }
        assert!(copied.is_behind(&keys).await);
        copy(&data, &newest);
        copy(&older, &data);
        let told = refusal(cluster.node_args(0));
        assert!(told.contains("its log ends with record"), "{told}");
        copy(&newest, &data);
        block_in_place(|| cluster.start_node(0));
        let all = found(&client, "crawl", 0..first + 100).await;
        assert_eq!(all as u64, first + 100);
    }
}

/// The last record of its log that a store said to be on disk to the node at this address.
async fn heard(address: SocketAddr, store: StoreId) -> u64 {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut node = ShardServiceClient::new(endpoint.connect_lazy());
    let request = PingRequest {
        about_store: store.0.to_vec(),
        ..PingRequest::default()
    };
    node.ping(request).await.unwrap().into_inner().heard_synced
}

/// How many stores hold a shard in sync, of the shard with the fewest.
async fn fewest_in_sync(keys: &dyn KeyValueStore) -> usize {
    let records = shard_records(keys).await.unwrap();
    let counts = records.values().map(|record| record.in_sync.len());
    counts.min().unwrap()
}

/// RG3. If the others have taken it out of the records before, it starts with what it has, as a learner: then this is tried
/// again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_directory_lacks_what_others_heard_of_begins_anew() {
    let mut cluster = ProcessCluster::start(Shape::of(2).with_replicas(2));
    let client = cluster.client();
    create(&client, "crawl").await;
    let (data, older) = (cluster.data(0), cluster.folder().join("older"));
    let keys = FileKeyValues::at(cluster.metadata_file());
    let (mut has_begun_anew, mut all) = (false, 0);
    for round in 0..20 {
        block_in_place(|| {
            cluster.end_node(0, End::Stopped);
            cluster.start_node_with(0, &["--publish-seconds", "3600"]);
        });
        until("both are in sync", async || {
            fewest_in_sync(&keys).await == 2
        })
        .await;
        insert(&client, "crawl", round * 100..round * 100 + 50).await;
        let copied = CopiedDirectory::of(&data, &older);
        all = round * 100 + 100;
        insert(&client, "crawl", all - 50..all).await;
        let peer = cluster.node_addresses()[1];
        until("a peer hears of a later record", async || {
            heard(peer, copied.store).await > copied.recovered
        })
        .await;
        assert!(!copied.is_behind(&keys).await);
        block_in_place(|| cluster.end_node(0, End::Killed));
        copy(&older, &data);
        let log = block_in_place(|| cluster.start_node_with_log(0));
        until("both are in sync", async || {
            fewest_in_sync(&keys).await == 2
        })
        .await;
        has_begun_anew = log.contains("its log ends with record");
        if has_begun_anew {
            assert!(log.contains("it begins anew"), "{log}");
            break;
        }
    }
    assert!(has_begun_anew, "the others were always faster");
    block_in_place(|| cluster.end_node(1, End::Killed));
    assert_eq!(found(&client, "crawl", 0..all).await as u64, all);
}

/// RG7. Several ways to start a copy: none leaves two processes that both serve.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_beside_the_original_is_refused_or_takes_its_place() {
    let mut cluster = ProcessCluster::start(Shape::of(1));
    let client = cluster.client();
    create(&client, "crawl").await;
    insert(&client, "crawl", 0..50).await;
    let (data, other) = (cluster.data(0), cluster.folder().join("copy"));
    block_in_place(|| cluster.while_stopped(0, |data| copy(data, &other)));
    let told = refusal(args_of_copy(&cluster, &other));
    assert!(told.contains(other.to_str().unwrap()), "{told}");
    assert!(told.contains("a copy of it was started since"), "{told}");
    assert_eq!(found(&client, "crawl", 0..50).await, 50);
    block_in_place(|| cluster.end_node(0, End::Stopped));
    refusal(args_of_copy(&cluster, &other));

    // A copy of what runs lacks what that one acknowledges since.
    let mut original = Running::start(binary(), cluster.node_args(0));
    assert_eq!(found(&client, "crawl", 0..50).await, 50);
    copy(&data, &other);
    let told = refusal_with(1, args_of_copy(&cluster, &other));
    let runs = format!("its store runs at http://{}", cluster.node_addresses()[0]);
    assert!(told.contains(&runs), "{told}");
    insert(&client, "crawl", 50..60).await;
    assert_eq!(found(&client, "crawl", 0..60).await, 60);

    // One that is frozen cannot say that it runs. The one that was started last goes on.
    copy(&data, &other);
    original.freeze();
    let args = args_of_copy(&cluster, &other);
    let _copy = block_in_place(|| Process::serve(binary(), args));
    original.thaw();
    until("the original ends", async || original.has_ended()).await;
    let ended = original.output();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(2), "{told}");
    assert!(
        told.contains("a copy of it was started meanwhile"),
        "{told}"
    );
    refusal(cluster.node_args(0));
    assert_eq!(found(&client, "crawl", 0..60).await, 60);
}

/// A node with an empty directory does not wait for one of its name that runs, whether that one holds shards or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_a_running_node_has_is_refused() {
    let cluster = ProcessCluster::start(Shape::of(1));
    let client = cluster.client();
    create(&client, "crawl").await;
    insert(&client, "crawl", 0..50).await;
    let keys = FileKeyValues::at(cluster.metadata_file());
    let before = registered_stores(&keys).await.unwrap();
    let empty = cluster.folder().join("empty");
    let told = refusal_with(1, args_of_copy(&cluster, &empty));
    let runs = format!("a node n1 runs at http://{}", cluster.node_addresses()[0]);
    assert!(told.contains(&runs), "{told}");
    assert_eq!(registered_stores(&keys).await.unwrap(), before);
    assert_eq!(found(&client, "crawl", 0..50).await, 50);
}

/// Also an older copy of it: the operator would be told how to use that all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_directory_of_another_node_is_refused_by_its_name() {
    let mut cluster = ProcessCluster::start(Shape::of(2));
    let older = cluster.folder().join("older");
    block_in_place(|| {
        cluster.while_stopped(1, |data| copy(data, &older));
        // The start before the newest one is known as well.
        cluster.restart_node(1, End::Stopped);
        (0..2).for_each(|node| cluster.end_node(node, End::Stopped));
    });
    for data in [older, cluster.data(1)] {
        let told = refusal_with(2, args_of_copy(&cluster, &data));
        assert!(told.contains("give --name n2"), "{told}");
        assert!(!told.contains("--accept-lost-changes"), "{told}");
    }
}

/// A node of one cluster that is started with the metadata of another one leaves nothing there, and starts with its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_of_another_cluster_is_refused_before_anything_is_written_to_it() {
    let mut cluster = ProcessCluster::start(Shape::of(1));
    let client = cluster.client();
    create(&client, "crawl").await;
    insert(&client, "crawl", 0..50).await;
    let other = ProcessCluster::start(Shape::of(1));
    block_in_place(|| cluster.end_node(0, End::Stopped));
    let keys = FileKeyValues::at(other.metadata_file());
    let before = registered_stores(&keys).await.unwrap();
    let told = refusal_with(2, args_of_copy(&other, &cluster.data(0)));
    let data = cluster.data(0);
    let refused = format!("{} does not open with the record", data.display());
    assert!(told.contains(&refused), "{told}");
    let remedy = "give the node the metadata that it had last";
    assert!(told.contains(remedy), "{told}");
    assert_eq!(registered_stores(&keys).await.unwrap(), before);
    block_in_place(|| cluster.start_node(0));
    assert_eq!(found(&client, "crawl", 0..50).await, 50);
}

/// RG6: what the copy lacks is not published yet, so it is refused only once it has heard of it from others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_refused_leaves_the_address_of_the_node_that_runs() {
    let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(3));
    let client = cluster.client();
    create(&client, "crawl").await;
    block_in_place(|| {
        cluster.end_node(0, End::Stopped);
        cluster.start_node_with(0, &["--publish-seconds", "3600"]);
    });
    until_in_sync(&cluster, 3).await;
    insert(&client, "crawl", 0..50).await;
    let (data, other) = (cluster.data(0), cluster.folder().join("copy"));
    let copied = CopiedDirectory::of(&data, &other);
    block_in_place(|| cluster.end_node(2, End::Stopped));
    until_in_sync(&cluster, 2).await;
    insert(&client, "crawl", 50..100).await;
    let peer = cluster.node_addresses()[1];
    until("a peer hears of a later record", async || {
        heard(peer, copied.store).await > copied.recovered
    })
    .await;
    let keys = FileKeyValues::at(cluster.metadata_file());
    assert!(!copied.is_behind(&keys).await);

    let mut copy = Running::start(binary(), args_of_copy(&cluster, &other));
    until("the copy is refused", async || copy.has_ended()).await;
    let told = String::from_utf8(copy.output().stderr).unwrap();
    let own = format!("http://{}", cluster.node_addresses()[0]);
    assert!(told.contains(&format!("its store runs at {own}")), "{told}");
    let stores = registered_stores(&keys).await.unwrap();
    let address = stores.into_iter().find(|store| store.id == copied.store);
    assert_eq!(address.unwrap().address, own);
    insert(&client, "crawl", 100..150).await;
    assert_eq!(found(&client, "crawl", 0..150).await, 150);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_starts_again_however_it_ended() {
    let mut cluster = ProcessCluster::start(Shape::of(1));
    let client = cluster.client();
    create(&client, "crawl").await;
    for round in 0..10 {
        insert(&client, "crawl", round * 10..round * 10 + 10).await;
        let end = [End::Stopped, End::Killed][round as usize % 2];
        block_in_place(|| cluster.end_node(0, end));
        // It ends again while it starts: before the new start is in the directory, or the metadata, or after that.
        let changing = [
            cluster.data(0).join("incarnations"),
            cluster.metadata_file(),
            cluster.data(0).join("lock"),
        ];
        let changing = &changing[round as usize % 3];
        let before = fs::read(changing).unwrap();
        let mut starting = Running::start(binary(), cluster.node_args(0));
        until("the file changes", async || {
            fs::read(changing).unwrap() != before
        })
        .await;
        assert!(!starting.has_ended());
        starting.kill();
        block_in_place(|| cluster.start_node_with(0, PUBLISH_EACH_SECOND));
        let all = round * 10 + 10;
        assert_eq!(found(&client, "crawl", 0..all).await as u64, all);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_serves_and_ends_while_the_metadata_is_away_and_publishes_once_it_is_back() {
    let mut etcd = EtcdServer::start();
    let mut cluster = ProcessCluster::start_at(Shape::of(1), &etcd.url());
    let client = cluster.client();
    create(&client, "crawl").await;
    insert(&client, "crawl", 0..10).await;
    let (data, older) = (cluster.data(0), cluster.folder().join("older"));
    block_in_place(|| cluster.restart_node(0, End::Stopped));
    etcd.stop();
    insert(&client, "crawl", 10..20).await;
    // It does not wait for the metadata for long.
    block_in_place(|| cluster.end_node(0, End::Stopped));
    etcd.restart();
    block_in_place(|| cluster.start_node_with(0, PUBLISH_EACH_SECOND));
    let copied = CopiedDirectory::of(&data, &older);
    etcd.stop();
    insert(&client, "crawl", 20..30).await;
    assert_eq!(found(&client, "crawl", 0..30).await, 30);
    etcd.restart();
    let keys = key_values_at(&etcd.url()).unwrap();
    until("a later record is published", async || {
        copied.is_behind(&*keys).await
    })
    .await;
    assert_eq!(found(&client, "crawl", 0..30).await, 30);
}
