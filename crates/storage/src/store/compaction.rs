//! Merging segments, so that a lookup reads few and what was superseded goes.
//!
//! # Invariants
//! - CO1: only neighbours in age are merged, and nothing but superseded states, dropped corpora and forgotten tombstones is
//!   left out.
//! - CO2: after compaction, no shard has [`WIDTH`] segments of one size class, newest last.
//! - TD1: a tombstone goes only with all that it outdoes. So all segments of the shard are merged then. Each change that
//!   is in memory, or would be replayed, came after the record by which the tombstone is settled. So its version is later.
//! - CO3: after compaction, less than one part in [`MOST_WASTED`] of each segment is of dropped corpora.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use simshard_topology::{CorpusUid, ShardId, Version};

use super::catalog::Catalog;
use super::upkeep::Upkeep;
use crate::error::MaintenanceError;
use crate::merge::{Merge, Remembered};
use crate::segment::Segment;

/// Segments of one size class that are merged into one of the next. That class is larger by the same factor.
const WIDTH: usize = 4;

/// Elements of the largest segments of the lowest size class.
const SMALLEST: u64 = 4096;

/// A segment is rewritten once one in this many of its elements, or more, belongs to dropped corpora.
const MOST_WASTED: u64 = 4;

/// The size class of a segment with `elements` elements: each is [`WIDTH`] times the one before.
fn class(elements: u64) -> u32 {
    (elements / SMALLEST)
        .checked_ilog(WIDTH as u64)
        .map_or(0, |log| log + 1)
}

/// The segments to merge, of sizes oldest first, if there is anything to gain: [`WIDTH`] of one class, and
/// whatever smaller ones stand between and behind them.
fn choose(elements: &[u64]) -> Option<Range<usize>> {
    let classes: Vec<u32> = elements.iter().map(|&elements| class(elements)).collect();
    let mut found = None;
    let (mut highest, mut count) = (0, 0);
    for first in (0..classes.len()).rev() {
        match classes[first].cmp(&highest) {
            Ordering::Less => {}
            Ordering::Equal => count += 1,
            Ordering::Greater => (highest, count) = (classes[first], 1),
        }
        if count >= WIDTH {
            found = Some(first..classes.len());
        }
    }
    found
}

/// A segment of which much is of dropped corpora.
fn wasteful(
    segments: &[Arc<Segment>],
    is_held: impl Fn(CorpusUid) -> bool,
) -> Option<Range<usize>> {
    let is_wasteful = |segment: &Arc<Segment>| {
        let dropped = segment.corpora().filter(|corpus| !is_held(*corpus));
        let wasted: u64 = dropped.map(|corpus| segment.elements_of(corpus)).sum();
        wasted * MOST_WASTED >= segment.elements()
    };
    let place = segments.iter().position(is_wasteful)?;
    Some(place..place + 1)
}

