//! Merging segments, so that a lookup reads few and what was superseded goes.
//!
//! # Invariants
//! - CO1: only neighbours in age are merged, and nothing but superseded states and dropped corpora is left out.
//! - CO2: after compaction, no shard has [`WIDTH`] segments of one size class, newest last.

use std::cmp::Ordering;
use std::fs;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use simshard_topology::ShardId;

use super::{Disk, Store};
use crate::error::{MaintenanceError, WriteError};
use crate::files::sync_directory;
use crate::merge::Merge;
use crate::segment::Segment;

/// So many segments of one size class become one of the next. It is also how much larger that class is.
const WIDTH: usize = 4;

/// Elements of the largest segments of the lowest size class.
const SMALLEST: u64 = 4096;

/// The size class of a segment with so many elements: each is [`WIDTH`] times the one before.
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

impl Store {
    /// Compacts the shard with most segments of those that need it; says how many it had. A shard with a damaged
    /// segment is left alone: it answers nothing any more, and the others go on.
    pub(super) fn compact_one(&self, disk: &Disk) -> Result<Option<usize>, MaintenanceError> {
        let candidates = self.shards.iter().filter_map(|(id, _)| {
            let segments = Arc::clone(&self.read(*id)?.segments);
            let sizes: Vec<u64> = segments.iter().map(|segment| segment.elements()).collect();
            let is_damaged = segments.iter().any(|segment| segment.is_damaged());
            let chosen = choose(&sizes).filter(|_| !is_damaged)?;
            Some((*id, segments, chosen))
        });
        let most = candidates.max_by_key(|(_, segments, _)| segments.len());
        let Some((id, segments, chosen)) = most else {
            return Ok(None);
        };
        match self.merge(disk, id, &segments[chosen]) {
            Err(MaintenanceError::Read(error)) if segments.iter().any(|one| one.is_damaged()) => {
                tracing::error!(%error, "a segment is damaged: whoever needs it is refused");
                Ok(Some(segments.len()))
            }
            merged => merged.map(|()| Some(segments.len())),
        }
    }

    /// Puts one segment in the place of several neighbours.
    fn merge(
        &self,
        disk: &Disk,
        shard: ShardId,
        merged: &[Arc<Segment>],
    ) -> Result<(), MaintenanceError> {
        let catalog = self.catalog().clone();
        let keep = |corpus| catalog.corpora.contains_key(&corpus);
        let streams: Result<Vec<_>, _> = merged
            .iter()
            .map(|segment| segment.scan_all(keep))
            .collect();
        let id = disk.next_segment(shard);
        let meta = self.write_segment(disk, id, Merge::new(streams?))?;
        sync_directory(&disk.segments())?;
        let opened = meta.map(|meta| disk.open(id, meta)).transpose()?;
        self.commit(disk, |manifest| {
            for segment in merged {
                manifest.segments.remove(&segment.id());
            }
            manifest.segments.extend(meta.map(|meta| (id, meta)));
        })?;
        if let Some(mut shard) = self.write(shard) {
            let segments = Arc::make_mut(&mut shard.segments);
            replace(segments, merged, opened.map(Arc::new));
        }
        for segment in merged {
            let path = disk.segments().join(segment.id().to_string());
            delete(&path).map_err(WriteError::io("delete", &path))?;
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

/// Deletes a file that is needed no longer, if it is there.
pub(super) fn delete(path: &std::path::Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
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
