//! The two ends of a segment, 64 bytes each: a header that says whose it is, a footer that finds the index.

use simshard_topology::{ShardId, Version};
use uuid::Uuid;

use super::SegmentId;
use crate::FIRST_FORMAT;
use crate::bytes::{Bytes, Put};
use crate::error::Fault;
use crate::seal::{seal, unseal};

/// Bytes of a header, and of a footer.
pub(super) const FRAME_BYTES: usize = 64;

const HEADER_MAGIC: [u8; 8] = *b"SIMSHSEG";
const FOOTER_MAGIC: [u8; 8] = *b"SEGMENTS";

/// Which segment a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) store: Uuid,
    pub(super) id: SegmentId,
}

impl Header {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut buffer = Vec::with_capacity(FRAME_BYTES);
        buffer.put(&HEADER_MAGIC);
        buffer.put_u32(FIRST_FORMAT);
        buffer.put_u32(u32::from(self.id.shard.0));
        buffer.put(self.store.as_bytes());
        buffer.put_u64(self.id.number);
        buffer.put(&[0; 20]);
        seal(&mut buffer, 0);
        buffer
    }

    /// Magic and format version are read before the checksum, which a later format may keep elsewhere.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Fault> {
        let mut rest = Bytes(bytes);
        let expected = "segment";
        if rest.array() != Some(HEADER_MAGIC) {
            return Err(Fault::Foreign { expected });
        }
        let version = rest.u32().unwrap_or_default();
        if version > FIRST_FORMAT {
            let reads = FIRST_FORMAT;
            return Err(Fault::Newer { version, reads });
        }
        if bytes.len() != FRAME_BYTES || unseal(bytes).is_none() {
            return Err(Fault::damaged(
                0,
                "the checksum of the header does not match",
            ));
        }
        let header = Self::fields(rest).filter(|_| version == FIRST_FORMAT);
        header.ok_or(Fault::damaged(0, "the header says what no header says"))
    }

    /// The bytes after the format version.
    fn fields(mut rest: Bytes<'_>) -> Option<Self> {
        let shard = ShardId(rest.u32()?.try_into().ok()?);
        let store = Uuid::from_bytes(rest.array()?);
        let number = rest.u64()?;
        let id = SegmentId { shard, number };
        (rest.array()? == [0; 20]).then_some(Self { store, id })
    }
}

/// Where the index is, and what all blocks together hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) index_offset: u64,
    pub(super) corpora: u32,
    pub(super) blocks: u32,
    pub(super) elements: u64,
    pub(super) highest_version: Version,
    pub(super) index_sum: u32,
}

impl Footer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut buffer = Vec::with_capacity(FRAME_BYTES);
        buffer.put_u64(self.index_offset);
        buffer.put_u32(self.corpora);
        buffer.put_u32(self.blocks);
        buffer.put_u64(self.elements);
        buffer.put_u64(self.highest_version.0);
        buffer.put_u32(self.index_sum);
        buffer.put(&[0; 16]);
        buffer.put(&FOOTER_MAGIC);
        seal(&mut buffer, 0);
        buffer
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Fault> {
        let Some((sealed, _)) = unseal(bytes) else {
            return Err(Fault::damaged(
                0,
                "the checksum of the footer does not match",
            ));
        };
        let footer = Self::fields(Bytes(sealed));
        footer.ok_or(Fault::damaged(0, "the footer says what no footer says"))
    }

    fn fields(mut rest: Bytes<'_>) -> Option<Self> {
        let footer = Self {
            index_offset: rest.u64()?,
            corpora: rest.u32()?,
            blocks: rest.u32()?,
            elements: rest.u64()?,
            highest_version: Version(rest.u64()?),
            index_sum: rest.u32()?,
        };
        let sound = rest.array()? == [0; 16] && rest.array()? == FOOTER_MAGIC && rest.0.is_empty();
        sound.then_some(footer)
    }
}
