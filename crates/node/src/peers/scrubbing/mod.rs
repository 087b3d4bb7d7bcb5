//! Comparing the replicas of a shard with each other, and shards with each other, and repairing them.
//!
//! ```text
//! replicas  digests of ranges  ->  elements of those that differ  ->  the same once more  ->  repairs  ->  once more
//! shards    sums of cells      ->  elements of those that differ  ->  repairs  ->  once more
//! ```
//!
//! One node in sync does it. It reads what it stores itself, and asks the others. What differs between replicas at the
//! first reading may be on its way, so it is read again a while later. All readings and repairs of a shard are of one
//! epoch (SB2). If the record of the shard changes meanwhile, the scrub fails, and is to be repeated.
//!
//! | module | job |
//! |---|---|
//! | `between` | comparing shards with each other |
//! | `cells` | what a shard has in common with each other one |
//! | `client` | asking a node to do it |
//! | `differences` | where replicas differ |
//! | `elements` | what a replica has, as it comes |
//! | `reading` | reading the same documents on all replicas |
//! | `repairs` | carrying the newest states to those that lack them |
//! | `telling` | what is said of documents that differ |
//! | `within` | comparing the replicas of a shard with each other |

mod between;
mod cells;
mod client;
mod differences;
mod elements;
mod reading;
mod repairs;
mod telling;
mod within;

use std::sync::Arc;

use simshard_cluster::ClusterLayout;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard_into;
use simshard_storage::Pinned;
use simshard_topology::replication::{Epoch, Role, ShardRecord, StoreId};
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};
use simshard_transport::Dialer;
use tokio::sync::mpsc;
use tonic::Status;
use tracing::warn;

use crate::engine::Engine;
use crate::error::NodeError;
use between::Between;
pub(crate) use cells::sum_cells;
pub use client::{
    Asked, ReplicaState, ScrubDifference, ScrubError, ScrubOptions, ScrubSummary, compare_shard,
    scrub_shard, settle_shards, sum_cells_of,
};
use differences::Compared;
use elements::Replica;
use reading::Replicas;
use telling::Telling;
use within::Within;

/// Documents that differ of which a scrub takes note at once, at most.
pub const MOST_DIFFERENCES: u32 = 65_536;

/// A shard that the store of this process holds in sync.
pub(crate) struct OwnShard {
    /// How the others are reached.
    pub(crate) dialer: Dialer,
    pub(crate) engine: Arc<Engine>,
    pub(crate) layout: Arc<ClusterLayout>,
    pub(crate) id: ShardId,
    /// The store of this process.
    pub(crate) store: StoreId,
    /// By which record. All is read at its epoch.
    pub(crate) record: Arc<ShardRecord>,
}

impl OwnShard {
    /// A replica of any shard.
    fn replica(&self, store: StoreId) -> Result<Replica, Status> {
        let node = self.layout.node_of(store).ok_or_else(|| {
            Status::unavailable(format!("store {store} is in sync, and is not registered"))
        })?;
        let channel = self.dialer.channel_to(&node.address);
        Ok(Replica {
            store,
            address: node.address.clone(),
            // It may register another one.
            channel: channel.map_err(|status| Status::failed_precondition(status.message()))?,
        })
    }

    /// The replicas of the shard, which are to be compared.
    fn replicas(&self, versions: Compared, most: usize) -> Result<Replicas, Status> {
        let in_sync = self.record.in_sync.iter().map(|entry| entry.store);
        let others = in_sync.filter(|store| *store != self.store);
        let others = others.map(|store| self.replica(store));
        let mut others = others.collect::<Result<Vec<Replica>, Status>>()?;
        others.sort_unstable_by_key(|replica| replica.store);
        Ok(Replicas {
            engine: Arc::clone(&self.engine),
            shard: self.id,
            epoch: self.record.epoch,
            others,
            versions,
            most,
        })
    }
}

