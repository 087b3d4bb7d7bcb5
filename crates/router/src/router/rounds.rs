//! Another round of a request, after nodes refused shards as they have other records of them, or were lost and may be
//! taken out of the records.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::{Instant, timeout};

use crate::cluster::{ClusterView, WatchedCluster};
use crate::deadline::Deadline;

/// How long the first pause takes, unless there is news; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// How long a pause takes at most.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// How long after the first refusal there are rounds. A node that died is taken out of the records in half of that.
const ROUNDS_TIMEOUT: Duration = Duration::from_secs(4);

/// The rounds that a request has left.
#[derive(Debug)]
pub(super) struct Rounds {
    pauses: ExponentialBackoff,
    /// How long the next pause takes.
    pause: Duration,
    /// When there are none any more.
    end: Option<Instant>,
}

impl Rounds {
    pub(super) fn new() -> Self {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(FIRST_PAUSE)
            .with_max_delay(LONGEST_PAUSE)
            .without_max_times()
            .with_jitter();
        let mut pauses = pauses.build();
        Self {
            pause: pauses.next().unwrap_or(LONGEST_PAUSE),
            pauses,
            end: None,
        }
    }

    /// Waits until the router knows another layout than the one `seen`, or for a pause: the node may lack the news.
    /// Returns whether there is another round.
    pub(super) async fn another(
        &mut self,
        cluster: &WatchedCluster,
        seen: &ClusterView,
        deadline: Deadline,
    ) -> bool {
        self.after(cluster.changed_since(seen), deadline).await
    }

    /// The same, until there is news.
    async fn after(&mut self, news: impl Future<Output = ()>, deadline: Deadline) -> bool {
        let now = Instant::now();
        let end = *self.end.get_or_insert(now + ROUNDS_TIMEOUT);
        if now >= end {
            return false;
        }
        // News come many at a time when a node is lost: they must not make the pauses longer.
        if timeout(self.pause, news).await.is_err() {
            self.pause = self.pauses.next().unwrap_or(LONGEST_PAUSE);
        }
        Deadline::now() < deadline
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::time::advance;

    use super::*;

    fn soon() -> Deadline {
        Deadline::within(Duration::from_secs(60))
    }

    #[tokio::test(start_paused = true)]
    async fn rounds_go_on_for_a_while_after_the_first_refusal() {
        let mut rounds = Rounds::new();
        advance(2 * ROUNDS_TIMEOUT).await;
        let begun = Instant::now();
        let mut count = 0;
        while rounds.after(pending(), soon()).await {
            count += 1;
        }
        let took = begun.elapsed();
        assert!(
            took >= ROUNDS_TIMEOUT && took <= ROUNDS_TIMEOUT + 2 * LONGEST_PAUSE,
            "{took:?}"
        );
        assert!(count > 10, "{count}");
    }

    #[tokio::test(start_paused = true)]
    async fn news_use_up_no_round_and_lengthen_no_pause() {
        let mut rounds = Rounds::new();
        let begun = Instant::now();
        for _ in 0..1000 {
            assert!(rounds.after(ready(()), soon()).await);
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert!(rounds.after(pending(), soon()).await);
        assert!(begun.elapsed() <= 2 * FIRST_PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_no_round_after_the_deadline() {
        let mut rounds = Rounds::new();
        assert!(!rounds.after(pending(), Deadline::now()).await);
    }
}
