//! Shards that begin anew: what they had is set aside until they have a copy.
//!
//! # Invariants
//! - CY2: a shard that begins anew has nothing of before, in memory and after a restart. Whatever was being written of
//!   it does not come back.
//! - CY3: a copy is part of the shard once the log says so, whole, and is no part of it otherwise.
//! - CY4: a segment that was set aside stays as it is until the shard has a copy, or it was found damaged. Then it goes
//!   soon, if the copy does not keep it. It goes too if the store holds the shard no more (CY5).

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use simshard_topology::{ShardId, ShardSet};

use super::{Disk, Store};
use crate::element::ShardCopy;
use crate::error::MaintenanceError;
use crate::segment::{Segment, SegmentId, SegmentMeta};
use crate::shard::Aside;

impl Store {
    /// Lets go of what a shard had before it began anew, as it is damaged. The copy that follows is whole.
    pub fn forget_aside(&self, shard: ShardId) {
        let _right = self.right_to_change_segments();
        if let (Some(disk), Ok(held)) = (&self.disk, self.shard(shard)) {
            held.write().aside.segments.clear();
            disk.leave_aside(shard, &[]);
        }
    }

    /// Sets aside all that shards had so far (CY2). Flushing and merging waits meanwhile.
    pub(super) fn begin_anew(&self, shards: ShardSet) {
        for id in shards.iter() {
            let Ok(shard) = self.shard(id) else { continue };
            let mut shard = shard.write();
            let before = shard.memtable.bytes() + shard.aside.memtable.bytes();
            shard.begin_anew();
            let Some(disk) = &self.disk else {
                shard.aside = Aside::default();
                self.memory.fetch_sub(before, Ordering::Relaxed);
                continue;
            };
            let after = shard.aside.memtable.bytes();
            self.memory.fetch_add(after, Ordering::Relaxed);
            self.memory.fetch_sub(before, Ordering::Relaxed);
            disk.set_aside(id, &shard.aside.segments);
        }
        // A copy begins once all that was set aside is written.
        if self.disk.is_some() {
            self.maintenance.ask_for_flush();
        }
    }

    /// Adds a copy that the log names (CY3), and lets go of the rest of what was set aside. Flushing and merging waits
    /// meanwhile, and then the files go.
    pub(super) fn adopt(&self, copy: &ShardCopy) -> Result<(), MaintenanceError> {
        let Some(disk) = &self.disk else {
            return Ok(());
        };
        let mut shard = self.shard(copy.shard)?.write();
        let aside = mem::take(&mut shard.aside);
        self.memory
            .fetch_sub(aside.memtable.bytes(), Ordering::Relaxed);
        let mut segments = Vec::new();
        for (id, meta) in &copy.segments {
            let kept = aside.segments.iter().find(|segment| segment.id() == *id);
            let finished = disk.finished.lock().remove(id);
            segments.push(match finished.or_else(|| kept.cloned()) {
                Some(segment) => segment,
                None => Arc::new(disk.open(*id, *meta)?),
            });
        }
        // What came since is newer.
        Arc::make_mut(&mut shard.segments).splice(0..0, segments);
        disk.leave_aside(copy.shard, &copy.segments);
        Ok(())
    }
}

impl Disk {
    /// Has the next manifest set aside these segments of a shard, and leave out all others.
    pub(super) fn set_aside(&self, shard: ShardId, aside: &[Arc<Segment>]) {
        let mut manifest = self.manifest.lock();
        let mut left = self.left.lock();
        let is_aside = |id: &SegmentId| aside.iter().any(|segment| segment.id() == *id);
        let (gone, kept) = mem::take(&mut manifest.segments)
            .into_iter()
            .partition(|(id, _)| id.shard == shard);
        manifest.segments = kept;
        let gone: BTreeMap<SegmentId, SegmentMeta> = gone;
        for (id, meta) in gone {
            if is_aside(&id) {
                manifest.aside.insert(id, meta);
            } else {
                left.push(id);
            }
        }
    }

    /// Has the next manifest name these segments of a shard, and nothing that was set aside.
    pub(super) fn leave_aside(&self, shard: ShardId, copy: &[(SegmentId, SegmentMeta)]) {
        let mut manifest = self.manifest.lock();
        manifest.segments.extend(copy.iter().copied());
        let is_named = |id: &SegmentId| copy.iter().any(|(named, _)| named == id);
        let aside: Vec<SegmentId> = manifest.aside.keys().copied().collect();
        for id in aside.into_iter().filter(|id| id.shard == shard) {
            manifest.aside.remove(&id);
            if !is_named(&id) {
                self.left.lock().push(id);
            }
        }
    }
}
