//! Nodes that leave, and those that come for them.

use simshard_cluster::{
    MetadataError, NodeSettings, change_node_settings, check_holds_nothing, unregister,
};
use simshard_topology::{NodeId, ShardMap};

use crate::asked::Cluster;
use crate::layout::Layout;
use crate::placing::Placing;
use crate::{Admin, AdminError, Outlook, Repeats};

/// A node that is to hold nothing, and where its shards would go.
pub struct Emptying {
    /// What becomes of the nodes.
    pub outlook: Outlook,
    node: NodeId,
    layout: Layout,
    after: ShardMap,
}

impl Admin<'_> {
    /// Plans how the other nodes take the shards of a node, each an even share.
    ///
    /// # Errors
    /// If fewer nodes would be left than shards have replicas, or one that gets shards would not take them.
    pub async fn plan_drain(&self, node: &NodeId) -> Result<Emptying, AdminError> {
        let layout = Layout::read(self).await?;
        let nodes = layout.nodes(Some(node))?;
        let plan = layout.planned(self, &nodes, layout.replicas()?)?;
        Ok(Emptying {
            outlook: Outlook::of_plan(&layout, &plan),
            node: node.clone(),
            layout,
            after: plan.map,
        })
    }

    /// Plans how a node takes all shards of another one.
    ///
    /// # Errors
    /// If it holds some of them, or would not take them.
    pub async fn plan_replacement(
        &self,
        node: &NodeId,
        by: &NodeId,
    ) -> Result<Emptying, AdminError> {
        if node == by {
            let problem = format!("{node} cannot replace itself: name another node");
            return Err(AdminError::Impossible(problem));
        }
        let layout = Layout::read(self).await?;
        let after = layout.replaced(node, by)?;
        Ok(Emptying {
            outlook: Outlook::of_map(&layout, &after),
            node: node.clone(),
            layout,
            after,
        })
    }

    /// Lets a node take no more shards, and moves those that it holds as was planned.
    ///
    /// # Errors
    /// If others have changed too much since.
    pub async fn empty(&self, planned: &Emptying) -> Result<Placing, AdminError> {
        let node = &planned.node;
        self.set_drained(node, true).await?;
        let targets = planned.layout.targets(&planned.after);
        let placed = self.place(&planned.layout, targets).await;
        let is_refused = matches!(
            placed,
            Err(AdminError::Metadata(MetadataError::BadTarget { .. }))
        );
        if is_refused && !planned.layout.is_drained(node) {
            // Nothing moves, so the node is as it was.
            self.set_drained(node, false).await?;
        }
        placed
    }

    /// Lets a node take shards again.
    ///
    /// # Errors
    /// If it has not registered.
    pub async fn undrain(&self, node: &NodeId) -> Result<(), AdminError> {
        self.set_drained(node, false).await
    }

    async fn set_drained(&self, node: &NodeId, is_drained: bool) -> Result<(), AdminError> {
        let change = |settings: &mut NodeSettings| settings.is_drained = is_drained;
        Ok(change_node_settings(self.keys, node, change).await?)
    }

    /// Forgets a node that is stopped and holds nothing.
    ///
    /// # Errors
    /// If it answers, holds shards, or is to hold some.
    pub async fn remove(&self, node: &NodeId) -> Result<(), AdminError> {
        let cluster = Cluster::ask(self).await?;
        let store = cluster.of_node(node)?.id;
        // It is to be stopped only once it holds nothing.
        check_holds_nothing(self.keys, node).await?;
        if cluster.answers(store) {
            let problem = format!("{node} still runs: stop it, and run this command again");
            return Err(AdminError::Refused(problem));
        }
        let mut repeats = Repeats::default();
        loop {
            match unregister(self.keys, node).await {
                Err(MetadataError::Raced) if repeats.wait().await => {}
                done => return Ok(done?),
            }
        }
    }
}
