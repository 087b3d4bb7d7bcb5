//! A map of texts that all processes of a cluster share, with transactions, waiting and leases.
//!
//! This is the little that the metadata asks of a store. etcd has it, and a file or memory can imitate it. The contract
//! is in `contract.rs`.

mod contract;
mod etcd;
mod file;
mod follow;
mod memory;
mod state;

use std::sync::Arc;

pub use contract::{
    Changes, KeyValue, KeyValueError, KeyValueStore, LeaseId, MAX_OPERATIONS, Outcome, Revision,
    Snapshot, Transaction,
};
pub use etcd::{EtcdAccess, EtcdKeyValues, EtcdTls, EtcdUser};
pub use file::FileKeyValues;
pub use follow::follow;
pub use memory::MemoryKeyValues;

/// Opens the store at `etcd://HOST:PORT,HOST:PORT/PREFIX` or `file:PATH`. Nothing is read yet. It connects to etcd without
/// TLS, and as no user.
///
/// # Errors
/// [`KeyValueError::BadAddress`] if it is none of these.
pub fn key_values_at(address: &str) -> Result<Arc<dyn KeyValueStore>, KeyValueError> {
    key_values_with(address, &EtcdAccess::default())
}

/// The same, with what etcd asks of those who connect. A file asks for nothing.
///
/// # Errors
/// [`KeyValueError::BadAddress`] as above. [`KeyValueError::BadCertificates`] if the certificates are of no use.
pub fn key_values_with(
    address: &str,
    access: &EtcdAccess,
) -> Result<Arc<dyn KeyValueStore>, KeyValueError> {
    match address.strip_prefix("file:") {
        Some("") | None => Ok(Arc::new(EtcdKeyValues::with(address, access)?)),
        Some(path) => Ok(Arc::new(FileKeyValues::at(path))),
    }
}
