//! What records of shards say of changes that come late, and of tombstones that may go.

use std::collections::BTreeMap;

use simshard_topology::replication::{Role, Sent};
use simshard_topology::{ShardId, ShardSet, Version};

use super::replicas::{Held, Replicas};

impl Replicas {
    /// Those of these shards which take no change of this version, and the version that it must be above for all of them.
    pub(crate) fn late(
        &self,
        shards: impl Iterator<Item = ShardId>,
        version: Version,
        sent: Sent,
    ) -> (ShardSet, Version) {
        let (mut late, mut above) = (ShardSet::EMPTY, Version::NONE);
        for shard in shards {
            let held = self.by_shard.get(&shard);
            let bar = held.map_or(Version::NONE, |held| held.replica.bar(sent));
            // Without a floor every version is above it.
            if bar > Version::NONE && version <= bar {
                late.insert(shard);
                above = above.max(bar);
            }
        }
        (late, above)
    }

    /// The version up to which tombstones of a shard may go from segments, if nothing of the log before `first_sequence`
    /// is replayed any more (FL5, TD1).
    pub(crate) fn droppable(&self, shard: ShardId, first_sequence: u64) -> Version {
        let held = self.by_shard.get(&shard);
        let held = held.filter(|held| held.settled_at < first_sequence);
        match held.and_then(|held| held.replica.standing()) {
            Some((record, Role::InSync)) => record.settled,
            Some((_, Role::None | Role::Copying { .. } | Role::Copied { .. })) | None => {
                Version::NONE
            }
        }
    }

    /// What is settled by the record of a shard that is applied.
    pub(crate) fn settled(&self, shard: ShardId) -> Version {
        self.by_shard
            .get(&shard)
            .map_or(Version::NONE, Held::settled)
    }

    /// What is settled of each shard. Where a start leaves tombstones that could go, they go the next time.
    pub(super) fn collected(&self) -> BTreeMap<ShardId, Version> {
        let settled = self.by_shard.iter();
        settled
            .map(|(shard, held)| (*shard, held.settled()))
            .collect()
    }

    /// Takes note that the log was replayed up to this record, the last one.
    pub(crate) fn note_replayed(&mut self, last: u64) {
        for held in self.by_shard.values_mut() {
            held.settled_at = last;
        }
    }
}

impl Held {
    /// What is settled by the record that is applied.
    pub(super) fn settled(&self) -> Version {
        let standing = self.replica.standing();
        standing.map_or(Version::NONE, |(record, _)| record.settled)
    }
}
