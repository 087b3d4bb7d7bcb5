//! Streams of inserts against a router that breaks, fails, lies, or says nothing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fake_router;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fake_router::{Act, FakeRouter};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use simshard_client::{Acknowledged, Client, ClientError, Documents, Fingerprint, Queries, Reason};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

const PATIENCE: Duration = Duration::from_millis(400);

/// What a stream that does not end by itself is given.
const FOR_EVER: Duration = Duration::from_secs(60);

/// Batch `number`, of `number + 1` documents.
fn batch(number: u64) -> Documents {
    Documents {
        keys: Queries::Fingerprints((0..=number).map(Fingerprint).collect()),
        ids: Vec::new(),
    }
}

/// What is acknowledged of the first batches.
fn all_new(batches: u64) -> Vec<Acknowledged> {
    let acknowledged = (1..=batches).map(|documents| Acknowledged {
        document_count: documents,
        changed_count: documents,
    });
    acknowledged.collect()
}

fn client(url: &str) -> Client {
    Client::new(url)
        .unwrap()
        .with_timeout(FOR_EVER)
        .with_patience(PATIENCE)
}

/// Inserts batches by this script; what was acknowledged, and the streams that it took.
async fn insert(
    batches: u64,
    script: impl IntoIterator<Item = Act>,
) -> (Result<Vec<Acknowledged>, ClientError>, Vec<Vec<u64>>) {
    let (router, url) = FakeRouter::start(script).await;
    let batches = stream::iter((0..batches).map(batch));
    let outcome = client(&url).insert_stream("c", batches).try_collect();
    let outcome = tokio::time::timeout(FOR_EVER, outcome).await.unwrap();
    (outcome, router.streams())
}

#[tokio::test]
async fn all_goes_over_one_stream_where_nothing_fails() {
    let (outcome, streams) = insert(30, []).await;
    assert_eq!(outcome.unwrap(), all_new(30));
    assert_eq!(streams, [(0..30).collect::<Vec<_>>()]);
}

#[tokio::test]
async fn no_batch_is_no_stream() {
    let (outcome, streams) = insert(0, []).await;
    assert_eq!(outcome.unwrap(), []);
    assert!(streams.is_empty());
}

/// RS1
#[tokio::test]
async fn what_was_not_answered_is_sent_again_in_order_and_nothing_else_is() {
    for act in [
        Act::Break(3),
        Act::End(3),
        Act::Fail(3, Reason::NodeUnreachable),
        Act::Fail(3, Reason::DiskFull),
        Act::Fail(3, Reason::DeadlineTooShort),
    ] {
        let (outcome, streams) = insert(30, [act]).await;
        assert_eq!(outcome.unwrap(), all_new(30), "{act:?}");
        assert_eq!(streams.len(), 2, "{act:?}");
        assert_eq!(streams[0][..3], [0, 1, 2], "{act:?}");
        assert_eq!(streams[1], (3..30).collect::<Vec<_>>(), "{act:?}");
    }
}

#[tokio::test]
async fn an_overloaded_router_is_asked_again_until_it_has_room() {
    let overloaded = Reason::Overloaded;
    let script = [Act::Refuse(overloaded), Act::Fail(0, overloaded)];
    let (outcome, streams) = insert(10, script).await;
    assert_eq!(outcome.unwrap(), all_new(10));
    assert_eq!(streams.len(), 3);
    assert_eq!(streams[2], (0..10).collect::<Vec<_>>());
}

/// RS2
#[tokio::test]
async fn an_answer_to_another_batch_is_an_error() {
    let (outcome, streams) = insert(10, [Act::OutOfTurn(4)]).await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, ClientError::OutOfTurn(5)), "{error}");
    assert_eq!(streams.len(), 1);
}

#[tokio::test]
async fn an_error_that_cannot_pass_is_the_end_at_once() {
    for reason in [Reason::CorpusNotFound, Reason::InvalidRequest] {
        let (outcome, streams) = insert(10, [Act::Fail(2, reason)]).await;
        assert_eq!(outcome.unwrap_err().reason(), Some(reason));
        assert_eq!(streams.len(), 1);
    }
}

/// RS4
#[tokio::test]
async fn failures_without_progress_end_with_the_patience() {
    let start = Instant::now();
    let (outcome, streams) = insert(10, [Act::Refuse(Reason::Stopping); 100]).await;
    assert_eq!(outcome.unwrap_err().reason(), Some(Reason::Stopping));
    assert!(start.elapsed() >= PATIENCE);
    // With pauses of 100 ms and more, which end with the patience.
    assert!((2..=6).contains(&streams.len()), "{}", streams.len());
}