impl Upkeep<'_> {
    /// Compacts the shard with most segments of those that need it; says how many it had. A shard with a damaged
    /// segment is left alone: it answers nothing any more, and the others go on. So is one, for a while, for which
    /// there was no space, say.
    pub(super) fn compact_one(&mut self) -> Result<Option<usize>, MaintenanceError> {
        let catalog = self.store.catalog.read().clone();
        let now = Instant::now();
        let shards = self.store.shards.iter();
        let candidates = shards
            .filter(|(id, _)| !self.resting.has(*id, now))
            .filter_map(|(id, shard)| {
                let segments = Arc::clone(&shard.read().segments);
                let sizes: Vec<u64> = segments.iter().map(|segment| segment.elements()).collect();
                let is_damaged = segments.iter().any(|segment| segment.is_damaged());
                let all = || self.collects(*id).then_some(0..segments.len());
                let chosen = all()
                    .or_else(|| choose(&sizes))
                    .or_else(|| wasteful(&segments, |corpus| catalog.holds(corpus)));
                Some((*id, segments, chosen.filter(|_| !is_damaged)?))
            });
        let most = candidates.max_by_key(|(_, segments, _)| segments.len());
        let Some((id, segments, chosen)) = most else {
            return Ok(None);
        };
        match self.merge(id, &segments[chosen], &catalog) {
            Ok(()) => self.resting.remove(id),
            Err(MaintenanceError::Read(error)) if segments.iter().any(|one| one.is_damaged()) => {
                tracing::error!(%error, "a segment is damaged: requests that need it fail");
            }
            Err(error) => {
                let shortage = error.shortage().ok_or(error)?;
                tracing::warn!(%shortage, shard = %id, "cannot merge segments, trying again later");
                self.resting.add(id, now);
            }
        }
        Ok(Some(segments.len()))
    }

    /// The version up to which tombstones of a shard may go with a merge of all its segments (TD1).
    fn droppable(&self, shard: ShardId) -> Version {
        let first_sequence = self.disk.manifest.lock().first_sequence;
        let replicas = self.store.replicas.read();
        replicas.droppable(shard, first_sequence)
    }

    /// Whether tombstones of a shard can go that could not when all its segments were merged last.
    fn collects(&self, shard: ShardId) -> bool {
        let collected = self.disk.collected.lock().get(&shard).copied();
        let has_segments = self
            .store
            .read(shard)
            .is_ok_and(|shard| !shard.segments.is_empty());
        has_segments && self.droppable(shard) > collected.unwrap_or(Version::NONE)
    }

    /// Whether these are all segments of a shard.
    fn are_all(&self, shard: ShardId, merged: &[Arc<Segment>]) -> bool {
        let held = self.store.read(shard);
        held.is_ok_and(|held| held.segments.len() == merged.len())
    }

    /// Puts one segment in the place of several neighbours.
    fn merge(
        &self,
        shard: ShardId,
        merged: &[Arc<Segment>],
        catalog: &Catalog,
    ) -> Result<(), MaintenanceError> {
        let Self { store, disk, .. } = self;
        // Segments come behind these meanwhile, of changes that have later versions.
        let settled = if self.are_all(shard, merged) {
            self.droppable(shard)
        } else {
            Version::NONE
        };
        let streams: Result<Vec<_>, _> = merged
            .iter()
            .map(|segment| segment.scan_all(|corpus| catalog.holds(corpus)))
            .collect();
        let elements = Remembered::new(Merge::new(streams?), settled)?;
        let id = disk.next_segment(shard);
        let make_way = || self.make_way(shard);
        let meta = self.write_segment(id, elements, make_way)?;
        self.sync_segments()?;
        let opened = meta.map(|meta| disk.open(id, meta)).transpose();
        // No manifest names it yet.
        let opened = opened.inspect_err(|_| drop(disk.delete_segment(id)))?;
        self.commit(|manifest| {
            for segment in merged {
                manifest.segments.remove(&segment.id());
            }
            manifest.segments.extend(meta.map(|meta| (id, meta)));
        })?;
        let mut changed = store.shard(shard)?.write();
        let segments = Arc::make_mut(&mut changed.segments);
        replace(segments, merged, opened.map(Arc::new));
        drop(changed);
        let bytes = merged.iter().map(|segment| segment.meta().bytes);
        store.maintenance.merged(bytes.sum());
        if settled > Version::NONE {
            disk.collected.lock().insert(shard, settled);
        }
        self.delete_all(merged)
    }

    /// Lets go of the segments that hold dropped corpora and nothing else.
    pub(super) fn let_go_of_dropped(&mut self) -> Result<(), MaintenanceError> {
        let store = self.store;
        let catalog = store.catalog.read().clone();
        if catalog.dropped.is_empty() {
            return Ok(());
        }
        let is_needed =
            |segment: &Arc<Segment>| segment.corpora().any(|corpus| catalog.holds(corpus));
        let mut gone = store.all_segments();
        gone.retain(|segment| !is_needed(segment));
        if gone.is_empty() {
            return Ok(());
        }
        self.commit(|manifest| {
            for segment in &gone {
                manifest.segments.remove(&segment.id());
            }
        })?;
        for segment in &gone {
            let mut shard = store.shard(segment.id().shard)?.write();
            Arc::make_mut(&mut shard.segments).retain(|one| !Arc::ptr_eq(one, segment));
        }
        self.resting.clear();
        self.delete_all(&gone)
    }

    /// Deletes the files of segments that no manifest names any more.
    fn delete_all(&self, segments: &[Arc<Segment>]) -> Result<(), MaintenanceError> {
        for segment in segments {
            let delete = || self.disk.delete_segment(segment.id());
            self.store.maintenance.write(delete)?;
        }
        Ok(())
    }
}

/// Puts a segment where the merged ones stand; others may have come since behind them.
fn replace(segments: &mut Vec<Arc<Segment>>, merged: &[Arc<Segment>], one: Option<Arc<Segment>>) {
    let Some(first) = merged.first() else { return };
    let is_first = |segment: &Arc<Segment>| Arc::ptr_eq(segment, first);
    if let Some(place) = segments.iter().position(is_first) {
        segments.splice(place..place + merged.len(), one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CO2.
    #[test]
    fn segments_are_merged_once_four_of_a_class_stand_side_by_side() {
        assert_eq!(choose(&[]), None);
        assert_eq!(choose(&[100, 100, 100]), None);
        assert_eq!(choose(&[100, 5, 4000, 1]), Some(0..4));
        assert_eq!(choose(&[1 << 20, 9, 9, 9]), None);
        assert_eq!(choose(&[1 << 20, 9, 9, 9, 9]), Some(1..5));
    }

    /// CO2: whatever is flushed, few segments stay.
    #[test]
    fn few_segments_stay_whatever_is_flushed() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut sizes: Vec<u64> = Vec::new();
        let mut moved = 0;
        for _ in 0..4000 {
            sizes.push(random.u64(1..20_000));
            while let Some(chosen) = choose(&sizes) {
                let sum = sizes[chosen.clone()].iter().sum();
                moved += sum;
                sizes.splice(chosen, [sum]);
            }
            assert!(sizes.len() <= 30, "{sizes:?}");
        }
        let all: u64 = sizes.iter().sum();
        assert!(moved < 8 * all, "{moved} moved of {all}");
    }
}
