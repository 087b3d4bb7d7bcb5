//! The store of processes on several machines: a cluster of etcd, version 3.4 or later.
//!
//! A member that does not answer is left for the next one. A read is repeated there. A write is not, for it may have
//! been made: it fails as [`KeyValueError::Unknown`].

mod access;
mod changes;
mod connection;
mod login;
mod members;
mod version;
mod wire;

use std::time::Duration;

use async_trait::async_trait;
use tonic::Code;

pub use self::access::{EtcdAccess, EtcdTls, EtcdUser};
use self::changes::EtcdChanges;
use self::members::{CallError, Members};
use self::wire::{
    Compare, DeleteRequest, LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveResponse,
    LeaseRequest, LeaseRevokeResponse, MOD_REVISION, Operation, Pair, PutRequest, RangeRequest,
    RangeResponse, Request, StatusRequest, StatusResponse, TxnRequest, TxnResponse,
};
use super::contract::{
    Changes, Condition, KeyValue, KeyValueError, KeyValueStore, LeaseId, Outcome, Revision,
    Snapshot, Transaction, Write,
};

const RANGE: &str = "/etcdserverpb.KV/Range";
const TXN: &str = "/etcdserverpb.KV/Txn";
const GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
const KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
const REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
const STATUS: &str = "/etcdserverpb.Maintenance/Status";

/// Before all keys, where the address names no prefix.
const PREFIX: &str = "simshard";

/// Keys in etcd, below a prefix of their own.
#[derive(Debug)]
pub struct EtcdKeyValues {
    members: Members,
    /// How messages call the store.
    name: String,
    /// Before each key, with a slash at its end.
    prefix: String,
}

impl EtcdKeyValues {
    /// For `etcd://HOST:PORT,HOST:PORT/PREFIX`, with one member or several. The prefix is `simshard` where none is
    /// given. Nothing is connected before the first call, and then without TLS, and as no user.
    ///
    /// # Errors
    /// [`KeyValueError::BadAddress`] if it is no such address.
    pub fn at(address: &str) -> Result<Self, KeyValueError> {
        Self::with(address, &EtcdAccess::default())
    }

    /// The same, with what etcd asks of those who connect.
    ///
    /// # Errors
    /// [`KeyValueError::BadAddress`] as above. [`KeyValueError::BadCertificates`] if the certificates are of no use.
    pub fn with(address: &str, access: &EtcdAccess) -> Result<Self, KeyValueError> {
        let bad = || KeyValueError::BadAddress {
            address: address.to_owned(),
        };
        let rest = address.strip_prefix("etcd://").ok_or_else(bad)?;
        let (members, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if members.split(',').any(|member| !is_host_and_port(member)) {
            return Err(bad());
        }
        let prefix = prefix.trim_end_matches('/');
        let prefix = if prefix.is_empty() { PREFIX } else { prefix };
        Ok(Self {
            members: Members::new(members.split(','), access)?,
            name: format!("etcd at {members}"),
            prefix: format!("{prefix}/"),
        })
    }

    fn key(&self, key: &str) -> Vec<u8> {
        format!("{}{key}", self.prefix).into_bytes()
    }

    fn condition(&self, condition: &Condition) -> Compare {
        let (key, revision) = match condition {
            Condition::Absent { key } => (key, 0),
            Condition::Unchanged { key, revision } => (key, revision.0.cast_signed()),
        };
        Compare {
            target: MOD_REVISION,
            key: self.key(key),
            mod_revision: Some(revision),
        }
    }

    fn operation(&self, write: &Write) -> Operation {
        let request = match write {
            Write::Put { key, value, lease } => Request::Put(PutRequest {
                key: self.key(key),
                value: value.clone().into_bytes(),
                lease: lease.map_or(0, |lease| lease.0),
            }),
            Write::Delete { key } => Request::Delete(DeleteRequest { key: self.key(key) }),
        };
        Operation {
            request: Some(request),
        }
    }

    fn pair(&self, pair: Pair) -> Result<KeyValue, KeyValueError> {
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).map_err(|error| KeyValueError::Damaged {
                store: self.name.clone(),
                reason: format!(
                    "{} is not UTF-8",
                    String::from_utf8_lossy(error.as_bytes()).escape_debug()
                ),
            })
        };
        let key = text(pair.key)?;
        Ok(KeyValue {
            key: key.strip_prefix(&self.prefix).unwrap_or(&key).to_owned(),
            value: text(pair.value)?,
            revision: revision(pair.mod_revision),
        })
    }

    /// The error of a call that changes nothing.
    fn unread(&self, error: &CallError) -> KeyValueError {
        let (store, reason) = (self.name.clone(), error.reason().to_owned());
        match error {
            CallError::NotSent(_) | CallError::Unknown(_) => {
                KeyValueError::Unreachable { store, reason }
            }
            CallError::Refused(_) => KeyValueError::Refused { store, reason },
        }
    }

    /// The error of a call that changes something, perhaps keys of a lease.
    fn unwritten(&self, error: &CallError) -> KeyValueError {
        match error {
            CallError::Refused(status) if status.code() == Code::NotFound => KeyValueError::NoLease,
            CallError::Unknown(status) => KeyValueError::Unknown {
                store: self.name.clone(),
                reason: status.message().to_owned(),
            },
            CallError::NotSent(_) | CallError::Refused(_) => self.unread(error),
        }
    }
}

