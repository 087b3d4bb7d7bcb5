//! Where shards are, and where they could be.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use simshard_cluster::{StagedPlan, Targets, is_placed, shard_records, targets};
use simshard_topology::replication::ShardRecords;
use simshard_topology::{Candidate, NodeId, Plan, ShardId, ShardMap, ShardSet, ShardWeights, plan};

use crate::asked::Cluster;
use crate::{Admin, AdminError};

/// What a shard takes beside its documents, in documents. So a cluster that holds little is shared evenly.
const WEIGHT_OF_A_SHARD: u64 = 1_000;

/// Where all shards are, or are on their way to.
pub(crate) struct Layout {
    cluster: Cluster,
    pub(crate) records: ShardRecords,
    pub(crate) map: ShardMap,
    /// The shards that have targets.
    targeted: ShardSet,
}

impl Layout {
    pub(crate) async fn read(admin: &Admin<'_>) -> Result<Self, AdminError> {
        let cluster = Cluster::ask(admin).await?;
        let records = shard_records(admin.keys).await?;
        let targets = targets(admin.keys, |error| admin.warn_of_bad(error)).await?;
        let map = placed(&cluster, &records, &targets)?;
        Ok(Self {
            cluster,
            records,
            map,
            targeted: targets.into_keys().collect(),
        })
    }

    /// All nodes that run but one, and but those that are drained. One that does not run is left out if it holds nothing;
    /// else it must come back first, or be drained.
    pub(crate) fn nodes(&self, without: Option<&NodeId>) -> Result<Vec<Candidate>, AdminError> {
        without.map(|node| self.cluster.of_node(node)).transpose()?;
        let stores = self.cluster.stores.values();
        let stores = stores.filter(|store| {
            let holds = !self.map.shards_of(&store.node).is_empty();
            let is_there = self.cluster.answers(store.id) || holds;
            is_there && !self.cluster.is_drained(&store.node)
        });
        let nodes = stores.map(|store| store.node.clone());
        let nodes: BTreeSet<NodeId> = nodes.filter(|node| Some(node) != without).collect();
        check_answer(&self.cluster, &nodes)?;
        let candidate = |node| self.cluster.candidate(node);
        Ok(nodes.into_iter().map(candidate).collect())
    }

    /// The nodes that may take shards, and get none, as they hold none and do not answer.
    pub(crate) fn left_out(&self) -> BTreeSet<&NodeId> {
        let stores = self.cluster.stores.values();
        let stores = stores.filter(|store| {
            let holds = !self.map.shards_of(&store.node).is_empty();
            !self.cluster.answers(store.id) && !holds && !self.cluster.is_drained(&store.node)
        });
        stores.map(|store| &store.node).collect()
    }

    /// The documents of some shards, as far as they are known.
    pub(crate) fn documents(&self, shards: ShardSet) -> u64 {
        let of_shard = |shard| self.cluster.documents(shard, self.records.get(&shard)?);
        shards.iter().filter_map(of_shard).sum()
    }

    /// The bytes of some shards, as far as they are known.
    pub(crate) fn bytes(&self, shards: ShardSet) -> u64 {
        let of_shard = |shard| Some(self.cluster.bytes(shard, self.records.get(&shard)?));
        shards.iter().filter_map(of_shard).sum()
    }

    /// How many megabytes of copies a second a node may receive, or send, if an operator has limited that.
    pub(crate) fn copy_rate(&self, node: &NodeId) -> Option<NonZeroU32> {
        self.cluster.copy_rate(node)
    }

    /// Refuses a plan that was drawn for a cluster that was another one, or by which a node gets shards that would not come.
    pub(crate) fn check_staged(&self, plan: &StagedPlan) -> Result<(), AdminError> {
        let moves = plan.moves.iter();
        let moved = moves.filter(|(shard, planned)| nodes_of(&self.map, **shard) != planned.from);
        let moved: ShardSet = moved.map(|(shard, _)| *shard).collect();
        if !moved.is_empty() {
            return Err(AdminError::Refused(format!(
                "the plan is stale: since it was drawn, other nodes hold shards {moved}, or are to. Draw another one by \
                 `simshard cluster rebalance plan`"
            )));
        }
        let gaining = plan.moves.values();
        let gaining = gaining.flat_map(|planned| planned.to.difference(&planned.from).cloned());
        check_answer(&self.cluster, &gaining.collect())?;
        let entries = ShardId::all().map(|shard| {
            let planned = plan.moves.get(&shard);
            let nodes =
                planned.map_or_else(|| nodes_of(&self.map, shard), |moved| moved.to.clone());
            nodes.into_iter().collect()
        });
        let entries: Vec<Vec<NodeId>> = entries.collect();
        let after = ShardMap::new(self.map.version() + 1, &entries)?;
        check_room(&self.cluster, &self.map, &after)
    }

