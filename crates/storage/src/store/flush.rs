//! Writing memtables to segments, so that the log before them can go.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use simshard_topology::{CorpusUid, ShardId};

use super::catalog::{Catalog, RECENT_DROPS};
use super::upkeep::Upkeep;
use super::{Disk, Store};
use crate::error::{MaintenanceError, ReadError};
use crate::files;
use crate::manifest::Manifest;
use crate::memtable::Memtable;
use crate::merge::Cursor;
use crate::segment::{Segment, SegmentId, SegmentMeta, SegmentWriter};

/// Elements that are written before something else may be done: about those of a block.
const ELEMENTS_AT_ONCE: usize = 4096;

/// Segments that a flush has written, of memtables of shards, and of what was set aside.
#[derive(Default)]
struct Written {
    frozen: BTreeMap<SegmentId, SegmentMeta>,
    aside: BTreeMap<SegmentId, SegmentMeta>,
}

impl Upkeep<'_> {
    /// Writes all changes up to now to segments. What fails can be tried again: the frozen memtables stay,
    /// and are written first. Returns the first sequence that the log must keep.
    pub(super) fn flush(&self) -> Result<u64, MaintenanceError> {
        let flushed = self.try_flush();
        flushed.inspect_err(|_| self.store.maintenance.still_frozen())
    }

    fn try_flush(&self) -> Result<u64, MaintenanceError> {
        let first_sequence = self.store.freeze();
        let mut written = Written::default();
        let opened = match self.write_all_frozen(&mut written) {
            Ok(opened) => opened,
            Err(error) => {
                // No manifest names these yet.
                for (id, _) in written.frozen.into_iter().chain(written.aside) {
                    let _ = self.disk.delete_segment(id);
                }
                return Err(error);
            }
        };
        self.commit(|manifest| {
            manifest.first_sequence = first_sequence;
            manifest.segments.extend(&written.frozen);
            manifest.aside.extend(&written.aside);
        })?;
        for segment in opened {
            let mut shard = self.store.shard(segment.id().shard)?.write();
            if written.aside.contains_key(&segment.id()) {
                shard.aside.segments.push(Arc::new(segment));
            } else {
                Arc::make_mut(&mut shard.segments).push(Arc::new(segment));
            }
        }
        for (_, shard) in &self.store.shards {
            let mut shard = shard.write();
            shard.frozen = Arc::default();
            let aside = mem::take(&mut shard.aside.memtable);
            self.store
                .memory
                .fetch_sub(aside.bytes(), Ordering::Relaxed);
        }
        self.store.maintenance.thawed();
        Ok(first_sequence)
    }

    fn write_all_frozen(&self, written: &mut Written) -> Result<Vec<Segment>, MaintenanceError> {
        for (id, shard) in &self.store.shards {
            let (frozen, aside) = {
                let shard = shard.read();
                (Arc::clone(&shard.frozen), Arc::clone(&shard.aside.memtable))
            };
            written.frozen.extend(self.write_frozen(*id, &frozen)?);
            written.aside.extend(self.write_frozen(*id, &aside)?);
        }
        self.sync_segments()?;
        let all = written.frozen.iter().chain(&written.aside);
        all.map(|(id, meta)| Ok(self.disk.open(*id, *meta)?))
            .collect()
    }

    /// Puts a changed manifest in the place of the one before. Where there is no space for it, say, waits for some: what
    /// it names is written, and would be written again otherwise.
    pub(super) fn commit(
        &self,
        change: impl FnOnce(&mut Manifest),
    ) -> Result<(), MaintenanceError> {
        let Self { store, disk, .. } = self;
        let mut next = disk.manifest.lock().clone();
        change(&mut next);
        next.generation += 1;
        next.next_segment = disk.next_segment.load(Ordering::Relaxed);
        let catalog = store.catalog.read().clone();
        next.dropped = store.still_dropped(&catalog, next.first_sequence);
        next.replicas = store.replicas.read().to_manifest();
        next.corpora = catalog.corpora;
        let write = || store.maintenance.write(|| next.write(&disk.directory));
        while let Err(error) = write().map_err(MaintenanceError::from) {
            match error.shortage() {
                Some(shortage) if store.maintenance.wait_out(shortage) => {}
                Some(_) | None => return Err(error),
            }
        }
        store.maintenance.note_enough();
        store
            .catalog
            .write()
            .prune(&next.dropped, next.first_sequence);
        *disk.manifest.lock() = next;
        for id in std::mem::take(&mut *disk.left.lock()) {
            store.maintenance.write(|| disk.delete_segment(id))?;
        }
        Ok(())
    }

    /// Writes the elements of a stream; nothing if there are none. Every now and then `make_way` may do something
    /// else, or end it.
    pub(super) fn write_segment(
        &self,
        id: SegmentId,
        mut elements: impl Cursor,
        make_way: impl Fn() -> Result<(), MaintenanceError>,
    ) -> Result<Option<SegmentMeta>, MaintenanceError> {
        let Self { store, disk, .. } = self;
        let of = disk.manifest.lock().store;
        let create = || SegmentWriter::create(&disk.segments, of, id);
        let mut writer = store.maintenance.write(create)?;
        let mut are_all = false;
        while !are_all {
            make_way()?;
            let push = || push_some(&mut writer, &mut elements);
            are_all = store.maintenance.write(push)?;
        }
        Ok(store.maintenance.write(|| writer.finish())?)
    }

    /// Makes the names of segments last.
    pub(super) fn sync_segments(&self) -> Result<(), MaintenanceError> {
        let sync = || files::sync(&*self.disk.segments);
        Ok(self.store.maintenance.write(sync)?)
    }

    fn write_frozen(
        &self,
        shard: ShardId,
        frozen: &Memtable,
    ) -> Result<Option<(SegmentId, SegmentMeta)>, MaintenanceError> {
        if frozen.is_empty() {
            return Ok(None);
        }
        let id = self.disk.next_segment(shard);
        let kept = self.store.kept(frozen);
        let meta = self.write_segment(id, kept, || Ok(()))?;
        Ok(meta.map(|meta| (id, meta)))
    }
}

