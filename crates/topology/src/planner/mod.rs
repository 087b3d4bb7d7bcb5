//! Draws the next shard map from the last one and the nodes there are now.
//!
//! From scratch ([`fresh`]) every node gets a range of neighbouring leading bytes. Otherwise the
//! last map is changed as little as possible, in four steps on a [`draft::Draft`]:
//!
//! 1. [`shed`]: nodes above the cap give up what is too much, from the ends of their ranges;
//! 2. [`fill`]: shards short of replicas go, in runs, to nodes with room;
//! 3. [`reroute`]: where no node with room may take a shard, replicas change places along a
//!    cheapest path, so that the whole stays a plan of fewest moves;
//! 4. [`owners`]: replicas are put in order, the preferred owner first.
//!
//! [`ring`] decides between nodes that these steps find equally good.
//!
//! Today the product plans from scratch only. The steps from a last map ([`draft`], [`shed`], [`fill`], [`reroute`]) and
//! [`moves`] wait for rebalancing; only tests call them.
//!
//! # Invariants
//!
//! With `n` nodes and `r` replicas, and tested by `tests/properties.rs` under the same ids:
//! - P1: every shard has exactly `r` distinct nodes, all from the list given.
//! - P2: no node has more than the cap, ⌈256·r / n⌉ shards.
//! - P3: no map that keeps P1 and P2 has fewer (shard, node) pairs that the last map lacks.
//! - P4: ranges are few. From scratch with one replica, nodes in name order get one range each.
//!   With one replica, giving shards away never adds a range to the giver. Each run of shards given
//!   away is cut at most as often as a receiver becomes full.
//! - P5: the plan depends on the arguments only, and not on the order of the nodes.
//! - P6: from scratch, the shard counts of two nodes differ by at most one.
//! - P7: where a map changes, no owner of a shard owns two or more shards more than another
//!   replica of it does.
//!
//! P3 has a price: a node that joins gets shards only as far as that lowers the cap. 64 nodes hold
//! four shards each, and so do the busiest of 80, so the sixteen that join receive nothing.

mod draft;
mod fill;
mod fresh;
mod moves;
mod owners;
mod reroute;
mod ring;
mod shed;

use crate::ids::{NodeId, ShardId};
use crate::shard_map::ShardMap;
use draft::Draft;
pub use moves::{Move, moves};
use ring::Ring;

/// Why no shard map can be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum PlanError {
    #[error("0 replicas asked for, ask for at least 1")]
    NoReplicas,
    #[error("no nodes to place 256 shards on, name at least one")]
    NoNodes,
    #[error("node {0} is listed twice, list each node once")]
    DuplicateNode(NodeId),
    #[error(
        "{replicas} replicas need as many nodes but there are {nodes}, add nodes or ask for fewer \
         replicas"
    )]
    TooFewNodes { nodes: usize, replicas: usize },
    #[error(
        "{nodes} nodes cannot each hold one of 256x{replicas} replicas, use at most {max} nodes"
    )]
    TooManyNodes {
        nodes: usize,
        replicas: usize,
        max: usize,
    },
}

/// Plans the shard map for `nodes` with that number of `replicas` of each shard.
///
/// The version is 1 from scratch. It is that of `previous` where nothing changes (the result then
/// equals `previous`, order of replicas included), and one more than that otherwise. It counts
/// assignments: a change of the node list that moves nothing leaves it as it is.
///
/// ```
/// use simshard_topology::{NodeId, plan};
///
/// let nodes = ["n1", "n2", "n3"].map(|name| NodeId::new(name).expect("a valid name"));
/// let map = plan(None, &nodes, 1)?;
/// assert_eq!(map.shards_of(&nodes[1]).to_string(), "56-aa");
/// # Ok::<(), simshard_topology::PlanError>(())
/// ```
pub fn plan(
    previous: Option<&ShardMap>,
    nodes: &[NodeId],
    replicas: usize,
) -> Result<ShardMap, PlanError> {
    let nodes = checked(nodes, replicas)?;
    let Some(previous) = previous else {
        return Ok(to_map(1, &fresh::entries(nodes.len(), replicas), &nodes));
    };
    let next_version = previous.version() + 1;
    if !previous.nodes().iter().any(|node| nodes.contains(node)) {
        return Ok(to_map(
            next_version,
            &fresh::entries(nodes.len(), replicas),
            &nodes,
        ));
    }

    let mut draft = Draft::new(previous, &nodes, replicas);
    shed::to_cap(&mut draft);
    let ring = Ring::new(&nodes);
    if draft.keeps_all_it_could() {
        fill::in_runs(&mut draft, &ring);
    }
    reroute::fill_the_rest(&mut draft, &ring);
    if draft.changes_nothing(previous) {
        return Ok(previous.clone());
    }
    let entries = owners::order_replicas(&draft, previous, &nodes, &ring);
    Ok(to_map(next_version, &entries, &nodes))
}

/// The nodes in name order, if a plan for them exists.
fn checked(nodes: &[NodeId], replicas: usize) -> Result<Vec<NodeId>, PlanError> {
    let mut sorted = nodes.to_vec();
    sorted.sort();
    if replicas == 0 {
        return Err(PlanError::NoReplicas);
    }
    if nodes.is_empty() {
        return Err(PlanError::NoNodes);
    }
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(PlanError::DuplicateNode(pair[0].clone()));
    }
    if replicas > nodes.len() {
        return Err(PlanError::TooFewNodes {
            nodes: nodes.len(),
            replicas,
        });
    }
    let max = ShardId::COUNT * replicas;
    if nodes.len() > max {
        return Err(PlanError::TooManyNodes {
            nodes: nodes.len(),
            replicas,
            max,
        });
    }
    Ok(sorted)
}

/// The map of `entries`, which name nodes by their position in `nodes`.
fn to_map(version: u64, entries: &[Vec<usize>], nodes: &[NodeId]) -> ShardMap {
    let named: Vec<Vec<NodeId>> = entries
        .iter()
        .map(|entry| entry.iter().map(|&node| nodes[node].clone()).collect())
        .collect();
    ShardMap::new(version, &named).expect("every shard has replicas, all distinct (P1)")
}

#[cfg(test)]
mod tests;
