//! What a store holds of a shard: a fold of its log.
//!
//! ```text
//! log    | write | Install | write | write | Copied | write |
//!                ^                 ^                        ^
//!             applied            synced                 appended
//! ```
//!
//! An entry counts at three times. Once it is appended, the gate takes no writes by an earlier one. Once it is synced, the
//! gate takes writes by it, it is reported for a seal, and a crash keeps it. Once it is applied, reads and copies see it.
//! The caller holds a lock from the question whether an entry may be appended until it is.
//!
//! # Invariants
//! - RP1: a store takes a write only at the epoch that it appended last, and only if that record names it. It waits
//!   until that record is synced, as the log may yet refuse it.
//! - RP2: records are installed upwards only.
//! - RP3: the data of a former role is no part of the shard, and a new learner begins with none.
//! - RP4: a store answers reads only of the epoch that it has applied, and only in sync.
//! - RP5: a copy ends only under two conditions on its source, by the record that the learner has. The source had
//!   applied the addition when it was pinned, and has been in sync ever since.

use std::sync::Arc;

use super::record::{Epoch, ShardRecord, StoreId};
use super::write::Sent;
use crate::Version;

/// A record of the log that says what the store is to the shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The shard's record from here on.
    Install(Arc<ShardRecord>),
    /// The copy of the shard is complete, and its segments are on disk.
    Copied {
        /// The epoch that added the learner.
        added: Epoch,
    },
}

/// Why a record is not installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    /// Nothing to do: the store has this record or a later one.
    #[error(
        "epoch {0} is not later than the one that is installed: if the metadata is of another cluster or an older copy, \
         give the node the metadata that it had last, or see \"If the metadata is lost\" in docs/operating.md"
    )]
    NotNewer(Epoch),
    /// Stop the store: the metadata store went back in time, and an operator must decide.
    #[error(
        "epoch {0} was written twice, with different records: the metadata is of another cluster or an older copy, so give \
         the node the metadata that it had last, or see \"If the metadata is lost\" in docs/operating.md"
    )]
    OtherHistory(Epoch),
    /// Wait until a store in sync reports the epoch that added the learner.
    #[error("no store in sync has reported epoch {0}")]
    NotReported(Epoch),
    /// Wait until all other stores that answered the operator report the epoch.
    #[error("not all stores that the forced record of epoch {0} leaves out have reported it")]
    NotFenced(Epoch),
    /// Serve nothing: the record names the store in sync, and it holds no copy.
    #[error("the record of epoch {0} names a store in sync that holds no copy")]
    NoCopy(Epoch),
}

/// The state of a source that a learner copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pin {
    /// The source.
    pub source: StoreId,
    /// The epoch that it had applied.
    pub at: Epoch,
}

/// What a store does for a shard, by the records that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Nothing: no record names it, or none any more.
    None,
    /// It is a learner, and its copy has not ended.
    Copying {
        /// The epoch that added it.
        added: Epoch,
    },
    /// It is a learner whose copy has ended.
    Copied {
        /// The epoch that added it.
        added: Epoch,
    },
    /// It answers reads.
    InSync,
}

/// The fold of a prefix of the log.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) record: Option<Arc<ShardRecord>>,
    pub(super) role: Role,
}

/// A shard in a store.
#[derive(Clone, Debug)]
pub struct Replica {
    store: StoreId,
    pub(super) appended: View,
    pub(super) synced: View,
    pub(super) applied: View,
}

impl View {
    pub(super) fn epoch(&self) -> Epoch {
        self.record
            .as_ref()
            .map_or(Epoch::NONE, |record| record.epoch)
    }

    /// Takes an entry. Returns whether the data so far is no part of the shard from here on.
    fn fold(&mut self, store: StoreId, entry: &Entry) -> bool {
        let before = self.role;
        match entry {
            Entry::Install(record) => {
                debug_assert!(record.epoch > self.epoch(), "RP2");
                self.role = before.after(store, record);
                self.record = Some(Arc::clone(record));
            }
            Entry::Copied { added } => {
                if before == (Role::Copying { added: *added }) {
                    self.role = Role::Copied { added: *added };
                }
            }
        }
        let has_no_data = matches!(self.role, Role::None | Role::Copying { .. });
        has_no_data && self.role != before && before != Role::None
    }
}

impl Role {
    fn after(self, store: StoreId, record: &ShardRecord) -> Self {
        if record.in_sync(store).is_some() {
            return Self::InSync;
        }
        let Some(learner) = record.learner(store) else {
            return Self::None;
        };
        let added = learner.added;
        if self.added() == Some(added) {
            self
        } else {
            Self::Copying { added }
        }
    }

    fn added(self) -> Option<Epoch> {
        match self {
            Self::Copying { added } | Self::Copied { added } => Some(added),
            Self::None | Self::InSync => None,
        }
    }
}

impl Replica {
    /// A shard that the store's log does not mention yet.
    pub fn new(store: StoreId) -> Self {
        let (record, role) = (None, Role::None);
        Self::with_view(store, View { record, role })
    }

    /// A shard as its store was when it wrote this down. The log goes on from there.
    #[must_use]
    pub fn restored(store: StoreId, record: Arc<ShardRecord>, role: Role) -> Self {
        let record = Some(record);
        Self::with_view(store, View { record, role })
    }

    /// With nothing on its way.
    fn with_view(store: StoreId, view: View) -> Self {
        Self {
            store,
            appended: view.clone(),
            synced: view.clone(),
            applied: view,
        }
    }

    /// The store that holds the shard.
    #[cfg(test)]
    pub(super) const fn store(&self) -> StoreId {
        self.store
    }

