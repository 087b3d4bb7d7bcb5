//! Writing memtables to segments, so that the log before them can go.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use simshard_topology::ShardId;

use super::compaction::delete;
use super::{Disk, Store};
use crate::error::MaintenanceError;
use crate::files::sync_directory;
use crate::manifest::Manifest;
use crate::memtable::Memtable;
use crate::merge::Cursor;
use crate::segment::{Segment, SegmentId, SegmentMeta, SegmentWriter};

impl Store {
    /// Writes all changes up to now to segments. What fails can be tried again: the frozen memtables stay,
    /// and are written first. Returns the first sequence that the log must keep.
    pub(super) fn flush(&self, disk: &Disk) -> Result<u64, MaintenanceError> {
        let first_sequence = self.freeze();
        let mut written = Vec::new();
        let opened = match self.write_all_frozen(disk, &mut written) {
            Ok(opened) => opened,
            Err(error) => {
                // No manifest names these yet.
                for (id, _) in written {
                    let _ = delete(&disk.segments().join(id.to_string()));
                }
                return Err(error);
            }
        };
        self.commit(disk, |manifest| {
            manifest.first_sequence = first_sequence;
            manifest.segments.extend(written);
        })?;
        for segment in opened {
            if let Some(mut shard) = self.write(segment.id().shard) {
                Arc::make_mut(&mut shard.segments).push(Arc::new(segment));
            }
        }
        for (id, _) in &self.shards {
            if let Some(mut shard) = self.write(*id) {
                shard.frozen = Arc::default();
            }
        }
        self.maintenance.thawed();
        Ok(first_sequence)
    }

    fn write_all_frozen(
        &self,
        disk: &Disk,
        written: &mut Vec<(SegmentId, SegmentMeta)>,
    ) -> Result<Vec<Segment>, MaintenanceError> {
        for (id, _) in &self.shards {
            written.extend(self.write_frozen(disk, *id)?);
        }
        sync_directory(&disk.segments())?;
        written
            .iter()
            .map(|(id, meta)| disk.open(*id, *meta))
            .collect()
    }

    /// Puts a changed manifest in the place of the one before. Where there is no space for it, waits for some: what it
    /// names is written, and would be written again otherwise.
    pub(super) fn commit(
        &self,
        disk: &Disk,
        change: impl FnOnce(&mut Manifest),
    ) -> Result<(), MaintenanceError> {
        let mut next = disk.manifest().clone();
        change(&mut next);
        next.generation += 1;
        let catalog = self.catalog().clone();
        next.corpora = catalog.corpora;
        next.dropped = catalog.dropped;
        loop {
            match next.write(&disk.directory).map_err(MaintenanceError::from) {
                Ok(()) => break,
                Err(error) if error.is_disk_full() && self.maintenance.wait_for_space() => {}
                Err(error) => return Err(error),
            }
        }
        *disk.manifest() = next;
        Ok(())
    }

    /// Sets the memtables aside, unless an earlier flush did that and failed. Returns the sequence after the
    /// last record that they hold, all of them: shards may hold more.
    fn freeze(&self) -> u64 {
        if let Some(first_sequence) = self.maintenance.frozen_before() {
            return first_sequence;
        }
        let first_sequence = self.maintenance.applied() + 1;
        self.logged.store(0, Ordering::Relaxed);
        for (id, _) in &self.shards {
            if let Some(mut shard) = self.write(*id) {
                let bytes = shard.memtable.bytes();
                shard.frozen = Arc::new(mem::take(&mut shard.memtable));
                self.memory.fetch_sub(bytes, Ordering::Relaxed);
            }
        }
        self.maintenance.froze(first_sequence);
        first_sequence
    }

    fn write_frozen(
        &self,
        disk: &Disk,
        shard: ShardId,
    ) -> Result<Option<(SegmentId, SegmentMeta)>, MaintenanceError> {
        let Some(frozen) = self.read(shard).map(|shard| Arc::clone(&shard.frozen)) else {
            return Ok(None);
        };
        if frozen.is_empty() {
            return Ok(None);
        }
        let id = disk.next_segment(shard);
        let meta = self.write_segment(disk, id, self.kept(&frozen))?;
        Ok(meta.map(|meta| (id, meta)))
    }

    fn kept<'a>(&self, table: &'a Memtable) -> impl Cursor + 'a {
        let catalog = self.catalog().clone();
        table.cursor(move |corpus| catalog.corpora.contains_key(&corpus))
    }

    /// Writes the elements of a stream; nothing if there are none.
    pub(super) fn write_segment(
        &self,
        disk: &Disk,
        id: SegmentId,
        mut elements: impl Cursor,
    ) -> Result<Option<SegmentMeta>, MaintenanceError> {
        let store = disk.manifest().store;
        let mut writer = SegmentWriter::create(&disk.segments(), store, id)?;
        while let Some((corpus, element)) = elements.element() {
            writer.push(corpus, element)?;
            elements.advance()?;
        }
        Ok(writer.finish()?)
    }
}

impl Disk {
    /// Opens a segment of this store.
    pub(super) fn open(
        &self,
        id: SegmentId,
        meta: SegmentMeta,
    ) -> Result<Segment, MaintenanceError> {
        let store = self.manifest().store;
        let cache = Arc::clone(&self.cache);
        Ok(Segment::open(&self.segments(), store, id, meta, cache)?)
    }
}