/// Scrubs a shard, as a request says, and answers what comes of it, as it comes.
pub(crate) fn scrub(
    engine: &Arc<Engine>,
    dialer: &Dialer,
    layout: Arc<ClusterLayout>,
    request: &pb::ScrubShardRequest,
) -> Result<mpsc::Receiver<Result<pb::ScrubShardResponse, Status>>, Status> {
    let shard = shard_into("shard", request.shard)?;
    let (store, record) = held(engine, shard, &request.store)?;
    let own = OwnShard {
        dialer: dialer.clone(),
        engine: Arc::clone(engine),
        layout,
        id: shard,
        store,
        record,
    };
    let job = Job::new(own, request)?;
    let (sender, messages) = mpsc::channel(1);
    let engine = Arc::clone(engine);
    tokio::spawn(async move {
        let mut telling = Telling::new(sender.clone());
        let scrubbed = async {
            let _permit = engine.scrub_permit().await?;
            job.run(&mut telling).await?;
            telling.end().await
        };
        let failed = tokio::select! {
            scrubbed = scrubbed => scrubbed.err(),
            () = sender.closed() => None,
        };
        if let Some(status) = failed {
            warn!(%shard, error = status.message(), "a shard is not compared");
            // The reader may have gone.
            let _ = sender.send(Err(status)).await;
        }
    });
    Ok(messages)
}

/// Whether the replicas of a shard agree up to a version, by a record that this store has applied. Then the shard may be
/// settled up to there (FL4).
///
/// # Errors
/// If they cannot be compared, as one has another record, say.
pub(crate) async fn agree(own: &OwnShard, until: Version) -> Result<bool, Status> {
    let _permit = own.engine.scrub_permit().await?;
    let versions = Compared {
        until,
        settled: own.record.settled,
        to_settle: true,
    };
    let reading = own.replicas(versions, 1)?.read(&[]).await?;
    Ok(reading.found.differences.is_empty() && !reading.found.has_more)
}

/// What is compared.
enum Job {
    /// The replicas of the shard.
    Within(Within),
    /// The shard and others.
    Between(Between),
}

impl Job {
    fn new(own: OwnShard, request: &pb::ScrubShardRequest) -> Result<Self, Status> {
        if request.other_shards.is_empty() {
            Within::new(&own, request).map(Self::Within)
        } else {
            Between::new(own, request).map(Self::Between)
        }
    }

    async fn run(&self, telling: &mut Telling) -> Result<(), Status> {
        match self {
            Self::Within(within) => within.run(telling).await,
            Self::Between(between) => between.run(telling).await,
        }
    }
}

/// The store of this process and its record of a shard, if it holds the shard in sync, and the request means it.
fn held(
    engine: &Engine,
    shard: ShardId,
    meant: &[u8],
) -> Result<(StoreId, Arc<ShardRecord>), NodeError> {
    let mut roles = engine.roles().into_iter();
    let held = roles.find(|(id, _, role)| (*id, *role) == (shard, Role::InSync));
    let own = |(_, record, _): (_, Arc<ShardRecord>, _)| {
        let meant = StoreId(meant.try_into().ok()?);
        let own = record.in_sync(meant)?.store;
        Some((own, record))
    };
    let wrong_epoch = || NodeError::WrongEpoch(ShardSet::from_iter([shard]));
    held.and_then(own).ok_or_else(wrong_epoch)
}

/// A shard as this process has it at the epoch of a record, which must be the last one that it has applied.
fn pin(engine: &Engine, shard: ShardId, epoch: Epoch) -> Result<Pinned, NodeError> {
    let pinned = engine.store().pin(shard, epoch)?;
    let pinned = pinned.filter(|pinned| pinned.pin.at == epoch);
    pinned.ok_or_else(|| NodeError::WrongEpoch(ShardSet::from_iter([shard])))
}

/// Documents that differ of which the node takes note at once.
fn most(request: &pb::ScrubShardRequest) -> usize {
    let most = match request.most_differences {
        0 => MOST_DIFFERENCES,
        most => most.min(MOST_DIFFERENCES),
    };
    most as usize
}

/// The corpora that a request names.
fn uids(bytes: &[u8]) -> Result<Vec<CorpusUid>, Status> {
    let (uids, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return Err(Status::invalid_argument("corpora are not 16 bytes each"));
    }
    let mut uids: Vec<CorpusUid> = uids.iter().copied().map(CorpusUid).collect();
    uids.sort_unstable();
    uids.dedup();
    Ok(uids)
}
