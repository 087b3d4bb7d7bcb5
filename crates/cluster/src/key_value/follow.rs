//! Keys as they change, for the parts of a process that look at them all the time.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::contract::{KeyValueError, KeyValueStore, Snapshot};

/// After this time without news the keys are read, as the news may have been lost.
const SLOW_POLL: Duration = Duration::from_secs(10);

const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How many waits in a row may fail while the keys can be read, as with their connection. More are told.
const MOST_FAILED_WAITS: usize = 5;

/// Follows the keys that start with `prefix`, until the last receiver is gone. `on_turn` is told of the first failure
/// of a row, and then of the end of the row; attempts go on. Keys that can be read but not be waited for are a failure,
/// too.
///
/// # Errors
/// When the first reading fails.
pub async fn follow(
    store: Arc<dyn KeyValueStore>,
    prefix: String,
    on_turn: impl Fn(Result<(), &KeyValueError>) + Send + Sync + 'static,
) -> Result<watch::Receiver<Arc<Snapshot>>, KeyValueError> {
    let first = store.read(&prefix).await?;
    let (sender, receiver) = watch::channel(Arc::new(first));
    tokio::spawn(async move {
        tokio::select! {
            () = keep_following(&*store, &prefix, &sender, on_turn) => {}
            () = sender.closed() => {}
        }
    });
    Ok(receiver)
}

async fn keep_following(
    store: &dyn KeyValueStore,
    prefix: &str,
    sender: &watch::Sender<Arc<Snapshot>>,
    on_turn: impl Fn(Result<(), &KeyValueError>),
) {
    let mut changes = store.changes(prefix);
    let mut pauses = pauses();
    let mut failed_waits = 0;
    let mut is_failing = false;
    loop {
        let after = sender.borrow().revision;
        let (news, wait) = match timeout(SLOW_POLL, changes.next(after)).await {
            Ok(Ok(snapshot)) => (Ok(snapshot), Ok(())),
            Ok(Err(error)) => {
                sleep(pauses.next().unwrap_or(LONGEST_PAUSE)).await;
                (store.read(prefix).await, Err(error))
            }
            Err(_elapsed) => (store.read(prefix).await, Ok(())),
        };
        failed_waits = if news.is_ok() && wait.is_err() {
            failed_waits + 1
        } else {
            0
        };
        let turn = match (&news, wait) {
            (Err(unread), _) => Err(unread.clone()),
            (Ok(_), Err(error)) if failed_waits > MOST_FAILED_WAITS => {
                let reason = error.to_string();
                Err(KeyValueError::Unwatched { reason })
            }
            (Ok(_), Ok(()) | Err(_)) => Ok(()),
        };
        if turn.is_err() != is_failing {
            on_turn(turn.as_ref().copied());
        }
        is_failing = turn.is_err();
        if let Ok(snapshot) = news {
            if snapshot.revision > after {
                pauses = self::pauses();
            }
            publish(sender, snapshot);
        }
    }
}

/// Sends a snapshot that has other keys.
fn publish(sender: &watch::Sender<Arc<Snapshot>>, snapshot: Snapshot) {
    sender.send_if_modified(|newest| {
        let is_news = newest.pairs != snapshot.pairs;
        *newest = Arc::new(snapshot);
        is_news
    });
}

fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(50))
        .with_max_delay(LONGEST_PAUSE)
        .with_jitter()
        .without_max_times()
        .build()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use async_trait::async_trait;
    use tokio::sync::mpsc;
    use tokio::task::yield_now;

    use super::*;
    use crate::key_value::{Changes, LeaseId, MemoryKeyValues, Outcome, Revision, Transaction};

    /// Keys in memory. It counts, and its waits fail where they are told to.
    #[derive(Debug, Default)]
    struct Watched {
        keys: MemoryKeyValues,
        waits_fail: AtomicBool,
        failed_waits: AtomicUsize,
        opened: AtomicUsize,
        reads: AtomicUsize,
    }

    #[derive(Debug)]
    struct WatchedChanges<'a> {
        store: &'a Watched,
        changes: Box<dyn Changes + 'a>,
    }

    #[async_trait]
    impl Changes for WatchedChanges<'_> {
        async fn next(&mut self, after: Revision) -> Result<Snapshot, KeyValueError> {
            if !self.store.waits_fail.load(Ordering::Relaxed) {
                return self.changes.next(after).await;
            }
            // As from afar: others go on meanwhile.
            yield_now().await;
            self.store.failed_waits.fetch_add(1, Ordering::Relaxed);
            Err(KeyValueError::Refused {
                store: "the store".to_owned(),
                reason: "no streams here".to_owned(),
            })
        }
    }

    #[async_trait]
    impl KeyValueStore for Watched {
        async fn read(&self, prefix: &str) -> Result<Snapshot, KeyValueError> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            self.keys.read(prefix).await
        }

        fn changes(&self, prefix: &str) -> Box<dyn Changes + '_> {
            self.opened.fetch_add(1, Ordering::Relaxed);
            Box::new(WatchedChanges {
                store: self,
                changes: self.keys.changes(prefix),
            })
        }

        async fn commit(&self, transaction: &Transaction) -> Result<Outcome, KeyValueError> {
            self.keys.commit(transaction).await
        }

        async fn grant(&self, time_to_live: Duration) -> Result<LeaseId, KeyValueError> {
            self.keys.grant(time_to_live).await
        }

        async fn keep_alive(&self, lease: LeaseId) -> Result<(), KeyValueError> {
            self.keys.keep_alive(lease).await
        }

        async fn revoke(&self, lease: LeaseId) -> Result<(), KeyValueError> {
            self.keys.revoke(lease).await
        }
    }

    async fn put(store: &Watched, value: &str) {
        let put = Transaction::new().put("key", value);
        assert!(matches!(
            store.commit(&put).await,
            Ok(Outcome::Committed(_))
        ));
    }

    async fn until_seen(receiver: &mut watch::Receiver<Arc<Snapshot>>, value: &str) {
        let is_there = |now: &Arc<Snapshot>| now.pairs.iter().any(|pair| pair.value == value);
        receiver.wait_for(is_there).await.unwrap();
    }

    /// Follows a store. Answers its keys, and the turns that are told.
    async fn followed(
        store: &Arc<Watched>,
    ) -> (
        watch::Receiver<Arc<Snapshot>>,
        mpsc::UnboundedReceiver<Result<(), KeyValueError>>,
    ) {
        let (told, turns) = mpsc::unbounded_channel();
        let on_turn = move |turn: Result<(), &KeyValueError>| {
            told.send(turn.map_err(Clone::clone)).unwrap();
        };
        let store: Arc<dyn KeyValueStore> = Arc::<Watched>::clone(store);
        let receiver = follow(store, "key".to_owned(), on_turn).await.unwrap();
        (receiver, turns)
    }

    #[tokio::test(start_paused = true)]
    async fn waits_that_never_work_are_told_once_and_their_end_too() {
        let store = Arc::<Watched>::default();
        store.waits_fail.store(true, Ordering::Relaxed);
        let (mut receiver, mut turns) = followed(&store).await;
        put(&store, "polled").await;
        until_seen(&mut receiver, "polled").await;
        let told = timeout(10 * SLOW_POLL, turns.recv()).await;
        let Ok(Some(Err(KeyValueError::Unwatched { reason }))) = told else {
            panic!("{told:?}");
        };
        assert!(reason.contains("no streams here"), "{reason}");
        let failed = store.failed_waits.load(Ordering::Relaxed);
        assert_eq!(failed, MOST_FAILED_WAITS + 1, "a few are not told");
        let more = timeout(10 * SLOW_POLL, turns.recv()).await;
        assert!(more.is_err(), "{more:?}");
        store.waits_fail.store(false, Ordering::Relaxed);
        put(&store, "told").await;
        assert_eq!(turns.recv().await, Some(Ok(())));
        until_seen(&mut receiver, "told").await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_waits_on_what_it_has_opened_after_a_quiet_time() {
        let store = Arc::<Watched>::default();
        let (mut receiver, mut turns) = followed(&store).await;
        let read = store.reads.load(Ordering::Relaxed);
        let quiet = timeout(5 * SLOW_POLL, receiver.changed()).await;
        assert!(quiet.is_err(), "{quiet:?}");
        let read_again = store.reads.load(Ordering::Relaxed) - read;
        assert!(read_again >= 3, "it reads {read_again} times meanwhile");
        for value in ["1", "2"] {
            put(&store, value).await;
            until_seen(&mut receiver, value).await;
        }
        assert_eq!(store.opened.load(Ordering::Relaxed), 1);
        assert!(turns.try_recv().is_err());
    }
}
