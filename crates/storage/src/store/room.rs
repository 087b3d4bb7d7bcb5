//! How much there is, and whether there is room for more.

use std::collections::BTreeMap;

use simshard_topology::ShardId;

use super::{Merges, Store};
use crate::disk_space::Room;
use crate::shortage::Shortage;

/// While segments cannot be written, as on a full disk, changes are refused once memtables reach this many times
/// their limit.
const MOST_FULL: usize = 4;

impl Store {
    /// The bytes of the segments of each shard, and in memory of what is yet to be written to one. What was set aside does
    /// not count. Shards without any are left out.
    #[must_use]
    pub fn stored_bytes(&self) -> BTreeMap<ShardId, u64> {
        let bytes = self.shards.iter().map(|(id, shard)| {
            let shard = shard.read();
            let segments = shard.segments.iter().map(|segment| segment.meta().bytes);
            let in_memory = shard.memtable.bytes() + shard.frozen.bytes();
            (*id, segments.sum::<u64>() + in_memory as u64)
        });
        bytes.filter(|(_, bytes)| *bytes > 0).collect()
    }

    /// Segments of all shards. What was set aside does not count.
    #[must_use]
    pub fn segments(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(|(_, shard)| shard.read().segments.len()).sum()
    }

    /// The merges of segments since it was opened.
    #[must_use]
    pub fn merges(&self) -> Merges {
        self.maintenance.merges()
    }

    /// The shortage for which operations that take space are refused now, if they are.
    pub(crate) fn shortage(&self) -> Option<Shortage> {
        let disk = self.disk.as_ref()?;
        if disk.space.room() == Room::None {
            Some(Shortage::Space)
        } else {
            self.maintenance.stuck()
        }
    }

    /// How much room there is for more: none where operations that take space are refused for any shortage.
    #[must_use]
    pub fn room(&self) -> Room {
        match &self.disk {
            Some(_) if self.shortage().is_some() => Room::None,
            Some(disk) => disk.space.room(),
            None => Room::Ample,
        }
    }

    /// How many bytes of copies there is room for. `None` without a disk, or where the system does not say.
    #[must_use]
    pub fn bytes_for_copies(&self) -> Option<u64> {
        self.disk.as_ref()?.space.bytes_for_copies()
    }

    /// Whether changes must wait, of whatever kind: the disk is full, say, and memory too.
    pub(crate) fn is_overfull(&self) -> bool {
        self.maintenance.shortage().is_some() && self.fullness() >= MOST_FULL
    }
}
