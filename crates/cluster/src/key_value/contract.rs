//! The contract of every key-value store, and the ways it can fail.
//!
//! # Invariants
//! Every backend keeps them; the suite in `tests/tests/metadata/key_value.rs` checks them under the same ids.
//! - KV1: a read sees every commit that was confirmed before the read began, through whichever handle.
//! - KV2: a transaction makes all its writes or none. It makes them only if all its conditions hold at that moment.
//! - KV3: each commit that writes raises the revision of the store. A key has the revision that wrote it last.
//! - KV4: a wait for a change of some keys ends with each change after the given revision, also with a deletion.
//! - KV5: the keys of a lease are there until it is revoked, or was not kept alive for its time to live. Then they
//!   vanish together.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

/// The most conditions of a transaction, and the most writes. It is the limit that etcd has by default.
pub const MAX_OPERATIONS: usize = 128;

/// A number that grows with every change of a store. Revisions of different stores have nothing to do with each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which lease a key belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub i64);

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// The revision that wrote it last.
    pub revision: Revision,
}

/// Some keys at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The revision of the whole store at that moment.
    pub revision: Revision,
    /// The keys, sorted.
    pub pairs: Vec<KeyValue>,
}

/// What must hold for a transaction to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// There is no such key.
    Absent { key: String },
    /// The key was last written by this revision.
    Unchanged { key: String, revision: Revision },
}

/// One change of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Write {
    Put {
        key: String,
        value: String,
        lease: Option<LeaseId>,
    },
    Delete {
        key: String,
    },
}

impl Write {
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }
}

/// Writes that are made together, if conditions hold. Each key may be written once, and there are at most
/// [`MAX_OPERATIONS`] of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transaction {
    pub(crate) conditions: Vec<Condition>,
    pub(crate) writes: Vec<Write>,
}

impl Transaction {
    /// Without conditions and writes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Demands that a key does not exist.
    #[must_use]
    pub fn if_absent(mut self, key: impl Into<String>) -> Self {
        self.conditions.push(Condition::Absent { key: key.into() });
        self
    }

    /// Demands that a key exists, and that this revision was the last to write it.
    #[must_use]
    pub fn if_unchanged(mut self, key: impl Into<String>, revision: Revision) -> Self {
        let key = key.into();
        self.conditions.push(Condition::Unchanged { key, revision });
        self
    }

    /// Writes a key that stays until it is deleted.
    #[must_use]
    pub fn put(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.put_with(key.into(), value.into(), None)
    }

    /// Writes a key that vanishes with a lease.
    #[must_use]
    pub fn put_leased(
        self,
        key: impl Into<String>,
        value: impl Into<String>,
        lease: LeaseId,
    ) -> Self {
        self.put_with(key.into(), value.into(), Some(lease))
    }

    fn put_with(mut self, key: String, value: String, lease: Option<LeaseId>) -> Self {
        self.writes.push(Write::Put { key, value, lease });
        self
    }

    /// Deletes a key, if it exists.
    #[must_use]
    pub fn delete(mut self, key: impl Into<String>) -> Self {
        self.writes.push(Write::Delete { key: key.into() });
        self
    }

    /// Refuses what the contract rules out.
    pub(crate) fn check(&self) -> Result<(), KeyValueError> {
        let most = self.conditions.len().max(self.writes.len());
        if most > MAX_OPERATIONS {
            return Err(KeyValueError::TooLarge { operations: most });
        }
        let mut keys: Vec<&str> = self.writes.iter().map(Write::key).collect();
        keys.sort_unstable();
        match keys.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(KeyValueError::WrittenTwice {
                key: pair[0].to_owned(),
            }),
            None => Ok(()),
        }
    }
}

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// All conditions held, and all writes were made, by this revision.
    Committed(Revision),
    /// A condition did not hold, and nothing was written.
    Conflict,
}

/// The changes of the keys that start with a prefix. A stream from the store stays open from one wait to the next.
#[async_trait]
pub trait Changes: fmt::Debug + Send {
    /// Waits until one of the keys was written or deleted after the revision `after`, and reads them all. It may return
    /// early, with keys that are as they were, and skips states that did not last. A wait may be dropped, and begun
    /// again.
    ///
    /// # Errors
    /// When the store cannot be read, or can no longer be waited for. Wait again, or read: no change is missed.
    async fn next(&mut self, after: Revision) -> Result<Snapshot, KeyValueError>;
}

