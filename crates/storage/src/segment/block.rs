//! Blocks: up to 64 KiB of elements of one corpus as columns, with a checksum.

use std::cmp::Ordering;
use std::ops::Range;

use simshard_simhash::Fingerprint;
use simshard_topology::Version;

use crate::bytes::{Bytes, Put};
use crate::element::{Element, MAX_ID_BYTES};
use crate::error::Fault;
use crate::seal::{SEAL_BYTES, seal, unseal};

/// Most bytes of a block, its checksum included.
pub(super) const MAX_BLOCK_BYTES: usize = 65_536;

/// Bytes before the columns.
const HEAD_BYTES: usize = 8;

/// Elements in strictly ascending order of fingerprint, then id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    fingerprints: Vec<Fingerprint>,
    versions: Vec<Version>,
    /// A bit each, the first in the lowest bit of the first byte.
    live: Vec<u8>,
    /// The end of each id within `ids`. Empty as long as `ids` is.
    ends: Vec<u16>,
    ids: String,
}

impl Block {
    /// How many elements there are.
    pub(super) fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// The first and the last fingerprint; none if there are no elements.
    pub(super) fn bounds(&self) -> Option<(Fingerprint, Fingerprint)> {
        Some((*self.fingerprints.first()?, *self.fingerprints.last()?))
    }

