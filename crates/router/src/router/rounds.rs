//! Another round of a request, after nodes refused shards as they have other records of them, or were lost and may be
//! taken out of the records.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::timeout;

use crate::cluster::{ClusterView, WatchedCluster};
use crate::deadline::Deadline;

/// How long the first pause takes, unless there is news; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// How long a pause takes at most.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Most rounds after the first: some four seconds. A node that died is taken out of the records in half of that.
const MOST: usize = 24;

/// The rounds that a request has left.
#[derive(Debug)]
pub(super) struct Rounds(ExponentialBackoff);

impl Rounds {
    pub(super) fn new() -> Self {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(FIRST_PAUSE)
            .with_max_delay(LONGEST_PAUSE)
            .with_max_times(MOST)
            .with_jitter();
        Self(pauses.build())
    }

    /// Waits until the router knows another layout than the one `seen`, or for a pause: the node may lack the news.
    /// Returns whether there is another round.
    pub(super) async fn another(
        &mut self,
        cluster: &WatchedCluster,
        seen: &ClusterView,
        deadline: Deadline,
    ) -> bool {
        let Some(pause) = self.0.next() else {
            return false;
        };
        let _in_time = timeout(pause, cluster.changed_since(seen)).await;
        Deadline::now() < deadline
    }
}
