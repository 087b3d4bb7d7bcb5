//! Whether this node holds all that it should: what an operator waits for before the next node is restarted.
//!
//! # Invariants
//! - PE5: a node is ready only while it is in sync for each shard that names it, or that it held and that is short of
//!   replicas. It also needs the tables of those that it is hot for.

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_cluster::ClusterLayout;
use simshard_topology::replication::{Role, StoreId};
use simshard_topology::{ShardId, ShardSet};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tracing::info;

use super::health::INTERVAL;
use super::{Peers, is_short, names};
use crate::engine::Engine;

/// Tells whether the node is ready, as long as it is polled.
pub(super) async fn run(
    peers: &Peers,
    engine: &Engine,
    followed: watch::Receiver<Arc<ClusterLayout>>,
) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let missing = missing(&followed.borrow(), peers.own, &roles(engine));
        let missing = missing.union(&engine.unbuilt());
        let is_ready = missing.is_empty();
        let has_changed = peers.ready.send_if_modified(|ready| {
            let has_changed = *ready != is_ready;
            *ready = is_ready;
            has_changed
        });
        if has_changed && is_ready {
            info!("this node is ready: it holds all its shards in sync");
        } else if has_changed {
            info!(shards = %missing, "this node is not ready: it has yet to get in sync");
        }
    }
}

/// What the store of this node does for the shards that it holds or held.
type Roles = BTreeMap<ShardId, Role>;

fn roles(engine: &Engine) -> Roles {
    let roles = engine.roles().into_iter();
    roles.map(|(shard, _, role)| (shard, role)).collect()
}

/// The shards that a store should hold in sync and does not.
fn missing(layout: &ClusterLayout, own: StoreId, roles: &Roles) -> ShardSet {
    let records = layout.records().into_iter().flatten();
    let missing = records.filter(|(shard, record)| {
        let is_meant = names(record, own) || roles.contains_key(shard) && is_short(record);
        let is_in_sync = record.in_sync(own).is_some() && roles.get(shard) == Some(&Role::InSync);
        is_meant && !is_in_sync
    });
    missing.map(|(shard, _)| *shard).collect()
}
