//! Which node is asked what: from fingerprints and the shard map to one request
//! a node. Pure.
//!
//! # Invariants
//! - R1: each document goes to every shard that stores it, once a node.
//! - R2: all requests about a query carry the same active lead groups, so that
//!   exactly one table anywhere reports each match.
//! - R3: of a query's active lead groups, every needed shard is asked, of one replica.
//! - R4: a shard is open only if all its replicas in sync are down.

use std::collections::{BTreeMap, BTreeSet};

use simshard_simhash::{Fingerprint, LeadGroups, Tables};
use simshard_topology::{NodeId, ShardId, ShardMap, ShardSet};

use crate::readers::Readers;

/// The part of a batch that one node is asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodePart {
    /// The shards meant.
    pub(crate) shards: ShardSet,
    /// Places of its documents or queries in the batch, ascending.
    pub(crate) places: Vec<u32>,
}

impl NodePart {
    fn add(&mut self, place: u32, shard: ShardId) {
        self.shards.insert(shard);
        if self.places.last() != Some(&place) {
            self.places.push(place);
        }
    }
}

/// The documents that each node stores in these shards: all replicas of a shard take them.
pub(crate) fn plan_documents(
    tables: &Tables,
    map: &ShardMap,
    meant: ShardSet,
    documents: &[Fingerprint],
) -> Vec<(NodeId, NodePart)> {
    let mut parts = NodeParts::new(map);
    for (place, &document) in (0..).zip(documents) {
        let shards = tables.document_shards(document).map(ShardId);
        for shard in shards.filter(|shard| meant.contains(*shard)) {
            for &node in map.replica_places(shard) {
                parts.add(node, place, shard);
            }
        }
    }
    parts.by_node().collect()
}

/// The requests of a search, and the limits of its guarantee.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueryPlan {
    /// One request for each set of active lead groups and node.
    pub(crate) requests: Vec<(LeadGroups, NodeId, NodePart)>,
    /// For each query, the lead groups that cannot be searched though they are
    /// needed. Empty if every query is answered in full.
    pub(crate) missing: Vec<LeadGroups>,
    /// The nodes that would be needed, and their shards.
    pub(crate) unreachable: BTreeMap<NodeId, ShardSet>,
}

/// Asks each query with the fewest lead groups that find every match up to `max_distance`, around
/// the nodes that are `down`. If these do not suffice, asks with all the groups that are left.
pub(crate) fn plan_queries(
    tables: &Tables,
    readers: &Readers,
    queries: &[Fingerprint],
    max_distance: u32,
    down: &BTreeSet<NodeId>,
) -> QueryPlan {
    let all = LeadGroups::all(tables.layout());
    let mut plan = QueryPlan::default();
    let mut by_groups: BTreeMap<LeadGroups, NodeParts<'_>> = BTreeMap::new();
    for (place, &query) in (0..).zip(queries) {
        let reachable = if down.is_empty() {
            all
        } else {
            reachable_groups(tables, readers, query, down)
        };
        let active = reachable.last(max_distance + 1);
        let parts = by_groups
            .entry(active)
            .or_insert_with(|| NodeParts::new(readers.map()));
        for shard in tables.query_shards(query, active).map(ShardId) {
            parts.add(readers.place(shard), place, shard);
        }
        if active.len() <= max_distance {
            plan.leave_open(
                tables,
                readers,
                query,
                place,
                all.difference(reachable),
                down,
            );
        }
    }
    if !plan.missing.is_empty() {
        plan.missing.resize(queries.len(), LeadGroups::NONE);
    }
    for (groups, parts) in by_groups {
        let parts = parts.by_node();
        plan.requests
            .extend(parts.map(|(node, part)| (groups, node, part)));
    }
    plan
}

impl QueryPlan {
    /// The shards that are asked.
    pub(crate) fn shards(&self) -> ShardSet {
        let parts = self.requests.iter().map(|(_, _, part)| part.shards);
        parts.fold(ShardSet::EMPTY, |all, of_part| all.union(&of_part))
    }

    fn leave_open(
        &mut self,
        tables: &Tables,
        readers: &Readers,
        query: Fingerprint,
        place: u32,
        missing: LeadGroups,
        down: &BTreeSet<NodeId>,
    ) {
        self.missing.resize(place as usize, LeadGroups::NONE);
        self.missing.push(missing);
        for shard in query_shards(tables, query, missing).iter() {
            let owner = readers.of(shard);
            if down.contains(owner) {
                let shards = self.unreachable.entry(owner.clone()).or_default();
                shards.insert(shard);
            }
        }
    }
}

/// The lead groups none of whose shards, for this query, is on a node that is down.
fn reachable_groups(
    tables: &Tables,
    readers: &Readers,
    query: Fingerprint,
    down: &BTreeSet<NodeId>,
) -> LeadGroups {
    let mut reachable = LeadGroups::NONE;
    for group in LeadGroups::all(tables.layout()).iter() {
        let shards = query_shards(tables, query, LeadGroups::only(group));
        if shards.iter().all(|shard| !down.contains(readers.of(shard))) {
            reachable.insert(group);
        }
    }
    reachable
}

fn query_shards(tables: &Tables, query: Fingerprint, groups: LeadGroups) -> ShardSet {
    tables.query_shards(query, groups).map(ShardId).collect()
}

/// A part for each node that holds a shard.
struct NodeParts<'a> {
    nodes: &'a [NodeId],
    /// In the order of the nodes.
    parts: Vec<NodePart>,
}

impl<'a> NodeParts<'a> {
    fn new(map: &'a ShardMap) -> Self {
        let nodes = map.nodes();
        let parts = vec![NodePart::default(); nodes.len()];
        Self { nodes, parts }
    }

    fn add(&mut self, node: usize, place: u32, shard: ShardId) {
        self.parts[node].add(place, shard);
    }

    /// The parts that are not empty, by name of their node.
    fn by_node(self) -> impl Iterator<Item = (NodeId, NodePart)> {
        let parts = self.nodes.iter().cloned().zip(self.parts);
        parts.filter(|(_, part)| !part.places.is_empty())
    }
}

#[cfg(test)]
mod tests;
