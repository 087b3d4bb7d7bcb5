//! Another round of a request, after nodes refused shards as they have other records of them, or were lost and may be
//! taken out of the records.

use std::future::pending;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::{Instant, timeout};

use super::Router;
use crate::cluster::ClusterView;
use crate::deadline::Deadline;

/// How long the first pause takes, unless there is news; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// How long a pause takes at most.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// A layout that was read so long ago is read anew: all requests together read it no more often than that.
const READ_AFTER: Duration = LONGEST_PAUSE;

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
        router: &Router,
        seen: &ClusterView,
        deadline: Deadline,
    ) -> bool {
        self.after(router.news_since(seen), deadline).await
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

impl Router {
    /// Waits until the router knows another layout than the one `seen`. It reads the layout, too: the store may be late to
    /// tell of it.
    async fn news_since(&self, seen: &ClusterView) {
        let now = Instant::now();
        let read = async {
            let since = now.checked_sub(READ_AFTER).unwrap_or(now);
            if let Ok(layout) = self.metadata.layout_since(since).await {
                self.cluster.take_read(&layout);
            }
            pending::<()>().await;
        };
        tokio::select! {
            () = self.cluster.changed_since(seen) => {}
            () = read => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::Arc;

    use simshard_cluster::{
        Changes, CorpusUid, KeyValueError, KeyValueMetadata, KeyValueStore, LeaseId,
        MemoryKeyValues, Outcome, Revision, Snapshot, Transaction,
    };
    use simshard_topology::{ShardId, ShardSet};
    use tokio::time::advance;

    use super::*;
    use crate::cluster::tests::{cluster, evict};
    use crate::nodes::Access;
    use crate::readers::Avoided;
    use crate::router::proof::Claim;

    /// Keys that can be read and written. No change of them is told.
    #[derive(Debug)]
    struct Untold(MemoryKeyValues);

    #[derive(Debug)]
    struct NoChanges;

    #[tonic::async_trait]
    impl Changes for NoChanges {
        async fn next(&mut self, _after: Revision) -> Result<Snapshot, KeyValueError> {
            pending().await
        }
    }

    #[tonic::async_trait]
    impl KeyValueStore for Untold {
        async fn read(&self, prefix: &str) -> Result<Snapshot, KeyValueError> {
            self.0.read(prefix).await
        }

        fn changes(&self, _prefix: &str) -> Box<dyn Changes + '_> {
            Box::new(NoChanges)
        }

        async fn commit(&self, transaction: &Transaction) -> Result<Outcome, KeyValueError> {
            self.0.commit(transaction).await
        }

        async fn grant(&self, time_to_live: Duration) -> Result<LeaseId, KeyValueError> {
            self.0.grant(time_to_live).await
        }

        async fn keep_alive(&self, lease: LeaseId) -> Result<(), KeyValueError> {
            self.0.keep_alive(lease).await
        }

        async fn revoke(&self, lease: LeaseId) -> Result<(), KeyValueError> {
            self.0.revoke(lease).await
        }
    }

    /// A router that is told no news, and its metadata.
    async fn untold() -> (Router, Arc<Untold>) {
        let keys = Arc::new(Untold(cluster().await));
        let store = KeyValueMetadata::follow(Arc::<Untold>::clone(&keys), || {}, |_| {}).await;
        let store = Arc::new(store.unwrap());
        let router = Router::new(store, Access::of_tests(), 9).unwrap();
        (router, keys)
    }

    fn replicas(cluster: &ClusterView, shard: ShardId) -> usize {
        cluster.layout.map().replicas(shard).len()
    }

    /// CV2.
    #[tokio::test(start_paused = true)]
    async fn a_layout_that_is_told_late_is_read_for_the_next_round() {
        let (router, keys) = untold().await;
        let mut rounds = Rounds::new();
        for (number, shard) in [(1, ShardId(7)), (2, ShardId(8))] {
            let seen = router.cluster();
            evict(&*keys, number, shard).await;
            while Arc::ptr_eq(&router.cluster(), &seen) {
                assert!(rounds.another(&router, &seen, soon()).await);
            }
            assert_eq!(replicas(&router.cluster(), shard), 2);
        }
    }

    /// CV2.
    #[tokio::test]
    async fn a_layout_that_proves_an_answer_wrong_is_that_of_the_next_round() {
        let (router, keys) = untold().await;
        let (cluster, shard) = (router.cluster(), ShardId(7));
        evict(&*keys, 1, shard).await;
        let nodes = cluster.layout.nodes().iter();
        let down = nodes.map(|node| node.id.clone()).collect();
        let readers = cluster.readers(&Avoided::default());
        let unproven = router.prove(Claim {
            cluster: &cluster,
            readers: &readers,
            corpus: CorpusUid([1; 16]),
            shards: ShardSet::from_iter([shard]),
            down: &down,
            readers_confirm: false,
            deadline: soon(),
        });
        assert!(unproven.await.is_stale_only());
        assert_eq!(replicas(&router.cluster(), shard), 2);
    }

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
