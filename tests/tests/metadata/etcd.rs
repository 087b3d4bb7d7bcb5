//! What the store in etcd does when members end, stop answering or forget old revisions.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use http::uri::PathAndQuery;
use simshard_cluster::{
    EtcdKeyValues, KeyValueError, KeyValueStore, Outcome, Snapshot, Transaction, follow,
};
use simshard_testkit::{EtcdServer, free_addresses, until};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::codegen::Service;
use tonic::server::{NamedService, UnaryService};
use tonic::transport::{Endpoint, Server};
use tonic_prost::ProstCodec;

/// Longer than a member may be quiet before it is asked for a sign of life.
const QUIET: Duration = Duration::from_secs(3);

/// Shorter than the keep-alive of a connection takes.
const LONGEST_SILENCE: Duration = Duration::from_secs(6);

/// How long a wait lasts that is then dropped. A watch is open long before three such times are over.
const SHORT: Duration = Duration::from_millis(100);

/// How often etcd looks at watches that begin in the past.
const TICK: Duration = Duration::from_millis(100);

fn store(address: &str) -> EtcdKeyValues {
    EtcdKeyValues::at(address).unwrap()
}

fn put(value: &str) -> Transaction {
    Transaction::new().put("key", value)
}

async fn value(store: &EtcdKeyValues) -> Result<Option<String>, KeyValueError> {
    let snapshot = store.read("key").await?;
    Ok(snapshot.pairs.into_iter().next().map(|pair| pair.value))
}

fn has(snapshot: &Snapshot, value: &str) -> bool {
    snapshot.pairs.iter().any(|pair| pair.value == value)
}

async fn is_made(store: &EtcdKeyValues, transaction: &Transaction) -> bool {
    matches!(store.commit(transaction).await, Ok(Outcome::Committed(_)))
}

#[tokio::test]
async fn a_member_that_has_ended_is_left_for_the_next() {
    let etcd = EtcdServer::start();
    let ended = free_addresses(1)[0];
    let store = store(&format!("etcd://{ended},{}", etcd.address()));
    assert!(is_made(&store, &put("1")).await);
    assert_eq!(value(&store).await, Ok(Some("1".to_owned())));
}

#[tokio::test]
async fn a_member_that_does_not_answer_is_left_for_the_next() {
    let (hanging, etcd) = (EtcdServer::start(), EtcdServer::start());
    let store = store(&format!("etcd://{},{}", hanging.address(), etcd.address()));
    assert_eq!(value(&store).await, Ok(None));
    hanging.freeze();
    assert!(!is_made(&store, &put("1")).await);
    // The write did not go to the next one, which would have it twice if it were of the same cluster.
    assert_eq!(value(&store).await, Ok(None));
    assert!(is_made(&store, &put("2")).await);
}

/// A member that is frozen keeps its connections.
#[tokio::test]
async fn who_waits_for_changes_leaves_a_member_that_gives_no_sign_of_life() {
    let etcd = EtcdServer::start();
    let store = store(&etcd.url());
    let newest = store.read("key").await.unwrap().revision;
    let mut changes = store.changes("key");
    let mut waiting = pin!(changes.next(newest));
    assert!(timeout(QUIET, &mut waiting).await.is_err(), "it lives");
    etcd.freeze();
    let left = timeout(LONGEST_SILENCE, waiting).await.unwrap();
    assert!(matches!(left, Err(KeyValueError::Unreachable { .. })));
}

#[tokio::test]
async fn a_write_without_an_answer_may_have_been_made_and_a_read_has_failed() {
    let etcd = EtcdServer::start();
    let store = store(&etcd.url());
    assert!(is_made(&store, &put("1")).await);
    etcd.freeze();
    let unanswered = store.commit(&put("2")).await;
    assert!(matches!(unanswered, Err(KeyValueError::Unknown { .. })));
    let unread = value(&store).await;
    assert!(matches!(unread, Err(KeyValueError::Unreachable { .. })));
    etcd.thaw();
    let found = value(&store).await.unwrap();
    assert!(found.is_some_and(|value| ["1", "2"].contains(&value.as_str())));
}

#[tokio::test]
async fn what_cannot_be_sent_has_not_been_made() {
    let mut etcd = EtcdServer::start();
    let store = store(&etcd.url());
    etcd.stop();
    let unsent = store.commit(&put("1")).await;
    assert!(
        matches!(unsent, Err(KeyValueError::Unreachable { .. })),
        "{unsent:?}"
    );
    etcd.restart();
    assert_eq!(value(&store).await, Ok(None));
}

