//! What a store has of shards that it holds no more.
//!
//! # Invariants
//! - CY5: what a store has of a shard is deleted only while it has no role there, so the next role begins with nothing.

use std::mem;
use std::sync::atomic::Ordering;

use simshard_topology::ShardId;
use simshard_topology::replication::Role;

use super::Store;

impl Store {
    /// Deletes all that the store has of a shard that it holds no more, what was set aside too. Answers whether there
    /// was anything. Flushing and merging waits meanwhile.
    pub fn delete_former(&self, shard: ShardId) -> bool {
        let Ok(held) = self.shard(shard) else {
            return false;
        };
        if held.read().is_empty() {
            return false;
        }
        // A shard that gets a role begins anew, and that needs the right too.
        let _right = self.right_to_change_segments();
        if self.role(shard) != Some(Role::None) {
            return false;
        }
        let former = mem::take(&mut *held.write());
        let bytes = former.memtable.bytes() + former.aside.memtable.bytes();
        self.memory.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(disk) = &self.disk {
            disk.set_aside(shard, &[]);
            disk.leave_aside(shard, &[]);
            // The files go once a manifest does not name them.
            self.maintenance.ask_for_flush();
        }
        true
    }
}
