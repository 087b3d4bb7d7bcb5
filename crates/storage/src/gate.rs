//! The gate of the log: a change is queued by the records that stand before it in the queue.
//!
//! Many changes pass at once; a record of a shard, or the end of a copy, passes alone. `tests` tries all interleavings
//! of threads at the gate.
//!
//! # Invariants
//! - GA1: between the question whether a record or a change may be queued and its place in the queue, no other record
//!   is queued. So in the queue, all changes by a record stand behind it and before the next one.

use std::ops::{Deref, DerefMut};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use simshard_topology::replication::{Epoch, Sent};
use simshard_topology::{ShardId, ShardSet, Version};

use crate::element::Operation;
use crate::store::{Replicas, entries_of};

/// A lock that many share, or one has.
pub(crate) trait Lock<T> {
    type Shared<'a>: Deref<Target = T>
    where
        Self: 'a;
    type Exclusive<'a>: DerefMut<Target = T>
    where
        Self: 'a;

    fn shared(&self) -> Self::Shared<'_>;
    fn exclusive(&self) -> Self::Exclusive<'_>;
}

impl<T> Lock<T> for RwLock<T> {
    type Shared<'a>
        = RwLockReadGuard<'a, T>
    where
        T: 'a;
    type Exclusive<'a>
        = RwLockWriteGuard<'a, T>
    where
        T: 'a;

    fn shared(&self) -> Self::Shared<'_> {
        self.read()
    }

    fn exclusive(&self) -> Self::Exclusive<'_> {
        self.write()
    }
}

/// What does not pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Barred {
    /// The shards that take no change by these epochs: the store has another record of them, or none that names it.
    pub refused: ShardSet,
    /// Others that take none at this version.
    pub late: ShardSet,
    /// The version that it must be above for all of these.
    pub above: Version,
}

/// Lets a change of this version pass. `queue` hears of the shards that do not take it.
pub(crate) fn pass_change<R>(
    replicas: &impl Lock<Replicas>,
    epochs: &[(ShardId, Epoch)],
    version: Version,
    sent: Sent,
    queue: impl FnOnce(Barred) -> R,
) -> R {
    let replicas = replicas.shared();
    let refused = replicas.refused(epochs);
    let others = epochs.iter().filter(|(shard, _)| !refused.contains(*shard));
    let (late, above) = replicas.late(others.map(|(shard, _)| *shard), version, sent);
    queue(Barred {
        refused,
        late,
        above,
    })
}

/// Lets records or the end of a copy pass, if `find` finds any, of which `operation` makes what is queued. Answers whether
/// it did. It looks beside the changes first, and holds them up only if there is something.
pub(crate) fn pass_entries<N, E>(
    replicas: &impl Lock<Replicas>,
    find: impl Fn(&Replicas) -> Result<Option<N>, E>,
    operation: impl FnOnce(N) -> Operation,
    queue: impl FnOnce(Operation) -> Result<(), E>,
) -> Result<bool, E> {
    // Others may pass before it looks again.
    if find(&replicas.shared())?.is_none() {
        return Ok(false);
    }
    pass_alone(replicas, find, operation, queue)
}

fn pass_alone<N, E>(
    replicas: &impl Lock<Replicas>,
    find: impl FnOnce(&Replicas) -> Result<Option<N>, E>,
    operation: impl FnOnce(N) -> Operation,
    queue: impl FnOnce(Operation) -> Result<(), E>,
) -> Result<bool, E> {
    let mut replicas = replicas.exclusive();
    let Some(news) = find(&replicas)? else {
        return Ok(false);
    };
    let operation = operation(news);
    let entries = entries_of(&operation).unwrap_or_default();
    queue(operation)?;
    replicas.append(&entries);
    Ok(true)
}

#[cfg(test)]
mod tests;
