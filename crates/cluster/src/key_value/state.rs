//! A whole key-value store as one value, for the backends that keep it themselves. Pure: time is given.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::contract::{
    Condition, KeyValue, KeyValueError, LeaseId, Outcome, Revision, Snapshot, Transaction, Write,
};

/// All keys and leases.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    revision: u64,
    last_lease: i64,
    leases: BTreeMap<i64, Lease>,
    keys: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    value: String,
    revision: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lease {
    time_to_live: Duration,
    ends: SystemTime,
}

impl State {
    pub(super) const fn revision(&self) -> Revision {
        Revision(self.revision)
    }

    pub(super) fn read(&self, prefix: &str) -> Snapshot {
        let from = self
            .keys
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        let found = from.take_while(|(key, _)| key.starts_with(prefix));
        let pairs = found.map(|(key, entry)| KeyValue {
            key: key.clone(),
            value: entry.value.clone(),
            revision: Revision(entry.revision),
        });
        Snapshot {
            revision: self.revision(),
            pairs: pairs.collect(),
        }
    }

    /// The transaction must have been checked.
    pub(super) fn commit(&mut self, transaction: &Transaction) -> Result<Outcome, KeyValueError> {
        if !transaction.conditions.iter().all(|one| self.holds(one)) {
            return Ok(Outcome::Conflict);
        }
        let mut leases = transaction.writes.iter().filter_map(lease_of);
        if leases.any(|lease| !self.leases.contains_key(&lease)) {
            return Err(KeyValueError::NoLease);
        }
        if !transaction.writes.is_empty() {
            self.revision += 1;
        }
        for write in &transaction.writes {
            self.write(write);
        }
        Ok(Outcome::Committed(self.revision()))
    }

    fn holds(&self, condition: &Condition) -> bool {
        match condition {
            Condition::Absent { key } => !self.keys.contains_key(key),
            Condition::Unchanged { key, revision } => {
                let entry = self.keys.get(key);
                entry.is_some_and(|entry| entry.revision == revision.0)
            }
        }
    }

    fn write(&mut self, write: &Write) {
        match write {
            Write::Put { key, value, lease } => {
                let entry = Entry {
                    value: value.clone(),
                    revision: self.revision,
                    lease: lease.map(|lease| lease.0),
                };
                self.keys.insert(key.clone(), entry);
            }
            Write::Delete { key } => {
                self.keys.remove(key);
            }
        }
    }

    pub(super) fn grant(&mut self, time_to_live: Duration, now: SystemTime) -> LeaseId {
        self.last_lease += 1;
        let lease = Lease {
            time_to_live,
            ends: now + time_to_live,
        };
        self.leases.insert(self.last_lease, lease);
        LeaseId(self.last_lease)
    }

    pub(super) fn keep_alive(
        &mut self,
        lease: LeaseId,
        now: SystemTime,
    ) -> Result<(), KeyValueError> {
        let found = self.leases.get_mut(&lease.0);
        let lease = found.ok_or(KeyValueError::NoLease)?;
        lease.ends = now + lease.time_to_live;
        Ok(())
    }

    pub(super) fn revoke(&mut self, lease: LeaseId) {
        self.leases.remove(&lease.0);
        let before = self.keys.len();
        self.keys.retain(|_, entry| entry.lease != Some(lease.0));
        if self.keys.len() < before {
            self.revision += 1;
        }
    }

    /// Ends the leases whose time is over.
    pub(super) fn expire(&mut self, now: SystemTime) {
        while let Some(lease) = self.ended(now) {
            self.revoke(lease);
        }
    }

    /// A lease whose time is over.
    pub(super) fn ended(&self, now: SystemTime) -> Option<LeaseId> {
        // A clock that was set back must not keep a lease for long.
        let is_over =
            |lease: &Lease| lease.ends <= now || lease.ends > now + 2 * lease.time_to_live;
        let mut leases = self.leases.iter();
        let ended = leases.find(|(_, lease)| is_over(lease));
        ended.map(|(id, _)| LeaseId(*id))
    }
}

fn lease_of(write: &Write) -> Option<i64> {
    match write {
        Write::Put { lease, .. } => lease.map(|lease| lease.0),
        Write::Delete { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const START: SystemTime = SystemTime::UNIX_EPOCH;

    fn leased(state: &mut State, key: &str, lease: LeaseId) {
        let put = Transaction::new().put_leased(key, "v", lease);
        assert!(matches!(state.commit(&put), Ok(Outcome::Committed(_))));
    }

    #[test]
    fn a_lease_ends_at_its_time_and_takes_only_its_own_keys() {
        let mut state = State::default();
        let (short, long) = (state.grant(MINUTE, START), state.grant(3 * MINUTE, START));
        leased(&mut state, "a", short);
        leased(&mut state, "b", long);
        let just_before = START + MINUTE - Duration::from_nanos(1);
        state.expire(just_before);
        assert_eq!(state.read("").pairs.len(), 2);
        let before = state.revision();
        state.expire(START + MINUTE);
        let left = state.read("").pairs;
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].key, "b");
        assert!(state.revision() > before);
        assert_eq!(
            state.keep_alive(short, START + MINUTE),
            Err(KeyValueError::NoLease)
        );
    }

    #[test]
    fn a_lease_that_is_kept_alive_begins_anew() {
        let mut state = State::default();
        let lease = state.grant(MINUTE, START);
        leased(&mut state, "a", lease);
        state.keep_alive(lease, START + MINUTE / 2).unwrap();
        state.expire(START + MINUTE);
        assert_eq!(state.read("").pairs.len(), 1);
        state.expire(START + MINUTE + MINUTE / 2);
        assert_eq!(state.read("").pairs.len(), 0);
    }

    #[test]
    fn a_clock_that_was_set_back_keeps_no_lease_for_long() {
        let mut state = State::default();
        let day = 1440 * MINUTE;
        state.grant(MINUTE, START + day);
        assert_eq!(state.ended(START + day), None);
        assert_eq!(state.ended(START), Some(LeaseId(1)));
    }

    #[test]
    fn a_key_that_is_written_without_its_lease_outlives_it() {
        let mut state = State::default();
        let lease = state.grant(MINUTE, START);
        leased(&mut state, "a", lease);
        let put = Transaction::new().put("a", "stays");
        assert!(matches!(state.commit(&put), Ok(Outcome::Committed(_))));
        state.revoke(lease);
        assert_eq!(state.read("").pairs[0].value, "stays");
    }
}
