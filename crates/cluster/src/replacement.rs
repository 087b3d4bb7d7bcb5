//! Ends the time in which a node that lost its store takes shards at once.

use simshard_topology::replication::StoreId;

use crate::key_value::{KeyValueStore, Transaction};
use crate::membership::write;
use crate::records::RegisteredStore;
use crate::registered::Registered;
use crate::store::MetadataError;

/// Records that no shard lacks a replica any more that lacked one when a store took the place of a lost one. From then on
/// [`register`](crate::register) treats it as any other.
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
