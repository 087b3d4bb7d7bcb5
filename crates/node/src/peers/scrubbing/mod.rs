//! Comparing the replicas of a shard, and repairing them.
//!
//! ```text
//! digests of ranges  ->  elements of those that differ  ->  the same once more  ->  repairs  ->  the same once more
//! ```
//!
//! One node in sync does it. It reads what it stores itself, and asks the others. What differs at the first reading may
//! be on its way, so it is read again a while later. All readings and repairs are of one epoch (SB2): if the record of
//! the shard changes meanwhile, the scrub fails, and is to be repeated.
//!
//! | module | job |
//! |---|---|
//! | `client` | asking a node to do it |
//! | `differences` | where replicas differ |
//! | `reading` | reading the same documents on all replicas |
//! | `repairs` | carrying the newest states to those that lack them |

mod client;
mod differences;
mod reading;
mod repairs;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::try_join_all;
use simshard_cluster::ClusterLayout;
use simshard_proto::shard::v1 as pb;
use simshard_storage::Corpus;
use simshard_topology::replication::{Role, ShardRecord, StoreId};
use simshard_topology::{ShardId, ShardSet, Version};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tonic::Status;
use tracing::{info, warn};

use super::pings::channel_to;
use crate::engine::Engine;
use crate::error::NodeError;
pub use client::{
    ReplicaState, ScrubDifference, ScrubError, ScrubOptions, ScrubSummary, scrub_shard,
};
use differences::{Difference, confirmed, ranges};
use reading::{Reading, Replica, Replicas};
use repairs::{repair, repair_own, repairs};

/// Between two readings of the same documents: what was on its way has come by then.
const CONFIRM_PAUSE: Duration = Duration::from_secs(1);

/// Documents that differ of which a scrub takes note at once, at most.
const MOST_DIFFERENCES: usize = 65_536;

/// Documents of one message.
const MESSAGE_DIFFERENCES: usize = 256;

/// Of the documents of a shard that differ, as many are logged one by one.
const LOGGED_DIFFERENCES: u64 = 1000;

type Messages = mpsc::Sender<Result<pb::ScrubShardResponse, Status>>;

/// Scrubs a shard, as a request says, and answers what comes of it, as it comes.
pub(crate) fn scrub(
    engine: &Arc<Engine>,
    layout: &ClusterLayout,
    request: &pb::ScrubShardRequest,
) -> Result<mpsc::Receiver<Result<pb::ScrubShardResponse, Status>>, Status> {
    let shard = u8::try_from(request.shard);
    let shard = ShardId(shard.map_err(|_| Status::invalid_argument("shard is over 255"))?);
    let scrub = Scrub::new(engine, layout, shard, request)?;
    let (sender, messages) = mpsc::channel(1);
    tokio::spawn(async move {
        let scrubbed = async {
            let _permit = scrub.replicas.engine.scrub_permit().await?;
            scrub.run(&sender).await
        };
        let failed = tokio::select! {
            scrubbed = scrubbed => scrubbed.err(),
            () = sender.closed() => None,
        };
        if let Some(status) = failed {
            warn!(%shard, error = status.message(), "the replicas of a shard are not compared");
            // The reader may have gone.
            let _ = sender.send(Err(status)).await;
        }
    });
    Ok(messages)
}

/// A scrub of one shard.
struct Scrub {
    replicas: Replicas,
    own: StoreId,
    /// They take repairs, and are not compared.
    learners: Vec<Replica>,
    repairs: bool,
}

impl Scrub {
    fn new(
        engine: &Arc<Engine>,
        layout: &ClusterLayout,
        shard: ShardId,
        request: &pb::ScrubShardRequest,
    ) -> Result<Self, Status> {
        let mut roles = engine.roles().into_iter();
        let held = roles.find(|(id, _, role)| (*id, *role) == (shard, Role::InSync));
        let wrong_epoch = || NodeError::WrongEpoch(ShardSet::from_iter([shard]));
        let (_, record, _) = held.ok_or_else(wrong_epoch)?;
        let own = own_store(&record, &request.store).ok_or_else(wrong_epoch)?;
        let in_sync = record.in_sync.iter().map(|entry| entry.store);
        let others: Result<Vec<Replica>, Status> = in_sync
            .filter(|store| *store != own)
            .map(|store| replica(layout, store))
            .collect();
        let mut others = others?;
        others.sort_unstable_by_key(|replica| replica.store);
        let learners = record.learners.iter();
        // One that cannot be reached will be dropped.
        let learners = learners.filter_map(|learner| replica(layout, learner.store).ok());
        let most = request.most_differences as usize;
        Ok(Self {
            replicas: Replicas {
                engine: Arc::clone(engine),
                shard,
                epoch: record.epoch,
                others,
                until: settled_before(Duration::from_millis(request.settled_millis)),
                most: if most == 0 { MOST_DIFFERENCES } else { most }.min(MOST_DIFFERENCES),
            },
            own,
            learners: learners.collect(),
            repairs: request.repairs,
        })
    }

    /// The stores that are compared.
    fn stores(&self) -> impl Iterator<Item = StoreId> {
        let others = self.replicas.others.iter().map(|replica| replica.store);
        std::iter::once(self.own).chain(others)
    }

    async fn run(&self, messages: &Messages) -> Result<(), Status> {
        let mut summary = pb::ScrubSummary {
            stores: self.stores().flat_map(|store| store.0).collect(),
            ..pb::ScrubSummary::default()
        };
        // With one replica there is nothing to compare.
        while !self.replicas.others.is_empty() && self.round(messages, &mut summary).await? {}
        let pb::ScrubSummary {
            compared_count: compared,
            difference_count: differences,
            repaired_count: repaired,
            ..
        } = summary;
        let shard = self.replicas.shard;
        if differences > 0 {
            info!(%shard, compared, differences, repaired, "the replicas of a shard were compared");
        }
        let message = pb::ScrubShardResponse {
            differences: Vec::new(),
            summary: Some(summary),
        };
        send(messages, message).await
    }

