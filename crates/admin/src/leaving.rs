//! Where shards go whose nodes are to hold nothing.
//!
//! Nodes that do not answer are in the way of nothing, and get nothing: they keep what they hold, unless they are to be
//! emptied themselves. Shards that the emptied nodes do not hold stay where they are.

use std::collections::BTreeSet;

use simshard_topology::{Balance, NodeId, ShardId, ShardMap, ShardSet};

use crate::checks::check_answer;
use crate::layout::{Layout, names, nodes_of};
use crate::{Admin, AdminError};

#[cfg(test)]
pub(crate) mod tests;

/// What becomes of shards.
pub(crate) struct Leaving {
    /// Where all shards are then.
    pub(crate) after: ShardMap,
    /// The shards that the nodes hold, copy, or are to hold.
    pub(crate) shards: ShardSet,
    /// How even that is, where it was planned.
    pub(crate) balance: Option<Balance>,
    /// What was wanted, and cannot be had with the nodes there are.
    pub(crate) unmet: Vec<String>,
}

impl Layout {
    /// Other nodes take what these hold, each an even share.
    pub(crate) fn drained(
        &self,
        admin: &Admin<'_>,
        leaving: &BTreeSet<NodeId>,
    ) -> Result<Leaving, AdminError> {
        let shards = self.shards_of(leaving)?;
        self.check_movable(shards)?;
        let open: ShardSet = shards
            .iter()
            .filter(|shard| !self.is_on_its_way(*shard, leaving))
            .collect();
        if open.is_empty() {
            // They hold nothing, or all is on its way already.
            return Ok(Leaving {
                after: self.map.clone(),
                shards,
                balance: None,
                unmet: Vec::new(),
            });
        }
        let (weights, replicas) = (self.weights(admin), self.replicas()?);
        let takers: BTreeSet<NodeId> = self.takers().difference(leaving).cloned().collect();
        let plan = self.planned(&weights, &takers, replicas, leaving)?;
        let after = self.with(|shard| {
            if !open.contains(shard) {
                return nodes_of(&self.map, shard);
            }
            let kept = self.kept(shard, leaving);
            let others = plan.map.replicas(shard).iter();
            let others = others.filter(|node| !kept.contains(*node)).cloned();
            kept.iter().cloned().chain(others).take(replicas).collect()
        })?;
        self.check_room(&after)?;
        let then = self.planned_from(&after, &weights, &takers, replicas)?;
        let unmet = plan.unmet.iter().map(ToString::to_string);
        Ok(Leaving {
            balance: Some(Balance {
                before: plan.balance.before,
                after: then.balance.before.unwrap_or(1.0),
                least: plan.balance.least,
            }),
            unmet: unmet.chain(self.silent_beside(open, leaving)).collect(),
            after,
            shards,
        })
    }

    /// One node takes all that another one holds.
    pub(crate) fn replaced(&self, node: &NodeId, by: &NodeId) -> Result<Leaving, AdminError> {
        self.check_replaceable(node)?;
        let leaving = BTreeSet::from([node.clone()]);
        let shards = self.shards_of(&leaving)?;
        let held = self.map.shards_of(node);
        let both = held.intersection(&self.map.shards_of(by));
        if !both.is_empty() {
            let problem = format!(
                "{by} holds shards {both} beside {node} already: `simshard cluster drain {node}` finds other nodes"
            );
            return Err(AdminError::Impossible(problem));
        }
        check_answer(
            &self.cluster,
            &BTreeSet::from([by.clone()]),
            "name another node",
        )?;
        if self.is_drained(by) {
            let undrain = format!("`simshard cluster undrain {by}` lets it take shards");
            return Err(AdminError::Impossible(format!(
                "{by} is drained: {undrain}"
            )));
        }
        self.check_movable(shards)?;
        let after = self.with(|shard| {
            let nodes = nodes_of(&self.map, shard).into_iter();
            let nodes = nodes.map(|holder| if holder == *node { by.clone() } else { holder });
            nodes.collect()
        })?;
        self.check_whole(shards, &after)?;
        self.check_room(&after)?;
        Ok(Leaving {
            unmet: self.silent_beside(held, &leaving),
            balance: None,
            after,
            shards,
        })
    }

