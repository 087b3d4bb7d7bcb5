//! Which nodes are to hold which shards.

use std::collections::BTreeSet;

use simshard_cluster::{Targets, set_targets};
use simshard_topology::{NodeId, ShardSet};

use crate::layout::{Layout, nodes_of};
use crate::placing::Placing;
use crate::{Admin, AdminError};

impl Admin<'_> {
    /// Lets shards go to the nodes that are named.
    ///
    /// # Errors
    /// If a node would not come, or their number is not that of the replicas.
    pub async fn move_shards(
        &self,
        shards: ShardSet,
        nodes: &BTreeSet<NodeId>,
    ) -> Result<Placing, AdminError> {
        let layout = Layout::read(self).await?;
        let after = layout.moved(shards, nodes)?;
        // Those that are there already stay.
        let wanted = shards.iter();
        let wanted = wanted.map(|shard| (shard, nodes_of(&after, shard)));
        self.place(&layout, wanted.collect()).await
    }

    /// Lets shards be anywhere: they stay where they are, and a move under way ends.
    ///
    /// # Errors
    /// If the metadata cannot be written.
    pub async fn free_shards(&self, shards: ShardSet) -> Result<(), AdminError> {
        Ok(set_targets(self.keys, &Targets::new(), shards).await?)
    }

    /// Sets targets.
    pub(crate) async fn place(
        &self,
        layout: &Layout,
        targets: Targets,
    ) -> Result<Placing, AdminError> {
        set_targets(self.keys, &targets, ShardSet::EMPTY).await?;
        Ok(Placing {
            unplaced: layout.unplaced(&targets),
            targets,
            wished: None,
        })
    }
}
