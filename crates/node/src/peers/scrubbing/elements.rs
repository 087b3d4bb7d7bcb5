//! What a replica of a shard has, as it comes from its node: ranges with their digests, and elements.

use std::error::Error;
use std::sync::Arc;
use std::vec;

use prost::Message;
use simshard_proto::shard::v1 as pb;
use simshard_simhash::{Fingerprint, Layout};
use simshard_storage::{CompareError, CopyRange, Corpus, MAX_ID_BYTES, Pinned, State};
use simshard_topology::replication::{Epoch, StoreId};
use simshard_topology::{CorpusUid, ShardId, Version};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::differences::Key;
use crate::engine::{Cell, CopyItem, own_elements};
use crate::error::NodeError;
use crate::peers::copying::{WAITING_MESSAGES, forward, open, range};

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
        // Only a broken connection has a source, which does not travel.
        let is_cut = status.source().is_some();
        let code = if is_cut {
            Code::Unavailable
        } else {
            status.code()
        };
        Status::with_details(code, message, status.details().to_vec().into())
    }

    /// Asks this replica for a comparison, at the epoch of a record of the shard.
    pub(super) fn comparison(&self, shard: ShardId, epoch: Epoch) -> pb::CopyShardRequest {
        pb::CopyShardRequest {
            store: self.store.0.to_vec(),
            shard: shard.0.into(),
            added_number: epoch.number,
            added_generation: epoch.generation,
            compares: true,
            ..pb::CopyShardRequest::default()
        }
    }
}

/// What comes from another replica.
pub(super) struct Incoming {
    pub(super) replica: Replica,
    /// The corpora that it holds.
    pub(super) corpora: Vec<Corpus>,
    asking: mpsc::Sender<pb::CopyShardRequest>,
    parts: mpsc::Receiver<Result<pb::CopyShardResponse, Status>>,
    /// Bytes of messages, both ways.
    pub(super) bytes: u64,
    _forwarding: AbortOnDropHandle<()>,
}

impl Incoming {
    /// Asks a replica, and waits until it begins.
    pub(super) async fn open(
        replica: &Replica,
        request: pb::CopyShardRequest,
    ) -> Result<Self, Status> {
        let bytes = request.encoded_len() as u64;
        let is_of_cell = request.lowest_shard.is_some();
        let (asking, asked) = mpsc::channel(WAITING_MESSAGES);
        // There is room.
        let _ = asking.send(request).await;
        let opened = open(replica.channel.clone(), asked).await;
        let (source, parts) = opened.map_err(|status| replica.explain(&status))?;
        if !source.compares || source.is_of_lowest_shard != is_of_cell {
            let status =
                Status::unimplemented("this node is of a version that does not compare so");
            return Err(replica.explain(&status));
        }
        let corpora: Result<_, Status> = source.corpora.iter().map(held).collect();
        let (sender, parts_coming) = mpsc::channel(WAITING_MESSAGES);
        Ok(Self {
            replica: replica.clone(),
            corpora: corpora?,
            asking,
            parts: parts_coming,
            bytes,
            _forwarding: AbortOnDropHandle::new(tokio::spawn(forward(parts, sender))),
        })
    }

    pub(super) fn holds(&self, corpus: CorpusUid) -> bool {
        self.corpora.iter().any(|held| held.uid == corpus)
    }

    /// Asks for the elements of these ranges.
    pub(super) async fn ask(&mut self, ranges: &[CopyRange]) {
        let request = pb::CopyShardRequest {
            ranges: ranges.iter().map(range).collect(),
            ..pb::CopyShardRequest::default()
        };
        self.bytes += request.encoded_len() as u64;
        // If the replica is gone, its stream says so.
        let _ = self.asking.send(request).await;
    }

    /// The ranges that differ from the own replica, and how many own elements were compared.
    pub(super) fn compare(
        &mut self,
        pinned: &Pinned,
        corpora: &[CorpusUid],
        until: Version,
    ) -> Result<(Vec<CopyRange>, u64), Status> {
        let comparison = pinned.comparison(corpora, until).map_err(NodeError::from);
        let mut comparison = comparison?;
        loop {
            let part = self.next_part();
            let part = part.ok_or_else(|| self.replica.explain(&cut_short()))??;
            if part.ranges_ended {
                return comparison.finish().map_err(failed);
            }
            let (digests, rest) = part.range_digests.as_chunks();
            let has_elements = !part.fingerprints.is_empty();
            if has_elements || digests.len() != part.range_ends.len() || !rest.is_empty() {
                return Err(self.replica.explain(&nonsense("the columns of ranges")));
            }
            let corpus = corpus_of(&part).map_err(|status| self.replica.explain(&status))?;
            for (&last, digest) in part.range_ends.iter().zip(digests) {
                let ended = comparison.end_range(corpus, Fingerprint(last), *digest);
                ended.map_err(failed)?;
            }
        }
    }
}

/// Why the own replica, which is read, cannot be compared.
fn failed(error: CompareError) -> Status {
    match error {
        CompareError::Read(error) => NodeError::from(error).into(),
        CompareError::OutOfOrder => Status::internal(error.to_string()),
    }
}

/// A corpus that a replica says it holds.
fn held(corpus: &pb::HeldCorpus) -> Result<Corpus, Status> {
    let uid = corpus.corpus_uid.parse();
    let layout = Layout::new(corpus.blocks, corpus.distance);
    Ok(Corpus {
        uid: uid.map_err(|_| nonsense("a uid"))?,
        layout: layout.map_err(|_| nonsense("the layout of a corpus"))?,
    })
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
struct OwnParts(mpsc::Receiver<Result<CopyItem, NodeError>>);

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
pub(super) struct Elements {
    parts: Box<dyn Parts>,
    part: vec::IntoIter<(Key, State)>,
    last: Option<Key>,
    has_ended: bool,
}

impl Elements {
    /// Those of some ranges of the own replica, or of a cell in them.
    pub(super) fn of_own(pinned: Arc<Pinned>, ranges: Vec<CopyRange>, cell: Option<Cell>) -> Self {
        Self::new(OwnParts(own_elements(pinned, ranges, cell)))
    }

    /// Those that another replica was asked for.
    pub(super) fn of_other(incoming: Incoming) -> Self {
        Self::new(incoming)
    }

    /// Bytes of messages so far.
    pub(super) fn bytes(&self) -> u64 {
        self.parts.bytes()
    }

    fn new(parts: impl Parts + 'static) -> Self {
        Self {
            parts: Box::new(parts),
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
