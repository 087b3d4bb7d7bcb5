//! What the disk of a node does, and has room for.

use std::time::Duration;

use simshard_storage::{Awaited, DiskWork, Room};

use super::Engine;

impl Engine {
    /// How much room the disk has.
    pub(crate) fn room(&self) -> Room {
        self.store.room()
    }

    /// What changes wait for, as the disk has not answered it yet.
    pub(crate) fn awaited(&self) -> Option<Awaited> {
        self.writer.awaited()
    }

    /// How long the disk takes for a batch of changes; `None` if there was none.
    pub(crate) fn log_delay(&self) -> Option<Duration> {
        self.writer.log_delay()
    }

    /// The batches of changes that are on disk.
    pub(crate) fn log_batches(&self) -> DiskWork {
        self.writer.log_batches()
    }
}
