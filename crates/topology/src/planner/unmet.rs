//! What was wanted, and cannot be had with the nodes there are.

use std::fmt;
use std::sync::Arc;

use crate::ids::ShardId;
use crate::planner::{GOOD_BALANCE, Task, level};

/// What a plan cannot meet, and what an operator can do.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum Unmet {
    /// Several replicas of a shard are in one zone.
    TooFewZones { zones: usize, replicas: usize },
    /// Other zones take the replicas for which a zone has too few nodes.
    TooFewNodes {
        zone: ZoneName,
        nodes: usize,
        wanted: usize,
    },
    /// A zone takes a replica of each shard, and its nodes are too small for that.
    TooSmall {
        zone: ZoneName,
        /// The level of its nodes, divided by that of all nodes.
        balance: f64,
    },
}

/// A zone, as an operator reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneName(pub Option<Arc<str>>);

impl fmt::Display for ZoneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(name) => write!(f, "zone {name}"),
            None => f.write_str("the nodes without a zone"),
        }
    }
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewZones { zones, replicas } => write!(
                f,
                "{replicas} replicas are in {zones} {}, so some zone has several of them: add zones",
                if *zones == 1 { "zone" } else { "zones" }
            ),
            Self::TooFewNodes {
                zone,
                nodes,
                wanted,
            } => write!(
                f,
                "{zone}: {nodes} of the {wanted} nodes that its replicas need: add nodes there"
            ),
            Self::TooSmall { zone, balance } => write!(
                f,
                "{zone}: its nodes hold at least {balance:.2} times the mean for their capacity: add nodes there"
            ),
        }
    }
}

/// What cannot be met. Nothing is wanted of zones if no node has one.
pub(super) fn unmet(task: &Task) -> Vec<Unmet> {
    let zones = &task.zones;
    if zones.names == [None] {
        return Vec::new();
    }
    let mut unmet = Vec::new();
    let (count, replicas) = (zones.count(), task.replicas);
    if count < replicas {
        unmet.push(Unmet::TooFewZones {
            zones: count,
            replicas,
        });
    }
    let all = task.weights.sum(ShardId::all()) as f64;
    for (zone, name) in zones.names.iter().enumerate() {
        let name = ZoneName(name.clone());
        let (nodes, wanted) = (zones.sizes[zone], replicas / count);
        if nodes < wanted {
            unmet.push(Unmet::TooFewNodes {
                zone: name.clone(),
                nodes,
                wanted,
            });
        }
        let members = (0..task.nodes.len()).filter(|&node| zones.of(node) == zone);
        let capacity: f64 = members
            .map(|node| f64::from(task.nodes[node].capacity.get()))
            .sum();
        let balance = all * zones.fewest[zone] as f64 / capacity / level::mean(task);
        if balance > GOOD_BALANCE {
            unmet.push(Unmet::TooSmall {
                zone: name,
                balance,
            });
        }
    }
    unmet
}