#[async_trait]
impl KeyValueStore for EtcdKeyValues {
    async fn read(&self, prefix: &str) -> Result<Snapshot, KeyValueError> {
        let key = self.key(prefix);
        let request = RangeRequest {
            range_end: after_all(&key),
            key,
            is_serializable: false,
        };
        let found: Result<RangeResponse, _> = self.members.read(RANGE, &request).await;
        let found = found.map_err(|error| self.unread(&error))?;
        let pairs = found.kvs.into_iter().map(|pair| self.pair(pair));
        Ok(Snapshot {
            revision: revision(found.header.unwrap_or_default().revision),
            pairs: pairs.collect::<Result<_, _>>()?,
        })
    }

    fn changes(&self, prefix: &str) -> Box<dyn Changes + '_> {
        Box::new(EtcdChanges::new(self, prefix))
    }

    async fn commit(&self, transaction: &Transaction) -> Result<Outcome, KeyValueError> {
        transaction.check()?;
        let conditions = transaction.conditions.iter();
        let writes = transaction.writes.iter();
        let request = TxnRequest {
            compare: conditions.map(|one| self.condition(one)).collect(),
            success: writes.map(|write| self.operation(write)).collect(),
        };
        let made: Result<TxnResponse, _> = self.members.call(TXN, &request).await;
        let made = made.map_err(|error| self.unwritten(&error))?;
        Ok(if made.succeeded {
            Outcome::Committed(revision(made.header.unwrap_or_default().revision))
        } else {
            Outcome::Conflict
        })
    }

    async fn grant(&self, time_to_live: Duration) -> Result<LeaseId, KeyValueError> {
        let seconds = time_to_live.as_secs_f64().ceil().max(1.0);
        let request = LeaseGrantRequest {
            ttl: seconds as i64,
        };
        let granted: Result<LeaseGrantResponse, _> = self.members.call(GRANT, &request).await;
        Ok(LeaseId(granted.map_err(|error| self.unwritten(&error))?.id))
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<(), KeyValueError> {
        let request = LeaseRequest { id: lease.0 };
        let failed = |error: CallError| self.unwritten(&error);
        let answers = self.members.stream(KEEP_ALIVE, &request).await;
        let mut answers = answers.map_err(failed)?;
        let kept: LeaseKeepAliveResponse =
            self.members.next_soon(&mut answers).await.map_err(failed)?;
        if kept.ttl > 0 {
            Ok(())
        } else {
            Err(KeyValueError::NoLease)
        }
    }

    async fn revoke(&self, lease: LeaseId) -> Result<(), KeyValueError> {
        let request = LeaseRequest { id: lease.0 };
        let revoked: Result<LeaseRevokeResponse, _> = self.members.call(REVOKE, &request).await;
        match revoked.map_err(|error| self.unwritten(&error)) {
            Ok(_) | Err(KeyValueError::NoLease) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn known_fault(&self) -> Option<String> {
        let answers = self.members.each(STATUS, &StatusRequest {}).await;
        let mut faults = answers.into_iter().filter_map(|(member, status)| {
            let StatusResponse { version } = status;
            let fault = version::known_fault(&version)?;
            Some(format!("etcd at {member}: {fault}"))
        });
        faults.next()
    }
}

/// Revisions of etcd are positive.
const fn revision(number: i64) -> Revision {
    Revision(number.cast_unsigned())
}

/// The first key beyond those that start with `prefix`, which ends in no byte 255, as it is UTF-8.
fn after_all(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

fn is_host_and_port(text: &str) -> bool {
    let authority = text.parse::<http::uri::Authority>();
    authority.is_ok_and(|authority| {
        authority.port_u16().is_some() && !text.contains('@') && !authority.host().is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_members_and_a_prefix() {
        let prefix = |address| EtcdKeyValues::at(address).map(|store| store.prefix);
        assert_eq!(prefix("etcd://h:2379"), Ok("simshard/".to_owned()));
        assert_eq!(prefix("etcd://h:1,[::1]:2/"), Ok("simshard/".to_owned()));
        assert_eq!(prefix("etcd://h:1/a/b"), Ok("a/b/".to_owned()));
        for bad in [
            "",
            "h:1",
            "http://h:1",
            "etcd://",
            "etcd://h",
            "etcd://h:1,",
            "etcd://u@h:1",
        ] {
            let address = bad.to_owned();
            assert_eq!(prefix(bad), Err(KeyValueError::BadAddress { address }));
        }
    }

    #[test]
    fn a_range_ends_after_all_keys_of_its_prefix() {
        assert_eq!(after_all(b"a/"), b"a0");
        assert_eq!(after_all("é".as_bytes()), [0xc3, 0xaa]);
    }
}
