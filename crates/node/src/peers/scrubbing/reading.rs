//! Reading the same documents on all replicas of a shard.

use std::sync::Arc;

use futures_util::future::try_join_all;
use simshard_proto::shard::v1 as pb;
use simshard_storage::{CopyRange, Corpus, Pinned};
use simshard_topology::replication::Epoch;
use simshard_topology::{CorpusUid, ShardId};
use tokio::task::spawn_blocking;
use tonic::Status;

use super::differences::{Compared, Found, differences};
use super::elements::{Elements, Incoming, Replica};
use super::pin;
use crate::engine::Engine;
use crate::peers::copying::range;

/// Elements of a range that are compared at once. The digest of a range takes 24 bytes, and its elements at least
/// 16 each: so a comparison takes little of what a copy would.
const ELEMENTS_PER_RANGE: u32 = 4096;

/// The replicas of a shard that are compared, at the epoch of one record.
pub(super) struct Replicas {
    pub(super) engine: Arc<Engine>,
    pub(super) shard: ShardId,
    pub(super) epoch: Epoch,
    /// By store: so scrubs that wait for each other do not do so in a circle.
    pub(super) others: Vec<Replica>,
    pub(super) versions: Compared,
    /// Documents that differ of which it takes note, at most.
    pub(super) most: usize,
}

/// What a reading found.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The own replica is the first, and the others follow in their order.
    pub(super) found: Found,
    /// The corpora, which all replicas hold.
    pub(super) corpora: Vec<Corpus>,
    /// Elements that were compared.
    pub(super) compared: u64,
    /// Bytes of messages, both ways.
    pub(super) bytes: u64,
}

impl Replicas {
    /// Finds the documents that differ; in some ranges only, if there are any.
    ///
    /// # Errors
    /// If the replicas cannot be read at this epoch, or do not all hold the same corpora: one may just be created, or dropped.
    pub(super) async fn read(&self, known: &[CopyRange]) -> Result<Reading, Status> {
        let pinned = Arc::new(pin(&self.engine, self.shard, self.epoch)?);
        let mut streams = Vec::new();
        for other in &self.others {
            streams.push(self.open(other, known).await?);
        }
        let held = &pinned.corpora;
        let holds_all = |stream: &Incoming| held.iter().all(|corpus| stream.holds(corpus.uid));
        let is_alike = |stream: &Incoming| stream.corpora.len() == held.len() && holds_all(stream);
        if !streams.iter().all(is_alike) {
            let problem = "its replicas do not all hold the same corpora yet";
            return Err(Status::failed_precondition(problem));
        }
        let mut reading = Reading {
            corpora: held.clone(),
            ..Reading::default()
        };
        let mut ranges = known.to_vec();
        if ranges.is_empty() {
            ranges = self.compare(&pinned, &mut streams, &mut reading).await?;
            for stream in &mut streams {
                stream.ask(&ranges).await;
            }
        }
        if !ranges.is_empty() {
            self.find(pinned, ranges, streams, &mut reading).await?;
        } else {
            reading.bytes += streams.iter().map(|stream| stream.bytes).sum::<u64>();
        }
        Ok(reading)
    }

    /// Asks another replica, and waits until it begins.
    async fn open(&self, other: &Replica, known: &[CopyRange]) -> Result<Incoming, Status> {
        let request = pb::CopyShardRequest {
            compared_version: self.versions.until.0,
            ranges: known.iter().map(range).collect(),
            elements_per_range: ELEMENTS_PER_RANGE,
            ..other.comparison(self.shard, self.epoch)
        };
        Incoming::open(other, request).await
    }

    /// Finds the ranges that differ between the own replica and any other, each on a thread of its own.
    async fn compare(
        &self,
        pinned: &Arc<Pinned>,
        streams: &mut Vec<Incoming>,
        reading: &mut Reading,
    ) -> Result<Vec<CopyRange>, Status> {
        let uids: Arc<[CorpusUid]> = reading.corpora.iter().map(|corpus| corpus.uid).collect();
        let compared = std::mem::take(streams).into_iter().map(|mut stream| {
            let (pinned, uids, until) =
                (Arc::clone(pinned), Arc::clone(&uids), self.versions.until);
            spawn_blocking(move || {
                let compared = stream.compare(&pinned, &uids, until)?;
                Ok::<_, Status>((stream, compared))
            })
        });
        let compared = try_join_all(compared).await;
        let compared = compared.map_err(|_| Status::cancelled("the node stops"))?;
        let mut ranges = Vec::new();
        for compared in compared {
            let (stream, (differing, elements)) = compared?;
            streams.push(stream);
            ranges.extend(differing);
            reading.compared = elements;
        }
        Ok(CopyRange::union(ranges))
    }

    /// Finds the documents that differ in these ranges.
    async fn find(
        &self,
        pinned: Arc<Pinned>,
        ranges: Vec<CopyRange>,
        streams: Vec<Incoming>,
        reading: &mut Reading,
    ) -> Result<(), Status> {
        let own = Elements::of_own(pinned, ranges, None);
        let others = streams.into_iter().map(Elements::of_other);
        let mut elements: Vec<Elements> = std::iter::once(own).chain(others).collect();
        let (compared, most) = (self.versions, self.most);
        let found = spawn_blocking(move || {
            let found = differences(elements.iter_mut().collect(), compared, most)?;
            Ok::<_, Status>((found, elements.iter().map(Elements::bytes).sum::<u64>()))
        });
        let found = found.await;
        let (mut found, bytes) = found.map_err(|_| Status::cancelled("the node stops"))??;
        let is_held = |uid| reading.corpora.iter().any(|corpus| corpus.uid == uid);
        found.differences.retain(|one| is_held(one.key.corpus));
        reading.found = found;
        reading.bytes += bytes;
        Ok(())
    }
}
