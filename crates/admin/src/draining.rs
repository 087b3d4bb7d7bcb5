//! Nodes that leave, and those that come for them.

use std::collections::BTreeSet;

use simshard_cluster::{
    MetadataError, NodeSettings, Targets, change_node_settings, check_holds_nothing, unregister,
};
use simshard_topology::NodeId;

use crate::asked::Cluster;
use crate::layout::{Layout, nodes_of};
use crate::leaving::Leaving;
use crate::placing::Placing;
use crate::{Admin, AdminError, Outlook, Repeats};

/// Nodes that are to hold nothing, and where their shards would go.
pub struct Emptying {
    /// What becomes of the nodes.
    pub outlook: Outlook,
    nodes: BTreeSet<NodeId>,
    layout: Layout,
    leaving: Leaving,
}

impl Emptying {
    fn of(nodes: BTreeSet<NodeId>, layout: Layout, leaving: Leaving) -> Self {
        Self {
            outlook: Outlook::of_leaving(&layout, &leaving),
            nodes,
            layout,
            leaving,
        }
    }

    /// Whether the nodes hold nothing already, and are not to.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.leaving.shards.is_empty()
    }

    /// Where the shards are to be.
    fn placing(&self) -> Placing {
        let targets = self.leaving.shards.iter();
        let targets = targets.map(|shard| (shard, nodes_of(&self.leaving.after, shard)));
        let targets: Targets = targets.collect();
        Placing {
            targets,
            emptied: self.nodes.clone(),
            silent: self.layout.silent(),
            ..Placing::default()
        }
    }
}

impl Admin<'_> {
    /// Plans how the other nodes take the shards of some nodes, each an even share.
    ///
    /// # Errors
    /// If fewer nodes would be left than shards have replicas, or if one that gets shards would not take them. Also if no
    /// node that answers holds some of them.
    pub async fn plan_drain(&self, nodes: &BTreeSet<NodeId>) -> Result<Emptying, AdminError> {
        let layout = Layout::read(self).await?;
        let leaving = layout.drained(self, nodes)?;
        Ok(Emptying::of(nodes.clone(), layout, leaving))
    }

    /// Plans how a node takes all shards of another one.
    ///
    /// # Errors
    /// If it holds some of them, or would not take them, or if no node that answers holds some of them.
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
        let leaving = layout.replaced(node, by)?;
        Ok(Emptying::of(
            BTreeSet::from([node.clone()]),
            layout,
            leaving,
        ))
    }

    /// Lets nodes take no more shards, and moves those that they hold as was planned.
    ///
    /// # Errors
    /// If others have changed too much since.
    pub async fn empty(&self, planned: &Emptying) -> Result<Placing, AdminError> {
        for node in &planned.nodes {
            self.set_drained(node, true).await?;
        }
        let placed = self.place(&planned.layout, planned.placing()).await;
        let is_refused = matches!(
            placed,
            Err(AdminError::Metadata(MetadataError::BadTarget { .. }))
        );
        if is_refused {
            // Nothing moves, so the nodes are as they were.
            let nodes = planned.nodes.iter();
            for node in nodes.filter(|node| !planned.layout.is_drained(node)) {
                self.set_drained(node, false).await?;
            }
        }
        placed
    }

    /// Lets a node take shards again.
    ///
    /// # Errors
    /// If it has not registered.
    pub async fn undrain(&self, node: &NodeId) -> Result<(), AdminError> {
        self.check_known(node).await?;
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