    /// Finds as many differences as it may take note of, and repairs them. Answers whether there may be others.
    async fn round(
        &self,
        messages: &Messages,
        summary: &mut pb::ScrubSummary,
    ) -> Result<bool, Status> {
        let first = self.replicas.read(&[]).await?;
        note(summary, &first);
        summary.compared_count = first.compared;
        summary.has_more = first.found.has_more;
        let mut differences = first.found.differences;
        let mut corpora = first.corpora;
        if !differences.is_empty() {
            sleep(CONFIRM_PAUSE).await;
            let second = self.replicas.read(&ranges(&differences)).await?;
            note(summary, &second);
            differences = confirmed(differences, &second.found.differences);
            corpora = second.corpora;
        }
        let mut left = differences.clone();
        if self.repairs && !differences.is_empty() {
            self.repair(&differences, &corpora).await?;
            let third = self.replicas.read(&ranges(&differences)).await?;
            note(summary, &third);
            let still = third.found.differences;
            left.retain(|one| {
                still
                    .binary_search_by(|other| other.key.cmp(&one.key))
                    .is_ok()
            });
        }
        let repaired = differences.len() - left.len();
        self.tell(messages, &differences, &left, summary.difference_count)
            .await?;
        summary.difference_count += differences.len() as u64;
        summary.repaired_count += repaired as u64;
        Ok(summary.has_more && repaired > 0)
    }

    /// Carries the newest state of each document to the replicas that lack it, and to learners: their copies may have
    /// been read before.
    async fn repair(&self, differences: &[Difference], corpora: &[Corpus]) -> Result<(), Status> {
        let Replicas {
            engine,
            shard,
            epoch,
            others,
            ..
        } = &self.replicas;
        let lacked = |place: usize| repairs(differences, corpora, |one| one.is_lacking(place));
        repair_own(engine, *shard, *epoch, lacked(0)).await?;
        let others = (1..)
            .zip(others)
            .map(async |(place, other)| repair(other, *shard, *epoch, &lacked(place)).await);
        try_join_all(others).await?;
        let all = repairs(differences, corpora, |_| true);
        for learner in &self.learners {
            if let Err(status) = repair(learner, *shard, *epoch, &all).await {
                let error = status.message();
                warn!(%shard, error, "a learner lacks what was repaired: compare the shard again once it is in sync");
            }
        }
        Ok(())
    }

    /// Logs the documents that differ, and streams them. `left` are those that still do; `before` were logged already.
    async fn tell(
        &self,
        messages: &Messages,
        differences: &[Difference],
        left: &[Difference],
        before: u64,
    ) -> Result<(), Status> {
        let shard = self.replicas.shard;
        for (number, some) in (before..)
            .step_by(MESSAGE_DIFFERENCES)
            .zip(differences.chunks(MESSAGE_DIFFERENCES))
        {
            let mut message = pb::ScrubShardResponse::default();
            for (number, difference) in (number..).zip(some) {
                let repaired = left.binary_search(difference).is_err();
                if number < LOGGED_DIFFERENCES {
                    let key = &difference.key;
                    warn!(
                        %shard, corpus = %key.corpus, fingerprint = key.fingerprint.0, id = ?key.id,
                        states = %difference, repaired, "replicas differ in a document"
                    );
                }
                message.differences.push(self.message(difference, repaired));
            }
            send(messages, message).await?;
        }
        Ok(())
    }

    fn message(&self, difference: &Difference, repaired: bool) -> pb::ScrubDifference {
        let states = self.stores().zip(&difference.states);
        let states = states.map(|(store, state)| pb::ScrubState {
            store: store.0.to_vec(),
            version: state.version.0,
            live: state.live,
        });
        pb::ScrubDifference {
            corpus_uid: difference.key.corpus.0.to_vec(),
            fingerprint: difference.key.fingerprint.0,
            id: difference.key.id.clone(),
            states: states.collect(),
            repaired,
        }
    }
}

/// The store of this process, if a request means it.
fn own_store(record: &ShardRecord, meant: &[u8]) -> Option<StoreId> {
    let meant = StoreId(meant.try_into().ok()?);
    record.in_sync(meant).map(|entry| entry.store)
}

fn replica(layout: &ClusterLayout, store: StoreId) -> Result<Replica, Status> {
    let node = layout.node_of(store);
    let connected = node.and_then(|node| Some((node, channel_to(&node.address)?)));
    let (node, channel) = connected.ok_or_else(|| {
        Status::unavailable(format!("store {store} is in sync, and is not registered"))
    })?;
    Ok(Replica {
        store,
        address: node.address.clone(),
        channel,
    })
}

/// The last version of what was changed this long ago.
fn settled_before(settled: Duration) -> Version {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let until = now.unwrap_or_default().saturating_sub(settled);
    Version::of_wall_time(u64::try_from(until.as_nanos()).unwrap_or(u64::MAX))
}

/// Takes note of what a reading took.
fn note(summary: &mut pb::ScrubSummary, reading: &Reading) {
    summary.message_bytes += reading.bytes;
}

async fn send(messages: &Messages, message: pb::ScrubShardResponse) -> Result<(), Status> {
    let sent = messages.send(Ok(message)).await;
    sent.map_err(|_| Status::cancelled("the answers are not read any more"))
}
