//! A shard with a record, as the manifest has it. Pure.

use std::sync::Arc;

use simshard_topology::ShardId;
use simshard_topology::replication::{Epoch, Role, ShardRecord};

use crate::bytes::{Bytes, Put};
use crate::shard_record::{has_floor, put_epoch, put_shard_record, take_epoch, take_shard_record};

const NO_ROLE: u8 = 0;
const COPYING: u8 = 1;
const COPIED: u8 = 2;
const IN_SYNC: u8 = 3;

/// A shard by the last record that was installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplicaMeta {
    /// The record.
    pub(crate) record: Arc<ShardRecord>,
    /// What the store does for the shard.
    pub(crate) role: Role,
    /// Operations of the log before this sequence are no part of the shard.
    pub(crate) replay_start: u64,
}

impl ReplicaMeta {
    /// Whether its record says what earlier programs do not know.
    pub(super) fn has_floor(&self) -> bool {
        has_floor(&self.record)
    }
}

/// Appends a shard.
pub(super) fn put_replica(body: &mut Vec<u8>, shard: ShardId, replica: &ReplicaMeta) {
    let (role, added) = match replica.role {
        Role::None => (NO_ROLE, Epoch::NONE),
        Role::Copying { added } => (COPYING, added),
        Role::Copied { added } => (COPIED, added),
        Role::InSync => (IN_SYNC, Epoch::NONE),
    };
    body.put_u32(u32::from(shard.0));
    body.put(&[role, 0, 0, 0]);
    put_epoch(body, added);
    body.put_u64(replica.replay_start);
    put_shard_record(body, &replica.record);
}

/// Takes a shard. `None` if the bytes are none, or too few.
pub(super) fn take_replica(bytes: &mut Bytes<'_>) -> Option<(ShardId, ReplicaMeta)> {
    let shard = ShardId(u8::try_from(bytes.u32()?).ok()?);
    let [role, 0, 0, 0] = bytes.array()? else {
        return None;
    };
    let role = match (role, take_epoch(bytes)?) {
        (NO_ROLE, Epoch::NONE) => Role::None,
        (COPYING, added) => Role::Copying { added },
        (COPIED, added) => Role::Copied { added },
        (IN_SYNC, Epoch::NONE) => Role::InSync,
        _ => return None,
    };
    let replica = ReplicaMeta {
        role,
        replay_start: bytes.u64()?,
        record: Arc::new(take_shard_record(bytes)?),
    };
    Some((shard, replica))
}
