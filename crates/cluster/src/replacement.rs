//! The end of what a node does at once as its earlier store was lost.

use simshard_topology::replication::StoreId;

use crate::key_value::{KeyValueStore, Transaction};
use crate::membership::write;
use crate::records::RegisteredStore;
use crate::registered::Registered;
use crate::store::MetadataError;

/// Enters that a store has come to all shards that lacked it: from then on [`register`](crate::register) answers for it as for any other.
///
/// # Errors
/// An error when the keys cannot be read, written or understood.
pub async fn end_replacement(
    keys: &dyn KeyValueStore,
    store: StoreId,
) -> Result<(), MetadataError> {
    loop {
        let registered = Registered::read(keys).await?;
        let mut stores = registered.stores.iter();
        let Some(own) = stores.find(|own| own.id == store && own.is_replacement) else {
            return Ok(());
        };
        let ended = RegisteredStore {
            is_replacement: false,
            ..own.clone()
        };
        if write(keys, &registered, &ended, Transaction::new()).await? {
            return Ok(());
        }
    }
}
