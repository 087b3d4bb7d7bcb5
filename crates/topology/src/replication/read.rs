//! Reads: when a router may believe the answer of one store.
//!
//! A store that was cut off may answer by an old record. So an answer needs a proof, begun after the query began, that
//! its record was still the current one. A read quorum of the stores in sync gives it, or the metadata store.
//!
//! # Invariants
//! - QR1: a read uses the record of one epoch only.
//! - QR2: no answer counts without a proof.

use std::sync::Arc;

use super::record::{Epoch, ShardRecord, StoreId, read_quorum};

/// A query of one shard, as its router follows it. After a refusal, begin anew with the newest record.
#[derive(Clone, Debug)]
pub struct Read {
    pub(super) record: Arc<ShardRecord>,
    pub(super) answered: Option<StoreId>,
    pub(super) confirmed: Vec<StoreId>,
    pub(super) is_current: bool,
}

impl Read {
    /// A query that begins now, with the record that the router knows.
    pub fn new(record: Arc<ShardRecord>) -> Self {
        Self {
            record,
            answered: None,
            confirmed: Vec::new(),
            is_current: false,
        }
    }

    /// The epoch to ask for.
    pub fn epoch(&self) -> Epoch {
        self.record.epoch
    }

    /// Takes the answer of a store that had applied [`epoch`](Self::epoch). Returns whether it counts, if it is proven:
    /// a query has one answer, from a store in sync.
    pub fn answered(&mut self, store: StoreId) -> bool {
        let counts = self.answered.is_none() && self.record.in_sync(store).is_some();
        if counts {
            self.answered = Some(store);
        }
        counts
    }

    /// Takes note that a store confirmed, in a response to a request that was sent after the query began, that it had
    /// installed `installed`.
    pub fn confirmed(&mut self, store: StoreId, installed: Epoch) {
        let counts = installed <= self.epoch() && self.record.in_sync(store).is_some();
        if counts && !self.confirmed.contains(&store) {
            self.confirmed.push(store);
        }
    }

    /// Takes note of the shard's current epoch by a linearizable read of the metadata that began after the query.
    pub fn is_current(&mut self, current: Epoch) {
        self.is_current |= current == self.epoch();
    }

    /// Whether the answer is proven. Without a proof by its deadline the query fails, or its result says what is missing.
    pub fn is_proven(&self) -> bool {
        let Some(answered) = self.answered else {
            return false;
        };
        let quorum = read_quorum(self.record.in_sync.len());
        self.is_current || (self.confirmed.contains(&answered) && self.confirmed.len() >= quorum)
    }
}
