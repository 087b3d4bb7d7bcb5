//! What a plan gives each node.

use std::collections::BTreeSet;

use simshard_topology::{Balance, NodeId, Plan, ShardMap, ShardSet};

use crate::layout::Layout;
use crate::leaving::{Leaving, left_out_text};

/// What a node holds before a change and after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeShare {
    /// The node.
    pub node: NodeId,
    /// The shards that it holds, or is to hold.
    pub before: ShardSet,
    /// Those that it holds afterwards.
    pub after: ShardSet,
    /// The documents of the shards that it holds, as far as they are known.
    pub documents_before: u64,
    /// Those of the shards that it holds afterwards.
    pub documents_after: u64,
    /// Those of the shards that it copies.
    pub documents_to_copy: u64,
    /// The bytes of the shards that it copies, as far as they are known.
    pub bytes_to_copy: u64,
}

impl NodeShare {
    /// The shards that it copies.
    #[must_use]
    pub fn to_copy(&self) -> ShardSet {
        self.after.difference(&self.before)
    }
}

/// What becomes of the nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlook {
    /// By the names of the nodes.
    pub shares: Vec<NodeShare>,
    /// How even a plan is. `None` of what is no plan.
    pub balance: Option<Balance>,
    /// What was wanted, and cannot be had with the nodes there are.
    pub unmet: Vec<String>,
}

impl Outlook {
    pub(crate) fn of_plan(layout: &Layout, plan: &Plan) -> Self {
        Self {
            balance: Some(plan.balance),
            unmet: unmet(layout, plan),
            ..Self::of_map(layout, &plan.map)
        }
    }

    pub(crate) fn of_leaving(layout: &Layout, leaving: &Leaving) -> Self {
        Self {
            balance: leaving.balance,
            unmet: leaving.unmet.clone(),
            ..Self::of_map(layout, &leaving.after)
        }
    }

    /// That of a map that is no plan.
    pub(crate) fn of_map(layout: &Layout, after: &ShardMap) -> Self {
        let before = &layout.map;
        let nodes: BTreeSet<&NodeId> = before.nodes().iter().chain(after.nodes()).collect();
        let shares = nodes.into_iter().map(|node| {
            let (before, after) = (before.shards_of(node), after.shards_of(node));
            let to_copy = after.difference(&before);
            NodeShare {
                node: node.clone(),
                before,
                after,
                documents_before: layout.documents(before),
                documents_after: layout.documents(after),
                documents_to_copy: layout.documents(to_copy),
                bytes_to_copy: layout.bytes(to_copy),
            }
        });
        Self {
            shares: shares.collect(),
            balance: None,
            unmet: Vec::new(),
        }
    }
}

/// What was wanted, and cannot be had with the nodes there are.
pub(crate) fn unmet(layout: &Layout, plan: &Plan) -> Vec<String> {
    let unmet = plan.unmet.iter().map(ToString::to_string);
    let left_out = layout.left_out().into_iter();
    unmet.chain(left_out.map(left_out_text)).collect()
}

/// How even a plan is, in a sentence.
#[must_use]
pub fn balance_text(balance: Balance) -> String {
    let before = balance.before.unwrap_or(1.0);
    format!(
        "the fullest node has {before:.2} times the mean, and {:.2} times after it; no plan gets below {:.2}",
        balance.after, balance.least
    )
}
