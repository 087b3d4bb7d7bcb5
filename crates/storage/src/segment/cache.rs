//! Blocks that were checked, kept for the next reader: one cache for all segments of a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::block::{Block, MAX_BLOCK_BYTES};

/// Memory of a cached block besides its columns: headers of allocations, its place in the cache.
const OVERHEAD_BYTES: u64 = 256;

/// A segment that is open, by a number that no other one ever has, and a block of it.
type Key = (u64, usize);

/// Recently read blocks of all segments of a store, up to a number of bytes.
#[derive(Debug)]
pub(crate) struct BlockCache {
    /// None if nothing is kept.
    blocks: Option<Cache<Key, Arc<Block>, Bytes>>,
    next_segment: AtomicU64,
}

/// Weighs blocks by the memory that they take.
#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<Key, Arc<Block>> for Bytes {
    fn weight(&self, _: &Key, block: &Arc<Block>) -> u64 {
        block.encoded_len() as u64 + OVERHEAD_BYTES
    }
}

impl BlockCache {
    /// A cache of at most `bytes`; one of 0 bytes keeps nothing.
    pub(crate) fn new(bytes: u64) -> Self {
        let estimated_blocks = (bytes / MAX_BLOCK_BYTES as u64) as usize;
        let blocks = (bytes > 0).then(|| Cache::with_weighter(estimated_blocks, bytes, Bytes));
        Self {
            blocks,
            next_segment: AtomicU64::new(0),
        }
    }

    /// A number for a segment that is opened, so that none is ever given the blocks of another.
    pub(super) fn number(&self) -> u64 {
        self.next_segment.fetch_add(1, Ordering::Relaxed)
    }

    /// The block under a key; loaded by one of those who ask for it at once, if it is not there.
    pub(super) fn get_or_load<E>(
        &self,
        key: Key,
        load: impl FnOnce() -> Result<Block, E>,
    ) -> Result<Arc<Block>, E> {
        match &self.blocks {
            Some(blocks) => blocks.get_or_insert_with(&key, || load().map(Arc::new)),
            None => load().map(Arc::new),
        }
    }

    /// The bytes of what is kept.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.as_ref().map_or(0, Cache::weight)
    }
}
