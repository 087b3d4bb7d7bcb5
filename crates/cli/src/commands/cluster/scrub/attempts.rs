//! Attempts at what nodes are to do with shards: again while records change, and for a while when a node stays away.

use std::cell::Cell;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{KeyValueStore, MetadataError};
use simshard_node::ScrubError;
use simshard_topology::ShardSet;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::super::patience::patiently;
use super::places::Places;

/// How long attempts are repeated that fail while records stay as they are.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between two attempts, and between two readings of the records: a node that has died is taken out of them by then.
const PAUSE: Duration = Duration::from_secs(1);

/// How long newer places are awaited while the metadata is away.
const LONGEST_READ: Duration = Duration::from_secs(30);

/// Attempts of one command, with the newest places that it has read.
pub(super) struct Attempts<'a> {
    keys: &'a dyn KeyValueStore,
    places: watch::Sender<Arc<Places>>,
    /// Since when attempts fail. It is shared by all shards: where a node stays away, each one would wait for it.
    failing_since: Cell<Option<Instant>>,
}

impl<'a> Attempts<'a> {
    pub(super) async fn begin(keys: &'a dyn KeyValueStore) -> Result<Self, MetadataError> {
        let places = patiently(async || Places::read(keys).await).await?;
        Ok(Self {
            keys,
            places: watch::Sender::new(Arc::new(places)),
            failing_since: Cell::new(None),
        })
    }

    /// Does work, and reads the places once a second meanwhile.
    pub(super) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            never = self.follow() => match never {},
        }
    }

    async fn follow(&self) -> Infallible {
        loop {
            sleep(PAUSE).await;
            // While the metadata is away, nodes stay in the records.
            if let Ok(places) = patiently(async || Places::read(self.keys).await).await {
                self.places.send_replace(Arc::new(places));
            }
        }
    }

    pub(super) fn places(&self) -> Arc<Places> {
        self.places.borrow().clone()
    }

    /// Awaits what nodes do with shards. It fails once a store that held one of them in sync at these places no longer
    /// does: what waits for a node that hangs may wait for ever. It is for [`Self::during`].
    pub(super) async fn while_held<T>(
        &self,
        places: &Places,
        shards: ShardSet,
        work: impl Future<Output = Result<T, ScrubError>>,
    ) -> Result<T, ScrubError> {
        let mut newer = self.places.subscribe();
        let left = newer.wait_for(|newer| places.lost_one_by(newer, shards));
        tokio::select! {
            done = work => done,
            _left = left => {
                // The next attempt is at other places, so it is none of those that keep failing.
                self.succeeded();
                Err(ScrubError::left())
            }
        }
    }

    /// Waits for newer places, with which another attempt is worthwhile: unless none has succeeded for long. It is for
    /// [`Self::during`].
    pub(super) async fn another(&self) -> bool {
        let since = self.failing_since.get().unwrap_or_else(Instant::now);
        self.failing_since.set(Some(since));
        if since.elapsed() > PATIENCE {
            return false;
        }
        let mut newer = self.places.subscribe();
        let newer = timeout(LONGEST_READ, newer.changed()).await;
        newer.is_ok()
    }

    /// An attempt has succeeded, or all of them have to be made anew.
    pub(super) fn succeeded(&self) {
        self.failing_since.set(None);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use simshard_cluster::{MemoryKeyValues, force};
    use simshard_topology::ShardId;

    use super::super::super::two_nodes::{STORES, two_nodes};
    use super::*;

    /// The second node leaves a shard.
    async fn leave(keys: &MemoryKeyValues, shard: ShardId) {
        let forced = force(keys, STORES[0], |of, _| of == shard, |_| true).await;
        assert_eq!(forced.unwrap().taken.len(), 1);
    }

    async fn cut_off(attempts: &Attempts<'_>, places: &Places, shard: ShardId) {
        let shards = ShardSet::from_iter([shard]);
        let hangs = attempts.while_held(places, shards, pending::<Result<(), _>>());
        assert!(hangs.await.is_err_and(|error| error.may_succeed_later));
    }

    #[tokio::test(start_paused = true)]
    async fn work_is_cut_off_by_a_store_that_leaves_and_not_by_one_that_had_left_before() {
        let keys = two_nodes().await;
        let attempts = Attempts::begin(&keys).await.unwrap();
        let test = async {
            let (first, shard) = (attempts.places(), ShardId(7));
            leave(&keys, ShardId(8)).await;
            leave(&keys, shard).await;
            cut_off(&attempts, &first, shard).await;
            let lasts = async {
                sleep(3 * PAUSE).await;
                Ok(())
            };
            let shards = ShardSet::from_iter([shard, ShardId(8)]);
            let later = attempts.places();
            let anew = attempts.while_held(&later, shards, lasts);
            anew.await.unwrap();
        };
        attempts.during(test).await;
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_end_where_all_fail_and_a_record_that_changes_is_no_failure() {
        let keys = two_nodes().await;
        let attempts = Attempts::begin(&keys).await.unwrap();
        let test = async {
            for shard in (0..4).map(ShardId) {
                for _ in 0..6 {
                    assert!(attempts.another().await, "before {shard} changes");
                }
                let places = attempts.places();
                leave(&keys, shard).await;
                cut_off(&attempts, &places, shard).await;
            }
            let began = Instant::now();
            while attempts.another().await {}
            assert!(began.elapsed() < PATIENCE + 2 * PAUSE);
        };
        attempts.during(test).await;
    }
}
