//! Copying a shard to a store that has much of it already. Pure.
//!
//! A store that was away begins its shards anew, and sets aside what it had of them. Most of that is what the source
//! still holds. So the learner names a version, and of later elements it takes all from the source. The others are
//! compared range by range, by digests, and the learner asks for the ranges that differ.
//!
//! ```text
//! source   later elements, and a digest of the others of each range  -->  learner compares
//!          the elements of these ranges  <-- the ranges that differ  ---  and asks
//! ```
//!
//! The version decides what is sent, never what the copy is. With version 0 everything is later: a whole copy.
//!
//! Two replicas in sync are compared in the same way, without the later elements: see [`ReplicaComparison`]. Two shards
//! are compared by what they have in common: see [`CellSums`].
//!
//! # Invariants
//! - DC1: a copy has the newest state that the source holds of each element, and nothing else, whatever was set aside and
//!   whatever the version is.
//! - DC2: the ranges of a corpus follow each other without a gap from the first fingerprint to the last, and no fingerprint
//!   is in two of them.
//! - DC5: tombstones that are settled count for nothing where ranges or cells are compared: either side may have dropped
//!   them. Where a source has some, and sends the range, it sends them.
//! - DC3: what was set aside is kept as it is only if the copy outdoes each state in it that the source does not hold.

mod cells;
mod learner;
mod replica;
mod source;
#[cfg(test)]
mod tests;

use simshard_simhash::Fingerprint;
use simshard_topology::replication::{is_forgotten, is_later};
use simshard_topology::{CorpusUid, Version};

use crate::bytes::Put;
use crate::element::{Element, State};
use crate::error::ReadError;
use crate::merge::Cursor;

pub(crate) use cells::CellDigester;
pub use cells::CellSums;
pub(crate) use learner::{Comparison, Differing, is_outdone};
pub use replica::ReplicaComparison;
pub use source::Compared;
pub(crate) use source::{compare, elements_per_range};

/// What a range holds, in brief.
pub type Digest = [u8; 16];

/// Bytes that are hashed at once.
const HASHED_AT_ONCE: usize = 1 << 16;

/// Some fingerprints of a corpus that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyRange {
    /// The corpus.
    pub corpus: CorpusUid,
    /// The first of them.
    pub first: Fingerprint,
    /// The last of them.
    pub last: Fingerprint,
}

impl CopyRange {
    /// Ranges that hold what these hold: ascending, and none of them touches another.
    #[must_use]
    pub fn union(mut ranges: Vec<Self>) -> Vec<Self> {
        ranges.sort_unstable_by_key(|range| (range.corpus, range.first));
        let mut union: Vec<Self> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match union.last_mut() {
                Some(before) if before.reaches(&range) => before.last = before.last.max(range.last),
                _ => union.push(range),
            }
        }
        union
    }

    /// Whether a range that begins in this one or later leaves no gap.
    fn reaches(&self, next: &Self) -> bool {
        let end = self.last.0.checked_add(1);
        self.corpus == next.corpus && end.is_none_or(|end| end >= next.first.0)
    }
}

/// What counts where contents are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Versions {
    /// Nothing later does.
    pub(crate) until: Version,
    /// Tombstones up to this one do not (DC5).
    pub(crate) settled: Version,
}

impl Versions {
    /// Whether a state counts.
    pub(crate) fn has(self, state: State) -> bool {
        !is_later(state, self.until) && !is_forgotten(state, self.settled)
    }
}

/// Why a replica cannot be compared with another one, or what was set aside with a source.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum CompareError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("the source sends ranges that do not follow each other")]
    OutOfOrder,
}

/// Makes the digests of ranges, one after the other.
#[derive(Default)]
struct Digester {
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
    /// Elements of this range.
    elements: u64,
}

impl Digester {
    fn add(&mut self, element: Element<'_>) {
        self.buffer.put_u64(element.fingerprint.0);
        self.buffer.put_u64(element.version.0);
        // An id has at most 1,024 bytes.
        let id = element.id.len() as u32;
        self.buffer.put_u32(id << 1 | u32::from(element.live));
        self.buffer.put(element.id.as_bytes());
        self.elements += 1;
        if self.buffer.len() >= HASHED_AT_ONCE {
            self.hasher.update(&self.buffer);
            self.buffer.clear();
        }
    }

    /// The digest of what was added since the last one.
    fn finish(&mut self) -> Digest {
        self.hasher.update(&self.buffer);
        let mut digest = Digest::default();
        digest.copy_from_slice(&self.hasher.finalize().as_bytes()[..size_of::<Digest>()]);
        self.hasher.reset();
        self.buffer.clear();
        self.elements = 0;
        digest
    }
}

/// The elements of a stream that are in some ranges, or in none of them, and have no later version than one.
pub(crate) struct RangeElements<'a, C> {
    elements: C,
    ranges: &'a [CopyRange],
    until: Version,
    /// Whether those in the ranges are meant.
    within: bool,
}

impl<'a, C: Cursor> RangeElements<'a, C> {
    /// The elements in these ranges.
    pub(crate) fn within(
        elements: C,
        ranges: &'a [CopyRange],
        until: Version,
    ) -> Result<Self, ReadError> {
        Self::start(elements, ranges, until, true)
    }

    /// The elements outside of these ranges.
    pub(crate) fn outside(
        elements: C,
        ranges: &'a [CopyRange],
        until: Version,
    ) -> Result<Self, ReadError> {
        Self::start(elements, ranges, until, false)
    }

    fn start(
        elements: C,
        ranges: &'a [CopyRange],
        until: Version,
        within: bool,
    ) -> Result<Self, ReadError> {
        let mut part = Self {
            elements,
            ranges,
            until,
            within,
        };
        part.skip()?;
        Ok(part)
    }

    /// Goes to the first element that is meant.
    fn skip(&mut self) -> Result<(), ReadError> {
        while let Some((corpus, element)) = self.elements.element() {
            let key = (corpus, element.fingerprint);
            while let Some((range, rest)) = self.ranges.split_first()
                && (range.corpus, range.last) < key
            {
                self.ranges = rest;
            }
            let is_within = self
                .ranges
                .first()
                .is_some_and(|range| (range.corpus, range.first) <= key);
            if is_within == self.within && !is_later(element.into(), self.until) {
                break;
            }
            self.elements.advance()?;
        }
        Ok(())
    }
}

impl<C: Cursor> Cursor for RangeElements<'_, C> {
    fn element(&self) -> Option<(CorpusUid, Element<'_>)> {
        self.elements.element()
    }

    fn advance(&mut self) -> Result<(), ReadError> {
        self.elements.advance()?;
        self.skip()
    }
}