/// RS4
#[tokio::test]
async fn progress_however_slow_is_not_given_up() {
    let start = Instant::now();
    let (outcome, streams) = insert(8, [Act::Break(1); 7]).await;
    assert_eq!(outcome.unwrap(), all_new(8));
    assert_eq!(streams.len(), 8);
    assert!(start.elapsed() > PATIENCE);
}

#[tokio::test]
async fn a_router_that_says_nothing_is_left_after_the_timeout() {
    let (router, url) = FakeRouter::start([Act::Silence(2), Act::Silence(0)]).await;
    let batches = stream::iter((0..20).map(batch));
    // Its patience does not end first, however slow the machine is.
    let client = client(&url)
        .with_timeout(Duration::from_millis(200))
        .with_patience(Duration::from_secs(60));
    let outcome: Result<Vec<_>, _> = client.insert_stream("c", batches).try_collect().await;
    assert_eq!(outcome.unwrap(), all_new(20));
    let streams = router.streams();
    let resent = streams.last().unwrap();
    assert!(streams.len() >= 3 && resent.ends_with(&[19]), "{streams:?}");
    assert!(streams[1].iter().copied().eq((2..).take(streams[1].len())));
}

/// RS3
#[tokio::test]
async fn a_router_that_never_answers_is_an_error_and_no_batch_is_read_beyond_the_window() {
    let (_router, url) = FakeRouter::start([Act::Silence(0); 100]).await;
    let read = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&read);
    let batches = stream::iter((0..100).map(batch));
    let batches = batches.inspect(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let client = client(&url).with_timeout(Duration::from_millis(50));
    let outcome: Result<Vec<_>, _> = client.insert_stream("c", batches).try_collect().await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, ClientError::NoAnswer { .. }), "{error}");
    assert!(
        error.to_string().contains("nothing came for 50ms"),
        "{error}"
    );
    assert_eq!(read.load(Ordering::Relaxed), 8);
}

/// Each batch is there only once the one before is answered: as the lines that a user types are.
async fn one_by_one(
    answers: impl Stream<Item = Result<Acknowledged, ClientError>>,
    batches: mpsc::Sender<Documents>,
    count: u64,
) {
    let mut answers = pin!(answers);
    for number in 0..count {
        batches.send(batch(number)).await.unwrap();
        let answer = tokio::time::timeout(FOR_EVER, answers.next()).await;
        let document_count = answer.unwrap().unwrap().unwrap().document_count;
        assert_eq!(document_count, number + 1);
    }
    drop(batches);
    assert!(answers.next().await.is_none());
}

#[tokio::test]
async fn a_slow_source_holds_up_no_answer() {
    for act in [Act::Answer, Act::AnswerOnceAsked] {
        let (router, url) = FakeRouter::start([act]).await;
        let (sender, batches) = mpsc::channel(1);
        let answers = client(&url).insert_stream("c", ReceiverStream::new(batches));
        one_by_one(answers, sender, 20).await;
        assert_eq!(router.streams().len(), 1, "{act:?}");
    }
}

/// A stream that breaks while nothing is on it has lost nothing.
#[tokio::test]
async fn a_stream_that_breaks_between_two_batches_is_no_failure() {
    let (router, url) = FakeRouter::start([Act::Fail(1, Reason::Internal); 5]).await;
    let client = client(&url).with_patience(Duration::ZERO);
    let (sender, batches) = mpsc::channel(1);
    let answers = client.insert_stream("c", ReceiverStream::new(batches));
    let mut answers = pin!(answers);
    for number in 0..3 {
        sender.send(batch(number)).await.unwrap();
        answers.next().await.unwrap().unwrap();
        // The break is seen before there is another batch.
        let idle = tokio::time::timeout(Duration::from_millis(300), answers.next()).await;
        assert!(idle.is_err(), "{idle:?}");
    }
    assert_eq!(router.streams().len(), 3);
}

#[tokio::test]
async fn without_a_router_the_patience_ends_with_an_error_that_names_its_url() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let batches = stream::iter([batch(0)]);
    let outcome: Result<Vec<_>, _> = client(&url).insert_stream("c", batches).try_collect().await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, ClientError::NoRouter { .. }), "{error}");
    assert!(error.to_string().contains(&url), "{error}");
}
