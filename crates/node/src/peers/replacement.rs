//! Saying in the metadata that the own store has come to all shards that lacked the one before it. Until then, a start of
//! this node takes them at once.
//!
//! # Invariants
//! - PE21: a store that took the place of a lost one takes all shards that lack a replica at once. That ends once none
//!   does, however often the node starts before.

use simshard_cluster::{KeyValueStore, end_replacement};
use tokio::time::sleep;
use tracing::debug;

use super::Peers;
use super::health::INTERVAL;
use crate::patience::in_time;

/// Waits until that is so, and says it.
pub(super) async fn run(peers: &Peers, keys: &dyn KeyValueStore) {
    let mut takes_at_once = peers.takes_at_once.subscribe();
    // The sender lives as long as this does.
    if !*takes_at_once.borrow() || takes_at_once.wait_for(|takes| !takes).await.is_err() {
        return;
    }
    while let Err(error) = in_time(end_replacement(keys, peers.own)).await {
        debug!(%error, "the metadata still says that this node has lost its store");
        sleep(INTERVAL).await;
    }
}
