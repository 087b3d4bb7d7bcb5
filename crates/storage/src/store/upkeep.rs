//! Keeping memory small and segments few: one step after another, on a thread of its own.

use std::time::Instant;

use parking_lot::MutexGuard;
use simshard_topology::ShardId;

use super::resting::Resting;
use super::{Disk, Store};
use crate::error::MaintenanceError;
use crate::writer::Failure;

/// With more segments than this in a shard, merging comes before the next flush.
const ENOUGH_SEGMENTS: usize = 16;

/// Lets go of the log before a sequence.
pub(crate) type Trim<'a> = dyn Fn(u64) -> Result<(), MaintenanceError> + 'a;

/// The right to change segments and manifest, which one thread has at a time.
pub(super) struct Upkeep<'a> {
    pub(super) store: &'a Store,
    pub(super) disk: &'a Disk,
    pub(super) trim: &'a Trim<'a>,
    pub(super) resting: MutexGuard<'a, Resting>,
}

impl Store {
    /// Flushes and compacts when there is need, until it is told to stop, or fails for good.
    pub(crate) fn maintain(&self, trim: &Trim<'_>) -> Result<(), Failure> {
        let Some(disk) = &self.disk else {
            return Ok(());
        };
        loop {
            let pause = disk.resting.lock().next_end(Instant::now());
            if !self.maintenance.wait(pause) {
                return Ok(());
            }
            match self.upkeep(disk, trim).step() {
                Ok(()) => {}
                Err(MaintenanceError::Stopped) => return Ok(()),
                // Those who interrupt it wake it when they are done.
                Err(MaintenanceError::Interrupted) => {}
                Err(error) => {
                    let shortage = error.shortage().ok_or_else(|| Failure::new(&error))?;
                    tracing::warn!(%error, %shortage, "cannot write segments, trying again");
                    self.maintenance.wait_out(shortage);
                }
            }
        }
    }

    /// The number of the write for which changes wait, as memtables are to be on disk first.
    pub(crate) fn awaited_write(&self) -> Option<u64> {
        self.maintenance.awaited_write()
    }

    /// The right to change segments, for a thread that others wait for: merging is interrupted. `None` without a
    /// directory.
    pub(super) fn right_to_change_segments(&self) -> Option<Right<'_>> {
        let disk = self.disk.as_ref()?;
        self.maintenance.want();
        Some(Right {
            store: self,
            _resting: disk.resting.lock(),
        })
    }

    /// Waits for the lock on changes of segments.
    pub(super) fn upkeep<'a>(&'a self, disk: &'a Disk, trim: &'a Trim<'a>) -> Upkeep<'a> {
        Upkeep {
            store: self,
            disk,
            trim,
            resting: disk.resting.lock(),
        }
    }
}

/// The right to change segments, while it lives.
pub(super) struct Right<'a> {
    store: &'a Store,
    _resting: MutexGuard<'a, Resting>,
}

impl Drop for Right<'_> {
    fn drop(&mut self) {
        self.store.maintenance.end_want();
    }
}

impl Upkeep<'_> {
    /// Does what there is to do. What gives space back comes first, and what lets writers go on next.
    pub(super) fn step(&mut self) -> Result<(), MaintenanceError> {
        self.store.maintenance.begin_step();
        self.let_go_of_dropped()?;
        if self.store.maintenance.needs_flush() {
            self.flush_and_trim()?;
        } else {
            self.let_go_of_left()?;
        }
        while let Some(segments) = self.compact_one()? {
            if self.is_flush_next(segments) {
                break;
            }
        }
        Ok(())
    }

    /// Deletes what copies have taken the place of: it goes once a manifest does not name it. A flush may be far off.
    fn let_go_of_left(&self) -> Result<(), MaintenanceError> {
        let is_nothing_left = self.disk.left.lock().is_empty();
        if is_nothing_left {
            return Ok(());
        }
        self.commit(|_| {})
    }

    /// Writes memtables to segments, and lets go of the log before them. Where there is no space for even that, the
    /// log stays until the next time.
    pub(super) fn flush_and_trim(&self) -> Result<(), MaintenanceError> {
        let first_sequence = self.flush()?;
        match self.store.maintenance.write(|| (self.trim)(first_sequence)) {
            Err(error) if error.shortage().is_some() => {
                tracing::warn!(%error, "no space to delete files of the log, trying again later");
                Ok(())
            }
            trimmed => trimmed,
        }
    }

    /// Between two parts of a merge in a shard: ends it if the store is being closed, and lets a flush go first.
    pub(super) fn make_way(&self, shard: ShardId) -> Result<(), MaintenanceError> {
        if self.store.maintenance.is_stopping() {
            return Err(MaintenanceError::Stopped);
        }
        if self.store.maintenance.is_wanted() {
            return Err(MaintenanceError::Interrupted);
        }
        let segments = self
            .store
            .read(shard)
            .map_or(0, |shard| shard.segments.len());
        if self.is_flush_next(segments) {
            self.flush_and_trim()
        } else {
            Ok(())
        }
    }

    /// Whether to flush before anything else. Writers wait rather than make segments faster than they are merged.
    fn is_flush_next(&self, segments: usize) -> bool {
        segments <= ENOUGH_SEGMENTS && self.store.maintenance.needs_flush()
    }
}