/// A map of texts that all processes of a cluster share. Keys and values are UTF-8.
#[async_trait]
pub trait KeyValueStore: fmt::Debug + Send + Sync {
    /// Reads all keys that start with `prefix`, as they are at one moment.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn read(&self, prefix: &str) -> Result<Snapshot, KeyValueError>;

    /// Begins to follow the keys that start with `prefix`. The store is not asked before the first wait.
    fn changes(&self, prefix: &str) -> Box<dyn Changes + '_>;

    /// Makes the writes of a transaction if its conditions hold.
    ///
    /// # Errors
    /// [`KeyValueError::Unknown`] if the writes may have been made: read before deciding anew. With any other error
    /// nothing was written. [`KeyValueError::NoLease`] if it puts a key under a lease that is gone.
    async fn commit(&self, transaction: &Transaction) -> Result<Outcome, KeyValueError>;

    /// Begins a lease. A store may round its time to live up, and raise it to a few seconds.
    ///
    /// # Errors
    /// When the store cannot be written.
    async fn grant(&self, time_to_live: Duration) -> Result<LeaseId, KeyValueError>;

    /// Begins the time to live of a lease anew.
    ///
    /// # Errors
    /// [`KeyValueError::NoLease`] if it is gone, else when the store cannot be written.
    async fn keep_alive(&self, lease: LeaseId) -> Result<(), KeyValueError>;

    /// Ends a lease. Its keys vanish. Does nothing if it is gone.
    ///
    /// # Errors
    /// When the store cannot be written.
    async fn revoke(&self, lease: LeaseId) -> Result<(), KeyValueError>;

    /// What is known against the version of the store, for an operator. `None` also where it does not say its version.
    async fn known_fault(&self) -> Option<String> {
        None
    }
}

/// Why a store did not do what it was asked.
///
/// Messages are complete: they include the underlying reason, so `source()` is empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum KeyValueError {
    #[error(
        "{store} cannot be read: {reason}; check that it is there, and can be reached from here"
    )]
    Unreachable { store: String, reason: String },
    #[error(
        "{store} did not confirm a change, which it may have made: {reason}; read before repeating it"
    )]
    Unknown { store: String, reason: String },
    #[error("{store} refused: {reason}")]
    Refused { store: String, reason: String },
    #[error(
        "the metadata can be read but not watched, so that changes are seen late: {reason}; let streams pass what is between here and there"
    )]
    Unwatched { reason: String },
    #[error("{store} is damaged: {reason}; restore it from a backup")]
    Damaged { store: String, reason: String },
    #[error("a transaction has {operations} operations, divide it into parts of {MAX_OPERATIONS}")]
    TooLarge { operations: usize },
    #[error("a transaction writes the key {key} twice, write it once")]
    WrittenTwice { key: String },
    #[error("the lease has ended, begin another")]
    NoLease,
    #[error("`{address}` is no metadata store: write {EXAMPLES}")]
    BadAddress { address: String },
    #[error("the certificates for etcd cannot be used: {reason}; give PEM files")]
    BadCertificates { reason: String },
}

/// The addresses that a command takes, for its messages.
const EXAMPLES: &str = "etcd://HOST:PORT,HOST:PORT/PREFIX, or file:PATH";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_that_is_too_large_or_writes_a_key_twice_is_refused() {
        let numbered =
            |count: usize| (0..count).fold(Transaction::new(), |all, n| all.put(n.to_string(), ""));
        assert_eq!(numbered(MAX_OPERATIONS).check(), Ok(()));
        let operations = MAX_OPERATIONS + 1;
        let too_large = Err(KeyValueError::TooLarge { operations });
        assert_eq!(numbered(operations).check(), too_large);
        let conditions =
            (0..operations).fold(Transaction::new(), |all, n| all.if_absent(n.to_string()));
        assert_eq!(conditions.check(), too_large);
        let key = "1".to_owned();
        let twice = Err(KeyValueError::WrittenTwice { key });
        assert_eq!(numbered(2).delete("1").check(), twice);
    }
}
