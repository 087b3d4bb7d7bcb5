//! A shard as it is at one instant, to be scanned while it changes.

use std::sync::Arc;

use simshard_simhash::Fingerprint;
use simshard_topology::{CorpusUid, ShardId};

use super::Store;
use crate::error::ReadError;
use crate::memtable::Memtable;
use crate::merge::{Cursor, Merge};
use crate::segment::Segment;

/// A shard as it was at one instant, of all corpora. It keeps the files of its segments.
#[derive(Debug)]
pub struct Snapshot {
    memtable: Memtable,
    frozen: Arc<Memtable>,
    segments: Arc<Vec<Arc<Segment>>>,
}

impl Snapshot {
    /// Visits the documents of a corpus that were live, by fingerprint, then id.
    ///
    /// # Errors
    /// If a segment cannot be read. Then what was visited is not all.
    pub fn scan(
        &self,
        corpus: CorpusUid,
        visit: impl FnMut(Fingerprint, &str),
    ) -> Result<(), ReadError> {
        let tables = [&*self.frozen, &self.memtable];
        scan_live(&self.segments, tables, corpus, visit)
    }
}

impl Store {
    /// A shard as it is now. Its changes wait only while the list of what is in memory is copied.
    ///
    /// # Errors
    /// If the shard is not in the store.
    pub fn snapshot(&self, shard: ShardId) -> Result<Snapshot, ReadError> {
        let shard = self.read(shard)?;
        Ok(Snapshot {
            memtable: shard.memtable.clone(),
            frozen: Arc::clone(&shard.frozen),
            segments: Arc::clone(&shard.segments),
        })
    }
}

/// Visits the live documents of a corpus in segments and memtables together, by fingerprint, then id.
pub(super) fn scan_live(
    segments: &[Arc<Segment>],
    tables: [&Memtable; 2],
    corpus: CorpusUid,
    mut visit: impl FnMut(Fingerprint, &str),
) -> Result<(), ReadError> {
    let mut streams: Vec<Box<dyn Cursor + '_>> = Vec::new();
    for segment in segments {
        streams.push(Box::new(segment.scan(corpus, None)?));
    }
    for table in tables {
        streams.push(Box::new(table.cursor(move |other| other == corpus)));
    }
    let mut merged = Merge::new(streams);
    while let Some((_, element)) = merged.element() {
        if element.live {
            visit(element.fingerprint, element.id);
        }
        merged.advance()?;
    }
    Ok(())
}
