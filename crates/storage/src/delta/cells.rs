//! What a shard has in common with each other shard, in brief. Pure.
//!
//! A document is in several shards. The documents that two shards are both to have are a *cell*. So a shard has a cell
//! for each other shard, and a document counts in the cell of each of its others. The sum of a cell is the sum of the
//! digests of its elements. It does not depend on their order, so one pass over a shard makes the sums of all its cells.
//!
//! # Invariants
//! - DC4: the sums of two shards for each other are equal if both have the same states, up to a version, of the documents
//!   of their cell. Else they differ, but for a chance of one in 2^128.

use simshard_simhash::Tables;
use simshard_topology::{CorpusUid, ShardId, ShardSet};

use super::{Digest, Digester};
use crate::bytes::Put;
use crate::element::Element;

/// The sums of the cells of a shard, by the other shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellSums {
    sums: Box<[u128; ShardId::COUNT]>,
}

impl CellSums {
    /// The sums of cells without elements.
    fn empty() -> Self {
        Self {
            sums: Box::new([0; ShardId::COUNT]),
        }
    }

    /// The sum of the cell with another shard.
    #[must_use]
    pub fn with(&self, other: ShardId) -> Digest {
        self.sums[usize::from(other.0)].to_le_bytes()
    }
}

/// Adds up the cells of one shard.
pub(crate) struct CellDigester {
    shard: ShardId,
    digester: Digester,
    cells: CellSums,
}

impl CellDigester {
    pub(crate) fn new(shard: ShardId) -> Self {
        Self {
            shard,
            digester: Digester::default(),
            cells: CellSums::empty(),
        }
    }

    /// Adds an element of a corpus with these tables to the cells that it counts in.
    pub(crate) fn add(&mut self, corpus: CorpusUid, tables: &Tables, element: Element<'_>) {
        self.digester.buffer.put(&corpus.0);
        self.digester.add(element);
        let digest = u128::from_le_bytes(self.digester.finish());
        let shards = tables.document_shards(element.fingerprint).map(ShardId);
        let shards: ShardSet = shards.collect();
        for other in shards.iter().filter(|other| *other != self.shard) {
            let sum = &mut self.cells.sums[usize::from(other.0)];
            *sum = sum.wrapping_add(digest);
        }
    }

    pub(crate) fn finish(self) -> CellSums {
        self.cells
    }
}
