//! Segments: files that hold elements of one shard in ascending order and never change.
//!
//! ```text
//! header | block block block … | index: corpora, blocks | footer
//! ```
//!
//! A writer takes elements in order. A reader keeps the index in memory and reads the blocks that it needs, through a
//! cache that all segments of a store share. `FORMAT.md` describes the bytes.
//!
//! # Invariants
//! - G1: a segment yields the elements that were pushed, in the same order.
//! - G2: no answer comes from bytes that changed after they were written: a read gives the exact content
//!   or is refused.
//! - G3: after the first damage that is found, every read of the segment is refused, with the same error.
//! - G4: a segment stands under its name whole or not at all.
//! - G5: reading takes memory for the index, the cache, and one block for each scan.

mod block;
mod cache;
mod frame;
mod index;
mod reader;
mod scan;
mod writer;

#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::str::FromStr;

use simshard_topology::{ShardId, Version};
use uuid::Uuid;

use crate::bytes::{Bytes, Put};

pub(crate) use cache::BlockCache;
pub(crate) use reader::Segment;
pub(crate) use writer::SegmentWriter;

/// The name of a segment within its store. Shown, it is the name of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SegmentId {
    /// The shard whose elements it holds.
    pub(crate) shard: ShardId,
    /// Its number; no other segment of the store has or had it.
    pub(crate) number: u64,
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As FORMAT.md has it, however shards are shown to people.
        write!(f, "{:02x}-{:016x}.seg", self.shard.0, self.number)
    }
}

/// The name of a file that is no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoSegment;

/// Reads the form that `Display` writes, and no other.
impl FromStr for SegmentId {
    type Err = NoSegment;

    fn from_str(name: &str) -> Result<Self, NoSegment> {
        let parse = || {
            let (shard, number) = name.strip_suffix(".seg")?.split_once('-')?;
            let shard = ShardId(u8::from_str_radix(shard, 16).ok()?);
            let number = u64::from_str_radix(number, 16).ok()?;
            Some(Self { shard, number })
        };
        let id = parse().ok_or(NoSegment)?;
        if id.to_string() == name {
            Ok(id)
        } else {
            Err(NoSegment)
        }
    }
}

/// The entry of a segment in the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentMeta {
    /// Bytes of the file.
    pub(crate) bytes: u64,
    /// Number of elements.
    pub(crate) elements: u64,
    /// The highest version of an element.
    pub(crate) highest_version: Version,
    /// BLAKE3 hash of the file.
    pub(crate) hash: [u8; 32],
    /// The store that wrote it, and its number there; `None` if it is this one's own.
    pub(crate) origin: Option<Origin>,
}

/// Where a segment that was adopted came from. Its header says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The store that wrote it.
    pub(crate) store: Uuid,
    /// Its number in that store.
    pub(crate) number: u64,
}

/// Stands for the origin of a segment that the store wrote itself.
const OWN: Origin = Origin {
    store: Uuid::nil(),
    number: 0,
};

/// Appends where a segment came from, 24 bytes.
pub(crate) fn put_origin(buffer: &mut Vec<u8>, origin: Option<Origin>) {
    let origin = origin.unwrap_or(OWN);
    buffer.put(origin.store.as_bytes());
    buffer.put_u64(origin.number);
}

/// Takes where a segment came from.
pub(crate) fn take_origin(bytes: &mut Bytes<'_>) -> Option<Option<Origin>> {
    let origin = Origin {
        store: Uuid::from_bytes(bytes.array()?),
        number: bytes.u64()?,
    };
    Some((origin != OWN).then_some(origin))
}
