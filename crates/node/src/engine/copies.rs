//! A shard as another node copies it, or compares it with its own replica. All that is applied is read, part by part, as
//! fast as the reader takes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_simhash::{Fingerprint, Tables};
use simshard_storage::{Compared, CopyRange, Corpus, Digest, Element, Pinned, ReadError};
use simshard_topology::replication::{Epoch, Pin, StoreId};
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};
use tokio::sync::{mpsc, oneshot};

use super::Engine;
use crate::behind::run_behind;
use crate::error::NodeError;

/// Shards that are copied from here at once. Each takes a thread, and memory for what of it is not in segments.
pub(super) const MOST_AT_ONCE: usize = 4;

/// Elements of a part.
const PART_ELEMENTS: usize = 4096;

/// Bytes of ids of a part, about.
const PART_ID_BYTES: usize = 256 << 10;

/// Parts that wait for the reader.
const WAITING_PARTS: usize = 4;

/// Ranges that end in a part.
const RANGE_ENDS: usize = 4096;

/// The same in a comparison, where ranges are large: their reader must not wait for long.
const COMPARED_RANGE_ENDS: usize = 64;

/// Elements that are not of the cell, until the reader of a cell gets a sign of life.
const PASSED_ELEMENTS: u64 = 1 << 20;

/// Elements of one corpus, in order, and ends of its ranges.
#[derive(Debug)]
pub(crate) struct CopyPart {
    pub(crate) corpus: CorpusUid,
    pub(crate) fingerprints: Vec<Fingerprint>,
    pub(crate) versions: Vec<Version>,
    /// Places of tombstones.
    pub(crate) removed: Vec<u32>,
    pub(crate) ids: Vec<String>,
    id_bytes: usize,
    /// The last fingerprint of each range.
    pub(crate) range_ends: Vec<Fingerprint>,
    /// The digest of each.
    pub(crate) digests: Vec<u8>,
}

/// What comes next of a copy.
#[derive(Debug)]
pub(crate) enum CopyItem {
    /// A part of it.
    Part(CopyPart),
    /// All ranges have ended.
    RangesEnded,
    /// Nothing is left.
    Ended,
}

/// What is copied, and its parts.
#[derive(Debug)]
pub(crate) struct CopySource {
    pub(crate) pin: Pin,
    pub(crate) corpora: Vec<Corpus>,
    pub(crate) parts: mpsc::Receiver<Result<CopyItem, NodeError>>,
}

/// What a learner asks for, or another replica.
#[derive(Clone, Debug)]
pub(crate) struct CopyRequest {
    /// The store that is meant.
    pub(crate) store: StoreId,
    pub(crate) shard: ShardId,
    /// The epoch that added the learner. In a comparison, that of the record of both stores.
    pub(crate) added: Epoch,
    /// The learner may have elements up to this version.
    pub(crate) until: Version,
    /// Unless the shard is copied.
    pub(crate) comparison: Option<ComparedRanges>,
}

/// How two replicas of a shard are compared.
#[derive(Clone, Debug)]
pub(crate) struct ComparedRanges {
    /// Elements of a range, at least.
    pub(crate) per_range: u64,
    /// The ranges that are known to differ; none if all are to be compared.
    pub(crate) known: Vec<CopyRange>,
    /// In these ranges, only documents of this cell are sent.
    pub(crate) cell: Option<Cell>,
}

/// The documents that two shards are both to have, and the first of these shards is the lowest of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) lowest: ShardId,
    pub(crate) other: ShardId,
}

/// Which documents of some corpora are in a cell.
struct CellFilter {
    cell: Cell,
    tables: BTreeMap<CorpusUid, Tables>,
}

impl CellFilter {
    fn new(cell: Cell, corpora: &[Corpus]) -> Self {
        let tables = |corpus: &Corpus| (corpus.uid, Tables::new(corpus.layout));
        Self {
            cell,
            tables: corpora.iter().map(tables).collect(),
        }
    }

    fn has(&self, corpus: CorpusUid, fingerprint: Fingerprint) -> bool {
        let Some(tables) = self.tables.get(&corpus) else {
            return false;
        };
        let shards = || tables.document_shards(fingerprint);
        shards().min() == Some(self.cell.lowest.0) && shards().any(|one| one == self.cell.other.0)
    }
}

