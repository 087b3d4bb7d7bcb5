//! What plans are to know of nodes, and how fast these copy.

use std::num::NonZeroU32;

use simshard_cluster::{NodeSettings, change_node_settings};
use simshard_topology::NodeId;

use crate::{Admin, AdminError};

impl Admin<'_> {
    /// Puts a node in a zone, or in none. A zone is named like a node.
    ///
    /// # Errors
    /// If the node has not registered.
    pub async fn set_zone(&self, node: &NodeId, zone: Option<&NodeId>) -> Result<(), AdminError> {
        let zone = zone.map(NodeId::to_string);
        self.set(node, |settings| settings.zone.clone_from(&zone))
            .await
    }

    /// Says how much a node can hold, in proportion to the others.
    ///
    /// # Errors
    /// If the node has not registered.
    pub async fn set_capacity(
        &self,
        node: &NodeId,
        capacity: NonZeroU32,
    ) -> Result<(), AdminError> {
        let capacity = (capacity > NonZeroU32::MIN).then_some(capacity);
        self.set(node, |settings| settings.capacity = capacity)
            .await
    }

    /// Says how many megabytes of shards a node may receive in a second, and how many it may send.
    ///
    /// # Errors
    /// If the node has not registered.
    pub async fn set_copy_rate(
        &self,
        node: &NodeId,
        rate: Option<NonZeroU32>,
    ) -> Result<(), AdminError> {
        self.set(node, |settings| settings.copy_rate = rate).await
    }

    async fn set(
        &self,
        node: &NodeId,
        change: impl Fn(&mut NodeSettings),
    ) -> Result<(), AdminError> {
        self.check_known(node).await?;
        change_node_settings(self.keys, node, change).await?;
        Ok(())
    }
}
