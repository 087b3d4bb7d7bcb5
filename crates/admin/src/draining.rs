//! Nodes that leave, and those that come for them.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use simshard_cluster::{
    MetadataError, NodeSettings, Revision, Targets, change_node_settings,
    change_node_settings_since, check_holds_nothing, check_targets, forget_bad_settings,
    node_settings, published, registered_stores, unregister,
};
use simshard_topology::{NodeId, ShardSet};

use crate::asked::Cluster;
use crate::layout::{Layout, names, nodes_of};
use crate::leaving::Leaving;
use crate::placing::Placing;
use crate::{Admin, AdminError, Outlook, Repeats};

/// Nodes that are to hold nothing.
#[derive(Clone, Debug)]
pub enum Departure {
    /// The others take what these hold, each an even share.
    Drain(BTreeSet<NodeId>),
    /// One node takes what another one holds.
    Replace {
        /// The node that is to hold nothing.
        node: NodeId,
        /// The node that comes for it.
        by: NodeId,
    },
}

impl Departure {
    /// The nodes that are to hold nothing.
    #[must_use]
    pub fn nodes(&self) -> BTreeSet<NodeId> {
        match self {
            Self::Drain(nodes) => nodes.clone(),
            Self::Replace { node, .. } => BTreeSet::from([node.clone()]),
        }
    }

    /// Refuses what makes no sense in any cluster.
    fn check(&self) -> Result<(), AdminError> {
        match self {
            Self::Replace { node, by } if node == by => {
                let problem = format!("{node} cannot replace itself: name another node");
                Err(AdminError::Impossible(problem))
            }
            Self::Drain(_) | Self::Replace { .. } => Ok(()),
        }
    }
}

/// Where the shards of nodes go that are to hold nothing.
pub struct Emptying {
    /// What becomes of the nodes.
    pub outlook: Outlook,
    nodes: BTreeSet<NodeId>,
    layout: Layout,
    leaving: Leaving,
}

impl Emptying {
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
    /// Plans where the shards of nodes go that are to hold nothing. Nothing is written.
    ///
    /// # Errors
    /// If fewer nodes would be left than shards have replicas, or if one that gets shards would not take them. Also if no
    /// node that answers holds some of them.
    pub async fn plan_departure(&self, departure: &Departure) -> Result<Emptying, AdminError> {
        departure.check()?;
        let layout = Layout::read(self).await?;
        let leaving = match departure {
            Departure::Drain(nodes) => layout.drained(self, nodes)?,
            Departure::Replace { node, by } => layout.replaced(node, by)?,
        };
        Ok(Emptying {
            outlook: Outlook::of_leaving(&layout, &leaving),
            nodes: departure.nodes(),
            layout,
            leaving,
        })
    }

    /// Lets nodes take no more shards, and then moves those that they hold. What they take before they know that is in no
    /// plan: [`Admin::held_still`] tells of it afterwards.
    ///
    /// # Errors
    /// As [`Admin::plan_departure`]: the nodes are as they were then. [`AdminError::Unfinished`] if they are drained, and
    /// not all of their shards are told to move.
    pub async fn depart(&self, departure: &Departure) -> Result<(Emptying, Placing), AdminError> {
        departure.check()?;
        let mut marked = BTreeMap::new();
        let planned = match self.mark_and_plan(departure, &mut marked).await {
            Ok(planned) => planned,
            Err(error) => return Err(self.unmark(departure, &marked, error).await),
        };
        match self.place(&planned.layout, planned.placing()).await {
            Ok(placing) => Ok((planned, placing)),
            Err(error) => Err(unfinished(departure, error)),
        }
    }

    /// Adds the nodes to `marked` that took shards until then, and when they were told. The plan can be told to the nodes.
    async fn mark_and_plan(
        &self,
        departure: &Departure,
        marked: &mut BTreeMap<NodeId, Revision>,
    ) -> Result<Emptying, AdminError> {
        let registered = registered_stores(self.keys).await?;
        let nodes = departure.nodes().into_iter();
        // The plan refuses those that are not known.
        for node in nodes.filter(|node| registered.iter().any(|store| store.node == *node)) {
            let (was_drained, revision) = self.set_drained(&node, true).await?;
            if !was_drained {
                marked.insert(node, revision);
            }
        }
        let planned = self.plan_departure(departure).await?;
        check_targets(self.keys, &planned.placing().targets).await?;
        Ok(planned)
    }