impl CopyPart {
    const fn new(corpus: CorpusUid) -> Self {
        Self {
            corpus,
            fingerprints: Vec::new(),
            versions: Vec::new(),
            removed: Vec::new(),
            ids: Vec::new(),
            id_bytes: 0,
            range_ends: Vec::new(),
            digests: Vec::new(),
        }
    }

    fn has_room(&self, corpus: CorpusUid) -> bool {
        let is_small = self.fingerprints.len() < PART_ELEMENTS && self.id_bytes < PART_ID_BYTES;
        is_small && self.range_ends.len() < RANGE_ENDS && self.corpus == corpus
    }

    fn push(&mut self, element: Element<'_>) {
        if !element.live {
            self.removed.push(self.fingerprints.len() as u32);
        }
        self.fingerprints.push(element.fingerprint);
        self.versions.push(element.version);
        self.ids.push(element.id.to_owned());
        self.id_bytes += element.id.len();
    }

    fn end_range(&mut self, last: Fingerprint, digest: Digest) {
        self.range_ends.push(last);
        self.digests.extend(digest);
    }
}

impl Engine {
    /// How many bytes of copies the disk has room for, where that is known.
    pub(crate) fn bytes_for_copies(&self) -> Option<u64> {
        self.store.bytes_for_copies()
    }

    /// Pins a shard and begins to copy it. The ranges that the learner finds to differ come later.
    pub(crate) async fn copy_source(
        self: &Arc<Self>,
        request: CopyRequest,
        ranges: oneshot::Receiver<Vec<CopyRange>>,
    ) -> Result<CopySource, NodeError> {
        let CopyRequest {
            store,
            shard,
            added,
            until,
            comparison,
        } = request;
        let permits = match comparison {
            None => &self.copies,
            Some(_) => &self.comparisons,
        };
        let permit = Arc::clone(permits).acquire_owned().await;
        let permit = permit.map_err(|_| NodeError::Stopping)?;
        let is_meant = |pin: Pin| pin.source == store && (comparison.is_none() || pin.at == added);
        let pinned = self.store.pin(shard, added)?;
        let Some(pinned) = pinned.filter(|pinned| is_meant(pinned.pin)) else {
            return Err(NodeError::WrongEpoch(ShardSet::from_iter([shard])));
        };
        let (sender, parts) = mpsc::channel(WAITING_PARTS);
        let (pin, corpora) = (pinned.pin, pinned.corpora.clone());
        let failed = sender.clone();
        let sending = run_behind("copy-source", move || {
            let mut sending = Sending::new(sender);
            // The reader may have gone.
            let _ = match comparison {
                None => sending.send(&pinned, until, ranges),
                Some(compared) => sending.send_compared(&pinned, until, compared, ranges),
            };
            drop(permit);
        });
        tokio::spawn(async move {
            // If the thread has panicked, the learner is told that the copy was cut short.
            if sending.await.is_err() {
                let _ = failed.send(Err(NodeError::Stopping)).await;
            }
        });
        Ok(CopySource {
            pin,
            corpora,
            parts,
        })
    }
}

/// The elements of some ranges of an own replica, or of a cell in them, as another node gets them.
pub(crate) fn own_elements(
    pinned: Arc<Pinned>,
    ranges: Vec<CopyRange>,
    cell: Option<Cell>,
) -> mpsc::Receiver<Result<CopyItem, NodeError>> {
    let (sender, parts) = mpsc::channel(WAITING_PARTS);
    let sending = run_behind("copy-source", move || {
        // The reader may have gone.
        let _ = Sending::new(sender).send_elements(&pinned, &ranges, Version::MAX, cell);
    });
    drop(sending);
    parts
}

/// The reader of a copy has gone.
struct ReaderGone;

/// Sends parts as they get full.
struct Sending {
    sender: mpsc::Sender<Result<CopyItem, NodeError>>,
    part: Option<CopyPart>,
}

impl Sending {
    const fn new(sender: mpsc::Sender<Result<CopyItem, NodeError>>) -> Self {
        Self { sender, part: None }
    }