    /// The element at a place below `len`.
    pub(super) fn element(&self, place: usize) -> Element<'_> {
        Element {
            fingerprint: self.fingerprints[place],
            id: self.id(place),
            version: self.versions[place],
            live: self.live[place / 8] >> (place % 8) & 1 == 1,
        }
    }

    fn id(&self, place: usize) -> &str {
        if self.ends.is_empty() {
            return "";
        }
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.ids[usize::from(start)..usize::from(self.ends[place])]
    }

    /// How an element's key compares with another one.
    pub(super) fn compare(&self, place: usize, fingerprint: Fingerprint, id: &str) -> Ordering {
        let by_fingerprint = self.fingerprints[place].cmp(&fingerprint);
        by_fingerprint.then_with(|| self.id(place).cmp(id))
    }

    /// The places of the elements with a fingerprint.
    pub(super) fn places(&self, fingerprint: Fingerprint) -> Range<usize> {
        let start = self.fingerprints.partition_point(|&f| f < fingerprint);
        let same = self.fingerprints[start..]
            .iter()
            .take_while(|&&f| f == fingerprint);
        start..start + same.count()
    }

    /// The place of the first element that is not before a key; `len` if all are.
    pub(super) fn seek(&self, fingerprint: Fingerprint, id: &str) -> usize {
        let mut start = self.fingerprints.partition_point(|&f| f < fingerprint);
        let mut width = 1;
        while self.fingerprints.get(start + width) == Some(&fingerprint) {
            width *= 2;
        }
        let mut end = (start + width).min(self.len());
        while start < end {
            let middle = start.midpoint(end);
            if self.compare(middle, fingerprint, id).is_lt() {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        start
    }

    /// Bytes that the block takes when it is encoded.
    pub(super) fn encoded_len(&self) -> usize {
        encoded_len(self.len(), self.ids.len())
    }

    /// Whether another element fits, by the bytes of its id.
    pub(super) fn fits(&self, id_bytes: usize) -> bool {
        encoded_len(self.len() + 1, self.ids.len() + id_bytes) <= MAX_BLOCK_BYTES
    }

    /// Appends an element, which must fit and come after the last one.
    pub(super) fn push(&mut self, element: Element<'_>) {
        let place = self.len();
        self.fingerprints.push(element.fingerprint);
        self.versions.push(element.version);
        if place.is_multiple_of(8) {
            self.live.push(0);
        }
        self.live[place / 8] |= u8::from(element.live) << (place % 8);
        self.ids.push_str(element.id);
        if !self.ids.is_empty() {
            self.ends.resize(place, 0);
            self.ends.push(self.ids.len() as u16);
        }
    }

    /// Takes all elements out.
    pub(super) fn clear(&mut self) {
        self.fingerprints.clear();
        self.versions.clear();
        self.live.clear();
        self.ends.clear();
        self.ids.clear();
    }

    /// Appends the bytes of the block, and answers their checksum.
    pub(super) fn encode(&self, buffer: &mut Vec<u8>) -> u32 {
        let start = buffer.len();
        buffer.put_u32(self.len() as u32);
        buffer.put_u32(self.ids.len() as u32);
        buffer.extend(self.fingerprints.iter().flat_map(|f| f.0.to_le_bytes()));
        buffer.extend(self.versions.iter().flat_map(|v| v.0.to_le_bytes()));
        buffer.put(&self.live);
        buffer.extend(self.ends.iter().flat_map(|end| end.to_le_bytes()));
        buffer.put(self.ids.as_bytes());
        seal(buffer, start)
    }

    /// Checks the bytes of a block and takes them apart; answers its checksum too.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Self, u32), Fault> {
        let (columns, sum) = unseal(bytes).ok_or(Fault::damaged(
            0,
            "the checksum of the block does not match",
        ))?;
        let block =
            Self::columns(columns).ok_or(Fault::damaged(0, "the columns do not fit the block"))?;
        block.check()?;
        Ok((block, sum))
    }

    /// Cuts bytes into columns. What is claimed is compared with what is there before anything is allocated.
    fn columns(bytes: &[u8]) -> Option<Self> {
        let mut rest = Bytes(bytes);
        let count = usize::try_from(rest.u32()?).ok()?;
        let id_bytes = usize::try_from(rest.u32()?).ok()?;
        let length = bytes.len() + SEAL_BYTES;
        let sound = length <= MAX_BLOCK_BYTES
            && (1..=length).contains(&count)
            && id_bytes <= length
            && length == encoded_len(count, id_bytes);
        if !sound {
            return None;
        }
        let (fingerprints, _) = rest.take(8 * count)?.as_chunks();
        let (versions, _) = rest.take(8 * count)?.as_chunks();
        let live = rest.take(count.div_ceil(8))?;
        let (ends, _) = rest.take(ends_len(count, id_bytes))?.as_chunks();
        Some(Self {
            fingerprints: u64s(fingerprints).map(Fingerprint).collect(),
            versions: u64s(versions).map(Version).collect(),
            live: live.to_vec(),
            ends: ends.iter().map(|&end| u16::from_le_bytes(end)).collect(),
            ids: str::from_utf8(rest.0).ok()?.to_owned(),
        })
    }

    /// Whether the columns are those of elements in order.
    fn check(&self) -> Result<(), Fault> {
        let refuse = |what| Err(Fault::damaged(0, what));
        let unused = self.len().next_multiple_of(8) - self.len();
        if self
            .live
            .last()
            .is_some_and(|last| last.leading_zeros() < unused as u32)
        {
            return refuse("unused bits are set");
        }
        if !self.ends.is_empty() {
            let mut start = 0;
            for &end in &self.ends {
                let end = usize::from(end);
                let length = end.checked_sub(start);
                if length.is_none_or(|length| length > MAX_ID_BYTES)
                    || !self.ids.is_char_boundary(end)
                {
                    return refuse("an id has no sound end");
                }
                start = end;
            }
            if start != self.ids.len() {
                return refuse("an id has no sound end");
            }
        }
        for place in 1..self.len() {
            let (fingerprint, id) = (self.fingerprints[place], self.id(place));
            if self.compare(place - 1, fingerprint, id) != Ordering::Less {
                return refuse("elements are out of order");
            }
        }
        Ok(())
    }
}

/// Bytes of a block with this many elements and bytes of ids.
fn encoded_len(count: usize, id_bytes: usize) -> usize {
    let columns = 16 * count + count.div_ceil(8) + ends_len(count, id_bytes) + id_bytes;
    HEAD_BYTES + columns + SEAL_BYTES
}

/// Bytes of the column of ends.
fn ends_len(count: usize, id_bytes: usize) -> usize {
    if id_bytes == 0 { 0 } else { 2 * count }
}

/// The integers of a column.
fn u64s(column: &[[u8; 8]]) -> impl ExactSizeIterator<Item = u64> {
    column.iter().map(|&bytes| u64::from_le_bytes(bytes))
}
