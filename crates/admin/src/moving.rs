//! Which nodes are to hold which shards.

use std::collections::BTreeSet;

use simshard_cluster::{Targets, check_targets, set_targets};
use simshard_topology::{NodeId, ShardSet};

use crate::layout::{Layout, nodes_of};
use crate::placing::Placing;
use crate::{Admin, AdminError, Outlook};

/// Shards that are to go to other nodes.
pub struct Moving {
    /// What becomes of the nodes.
    pub outlook: Outlook,
    layout: Layout,
    targets: Targets,
}

impl Admin<'_> {
    /// Plans how shards go to the nodes that are named. Nothing is written.
    ///
    /// # Errors
    /// If a node would not come, or their number is not that of the replicas.
    pub async fn plan_move(
        &self,
        shards: ShardSet,
        nodes: &BTreeSet<NodeId>,
    ) -> Result<Moving, AdminError> {
        let layout = Layout::read(self).await?;
        let after = layout.moved(shards, nodes)?;
        // Those that are there already stay.
        let targets = shards.iter();
        let targets = targets.map(|shard| (shard, nodes_of(&after, shard)));
        let targets: Targets = targets.collect();
        check_targets(self.keys, &targets).await?;
        Ok(Moving {
            outlook: Outlook::of_map(&layout, &after),
            layout,
            targets,
        })
    }

    /// Lets shards go where that was planned.
    ///
    /// # Errors
    /// If others have changed too much since.
    pub async fn move_shards(&self, planned: Moving) -> Result<Placing, AdminError> {
        let Moving {
            layout, targets, ..
        } = planned;
        let placing = Placing {
            targets,
            ..Placing::default()
        };
        self.place(&layout, placing).await
    }

    /// Lets shards be anywhere: they stay where they are, and a move under way ends.
    ///
    /// # Errors
    /// If the metadata cannot be written.
    pub async fn free_shards(&self, shards: ShardSet) -> Result<(), AdminError> {
        Ok(set_targets(self.keys, &Targets::new(), shards).await?)
    }

    /// Sets targets. Answers which shards are elsewhere.
    pub(crate) async fn place(
        &self,
        layout: &Layout,
        mut placing: Placing,
    ) -> Result<Placing, AdminError> {
        set_targets(self.keys, &placing.targets, ShardSet::EMPTY).await?;
        placing.unplaced = placing.not_done(&layout.records, &layout.nodes_of_stores());
        Ok(placing)
    }
}