    /// How heavy shards are, in documents. All alike, and a warning, where those of some are not known.
    fn weights(&self, admin: &Admin<'_>) -> ShardWeights {
        let mut weights = [WEIGHT_OF_A_SHARD; ShardId::COUNT];
        let mut unknown = ShardSet::EMPTY;
        for (shard, record) in &self.records {
            match self.cluster.documents(*shard, record) {
                Some(documents) => weights[shard.index()] += documents,
                None => {
                    unknown.insert(*shard);
                }
            }
        }
        if unknown.is_empty() {
            return ShardWeights::new(weights);
        }
        (admin.warn)(&format!(
            "no node has counted the documents of shards {unknown} just now, so all shards count alike"
        ));
        ShardWeights::EQUAL
    }

    /// An even share for each of these nodes, by few moves. Refuses it if one that gets shards has no room for copies.
    pub(crate) fn planned(
        &self,
        admin: &Admin<'_>,
        nodes: &[Candidate],
        replicas: usize,
    ) -> Result<Plan, AdminError> {
        let left = nodes.len();
        if left < replicas {
            let problem = format!(
                "each replica of a shard needs a node of its own: {replicas} are needed, and {left} would be left that may \
                 take shards. Start or undrain others, or wish for fewer replicas by `simshard cluster set-replication`"
            );
            return Err(AdminError::Impossible(problem));
        }
        let plan = plan(Some(&self.map), nodes, &self.weights(admin), replicas);
        let plan = plan.map_err(|error| AdminError::Impossible(error.to_string()))?;
        check_room(&self.cluster, &self.map, &plan.map)?;
        Ok(plan)
    }