    /// The shards that some nodes hold, copy, or are to hold.
    fn shards_of(&self, nodes: &BTreeSet<NodeId>) -> Result<ShardSet, AdminError> {
        let mut shards = ShardSet::EMPTY;
        for node in nodes {
            let store = self.cluster.of_node(node)?.id;
            let named = self.records.iter();
            let named = named.filter(|(_, record)| record.names(store));
            let named: ShardSet = named.map(|(shard, _)| *shard).collect();
            shards = shards.union(&named).union(&self.map.shards_of(node));
        }
        Ok(shards)
    }

    /// Whether a shard is on its way from these nodes already.
    fn is_on_its_way(&self, shard: ShardId, leaving: &BTreeSet<NodeId>) -> bool {
        let nodes = nodes_of(&self.map, shard);
        let want = usize::from(self.records[&shard].want);
        let is_gone = |node: &NodeId| leaving.contains(node) || self.is_drained(node);
        nodes.len() == want && !nodes.iter().any(is_gone)
    }

    /// The nodes of a shard that do not answer, and keep it.
    fn kept(&self, shard: ShardId, leaving: &BTreeSet<NodeId>) -> BTreeSet<NodeId> {
        let silent = self.silent();
        let nodes = nodes_of(&self.map, shard).into_iter();
        let stays = |node: &NodeId| !leaving.contains(node) && !self.is_drained(node);
        nodes
            .filter(|node| silent.contains(node) && stays(node))
            .collect()
    }

    /// What nodes that do not answer mean for some shards, which others leave.
    fn silent_beside(&self, shards: ShardSet, leaving: &BTreeSet<NodeId>) -> Vec<String> {
        let kept = shards.iter().flat_map(|shard| self.kept(shard, leaving));
        let kept: BTreeSet<NodeId> = kept.collect();
        let silent = self.silent();
        let staying = leaving.iter().filter(|node| !silent.contains(*node));
        let staying = names(staying);
        let of_kept = kept.iter().map(|node| {
            let held = self.map.shards_of(node).intersection(&shards);
            if staying.is_empty() {
                format!("{node} does not answer: it keeps shards {held}, and gets no others")
            } else {
                format!(
                    "{node} does not answer: it keeps shards {held}, and {staying} holds them too until {node} answers, or \
                     is drained"
                )
            }
        });
        let left_out = self.left_out().into_iter();
        let left_out = left_out.filter(|node| !leaving.contains(*node));
        of_kept.chain(left_out.map(left_out_text)).collect()
    }

    /// Refuses a node that is not known any more, or that other nodes went on without. Nothing would go to the node that
    /// takes its place, though shards are short of replicas.
    fn check_replaceable(&self, node: &NodeId) -> Result<(), AdminError> {
        let rebalance = "`simshard cluster rebalance plan` gives its shards to the others";
        let store = self.cluster.of_node(node).map_err(|unknown| {
            AdminError::UnknownNode(format!("{unknown}; if {node} was removed, {rebalance}"))
        })?;
        let is_named = self.records.values().any(|record| record.names(store.id));
        let are_short = self.records.values().any(|record| record.is_short());
        let is_left_out = self.map.shards_of(node).is_empty() && !is_named;
        if is_left_out && are_short {
            let problem = "holds no shards any more, as others went on without it";
            let problem = format!("{node} {problem}: {rebalance}");
            return Err(AdminError::Impossible(problem));
        }
        Ok(())
    }

    /// Refuses a map that has fewer nodes for some shards than these are to have replicas: others have left them.
    fn check_whole(&self, shards: ShardSet, after: &ShardMap) -> Result<(), AdminError> {
        let is_short = |shard: &ShardId| {
            let want = usize::from(self.records[shard].want);
            after.replicas(*shard).len() != want
        };
        let short: ShardSet = shards.iter().filter(is_short).collect();
        if short.is_empty() {
            return Ok(());
        }
        let silent = self.silent();
        let advice = if silent.is_empty() {
            "wait until others have come".to_owned()
        } else {
            format!("start {}, or drain the node instead", names(&silent))
        };
        Err(AdminError::Refused(format!(
            "shards {short} have fewer or more replicas now than they are to have: {advice}"
        )))
    }
}

/// What is said of a node that may take shards, and gets none.
pub(crate) fn left_out_text(node: &NodeId) -> String {
    format!(
        "{node} does not answer, so it gets no shards: start it and run this command again, or drain it"
    )
}
