//! The index of a segment: which corpora it has, and which block holds which fingerprints.

use std::ops::Range;

use simshard_simhash::Fingerprint;
use simshard_topology::CorpusUid;

use super::block::MAX_BLOCK_BYTES;
use super::frame::{FRAME_BYTES, Footer};
use crate::bytes::{Bytes, Put};
use crate::error::Fault;

/// Bytes of a corpus in the index.
const CORPUS_BYTES: u64 = 24;

/// Bytes of a block in the index.
const BLOCK_BYTES: u64 = 32;

/// The entry of a block in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockEntry {
    /// Where it starts in the file.
    pub(super) offset: u64,
    /// Bytes, with the checksum.
    pub(super) bytes: u32,
    /// Number of elements.
    pub(super) elements: u32,
    /// Its checksum, which also detects a sound block in the place of another one.
    pub(super) sum: u32,
    /// The first and the last fingerprint.
    pub(super) bounds: (Fingerprint, Fingerprint),
}

/// A corpus, and the end of its blocks in the list of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CorpusEntry {
    uid: CorpusUid,
    end: usize,
}

/// Corpora by uid, and the blocks of each in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    corpora: Vec<CorpusEntry>,
    blocks: Vec<BlockEntry>,
}

impl Index {
    /// The corpora, ascending.
    pub(super) fn corpora(&self) -> impl ExactSizeIterator<Item = CorpusUid> {
        self.corpora.iter().map(|corpus| corpus.uid)
    }

    /// Where the next block starts in the file.
    pub(super) fn end_offset(&self) -> u64 {
        let last = self.blocks.last();
        last.map_or(FRAME_BYTES as u64, |last| {
            last.offset + u64::from(last.bytes)
        })
    }

    /// The block at a place.
    pub(super) fn block(&self, place: usize) -> BlockEntry {
        self.blocks[place]
    }

    /// How many blocks there are.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The places of a corpus's blocks; none if the segment does not hold it.
    pub(super) fn blocks_of(&self, corpus: CorpusUid) -> Range<usize> {
        match self
            .corpora
            .binary_search_by_key(&corpus, |entry| entry.uid)
        {
            Ok(place) => {
                let before = place.checked_sub(1);
                before.map_or(0, |before| self.corpora[before].end)..self.corpora[place].end
            }
            Err(_) => 0..0,
        }
    }

    /// The places of a corpus's blocks that may hold a fingerprint. Blocks before them hold smaller ones,
    /// blocks behind them greater ones.
    pub(super) fn covering(&self, corpus: CorpusUid, fingerprint: Fingerprint) -> Range<usize> {
        let all = self.blocks_of(corpus);
        let blocks = &self.blocks[all.clone()];
        let before = blocks.partition_point(|block| block.bounds.1 < fingerprint);
        let covering = blocks[before..].iter();
        let covering = covering.take_while(|block| block.bounds.0 <= fingerprint);
        let covering = covering.count();
        let start = all.start + before;
        start..start + covering
    }

    /// Appends a block. Its corpus must be the last one, or one with a greater uid.
    pub(super) fn push(&mut self, corpus: CorpusUid, block: BlockEntry) {
        self.blocks.push(block);
        let end = self.blocks.len();
        match self.corpora.last_mut().filter(|last| last.uid == corpus) {
            Some(last) => last.end = end,
            None => self.corpora.push(CorpusEntry { uid: corpus, end }),
        }
    }

    /// The bytes of the index.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut buffer = Vec::new();
        let mut start = 0;
        for corpus in &self.corpora {
            buffer.put(&corpus.uid.0);
            buffer.put_u32((corpus.end - start) as u32);
            buffer.put_u32(0);
            start = corpus.end;
        }
        for block in &self.blocks {
            buffer.put_u32(block.bytes);
            buffer.put_u32(block.elements);
            buffer.put_u32(block.sum);
            buffer.put_u32(0);
            buffer.put_u64(block.bounds.0.0);
            buffer.put_u64(block.bounds.1.0);
        }
        buffer
    }

    /// Bytes of the index of a segment with this footer.
    pub(super) fn encoded_len(footer: &Footer) -> u64 {
        CORPUS_BYTES * u64::from(footer.corpora) + BLOCK_BYTES * u64::from(footer.blocks)
    }

    /// Checks and decodes the bytes of an index.
    pub(super) fn decode(bytes: &[u8], footer: &Footer) -> Result<Self, Fault> {
        let fault = |what| Fault::damaged(0, what).shifted(footer.index_offset);
        if bytes.len() as u64 != Self::encoded_len(footer) {
            return Err(fault("the index is not as long as the footer says"));
        }
        if crc32c::crc32c(bytes) != footer.index_sum {
            return Err(fault("the checksum of the index does not match"));
        }
        let index = Self::entries(bytes, footer);
        let index = index.ok_or(fault("the index says what no index says"))?;
        let elements = index.blocks.iter().map(|block| u64::from(block.elements));
        if index.end_offset() != footer.index_offset || elements.sum::<u64>() != footer.elements {
            return Err(fault(
                "the blocks of the index do not add up to those of the footer",
            ));
        }
        Ok(index)
    }

    fn entries(bytes: &[u8], footer: &Footer) -> Option<Self> {
        let (mut corpora, mut ends) = (Vec::new(), 0_u32);
        let mut rest = Bytes(bytes);
        for _ in 0..footer.corpora {
            let (uid, blocks, zero) = (rest.array()?, rest.u32()?, rest.u32()?);
            ends = ends.checked_add(blocks)?;
            let (uid, end) = (CorpusUid(uid), usize::try_from(ends).ok()?);
            let ascends = corpora
                .last()
                .is_none_or(|last: &CorpusEntry| last.uid < uid);
            if blocks == 0 || zero != 0 || !ascends {
                return None;
            }
            corpora.push(CorpusEntry { uid, end });
        }
        if ends != footer.blocks || ends == 0 {
            return None;
        }
        let mut index = Self::default();
        for corpus in corpora {
            while index.blocks.len() < corpus.end {
                let before = index.blocks_of(corpus.uid).last();
                let block = block_entry(&mut rest, index.end_offset())?;
                let least = before.map_or(Fingerprint(0), |last| index.blocks[last].bounds.1);
                if block.bounds.0 < least {
                    return None;
                }
                index.push(corpus.uid, block);
            }
        }
        Some(index)
    }
}

/// The entry of the next block, if it is valid.
fn block_entry(rest: &mut Bytes<'_>, offset: u64) -> Option<BlockEntry> {
    let (bytes, elements, sum, zero) = (rest.u32()?, rest.u32()?, rest.u32()?, rest.u32()?);
    let bounds = (Fingerprint(rest.u64()?), Fingerprint(rest.u64()?));
    let fits = bytes as usize <= MAX_BLOCK_BYTES;
    let sound = fits && bytes > 0 && elements > 0 && zero == 0 && bounds.0 <= bounds.1;
    sound.then_some(BlockEntry {
        offset,
        bytes,
        elements,
        sum,
        bounds,
    })
}
