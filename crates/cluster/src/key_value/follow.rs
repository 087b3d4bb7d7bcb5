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

/// Follows the keys that start with `prefix`, until the last receiver is gone. `on_turn` is told of the first failure
/// of a row, and then of the end of the row; attempts go on.
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
        let following = async {
            let mut pauses = pauses();
            let mut is_failing = false;
            loop {
                let after = sender.borrow().revision;
                let news = timeout(SLOW_POLL, store.changed(&prefix, after)).await;
                let news = match news {
                    Ok(Ok(snapshot)) => Ok(snapshot),
                    // A wait that ends early, as with its connection, is no failure if the keys can be read.
                    Ok(Err(_)) => {
                        sleep(pauses.next().unwrap_or(LONGEST_PAUSE)).await;
                        store.read(&prefix).await
                    }
                    Err(_elapsed) => store.read(&prefix).await,
                };
                match news {
                    Ok(snapshot) => {
                        if snapshot.revision > after {
                            pauses = self::pauses();
                        }
                        if is_failing {
                            on_turn(Ok(()));
                        }
                        is_failing = false;
                        publish(&sender, snapshot);
                    }
                    Err(error) => {
                        if !is_failing {
                            on_turn(Err(&error));
                        }
                        is_failing = true;
                    }
                }
            }
        };
        tokio::select! {
            () = following => {}
            () = sender.closed() => {}
        }
    });
    Ok(receiver)
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