    /// Lets the nodes take shards again that took some before, as an error keeps all shards where they are. One of which
    /// others have said something since stays as they want it: they may have drained it too.
    async fn unmark(
        &self,
        departure: &Departure,
        marked: &BTreeMap<NodeId, Revision>,
        error: AdminError,
    ) -> AdminError {
        let take_shards = |settings: &mut NodeSettings| settings.is_drained = false;
        for (node, marked) in marked {
            let changed = change_node_settings_since(self.keys, node, *marked, take_shards);
            if let Err(failed) = changed.await {
                return unfinished(departure, failed.into());
            }
        }
        error
    }

    /// What nodes hold, copy, or are to hold that are to hold nothing.
    ///
    /// # Errors
    /// [`AdminError::Refused`] if one takes shards again, as another operator said. Also if the metadata cannot be read.
    pub async fn held_still(
        &self,
        departure: &Departure,
    ) -> Result<BTreeMap<NodeId, ShardSet>, AdminError> {
        let settings = node_settings(self.keys, |error| self.warn_of_bad(error)).await?;
        let mut held = BTreeMap::new();
        for node in departure.nodes() {
            if !settings.get(&node).is_some_and(|set| set.is_drained) {
                let problem = format!(
                    "{node} is not drained any more, as another operator said meanwhile: agree, and run this command again"
                );
                return Err(AdminError::Refused(problem));
            }
            match check_holds_nothing(self.keys, &node).await {
                Err(MetadataError::StillHolds { node, shards }) => {
                    held.insert(node, shards);
                }
                holds_nothing => holds_nothing?,
            }
        }
        Ok(held)
    }

    /// Lets a node take shards again. Answers whether it took none. Those on their way from it leave still. What was set
    /// for the node is forgotten if it cannot be understood.
    ///
    /// # Errors
    /// If it has not registered, and nothing was set for it that cannot be understood.
    pub async fn undrain(&self, node: &NodeId) -> Result<bool, AdminError> {
        // They may be of a name that never registered.
        if forget_bad_settings(self.keys, node).await? {
            (self.warn)(&format!(
                "what was set for {node} could not be understood, and is forgotten: set its zone, capacity and limits \
                 anew, and drain it again if it is to hold nothing"
            ));
            return Ok(true);
        }
        self.check_known(node).await?;
        let (was_drained, _) = self.set_drained(node, false).await?;
        Ok(was_drained)
    }

    /// Answers whether the node was drained before, and the revision of the change.
    async fn set_drained(
        &self,
        node: &NodeId,
        is_drained: bool,
    ) -> Result<(bool, Revision), MetadataError> {
        let was_drained = AtomicBool::new(false);
        let change = |settings: &mut NodeSettings| {
            was_drained.store(settings.is_drained, Ordering::Relaxed);
            settings.is_drained = is_drained;
        };
        let revision = change_node_settings(self.keys, node, change).await?;
        Ok((was_drained.into_inner(), revision))
    }

    /// Forgets a node that is stopped and holds nothing.
    ///
    /// # Errors
    /// If it answers, holds shards, or is to hold some.
    pub async fn remove(&self, node: &NodeId) -> Result<(), AdminError> {
        let mut repeats = Repeats::default();
        loop {
            let start = self.check_stopped(node).await?;
            match unregister(self.keys, node, start).await {
                Err(MetadataError::Raced) if repeats.wait().await => {}
                done => return Ok(done?),
            }
        }
    }

    /// Refuses a node that runs, or holds something. Answers what is published of its start, which changes if it starts.
    async fn check_stopped(&self, node: &NodeId) -> Result<Option<Revision>, AdminError> {
        let registered = registered_stores(self.keys).await?;
        let Some(store) = registered.iter().find(|store| store.node == *node) else {
            self.check_known(node).await?;
            return Ok(None);
        };
        // Read before the node is asked: one that starts meanwhile changes it.
        let start = published(self.keys, store.id).await?;
        // It is to be stopped only once it holds nothing.
        check_holds_nothing(self.keys, node).await?;
        if Cluster::ask(self).await?.answers(store.id) {
            let problem = format!("{node} still runs: stop it, and run this command again");
            return Err(AdminError::Refused(problem));
        }
        Ok(start.map(|(revision, _)| revision))
    }
}

fn unfinished(departure: &Departure, error: AdminError) -> AdminError {
    let nodes = departure.nodes();
    let are = if nodes.len() == 1 { "is" } else { "are" };
    let undrain = nodes
        .iter()
        .map(|node| format!("`simshard cluster undrain {node}`"));
    let undrain = undrain.collect::<Vec<String>>().join(", ");
    AdminError::Unfinished {
        state: format!(
            "{} {are} drained, and not all shards are told to move: run this command again, or {undrain}",
            names(&nodes)
        ),
        cause: Box::new(error),
    }
}