    /// The map in which one node has all that another one has now.
    pub(crate) fn replaced(&self, node: &NodeId, by: &NodeId) -> Result<ShardMap, AdminError> {
        self.check_replaceable(node)?;
        let both = self
            .map
            .shards_of(node)
            .intersection(&self.map.shards_of(by));
        if !both.is_empty() {
            let problem = format!(
                "{by} holds shards {both} beside {node} already: `simshard cluster drain {node}` finds other nodes"
            );
            return Err(AdminError::Impossible(problem));
        }
        check_answer(&self.cluster, &BTreeSet::from([by.clone()]))?;
        if self.cluster.is_drained(by) {
            let undrain = format!("`simshard cluster undrain {by}` lets it take shards");
            return Err(AdminError::Impossible(format!(
                "{by} is drained: {undrain}"
            )));
        }
        let entries = ShardId::all().map(|shard| {
            let nodes = self.map.replicas(shard).iter();
            let nodes = nodes.map(|holder| if holder == node { by } else { holder });
            nodes.cloned().collect()
        });
        let entries: Vec<Vec<NodeId>> = entries.collect();
        let after = ShardMap::new(self.map.version() + 1, &entries)?;
        check_room(&self.cluster, &self.map, &after)?;
        Ok(after)
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

    /// The map in which some shards are held by these nodes. Refuses nodes that would not come.
    pub(crate) fn moved(
        &self,
        shards: ShardSet,
        nodes: &BTreeSet<NodeId>,
    ) -> Result<ShardMap, AdminError> {
        check_answer(&self.cluster, nodes)?;
        let entries = ShardId::all().map(|shard| {
            let is_moved = shards.contains(shard);
            let nodes = is_moved.then(|| nodes.clone());
            let nodes = nodes.unwrap_or_else(|| nodes_of(&self.map, shard));
            nodes.into_iter().collect()
        });
        let entries: Vec<Vec<NodeId>> = entries.collect();
        let after = ShardMap::new(self.map.version() + 1, &entries)?;
        check_room(&self.cluster, &self.map, &after)?;
        Ok(after)
    }

    /// Whether a node is to take no shards.
    pub(crate) fn is_drained(&self, node: &NodeId) -> bool {
        self.cluster.is_drained(node)
    }

    /// Whether an operator has chosen the nodes of a shard.
    pub(crate) fn has_target(&self, shard: ShardId) -> bool {
        self.targeted.contains(shard)
    }

    /// The targets that make the map this one. Those that have been chosen before, and are not reached yet, are among
    /// them.
    pub(crate) fn targets(&self, after: &ShardMap) -> Targets {
        let is_there = |shard: &ShardId| {
            let is_open = self.targeted.contains(*shard) && !self.is_reached(*shard);
            nodes_of(after, *shard) == nodes_of(&self.map, *shard) && !is_open
        };
        let wanted = ShardId::all().filter(|shard| !is_there(shard));
        wanted
            .map(|shard| (shard, nodes_of(after, shard)))
            .collect()
    }

    /// The shards that are not where these targets have them.
    pub(crate) fn unplaced(&self, targets: &Targets) -> ShardSet {
        let node_of = |store| self.cluster.stores.get(&store).map(|known| &known.node);
        let targets = targets.iter();
        let unplaced = targets.filter(|(shard, target)| {
            let record = self.records.get(shard);
            !record.is_some_and(|record| is_placed(record, target, node_of))
        });
        unplaced.map(|(shard, _)| *shard).collect()
    }

    /// How many replicas each shard is to have.
    pub(crate) fn replicas(&self) -> Result<usize, AdminError> {
        let wants: BTreeSet<u8> = self.records.values().map(|record| record.want).collect();
        match Vec::from_iter(wants)[..] {
            [want] => Ok(want.into()),
            _ => Err(AdminError::Impossible(
                "shards are to have different numbers of replicas: move them by `simshard cluster move`, or give all the \
                 same number by `simshard cluster set-replication`"
                    .to_owned(),
            )),
        }
    }

    /// Whether the nodes that the map has for a shard hold it, and no other does.
    fn is_reached(&self, shard: ShardId) -> bool {
        let node_of = |store| self.cluster.stores.get(&store).map(|known| &known.node);
        is_placed(&self.records[&shard], &nodes_of(&self.map, shard), node_of)
    }
}

/// Refuses a map by which a node gets shards without room for copies: it would not come.
fn check_room(cluster: &Cluster, before: &ShardMap, after: &ShardMap) -> Result<(), AdminError> {
    for node in after.nodes() {
        let gains = after.shards_of(node).difference(&before.shards_of(node));
        let is_refused = !gains.is_empty() && !cluster.has_room(cluster.of_node(node)?.id);
        if is_refused {
            return Err(AdminError::Refused(format!(
                "{node} has too little room on its disk for copies of shards {gains}: it would not take them; make \
                 room there, or drain it"
            )));
        }
    }
    Ok(())
}

/// The nodes that hold a shard by a map.
pub(crate) fn nodes_of(map: &ShardMap, shard: ShardId) -> BTreeSet<NodeId> {
    map.replicas(shard).iter().cloned().collect()
}

/// Refuses nodes that would not come.
fn check_answer(cluster: &Cluster, nodes: &BTreeSet<NodeId>) -> Result<(), AdminError> {
    for node in nodes {
        let store = cluster.of_node(node)?;
        if !cluster.answers(store.id) {
            return Err(AdminError::Refused(format!(
                "{node} does not answer at {}: start it, or drain it, and run this command again",
                store.address
            )));
        }
    }
    Ok(())
}

/// Where the shards are, or are on their way to.
fn placed(
    cluster: &Cluster,
    records: &ShardRecords,
    targets: &Targets,
) -> Result<ShardMap, AdminError> {
    let mut entries = Vec::new();
    for (shard, record) in records {
        let nodes = match targets.get(shard) {
            Some(target) => target.iter().cloned().collect(),
            None => {
                let stores = record.in_sync.iter();
                let nodes = stores.filter_map(|entry| cluster.stores.get(&entry.store));
                nodes.map(|store| store.node.clone()).collect()
            }
        };
        entries.push(nodes);
    }
    Ok(ShardMap::new(1, &entries)?)
}
