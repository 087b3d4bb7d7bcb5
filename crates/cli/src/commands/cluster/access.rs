//! How a command reaches a cluster.

use std::sync::Arc;

use clap::Args;
use simshard_admin::Admin;
use simshard_cluster::{KeyValueStore, key_values_with};
use simshard_node::Dialer;

use crate::args::{ClusterCertificateArgs, EtcdAccessArgs};
use crate::exit::UsageError;
use crate::say::warn;

/// Where the metadata is.
#[derive(Args, Debug)]
pub struct MetadataArgs {
    /// The metadata of the cluster: etcd://HOST:PORT,HOST:PORT/PREFIX, or file:PATH on a single machine
    #[arg(long, value_name = "ADDRESS", env = "SIMSHARD_METADATA")]
    pub metadata: String,
    /// What etcd asks for.
    #[command(flatten)]
    pub access: EtcdAccessArgs,
    /// What nodes ask for.
    #[command(flatten)]
    pub certificates: ClusterCertificateArgs,
}

/// The metadata of a cluster, and how its nodes are reached.
pub(super) struct ClusterAccess {
    pub(super) keys: Arc<dyn KeyValueStore>,
    pub(super) dialer: Dialer,
}

impl ClusterAccess {
    pub(super) fn keys(&self) -> &dyn KeyValueStore {
        &*self.keys
    }

    #[cfg(test)]
    pub(super) fn of_test(keys: Arc<dyn KeyValueStore>) -> Self {
        Self {
            keys,
            dialer: Dialer::PLAIN,
        }
    }
}

impl MetadataArgs {
    /// Reads the files that are named.
    ///
    /// # Errors
    /// If one is of no use, or the address is none.
    pub(super) fn open(&self) -> Result<ClusterAccess, UsageError> {
        let keys = key_values_with(&self.metadata, &self.access.load()?);
        Ok(ClusterAccess {
            keys: keys.map_err(|error| UsageError(error.to_string()))?,
            dialer: Dialer::new(self.certificates.load()?),
        })
    }
}

/// The operations on a cluster. What they warn of is said at once.
pub(super) fn admin(access: &ClusterAccess) -> Admin<'_> {
    Admin::new(access.keys(), &access.dialer, &say_warning)
}

pub(super) fn say_warning(warning: &str) {
    warn(format!("warning: {warning}"));
}
