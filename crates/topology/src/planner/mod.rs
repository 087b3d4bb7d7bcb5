//! Draws the next shard map from the last one, the nodes there are now, and how heavy shards are.
//!
//! 1. Replicas stay on nodes that stay, unless they are too many. From scratch ([`fresh`]), every
//!    node first gets a range of neighbouring leading bytes.
//! 2. [`relief`] places the replicas that are missing. Then it relieves the highest nodes, step by
//!    step, until the balance is good enough. At last it [fills](filling) nodes below 0.8 of the fair level up
//!    to 0.9 of it. So a node that joins many others gets its part of the load.
//!
//! The *level* of a node is its weight divided by its capacity. The *balance* of a map is the highest
//! level divided by the mean one: 1 is perfect. [`level`] says which balance no plan can beat. If
//! that is below 1.1, a balance of 1.1 is good enough. The *fair level* of a node is the mean one, or
//! that of its zone if the zone can only hold more or less than that. [`ring`] decides between steps
//! that are equally good.
//!
//! # Invariants
//!
//! With `n` nodes and `r` replicas, and tested by `tests/planner/` under the same ids:
//! - P1: every shard has exactly `r` distinct nodes, all from the list given.
//! - P2: the replicas of a shard are spread over zones as evenly as the zones have nodes: in
//!   distinct zones where there are enough.
//! - P3: each node keeps the balance good enough, or no step lowers it by a hundredth of the mean. A
//!   step moves one shard, or exchanges two.
//! - P4: a map that keeps P1 and P2, is good enough and leaves no node short stays as it is. Others
//!   change little. If shards are light and may go to any node, a node gives up nothing but its
//!   excess. That is what it has above the highest level, or above its fair one if a node is short.
//!   Only its last shard may be more than that, and is lighter than all that it keeps.
//! - P5: the plan depends on the arguments only, and not on the order of the nodes.
//! - P6: from scratch, with equal weights, capacities and zones, nodes in name order own at most one
//!   range each. The shard counts of two nodes differ by at most one.
//! - P8: if shards are light and may go to any node of a zone, no node is short: below 0.8 of its
//!   fair level.

mod candidate;
mod draft;
mod filling;
mod fresh;
mod level;
mod relief;
mod ring;
mod unmet;
mod zones;

use crate::ids::{NodeId, ShardId};
use crate::shard_map::ShardMap;
use crate::shard_set::ShardSet;
pub use candidate::{Candidate, ShardWeights};
use draft::Draft;
use relief::Relief;
use ring::Ring;
pub use unmet::{Unmet, ZoneName};
use zones::Zones;

/// The balance that is good enough, where it can be reached.
const GOOD_BALANCE: f64 = 1.1;

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

/// A shard map, and what an operator wants to know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The map. Its version is 1 from scratch. It is that of the last map where nothing changes, and
    /// one more than that otherwise. It counts assignments: a change of the node list that moves
    /// nothing leaves it as it is.
    pub map: ShardMap,
    /// How evenly the weight is spread.
    pub balance: Balance,
    /// What was wanted, and cannot be had with these nodes.
    pub unmet: Vec<Unmet>,
}

/// How evenly weight is spread over nodes: the highest level divided by the mean one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balance {
    /// That of what these nodes hold by the last map, if they hold anything.
    pub before: Option<f64>,
    /// That of the new map.
    pub after: f64,
    /// No plan for these nodes and weights is better than that. There may be none as good.
    pub least: f64,
}

/// What a plan is drawn for.
struct Task<'a> {
    /// In name order.
    nodes: Vec<Candidate>,
    zones: Zones,
    weights: &'a ShardWeights,
    replicas: usize,
}

/// Plans the shard map of `replicas` of each shard on `nodes`.
///
/// ```
/// use simshard_topology::{Candidate, NodeId, ShardWeights, plan};
///
/// let nodes = ["n1", "n2", "n3"].map(|name| Candidate::new(NodeId::new(name).expect("a name")));
/// let first = plan(None, &nodes[..2], &ShardWeights::EQUAL, 1)?;
/// assert_eq!(first.map.shards_of(&nodes[1].id).to_string(), "80-ff");
/// let grown = plan(Some(&first.map), &nodes, &ShardWeights::EQUAL, 1)?;
/// assert_eq!(grown.balance.before, Some(1.5));
/// assert!(grown.balance.after <= 1.1);
/// # Ok::<(), simshard_topology::PlanError>(())
/// ```
///
/// # Errors
/// If there are too few nodes or too many, or no replicas are asked for.
pub fn plan(
    previous: Option<&ShardMap>,
    nodes: &[Candidate],
    weights: &ShardWeights,
    replicas: usize,
) -> Result<Plan, PlanError> {
    let task = Task::new(nodes, weights, replicas)?;
    let before = previous.map_or_else(Vec::new, |map| task.entries(map));
    let held = task.held(&before);
    let entries = if before.iter().all(Vec::is_empty) {
        fresh::entries(&task)
    } else {
        before
    };

    let (mean, least) = (level::mean(&task), level::least(&task));
    let ring = Ring::new(task.nodes.iter().map(|node| &node.id));
    let highest = least.max(GOOD_BALANCE * mean);
    let draft = Draft::new(&task, &entries);
    let mut relief = Relief::new(&task, draft, &held, &ring, highest);
    relief.run();
    let after = relief.draft.held;

    let map = match previous {
        Some(map) if is_same(map, &held, &after) => map.clone(),
        _ => {
            let version = previous.map_or(0, ShardMap::version) + 1;
            task.map(version, &entries, &after, &ring)
        }
    };
    Ok(Plan {
        balance: Balance {
            before: task.balance(&held),
            after: task.balance(&after).unwrap_or(1.0),
            least: least / mean,
        },
        unmet: unmet::unmet(&task),
        map,
    })
}

