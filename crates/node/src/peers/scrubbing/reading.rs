//! Reading the same documents on all replicas of a shard.

use std::sync::Arc;
use std::vec;

use futures_util::future::try_join_all;
use prost::Message;
use simshard_proto::shard::v1 as pb;
use simshard_simhash::Fingerprint;
use simshard_storage::{CopyRange, Corpus, MAX_ID_BYTES, Pinned, State};
use simshard_topology::replication::{Epoch, StoreId};
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use tonic::transport::Channel;

use super::differences::{Found, Key, differences};
use crate::engine::{Engine, own_elements};
use crate::error::NodeError;
use crate::peers::copying::{WAITING_MESSAGES, forward, open, range};

/// Elements of a range that are compared at once. The digest of a range takes 24 bytes, and its elements at least
/// 16 each: so a comparison takes little of what a copy would.
const ELEMENTS_PER_RANGE: u32 = 4096;

/// Another store, and the way to it.
#[derive(Clone, Debug)]
pub(super) struct Replica {
    pub(super) store: StoreId,
    pub(super) address: String,
    pub(super) channel: Channel,
}

impl Replica {
    /// What this replica answers, with its address.
    pub(super) fn explain(&self, status: &Status) -> Status {
        let message = format!("{}: {}", self.address, status.message());
        Status::with_details(status.code(), message, status.details().to_vec().into())
    }
}

/// The replicas of a shard that are compared, at the epoch of one record.
pub(super) struct Replicas {
    pub(super) engine: Arc<Engine>,
    pub(super) shard: ShardId,
    pub(super) epoch: Epoch,
    /// By store: so scrubs that wait for each other do not do so in a circle.
    pub(super) others: Vec<Replica>,
    /// Later versions are not compared.
    pub(super) until: Version,
    /// Documents that differ of which it takes note, at most.
    pub(super) most: usize,
}

/// What a reading found.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The own replica is the first, and the others follow in their order.
    pub(super) found: Found,
    /// The corpora that all replicas hold.
    pub(super) corpora: Vec<Corpus>,
    /// Elements that were compared.
    pub(super) compared: u64,
    /// Bytes of messages, both ways.
    pub(super) bytes: u64,
}