    /// The record that is applied, and the role by it; `None` if the log has none.
    #[must_use]
    pub fn standing(&self) -> Option<(&Arc<ShardRecord>, Role)> {
        let View { record, role } = &self.applied;
        record.as_ref().map(|record| (record, *role))
    }

    /// Whether a record may be appended. `synced` tells the epoch that a store has reported.
    pub fn check_install(
        &self,
        record: &ShardRecord,
        synced: impl Fn(StoreId) -> Epoch,
    ) -> Result<(), InstallError> {
        let view = &self.appended;
        let epoch = record.epoch;
        if let Some(installed) = &view.record
            && installed.epoch == epoch
            && installed.nonce != record.nonce
        {
            return Err(InstallError::OtherHistory(epoch));
        }
        if epoch <= view.epoch() {
            return Err(InstallError::NotNewer(epoch));
        }
        let is_reported = |added| {
            let mut in_sync = record.in_sync.iter();
            in_sync.any(|entry| synced(entry.store) >= added)
        };
        let is_fenced = || {
            let mut others = record.previous.iter().filter(|&&other| other != self.store);
            others.all(|&other| synced(other) >= epoch)
        };
        let has_copy = matches!(view.role, Role::Copied { .. } | Role::InSync);
        match view.role.after(self.store, record) {
            Role::Copying { added } if view.role.added() != Some(added) && !is_reported(added) => {
                Err(InstallError::NotReported(added))
            }
            Role::InSync if !has_copy && !self.has_nothing_to_copy(record) => {
                Err(InstallError::NoCopy(epoch))
            }
            Role::InSync if record.is_forced() && !is_fenced() => {
                Err(InstallError::NotFenced(epoch))
            }
            Role::None | Role::Copying { .. } | Role::Copied { .. } | Role::InSync => Ok(()),
        }
    }

    /// Whether a record puts the store in sync with nothing to copy. The store has installed none, and has been in sync
    /// since the first one, so nothing was acknowledged without it.
    fn has_nothing_to_copy(&self, record: &ShardRecord) -> bool {
        let since = record.in_sync(self.store).map(|entry| entry.since);
        let is_since_first = since.is_some_and(|since| since.number == Epoch::FIRST.number);
        self.appended.record.is_none() && is_since_first
    }

    /// Takes note of an entry that was appended to the log.
    pub fn append(&mut self, entry: &Entry) {
        self.appended.fold(self.store, entry);
    }

    /// Takes back the entries that were appended and are not synced: the log has refused them, and no other is queued.
    pub fn withdraw(&mut self) {
        self.appended = self.synced.clone();
    }

    /// Takes note that an entry is on disk.
    pub fn sync(&mut self, entry: &Entry) {
        self.synced.fold(self.store, entry);
    }

    /// Takes note that an entry is applied. Returns whether the data of the shard is set aside, so that it is empty now.
    pub fn apply(&mut self, entry: &Entry) -> bool {
        self.applied.fold(self.store, entry)
    }

    /// Whether a write of a router that knows the record of `epoch` may be appended.
    pub fn takes(&self, epoch: Epoch) -> bool {
        let is_last = self.appended.epoch() == epoch;
        is_last && self.synced.epoch() == epoch && self.appended.role != Role::None
    }

    /// The version that a change must be above to be appended now. If it is not, it is answered as one that a newer state
    /// outdoes (FL2).
    pub fn bar(&self, sent: Sent) -> Version {
        let record = self.appended.record.as_ref();
        record.map_or(Version::NONE, |record| match sent {
            Sent::ByRouter => record.floor,
            Sent::ToRepair if record.is_frozen => record.floor,
            Sent::ToRepair => record.settled,
        })
    }

    /// Whether reads of a router that knows the record of `epoch` are answered. A shard that is not answered is refused;
    /// it is never empty instead.
    pub fn answers(&self, epoch: Epoch) -> bool {
        self.applied.epoch() == epoch && self.applied.role == Role::InSync
    }

    /// The epoch that proves reads: that of the last record appended.
    pub fn confirms(&self) -> Epoch {
        self.appended.epoch()
    }

    /// The epoch that seals: that of the last record synced.
    pub fn reports(&self) -> Epoch {
        self.synced.epoch()
    }

    /// The last record synced: others may be told of it.
    pub const fn reported(&self) -> Option<&Arc<ShardRecord>> {
        self.synced.record.as_ref()
    }

    /// The store's durable word that it has copied the shard, for [`Step::Promote`](super::Step::Promote).
    pub fn has_copied(&self) -> Option<Epoch> {
        match self.synced.role {
            Role::Copied { added } => Some(added),
            Role::None | Role::Copying { .. } | Role::InSync => None,
        }
    }

    /// The addition that the store has yet to copy the shard for.
    pub fn is_copying(&self) -> Option<Epoch> {
        match self.appended.role {
            Role::Copying { added } => Some(added),
            Role::None | Role::Copied { .. } | Role::InSync => None,
        }
    }

    /// Pins what is applied now, for a learner that was added at `added`.
    pub fn pin(&self, added: Epoch) -> Option<Pin> {
        let at = self.applied.epoch();
        let serves = self.applied.role == Role::InSync && at >= added;
        serves.then_some(Pin {
            source: self.store,
            at,
        })
    }

    /// The entry that ends a copy of what was pinned. If there is none, pin again.
    pub fn end_of_copy(&self, pin: Pin) -> Option<Entry> {
        let added = self.is_copying()?;
        let source = self.appended.record.as_ref()?.in_sync(pin.source)?;
        (source.since <= pin.at && pin.at >= added).then_some(Entry::Copied { added })
    }
}