/// Plans the shard map of nodes that are alike, for shards that weigh the same.
///
/// # Errors
/// As [`plan`].
pub fn plan_evenly(
    previous: Option<&ShardMap>,
    nodes: &[NodeId],
    replicas: usize,
) -> Result<ShardMap, PlanError> {
    let nodes: Vec<Candidate> = nodes.iter().cloned().map(Candidate::new).collect();
    Ok(plan(previous, &nodes, &ShardWeights::EQUAL, replicas)?.map)
}

impl<'a> Task<'a> {
    /// What is asked for, if a plan for it exists.
    fn new(
        nodes: &[Candidate],
        weights: &'a ShardWeights,
        replicas: usize,
    ) -> Result<Self, PlanError> {
        if replicas == 0 {
            return Err(PlanError::NoReplicas);
        }
        if nodes.is_empty() {
            return Err(PlanError::NoNodes);
        }
        let mut nodes = nodes.to_vec();
        nodes.sort_by(|a, b| a.id.cmp(&b.id));
        if let Some(pair) = nodes.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return Err(PlanError::DuplicateNode(pair[0].id.clone()));
        }
        if replicas > nodes.len() {
            let nodes = nodes.len();
            return Err(PlanError::TooFewNodes { nodes, replicas });
        }
        let max = ShardId::COUNT * replicas;
        if nodes.len() > max {
            return Err(PlanError::TooManyNodes {
                nodes: nodes.len(),
                replicas,
                max,
            });
        }
        Ok(Self {
            zones: Zones::new(&nodes, replicas),
            nodes,
            weights,
            replicas,
        })
    }

    /// The nodes of each shard by a map, as places in the list. Those that are not listed are left out.
    fn entries(&self, map: &ShardMap) -> Vec<Vec<usize>> {
        let place = |node: &NodeId| self.nodes.binary_search_by(|one| one.id.cmp(node)).ok();
        let entry = |shard| map.replicas(shard).iter().filter_map(place).collect();
        ShardId::all().map(entry).collect()
    }

    /// The shards of each node.
    fn held(&self, entries: &[Vec<usize>]) -> Vec<ShardSet> {
        let mut held = vec![ShardSet::EMPTY; self.nodes.len()];
        for (shard, entry) in ShardId::all().zip(entries) {
            entry.iter().for_each(|&node| {
                held[node].insert(shard);
            });
        }
        held
    }

    /// The balance of what nodes hold, if they hold anything.
    fn balance(&self, held: &[ShardSet]) -> Option<f64> {
        let capacity = |node: &Candidate| f64::from(node.capacity.get());
        let load = |shards: &ShardSet| self.weights.sum(shards.iter()) as f64;
        let levels = self.nodes.iter().zip(held);
        let levels = levels.map(|(node, shards)| load(shards) / capacity(node));
        let all_capacity: f64 = self.nodes.iter().map(capacity).sum();
        let mean = held.iter().map(load).sum::<f64>() / all_capacity;
        (mean > 0.0).then(|| levels.fold(0.0, f64::max) / mean)
    }

    /// The map of what nodes hold. Nodes of `entries` come first, in the order they have there.
    fn map(
        &self,
        version: u64,
        entries: &[Vec<usize>],
        held: &[ShardSet],
        ring: &Ring,
    ) -> ShardMap {
        let named = ShardId::all().zip(entries).map(|(shard, entry)| {
            let nodes = (0..self.nodes.len()).filter(|&node| held[node].contains(shard));
            let mut nodes: Vec<usize> = nodes.collect();
            nodes.sort_by_key(|node| {
                let old = entry.iter().position(|old| old == node);
                (old.unwrap_or(entry.len()), ring.place(shard, *node))
            });
            nodes
                .iter()
                .map(|&node| self.nodes[node].id.clone())
                .collect()
        });
        let named: Vec<Vec<NodeId>> = named.collect();
        ShardMap::new(version, &named).expect("every shard has replicas, all distinct (P1)")
    }
}

/// Whether every shard has the nodes that it has by a map, and no other.
fn is_same(map: &ShardMap, before: &[ShardSet], after: &[ShardSet]) -> bool {
    let held = |shards: &[ShardSet]| shards.iter().map(ShardSet::len).sum::<usize>();
    let in_map = ShardId::all().map(|shard| map.replicas(shard).len());
    before == after && in_map.sum::<usize>() == held(after)
}

#[cfg(test)]
mod tests;
