//! What operators do to a cluster whose nodes register themselves. Operations read the metadata, ask the stores, and write
//! down what is to be. The nodes do the rest.
//!
//! The operations print nothing and ask nothing: they return what was found, or why not. Those that are dangerous have two
//! steps. The first says what would happen, and the second does it. `simshard cluster` and the service
//! `simshard.admin.v1.AdminService` of a router both call them, so both refuse the same.

mod asked;
mod changes;
mod checks;
mod damage;
mod draining;
mod error;
mod estimate;
mod finding;
mod lacking_room;
mod layout;
mod leaving;
mod moving;
mod nodes;
mod pauses;
mod placing;
mod plans;
mod races;
mod replication;
#[cfg(test)]
mod scene;
mod settings;
mod shards;
mod shares;
mod short;
mod shown;
mod status;
mod upgrade;
mod wishes;

use simshard_cluster::{KeyValueStore, MetadataError};
use simshard_node::Dialer;

pub use asked::{ANSWER_TIMEOUT, Cluster, Reports};
pub use draining::{Departure, Emptying};
pub use error::AdminError;
pub use estimate::Estimate;
pub use finding::Finding;
pub use lacking_room::without_room_text;
pub use moving::Moving;
pub use nodes::KnownNode;
pub use pauses::Pause;
pub use placing::{Open, Placing, Progress};
pub use plans::{Aborted, Applicable, Drawn, Plan};
pub use races::Repeats;
pub use replication::{DEFAULT_HOT, MOST_REPLICAS, Replication, ReplicationPlan};
pub use shards::ReplicaGroup;
pub use shares::{NodeShare, Outlook, balance_text};
pub use shown::{HowFar, ShownMove};
pub use upgrade::{Process, Role, UpgradeState};

/// The operations on the cluster of some metadata.
#[derive(Clone, Copy)]
pub struct Admin<'a> {
    keys: &'a dyn KeyValueStore,
    dialer: &'a Dialer,
    warn: &'a (dyn Fn(&str) + Send + Sync),
}

impl<'a> Admin<'a> {
    /// By `dialer` it asks nodes. `warn` is told what keeps no operation from going on, and is to be known.
    #[must_use]
    pub fn new(
        keys: &'a dyn KeyValueStore,
        dialer: &'a Dialer,
        warn: &'a (dyn Fn(&str) + Send + Sync),
    ) -> Self {
        Self { keys, dialer, warn }
    }

    /// What is not understood counts as not set.
    fn warn_of_bad(&self, error: &MetadataError) {
        (self.warn)(&error.to_string());
    }
}
