//! Copying a shard from one store to another: a view of it at the source, and a segment with all of that at the learner.
//!
//! # Invariants
//! - CY1: a view has all that the source had applied when it was pinned, tombstones included, and stays as it is.
//! - CY2: a shard that begins anew has nothing of before, in memory and after a restart. Whatever was being written of
//!   it does not come back.
//! - CY3: a copy is part of the shard once the log says so, whole, and is no part of it otherwise.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use simshard_topology::replication::{Epoch, Pin};
use simshard_topology::{CorpusUid, ShardId, ShardSet};

use super::catalog::Corpus;
use super::{Disk, Store};
use crate::element::{Element, ShardCopy};
use crate::error::{MaintenanceError, ReadError, WriteError};
use crate::files;
use crate::memtable::Memtable;
use crate::merge::{Cursor, Merge};
use crate::segment::{Segment, SegmentId, SegmentWriter};

/// Why a copy cannot be made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum CopyError {
    #[error("a store without a directory cannot copy shards")]
    NoDirectory,
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// A shard as it was when it was pinned.
#[derive(Debug)]
pub struct Pinned {
    /// The source, and the epoch that it had applied.
    pub pin: Pin,
    /// The corpora that the source held.
    pub corpora: Vec<Corpus>,
    memtable: Memtable,
    frozen: Arc<Memtable>,
    segments: Arc<Vec<Arc<Segment>>>,
}

impl Pinned {
    /// Visits the elements of the corpora that were held, by corpus, fingerprint and id, until `visit` returns false.
    ///
    /// # Errors
    /// If a segment cannot be read. Then what was visited is not all.
    pub fn visit(
        &self,
        mut visit: impl FnMut(CorpusUid, Element<'_>) -> bool,
    ) -> Result<(), ReadError> {
        let is_held = |corpus| self.corpora.iter().any(|held| held.uid == corpus);
        let mut streams: Vec<Box<dyn Cursor + '_>> = Vec::new();
        for segment in &*self.segments {
            streams.push(Box::new(segment.scan_all(is_held)?));
        }
        for table in [&self.memtable, &*self.frozen] {
            streams.push(Box::new(table.cursor(is_held)));
        }
        let mut merged = Merge::new(streams);
        while let Some((corpus, element)) = merged.element() {
            if !visit(corpus, element) {
                return Ok(());
            }
            merged.advance()?;
        }
        Ok(())
    }
}

/// A copy that is being written. Unless it is finished, nothing stays of it.
pub struct CopyWriter {
    store: Arc<Store>,
    id: SegmentId,
    added: Epoch,
    writer: SegmentWriter,
}

impl CopyWriter {
    /// Adds an element, which must come after the last one by corpus, fingerprint and id.
    ///
    /// # Errors
    /// If it does not, or cannot be written.
    pub fn push(&mut self, corpus: CorpusUid, element: Element<'_>) -> Result<(), CopyError> {
        Ok(self.writer.push(corpus, element)?)
    }

    /// Completes the copy. When this returns, it is on disk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<ShardCopy, CopyError> {
        let meta = self.writer.finish()?;
        files::sync(&*self.store.copies()?.segments)?;
        Ok(ShardCopy {
            shard: self.id.shard,
            added: self.added,
            segment: meta.map(|meta| (self.id, meta)),
        })
    }
}

impl Store {
    /// Pins what is applied of a shard now, for a learner that was added at an epoch. `None` if the store is no source
    /// for it.
    ///
    /// # Errors
    /// If the shard is not in the store.
    pub fn pin(&self, shard: ShardId, added: Epoch) -> Result<Option<Pinned>, ReadError> {
        // The records first: all that stands before them in the log is applied.
        let replicas = self.replicas.read();
        let Some(pin) = replicas.pin(shard, added) else {
            return Ok(None);
        };
        let corpora = self.corpora();
        let shard = self.read(shard)?;
        Ok(Some(Pinned {
            pin,
            corpora,
            memtable: shard.memtable.clone(),
            frozen: Arc::clone(&shard.frozen),
            segments: Arc::clone(&shard.segments),
        }))
    }

    /// Begins a copy for this store, a learner of the shard that was added at an epoch.
    ///
    /// # Errors
    /// If no file can be made for it.
    pub fn begin_copy(
        self: &Arc<Self>,
        shard: ShardId,
        added: Epoch,
    ) -> Result<CopyWriter, CopyError> {
        let disk = self.copies()?;
        let id = disk.next_segment(shard);
        let store = disk.manifest.lock().store;
        Ok(CopyWriter {
            store: Arc::clone(self),
            id,
            added,
            writer: SegmentWriter::create(&disk.segments, store, id)?,
        })
    }

    /// Deletes a copy that the log does not name.
    ///
    /// # Errors
    /// If its file cannot be deleted.
    pub fn abandon_copy(&self, copy: &ShardCopy) -> Result<(), CopyError> {
        if let Some((id, _)) = &copy.segment {
            self.copies()?.delete_segment(*id)?;
        }
        Ok(())
    }

    fn copies(&self) -> Result<&Disk, CopyError> {
        self.disk.as_ref().ok_or(CopyError::NoDirectory)
    }

    /// Leaves out all that shards had so far (CY2). Flushing and merging waits meanwhile.
    pub(super) fn begin_anew(&self, shards: ShardSet) {
        for id in shards.iter() {
            let Ok(shard) = self.shard(id) else { continue };
            let mut shard = shard.write();
            let less = shard.memtable.bytes();
            *shard = crate::shard::Shard::default();
            self.memory.fetch_sub(less, Ordering::Relaxed);
        }
        if let Some(disk) = &self.disk {
            let mut manifest = disk.manifest.lock();
            let segments = mem::take(&mut manifest.segments).into_iter();
            let (left, kept) = segments.partition(|(id, _)| shards.contains(id.shard));
            manifest.segments = kept;
            let left: std::collections::BTreeMap<SegmentId, _> = left;
            disk.left.lock().extend(left.into_keys());
        }
    }

    /// Adds a copy that the log names (CY3). Flushing and merging waits meanwhile.
    pub(super) fn adopt(&self, copy: &ShardCopy) -> Result<(), MaintenanceError> {
        let (Some(disk), Some((id, meta))) = (&self.disk, copy.segment) else {
            return Ok(());
        };
        let segment = Arc::new(disk.open(id, meta)?);
        let mut shard = self.shard(copy.shard)?.write();
        // What came since is newer.
        Arc::make_mut(&mut shard.segments).insert(0, segment);
        disk.manifest.lock().segments.insert(id, meta);
        Ok(())
    }
}