#[tokio::test]
async fn a_follower_goes_on_after_a_restart() {
    let mut etcd = EtcdServer::start();
    let store = Arc::new(store(&etcd.url()));
    let (failures, ends) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = (Arc::clone(&failures), Arc::clone(&ends));
    let followed: Arc<dyn KeyValueStore> = Arc::<EtcdKeyValues>::clone(&store);
    let following = follow(followed, "key".to_owned(), move |turn| {
        let count = if turn.is_ok() { &counted.1 } else { &counted.0 };
        count.fetch_add(1, Ordering::Relaxed);
    });
    let mut receiver = following.await.unwrap();
    assert!(is_made(&store, &put("1")).await);
    receiver.wait_for(|now| has(now, "1")).await.unwrap();
    etcd.stop();
    until("a read fails", async || {
        failures.load(Ordering::Relaxed) > 0
    })
    .await;
    etcd.restart();
    until("a change is made", async || {
        is_made(&store, &put("2")).await
    })
    .await;
    receiver.wait_for(|now| has(now, "2")).await.unwrap();
    // Of a row of failures, the first alone is told, and the end.
    assert_eq!(failures.load(Ordering::Relaxed), 1);
    assert_eq!(ends.load(Ordering::Relaxed), 1);
}

/// etcd tells a watch that begins in the past late, by its tick of 100 ms.
#[tokio::test]
async fn a_follower_keeps_its_watch_from_change_to_change() {
    let etcd = EtcdServer::start();
    let store = Arc::new(store(&etcd.url()));
    let followed: Arc<dyn KeyValueStore> = Arc::<EtcdKeyValues>::clone(&store);
    let following = follow(followed, "key".to_owned(), |turn| turn.unwrap());
    let mut receiver = following.await.unwrap();
    for number in 1..=20 {
        // The first of two changes is told while the second is made.
        for part in ["a", "b"] {
            assert!(is_made(&store, &put(&format!("{number}{part}"))).await);
        }
        let last = format!("{number}b");
        let is_last = |snapshot: &Arc<Snapshot>| has(snapshot, &last);
        receiver.wait_for(is_last).await.unwrap();
    }
    assert_eq!(watches_opened(&etcd), 1);
}

fn watches_opened(etcd: &EtcdServer) -> u64 {
    etcd.counted("grpc_server_started_total{grpc_method=\"Watch\"")
}

#[tokio::test]
async fn followers_of_the_same_keys_keep_a_watch_each() {
    let etcd = EtcdServer::start();
    let store = Arc::new(store(&etcd.url()));
    let follow_them = async || {
        let followed: Arc<dyn KeyValueStore> = Arc::<EtcdKeyValues>::clone(&store);
        let following = follow(followed, "key".to_owned(), |turn| turn.unwrap());
        following.await.unwrap()
    };
    let mut receivers = [follow_them().await, follow_them().await];
    for number in 1..=20 {
        let value = number.to_string();
        assert!(is_made(&store, &put(&value)).await);
        for receiver in &mut receivers {
            let is_last = |snapshot: &Arc<Snapshot>| has(snapshot, &value);
            receiver.wait_for(is_last).await.unwrap();
        }
    }
    assert_eq!(watches_opened(&etcd), 2);
}

#[tokio::test]
async fn a_watch_stays_open_while_waits_are_dropped() {
    let etcd = EtcdServer::start();
    let store = store(&etcd.url());
    let mut newest = store.read("key").await.unwrap().revision;
    let mut changes = store.changes("key");
    for value in ["1", "2"] {
        for _ in 0..3 {
            let dropped = timeout(SHORT, changes.next(newest)).await;
            assert!(dropped.is_err(), "{dropped:?}");
        }
        assert!(is_made(&store, &put(value)).await);
        let heard = changes.next(newest).await.unwrap();
        assert!(has(&heard, value), "{heard:?}");
        newest = heard.revision;
    }
    assert_eq!(watches_opened(&etcd), 1);
}

/// The watch has told of the change, and tells of it once.
#[tokio::test]
async fn a_change_is_read_in_the_end_though_a_read_failed() {
    let etcd = EtcdServer::start();
    let store = store(&etcd.url());
    let newest = store.read("key").await.unwrap().revision;
    let mut changes = store.changes("key");
    let quiet = timeout(QUIET, changes.next(newest)).await;
    assert!(quiet.is_err(), "{quiet:?}");
    assert!(is_made(&store, &put("1")).await);
    // On the same connection, another watch has had its answer: so the change is there, too.
    store.changes("key").next(newest).await.unwrap();
    etcd.freeze();
    let unread = changes.next(newest).await;
    assert!(
        matches!(unread, Err(KeyValueError::Unreachable { .. })),
        "{unread:?}"
    );
    etcd.thaw();
    let heard = timeout(QUIET, changes.next(newest)).await;
    assert!(has(&heard.unwrap().unwrap(), "1"));
}

