//! What becomes of a data directory whose store may not go on: it lacks what the store had, or its disk has failed.
//!
//! Where other nodes hold all that it held, they first leave its store out of the records of shards. Then the directory is
//! set aside, and the node begins anew in it, with a new store that copies what the others hold.
//!
//! # Invariants
//! - RG4: a directory is set aside only once no record of a shard names its store. Its store must run nowhere else, as far
//!   as it answers.

use std::path::PathBuf;
use std::time::Duration;

use simshard_cluster::{KeyValueStore, MetadataError, registered_stores, shard_records};
use simshard_storage::{Claim, OpenError};
use simshard_topology::ShardSet;
use simshard_topology::replication::{InstallError, ShardRecord, StaleStore};
use simshard_transport::Dialer;
use tokio::time::sleep;
use tracing::warn;

use crate::RegistrationError;
use crate::peers::ask_store;

/// How often it looks whether the others have left the store out.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a process that runs on a copy of the directory has to answer.
const ANSWER: Duration = Duration::from_millis(800);

/// Why a node keeps a directory that its store may not go on with.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum Obstacle {
    #[error("no other node holds the shards {0} in sync, so the node does not begin anew")]
    LastHolder(ShardSet),
    #[error(
        "an earlier store of this node has failed too, so the node does not begin anew by itself; check the disk, and \
         delete {} if all is well", .0.display()
    )]
    FailedBefore(PathBuf),
    #[error("its store runs at {0}")]
    Runs(String),
}

/// Sets a directory aside whose store was refused, once the other nodes go on without it. The node can begin anew then.
///
/// # Errors
/// [`RegistrationError::Kept`] if it may not, [`RegistrationError::Metadata`] if the records cannot be read, else the
/// refusal itself where that is not of this kind.
pub async fn set_aside(
    dialer: &Dialer,
    keys: &dyn KeyValueStore,
    claim: Claim,
    refused: RegistrationError,
) -> Result<(), RegistrationError> {
    match wait_to_leave((dialer, keys), &claim, &refused).await {
        Ok(()) => {}
        Err(Stop::Metadata(error)) => return Err(error.into()),
        Err(Stop::Obstacle(obstacle)) => {
            let refused = Box::new(refused);
            return Err(RegistrationError::Kept { refused, obstacle });
        }
        Err(Stop::Refused) => return Err(refused),
    }
    let (store, cause) = (claim.store, cause(&refused));
    let path = claim.set_aside()?;
    let path = path.display();
    warn!(
        %store, %cause, %path,
        "the data of this node are set aside: it begins anew, and copies what other nodes hold"
    );
    Ok(())
}

/// What a store was refused for, without what an operator may do about it.
fn cause(refused: &RegistrationError) -> String {
    if let RegistrationError::Stale { problem, .. } = refused {
        return problem.to_string();
    }
    if let RegistrationError::Open(OpenError::Failed { reason, .. }) = refused {
        return format!("the store failed when it was last used: {reason}");
    }
    refused.to_string()
}

/// Why a directory is not set aside.
enum Stop {
    Metadata(MetadataError),
    Obstacle(Obstacle),
    /// By the refusal itself.
    Refused,
}

impl From<MetadataError> for Stop {
    fn from(error: MetadataError) -> Self {
        Self::Metadata(error)
    }
}

/// Whether another directory can take the place of one that was refused so.
fn may_be_replaced(refused: &RegistrationError) -> bool {
    match refused {
        RegistrationError::Stale { problem, .. } => match problem {
            StaleStore::Copy | StaleStore::ChangesMissing { .. } => true,
            StaleStore::OlderMetadata => false,
        },
        RegistrationError::Open(error) => has_failed(error) || has_no_copy(error),
        RegistrationError::Kept { .. }
        | RegistrationError::Replaced { .. }
        | RegistrationError::Removed
        | RegistrationError::Runs { .. }
        | RegistrationError::Metadata(_) => false,
    }
}

fn has_failed(error: &OpenError) -> bool {
    matches!(error, OpenError::Failed { .. })
}

/// Whether a record names the store in sync, and the directory is from before that.
fn has_no_copy(error: &OpenError) -> bool {
    matches!(
        error,
        OpenError::OtherRecords {
            problem: InstallError::NoCopy(_),
            ..
        }
    )
}

/// Waits until no record names the store.
async fn wait_to_leave(
    cluster: (&Dialer, &dyn KeyValueStore),
    claim: &Claim,
    refused: &RegistrationError,
) -> Result<(), Stop> {
    if !may_be_replaced(refused) {
        return Err(Stop::Refused);
    }
    if matches!(refused, RegistrationError::Open(error) if has_failed(error))
        && let Some(path) = claim.failed_before().map_err(|_| Stop::Refused)?
    {
        return Err(Stop::Obstacle(Obstacle::FailedBefore(path)));
    }
    let mut told = ShardSet::EMPTY;
    loop {
        match named(cluster, claim).await {
            Ok(named) if named.is_empty() => return Ok(()),
            Ok(named) if named != told => {
                warn!(
                    shards = %named,
                    "{refused}; the node begins anew once other nodes have left it out of these shards"
                );
                told = named;
            }
            // The metadata may be away.
            Ok(_) | Err(Stop::Metadata(MetadataError::KeyValues(_))) => {}
            Err(stop) => return Err(stop),
        }
        sleep(PAUSE).await;
    }
}

/// The shards whose records name the store of a directory. Others must be in sync for each of them.
async fn named(
    (dialer, keys): (&Dialer, &dyn KeyValueStore),
    claim: &Claim,
) -> Result<ShardSet, Stop> {
    let records = match shard_records(keys).await {
        Err(MetadataError::NoCluster) => return Err(Stop::Refused),
        records => records?,
    };
    match claim.check_records(&records) {
        Err(error) if has_no_copy(&error) => {}
        // They are of another history.
        checked => checked.map_err(|_| Stop::Refused)?,
    }
    let store = claim.store;
    let is_last = |record: &ShardRecord| record.in_sync.iter().all(|entry| entry.store == store);
    let shards = |is_meant: &dyn Fn(&ShardRecord) -> bool| -> ShardSet {
        let meant = records.iter().filter(|(_, record)| is_meant(record));
        meant.map(|(shard, _)| *shard).collect()
    };
    let last = shards(&is_last);
    if !last.is_empty() {
        return Err(Stop::Obstacle(Obstacle::LastHolder(last)));
    }
    let registered = registered_stores(keys).await?.into_iter();
    let mut addresses = registered.filter(|known| known.id == store);
    if let Some(address) = addresses.next().map(|known| known.address)
        && ask_store(dialer, &address, store, ANSWER).await.is_some()
    {
        return Err(Stop::Obstacle(Obstacle::Runs(address)));
    }
    Ok(shards(&|record| {
        record.write_set().any(|named| named == store)
    }))
}