impl Store {
    /// Sets the memtables aside, unless an earlier flush did that and failed. Returns the sequence after the
    /// last record that they hold, all of them: shards may hold more.
    fn freeze(&self) -> u64 {
        if let Some(first_sequence) = self.maintenance.frozen_before() {
            return first_sequence;
        }
        let first_sequence = self.maintenance.applied() + 1;
        self.logged.store(0, Ordering::Relaxed);
        for (_, shard) in &self.shards {
            let mut shard = shard.write();
            let bytes = shard.memtable.bytes();
            shard.frozen = Arc::new(mem::take(&mut shard.memtable));
            self.memory.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.maintenance.froze(first_sequence);
        first_sequence
    }

    fn kept<'a>(&self, table: &'a Memtable) -> impl Cursor + 'a {
        let catalog = self.catalog.read().clone();
        table.cursor(move |corpus| catalog.corpora.contains_key(&corpus))
    }

    /// The dropped corpora that are remembered (ST7): those that a segment names, or the log from a sequence on, and the
    /// last of the others.
    fn still_dropped(&self, catalog: &Catalog, first_sequence: u64) -> BTreeSet<CorpusUid> {
        let segments = [self.all_segments(), self.segments_aside()].concat();
        let in_segments: BTreeSet<CorpusUid> = segments
            .iter()
            .flat_map(|segment| segment.corpora())
            .collect();
        let (mut still, mut others) = (BTreeSet::new(), Vec::new());
        for (&uid, &last) in &catalog.dropped {
            if last >= first_sequence || in_segments.contains(&uid) {
                still.insert(uid);
            } else {
                others.push((last, uid));
            }
        }
        others.sort_unstable_by(|one, other| other.cmp(one));
        still.extend(others.into_iter().take(RECENT_DROPS).map(|(_, uid)| uid));
        still
    }
}

/// Writes the next elements of a stream; answers whether these were the last.
fn push_some(
    writer: &mut SegmentWriter,
    elements: &mut impl Cursor,
) -> Result<bool, MaintenanceError> {
    for _ in 0..ELEMENTS_AT_ONCE {
        let Some((corpus, element)) = elements.element() else {
            return Ok(true);
        };
        writer.push(corpus, element)?;
        elements.advance()?;
    }
    Ok(false)
}

impl Disk {
    /// Opens a segment of this store.
    pub(super) fn open(&self, id: SegmentId, meta: SegmentMeta) -> Result<Segment, ReadError> {
        let store = self.manifest.lock().store;
        let cache = Arc::clone(&self.cache);
        Segment::open(&*self.segments, store, id, meta, cache)
    }
}