/// A change of another key before the watch is opened puts it into no past.
#[tokio::test]
async fn a_new_watch_tells_at_once() {
    let etcd = EtcdServer::start();
    let store = store(&etcd.url());
    let mut fastest = Duration::MAX;
    for number in 0..20 {
        let begin = Instant::now();
        let value = number.to_string();
        let mut seen = store.read("key").await.unwrap();
        assert!(is_made(&store, &Transaction::new().put("other", &*value)).await);
        let mut changes = store.changes("key");
        seen = changes.next(seen.revision).await.unwrap();
        assert!(is_made(&store, &put(&value)).await);
        while !has(&seen, &value) {
            seen = changes.next(seen.revision).await.unwrap();
        }
        fastest = fastest.min(begin.elapsed());
    }
    // If it were told late, each round would last from tick to tick.
    assert!(fastest < TICK / 2, "{fastest:?}");
}

/// A member of a version that nothing is known against, which knows its version only.
#[derive(Clone)]
struct GoodMember;

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct StatusResponse {
    #[prost(string, tag = "2")]
    version: String,
}

impl NamedService for GoodMember {
    const NAME: &'static str = "etcdserverpb.Maintenance";
}

impl Service<http::Request<Body>> for GoodMember {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let codec = ProstCodec::<StatusResponse, ()>::default();
            let mut grpc = tonic::server::Grpc::new(codec);
            Ok(grpc.unary(Self, request).await)
        })
    }
}

impl UnaryService<()> for GoodMember {
    type Response = StatusResponse;
    type Future = Ready<Result<tonic::Response<StatusResponse>, tonic::Status>>;

    fn call(&mut self, _: tonic::Request<()>) -> Self::Future {
        let version = "3.5.21".to_owned();
        ready(Ok(tonic::Response::new(StatusResponse { version })))
    }
}

/// The etcd of these tests is of a version that may damage its data.
#[tokio::test]
async fn each_member_is_asked_for_its_version() {
    let etcd = EtcdServer::start();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let good = listener.local_addr().unwrap();
    let incoming = TcpListenerStream::new(listener);
    let serving = Server::builder().add_service(GoodMember);
    let _serving = AbortOnDropHandle::new(tokio::spawn(serving.serve_with_incoming(incoming)));
    let fault_of = async |members: &str| store(&format!("etcd://{members}")).known_fault().await;
    let (bad, ended) = (etcd.address(), free_addresses(1)[0]);
    assert_eq!(fault_of(&good.to_string()).await, None);
    for members in [
        format!("{good},{bad}"),
        format!("{bad},{good}"),
        format!("{ended},{bad}"),
    ] {
        let fault = fault_of(&members).await.unwrap();
        assert!(fault.contains(&bad.to_string()), "{fault}");
    }
}

/// A request to forget all revisions before this one.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
struct CompactionRequest {
    #[prost(int64, tag = "1")]
    revision: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
struct CompactionResponse {}

#[tokio::test]
async fn who_waits_hears_of_a_change_that_etcd_has_forgotten() {
    let etcd = EtcdServer::start();
    let store = store(&etcd.url());
    let before = store.read("key").await.unwrap().revision;
    for number in 0..3 {
        assert!(is_made(&store, &put(&number.to_string())).await);
    }
    assert!(is_made(&store, &Transaction::new().delete("key")).await);
    let newest = store.read("key").await.unwrap().revision;
    let endpoint = Endpoint::from_shared(format!("http://{}", etcd.address())).unwrap();
    let mut grpc = Grpc::new(endpoint.connect().await.unwrap());
    grpc.ready().await.unwrap();
    let request = CompactionRequest {
        revision: newest.0.cast_signed(),
    };
    let codec = ProstCodec::<CompactionRequest, CompactionResponse>::default();
    let compact = PathAndQuery::from_static("/etcdserverpb.KV/Compact");
    let compacted = grpc.unary(tonic::Request::new(request), compact, codec);
    compacted.await.unwrap();
    let heard = store.changes("key").next(before).await.unwrap();
    assert_eq!(heard.pairs, []);
    assert!(heard.revision >= newest);
}
