//! Replicas of a shard: who holds it, what a store takes and answers, and when a router may believe it.
//!
//! The metadata store holds one record for each shard: its stores in sync, its learners, and an epoch that counts the
//! changes. The data path needs no leader, because changes of a set commute by their versions. Epochs, and quorums of the
//! stores in sync, decide what is safe; clocks never do.
//!
//! - A write goes to all stores that the record names. It is acknowledged once all of them have applied it at one epoch.
//! - A read is answered by one store in sync. It is proven by other stores that have installed no later record, or by
//!   a linearizable read of the metadata.
//! - A store that comes back is a learner first: it takes writes, copies the shard, and is promoted then.
//!
//! Everything here only decides. The storage folds its log with `replica`. Nodes choose steps by `next_step`; the metadata
//! and the nodes take them with `step` and `force`. The router counts proofs by `read_quorum`. The search of all states and
//! the simulation call all of it.
//!
//! | module | job |
//! |---|---|
//! | `record` | the record of a shard, and its quorums |
//! | `step` | what a record may become |
//! | `next_step` | what a store makes of a record |
//! | `heat` | which stores in sync hold tables |
//! | `floor` | up to which version tombstones may be dropped |
//! | `force` | what an operator alone may decide |
//! | `replica` | what a store holds of a shard, by the records of its log |
//! | `copy` | what a copy sends, and what may stay |
//! | `scrub` | which states differ, and which one all replicas are to have |
//! | `write` | which of two states stays, and when a change may be acknowledged |
//! | `read` | when an answer is proven |
//! | `incarnation` | whether a directory is the one that ran last |
//!
//! # Invariants
//! They hold in every state that [`tests`] reaches, and each rule is needed: without it one of them breaks.
//! - RI1: a change that is acknowledged at an epoch is on every store of that epoch's record that has held the shard
//!   since. It is there with its own state, or a newer one.
//! - RI2: a complete answer that began after a change was acknowledged shows it, or a newer one.
//! - RI3: the epoch that a store has synced never decreases.
//! - RI4: a record whose epoch is e + 2 exists only in two cases. A seal quorum of the stores in sync at e has
//!   synced e + 1, or an operator forced it.
//! - RI5: a store that was promoted has every acknowledged change, or a newer one.
//! - RI6: a change that begins after one of the other kind was acknowledged is acknowledged with a higher version only.
//! - RI8: an answer is complete only if it is proven.
//! - RI10: an operation that ended before another began, acknowledged or given up, is not shown once the other is
//!   acknowledged, unless both mean the same.
//! - RI11: in each log, writes at an epoch stand before the record of the next.
//! - RI12: a learner takes writes only once a store in sync has synced the record that added it.

mod copy;
mod floor;
mod force;
mod heat;
mod incarnation;
mod next_step;
mod read;
mod record;
mod replica;
mod scrub;
mod step;
#[cfg(test)]
mod tests;
mod write;

pub use copy::{is_later, may_stay};
pub use floor::{is_forgotten, may_settle};
pub use force::ForceError;
pub use heat::Searched;
pub use incarnation::{
    HeldIncarnations, Incarnation, PublishedStore, StaleStore, StartStep, next_start_step, renewed,
};
pub use next_step::{Cause, MOST_AT_ONCE, View};
pub use read::Read;
pub use record::{
    Epoch, InSync, Learner, ShardEpochs, ShardRecord, ShardRecords, StoreId, read_quorum,
    seal_quorum,
};
pub use replica::{Entry, InstallError, Pin, Replica, Role};
pub use scrub::repaired;
pub use step::{Step, StepError};
pub use write::{Outcome, Sent, State, Write, decide};
