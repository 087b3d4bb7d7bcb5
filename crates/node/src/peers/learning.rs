//! Copying the shards that this node is a learner of, several at once, until it has them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use simshard_cluster::ClusterLayout;
use simshard_storage::CopyBase;
use simshard_topology::ShardId;
use simshard_topology::replication::{Epoch, Role, ShardRecord, StoreId};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{info, warn};

use super::Peers;
use super::copying::{Copied, Source, copy};
use super::health::INTERVAL;
use crate::engine::Engine;

/// Shards that are copied at once.
const AT_ONCE: usize = 4;

/// Copies again and again what is to be copied, as long as it is polled.
pub(super) async fn run(
    peers: &Arc<Peers>,
    engine: &Arc<Engine>,
    followed: watch::Receiver<Arc<ClusterLayout>>,
) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut in_flight = JoinSet::new();
    let mut shards = BTreeSet::new();
    let mut copied = Sum::default();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            Some(done) = in_flight.join_next() => {
                let (shard, done) = done.unwrap_or((None, None));
                copied.add(done);
                shards.retain(|one| Some(*one) != shard);
            }
        }
        if copied.shards > 0 && in_flight.is_empty() {
            let Sum { shards, bytes } = std::mem::take(&mut copied);
            info!(
                shards,
                bytes, "this node has copied shards, and waits to hold them"
            );
        }
        let layout = Arc::clone(&followed.borrow());
        let live = peers.others.lock().live(Instant::now());
        for (shard, record, added) in wanted(engine) {
            if shards.len() >= AT_ONCE || shards.contains(&shard) {
                continue;
            }
            let source = source(&layout, shard, &record, &live);
            // What was set aside in memory is written first.
            let base = engine.store().copy_base(shard, added);
            if let (Some(source), Ok(Some(base))) = (source, base) {
                shards.insert(shard);
                let engine = Arc::clone(engine);
                in_flight.spawn(async move {
                    let done = copy_one(&engine, &source, base, shard, added).await;
                    (Some(shard), done)
                });
            }
        }
    }
}

/// The shards that are to be copied, and the epoch that added the node.
fn wanted(engine: &Engine) -> Vec<(ShardId, Arc<ShardRecord>, Epoch)> {
    let roles = engine.roles().into_iter();
    let copying = roles.filter_map(|(shard, record, role)| match role {
        Role::Copying { added } => Some((shard, record, added)),
        Role::None | Role::Copied { .. } | Role::InSync => None,
    });
    copying.collect()
}

/// A store in sync that has answered lately.
fn source(
    layout: &ClusterLayout,
    shard: ShardId,
    record: &ShardRecord,
    live: &BTreeSet<StoreId>,
) -> Option<Source> {
    let nodes: BTreeMap<StoreId, _> = layout.holders(shard).collect();
    let mut in_sync = record.in_sync.iter().map(|entry| entry.store);
    let store = in_sync.find(|store| live.contains(store) && nodes.contains_key(store))?;
    let address = layout.node(nodes.get(&store)?)?.address.clone();
    Some(Source { store, address })
}

/// Copies that were made one after the other.
#[derive(Default)]
struct Sum {
    shards: usize,
    /// Bytes of messages, both ways.
    bytes: usize,
}

impl Sum {
    fn add(&mut self, copied: Option<Copied>) {
        if let Some(copied) = copied {
            self.shards += usize::from(copied.is_taken);
            self.bytes += copied.bytes;
        }
    }
}

async fn copy_one(
    engine: &Engine,
    source: &Source,
    base: CopyBase,
    shard: ShardId,
    added: Epoch,
) -> Option<Copied> {
    match copy(engine, source, base, shard, added).await {
        Ok(copied) => Some(copied),
        Err(error) => {
            warn!(%shard, source = %source.address, error = error.message(), "a shard is not copied yet, trying again");
            None
        }
    }
}