    /// Sends all that is later and the ends of ranges, then the ranges that differ.
    fn send(
        &mut self,
        pinned: &Pinned,
        until: Version,
        ranges: oneshot::Receiver<Vec<CopyRange>>,
    ) -> Result<(), ReaderGone> {
        let visit = |corpus, compared: Compared<'_>| {
            let add = |part: &mut CopyPart| match compared {
                Compared::Later(element) => part.push(element),
                Compared::RangeEnd(last, digest) => part.end_range(last, digest),
            };
            self.add(corpus, add).is_ok()
        };
        let compared = pinned.compare(until, visit);
        self.check(compared)?;
        self.end_part()?;
        self.give(Ok(CopyItem::RangesEnded))?;
        let Ok(ranges) = ranges.blocking_recv() else {
            // What the learner sends was cut off, though it may still read.
            return self.give(Err(NodeError::Abandoned));
        };
        self.send_elements(pinned, &ranges, until, None)
    }

    /// Sends the ends of ranges, unless some are known to differ, then the elements of those that do.
    fn send_compared(
        &mut self,
        pinned: &Pinned,
        until: Version,
        compared: ComparedRanges,
        ranges: oneshot::Receiver<Vec<CopyRange>>,
    ) -> Result<(), ReaderGone> {
        let ComparedRanges {
            per_range,
            known,
            cell,
        } = compared;
        if !known.is_empty() || cell.is_some() {
            return self.send_elements(pinned, &known, Version::MAX, cell);
        }
        let visit = |corpus, last, digest| {
            let added = self.add(corpus, |part| part.end_range(last, digest));
            let is_full = |part: &CopyPart| part.range_ends.len() >= COMPARED_RANGE_ENDS;
            let is_full = self.part.as_ref().is_some_and(is_full);
            added.is_ok() && (!is_full || self.end_part().is_ok())
        };
        let compared = pinned.digests(until, per_range, visit);
        self.check(compared)?;
        self.end_part()?;
        self.give(Ok(CopyItem::RangesEnded))?;
        let Ok(ranges) = ranges.blocking_recv() else {
            return self.give(Err(NodeError::Abandoned));
        };
        self.send_elements(pinned, &ranges, Version::MAX, None)
    }

    /// Sends the elements of ranges that have no later version, and the end.
    fn send_elements(
        &mut self,
        pinned: &Pinned,
        ranges: &[CopyRange],
        until: Version,
        cell: Option<Cell>,
    ) -> Result<(), ReaderGone> {
        let filter = cell.map(|cell| CellFilter::new(cell, &pinned.corpora));
        if !ranges.is_empty() {
            let mut passed = 0;
            let visit = |corpus, element: Element<'_>| {
                let has = |filter: &CellFilter| filter.has(corpus, element.fingerprint);
                if filter.as_ref().is_none_or(has) {
                    return self.add(corpus, |part| part.push(element)).is_ok();
                }
                passed += 1;
                passed % PASSED_ELEMENTS != 0 || self.give_sign(corpus).is_ok()
            };
            let visited = pinned.visit(ranges, until, visit);
            self.check(visited)?;
            self.end_part()?;
        }
        self.give(Ok(CopyItem::Ended))
    }

    /// Adds to the part, or to the next one if it is full.
    fn add(
        &mut self,
        corpus: CorpusUid,
        add: impl FnOnce(&mut CopyPart),
    ) -> Result<(), ReaderGone> {
        if self
            .part
            .as_ref()
            .is_some_and(|part| !part.has_room(corpus))
        {
            self.end_part()?;
        }
        add(self.part.get_or_insert_with(|| CopyPart::new(corpus)));
        Ok(())
    }

    /// Sends what there is, and be it nothing: the reader must not wait for long.
    fn give_sign(&mut self, corpus: CorpusUid) -> Result<(), ReaderGone> {
        let part = self.part.take();
        self.give(Ok(CopyItem::Part(
            part.unwrap_or_else(|| CopyPart::new(corpus)),
        )))
    }

    fn end_part(&mut self) -> Result<(), ReaderGone> {
        match self.part.take() {
            Some(part) => self.give(Ok(CopyItem::Part(part))),
            None => Ok(()),
        }
    }

    fn check<T>(&self, visited: Result<T, ReadError>) -> Result<(), ReaderGone> {
        match visited {
            Ok(_) => Ok(()),
            Err(error) => {
                self.give(Err(error.into()))?;
                Err(ReaderGone)
            }
        }
    }

    fn give(&self, next: Result<CopyItem, NodeError>) -> Result<(), ReaderGone> {
        self.sender.blocking_send(next).map_err(|_| ReaderGone)
    }
}