impl Replicas {
    /// Finds the documents that differ; in some ranges only, if there are any.
    pub(super) async fn read(&self, known: &[CopyRange]) -> Result<Reading, Status> {
        let pinned = Arc::new(self.pin()?);
        let mut streams = Vec::new();
        for other in &self.others {
            streams.push(self.open(other, known).await?);
        }
        let mut corpora = pinned.corpora.clone();
        corpora.retain(|held| streams.iter().all(|stream| stream.holds(held.uid)));
        let mut reading = Reading {
            corpora,
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

    /// The own replica as it is now.
    fn pin(&self) -> Result<Pinned, Status> {
        let pinned = self.engine.store().pin(self.shard, self.epoch);
        let pinned = pinned.map_err(NodeError::from)?;
        let pinned = pinned.filter(|pinned| pinned.pin.at == self.epoch);
        pinned.ok_or_else(|| NodeError::WrongEpoch(ShardSet::from_iter([self.shard])).into())
    }

    /// Asks another replica, and waits until it begins.
    async fn open(&self, other: &Replica, known: &[CopyRange]) -> Result<Incoming, Status> {
        let request = pb::CopyShardRequest {
            store: other.store.0.to_vec(),
            shard: self.shard.0.into(),
            added_number: self.epoch.number,
            added_generation: self.epoch.generation,
            compared_version: self.until.0,
            ranges: known.iter().map(range).collect(),
            compares: true,
            elements_per_range: ELEMENTS_PER_RANGE,
        };
        let bytes = request.encoded_len() as u64;
        let (asking, asked) = mpsc::channel(WAITING_MESSAGES);
        // There is room.
        let _ = asking.send(request).await;
        let opened = open(other.channel.clone(), asked).await;
        let (source, parts) = opened.map_err(|status| other.explain(&status))?;
        if !source.compares {
            let status = Status::unimplemented("this node is of a version that compares nothing");
            return Err(other.explain(&status));
        }
        let uid = |corpus: &pb::HeldCorpus| corpus.corpus_uid.parse();
        let corpora: Result<_, _> = source.corpora.iter().map(uid).collect();
        let (sender, parts_coming) = mpsc::channel(WAITING_MESSAGES);
        Ok(Incoming {
            replica: other.clone(),
            corpora: corpora.map_err(|_| nonsense("a uid"))?,
            asking,
            parts: parts_coming,
            bytes,
            _forwarding: AbortOnDropHandle::new(tokio::spawn(forward(parts, sender))),
        })
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
            let (pinned, uids, until) = (Arc::clone(pinned), Arc::clone(&uids), self.until);
            spawn_blocking(move || {
                let compared = stream.compare(&pinned, &uids, until);
                let compared = compared.map_err(|status| stream.replica.explain(&status))?;
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
        let own = Elements::new(Box::new(OwnParts(own_elements(pinned, ranges))));
        let others = streams
            .into_iter()
            .map(|stream| Elements::new(Box::new(stream)));
        let mut elements: Vec<Elements> = std::iter::once(own).chain(others).collect();
        let (until, most) = (self.until, self.most);
        let found = spawn_blocking(move || {
            let found = differences(elements.iter_mut().collect(), until, most)?;
            Ok::<_, Status>((
                found,
                elements.iter().map(|one| one.parts.bytes()).sum::<u64>(),
            ))
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

/// What comes from another replica.
struct Incoming {
    replica: Replica,
    /// The corpora that it holds.
    corpora: Vec<CorpusUid>,
    asking: mpsc::Sender<pb::CopyShardRequest>,
    parts: mpsc::Receiver<Result<pb::CopyShardResponse, Status>>,
    /// Bytes of messages, both ways.
    bytes: u64,
    _forwarding: AbortOnDropHandle<()>,
}

impl Incoming {
    fn holds(&self, corpus: CorpusUid) -> bool {
        self.corpora.contains(&corpus)
    }

    /// Asks for the elements of these ranges.
    async fn ask(&mut self, ranges: &[CopyRange]) {
        let request = pb::CopyShardRequest {
            ranges: ranges.iter().map(range).collect(),
            ..pb::CopyShardRequest::default()
        };
        self.bytes += request.encoded_len() as u64;
        // If the replica is gone, its stream says so.
        let _ = self.asking.send(request).await;
    }

    /// The ranges that differ from the own replica, and how many own elements were compared.
    fn compare(
        &mut self,
        pinned: &Pinned,
        corpora: &[CorpusUid],
        until: Version,
    ) -> Result<(Vec<CopyRange>, u64), Status> {
        let comparison = pinned.comparison(corpora, until).map_err(NodeError::from);
        let mut comparison = comparison?;
        loop {
            let part = self.next_part().ok_or_else(cut_short)??;
            if part.ranges_ended {
                let compared = comparison.finish();
                return compared.map_err(|error| Status::internal(error.to_string()));
            }
            let (digests, rest) = part.range_digests.as_chunks();
            let has_elements = !part.fingerprints.is_empty();
            if has_elements || digests.len() != part.range_ends.len() || !rest.is_empty() {
                return Err(nonsense("the columns of ranges"));
            }
            let corpus = corpus_of(&part)?;
            for (&last, digest) in part.range_ends.iter().zip(digests) {
                let ended = comparison.end_range(corpus, Fingerprint(last), *digest);
                ended.map_err(|error| Status::internal(error.to_string()))?;
            }
        }
    }
}

/// A stream of parts.
trait Parts: Send {
    fn next_part(&mut self) -> Option<Result<pb::CopyShardResponse, Status>>;

    /// Bytes of messages so far.
    fn bytes(&self) -> u64;
}

impl Parts for Incoming {
    fn next_part(&mut self) -> Option<Result<pb::CopyShardResponse, Status>> {
        let part = self.parts.blocking_recv()?;
        let part = part.map_err(|status| self.replica.explain(&status));
        self.bytes += part.as_ref().map_or(0, Message::encoded_len) as u64;
        Some(part)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Parts of the own replica, which take no messages.
struct OwnParts(mpsc::Receiver<Result<crate::engine::CopyItem, NodeError>>);

impl Parts for OwnParts {
    fn next_part(&mut self) -> Option<Result<pb::CopyShardResponse, Status>> {
        let part = self.0.blocking_recv()?;
        Some(part.map(Into::into).map_err(Status::from))
    }

    fn bytes(&self) -> u64 {
        0
    }
}

/// The elements of parts, which ascend.
struct Elements {
    parts: Box<dyn Parts>,
    part: vec::IntoIter<(Key, State)>,
    last: Option<Key>,
    has_ended: bool,
}

impl Elements {
    fn new(parts: Box<dyn Parts>) -> Self {
        Self {
            parts,
            part: Vec::new().into_iter(),
            last: None,
            has_ended: false,
        }
    }

    fn next_element(&mut self) -> Result<Option<(Key, State)>, Status> {
        while !self.has_ended {
            if let Some((key, state)) = self.part.next() {
                if self.last.as_ref().is_some_and(|last| *last >= key) {
                    return Err(nonsense("elements that do not ascend"));
                }
                self.last = Some(key.clone());
                return Ok(Some((key, state)));
            }
            let part = self.parts.next_part().ok_or_else(cut_short)??;
            self.has_ended = part.ended;
            if !part.ended {
                self.part = elements_of(part)?.into_iter();
            }
        }
        Ok(None)
    }
}

impl Iterator for Elements {
    type Item = Result<(Key, State), Status>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_element().transpose()
    }
}

/// The elements of a part.
fn elements_of(part: pb::CopyShardResponse) -> Result<Vec<(Key, State)>, Status> {
    let corpus = corpus_of(&part)?;
    let count = part.fingerprints.len();
    let has_ids = !part.ids.is_empty();
    if part.versions.len() != count || (has_ids && part.ids.len() != count) {
        return Err(nonsense("the columns of elements"));
    }
    let mut ids = part.ids.into_iter();
    let mut elements = Vec::with_capacity(count);
    for (&fingerprint, &version) in part.fingerprints.iter().zip(&part.versions) {
        let id = ids.next().unwrap_or_default();
        if id.len() > MAX_ID_BYTES {
            return Err(nonsense("an id"));
        }
        let fingerprint = Fingerprint(fingerprint);
        let key = Key {
            corpus,
            fingerprint,
            id,
        };
        let version = Version(version);
        elements.push((
            key,
            State {
                version,
                live: true,
            },
        ));
    }
    for place in part.removed {
        let removed = elements.get_mut(place as usize);
        removed
            .ok_or_else(|| nonsense("the places of tombstones"))?
            .1
            .live = false;
    }
    Ok(elements)
}

fn corpus_of(part: &pb::CopyShardResponse) -> Result<CorpusUid, Status> {
    let uid = <[u8; 16]>::try_from(&*part.corpus_uid);
    uid.map(CorpusUid).map_err(|_| nonsense("a uid"))
}

fn cut_short() -> Status {
    Status::unavailable("the comparison was cut short")
}

fn nonsense(what: &str) -> Status {
    Status::internal(format!("a replica sends what makes no sense: {what}"))
}
