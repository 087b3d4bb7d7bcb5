//! Where shards are, and where they could be.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use simshard_cluster::{
    StagedPlan, Targets, check_node_settings, is_placed, shard_records, targets,
};
use simshard_runtime::terminal::counted;
use simshard_topology::replication::{ShardRecords, StoreId};
use simshard_topology::{Candidate, NodeId, Plan, ShardId, ShardMap, ShardSet, ShardWeights, plan};

use crate::asked::Cluster;
use crate::checks::check_answer;
use crate::{Admin, AdminError};

/// What a shard takes beside its documents, in documents. So a cluster that holds little is shared evenly.
const WEIGHT_OF_A_SHARD: u64 = 1_000;

/// Where all shards are, or are on their way to.
pub(crate) struct Layout {
    pub(crate) cluster: Cluster,
    pub(crate) records: ShardRecords,
    pub(crate) map: ShardMap,
    /// The shards that have targets.
    targeted: ShardSet,
}

impl Layout {
    /// Reads the layout, and asks all nodes. Refuses damaged settings of nodes: which ones take shards is not known then.
    pub(crate) async fn read(admin: &Admin<'_>) -> Result<Self, AdminError> {
        check_node_settings(admin.keys).await?;
        let cluster = Cluster::ask(admin).await?;
        let records = shard_records(admin.keys).await?;
        let targets = targets(admin.keys, |error| admin.warn_of_bad(error)).await?;
        Self::of(cluster, records, &targets)
    }

    pub(crate) fn of(
        cluster: Cluster,
        records: ShardRecords,
        targets: &Targets,
    ) -> Result<Self, AdminError> {
        let map = placed(&cluster, &records, targets)?;
        Ok(Self {
            cluster,
            records,
            map,
            targeted: targets.keys().copied().collect(),
        })
    }

    /// The nodes that a plan of all shards is for: those that are not drained. One that does not answer is left out if it
    /// holds nothing; else it must come back first, or be drained.
    pub(crate) fn nodes(&self) -> Result<BTreeSet<NodeId>, AdminError> {
        let silent = self.silent();
        let holding = silent
            .iter()
            .filter(|node| !self.map.shards_of(node).is_empty() && !self.is_drained(node));
        check_answer(&self.cluster, &holding.cloned().collect(), "drain it")?;
        Ok(self.takers())
    }

    /// The nodes that take shards: those that answer, and are not drained.
    pub(crate) fn takers(&self) -> BTreeSet<NodeId> {
        let stores = self.cluster.stores.values();
        let stores = stores.filter(|store| {
            self.cluster.answers(store.id) && !self.cluster.is_drained(&store.node)
        });
        stores.map(|store| store.node.clone()).collect()
    }

    /// The nodes that do not answer.
    pub(crate) fn silent(&self) -> BTreeSet<NodeId> {
        let stores = self.cluster.stores.values();
        let stores = stores.filter(|store| !self.cluster.answers(store.id));
        stores.map(|store| store.node.clone()).collect()
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

    /// The node from which one that gets a shard copies it, if a replica in sync answers.
    pub(crate) fn copy_source(&self, shard: ShardId) -> Option<&NodeId> {
        let record = self.records.get(&shard)?;
        let sources = record.copy_sources(shard, |store| self.cluster.answers(store));
        let first = self.cluster.stores.get(sources.first()?)?;
        Some(&first.node)
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
        self.check_settings(plan)?;
        let gaining = plan.moves.values();
        let gaining = gaining.flat_map(|planned| planned.to.difference(&planned.from).cloned());
        let gaining: BTreeSet<NodeId> = gaining.collect();
        let takes_none =
            |node: &&NodeId| self.is_drained(node) || self.cluster.of_node(node).is_err();
        let without = names(gaining.iter().filter(takes_none));
        if !without.is_empty() {
            return Err(AdminError::Refused(format!(
                "the plan is stale: since it was drawn, {without} was drained, or removed. Draw another one by `simshard \
                 cluster rebalance plan`"
            )));
        }
        check_answer(&self.cluster, &gaining, "draw another plan")?;
        let after = self.with(|shard| {
            let planned = plan.moves.get(&shard);
            planned.map_or_else(|| nodes_of(&self.map, shard), |moved| moved.to.clone())
        })?;
        self.check_room(&after)
    }

    /// Refuses a plan that was drawn for other zones or capacities.
    fn check_settings(&self, plan: &StagedPlan) -> Result<(), AdminError> {
        let now = self.cluster.settings_for_plans();
        let nodes: BTreeSet<&NodeId> = plan.drawn_for.keys().chain(now.keys()).collect();
        let changed = nodes
            .into_iter()
            .filter(|node| plan.drawn_for.get(*node) != now.get(*node));
        let changed = names(changed);
        if changed.is_empty() {
            return Ok(());
        }
        Err(AdminError::Refused(format!(
            "the plan is stale: it was drawn for another zone or capacity of {changed}. Draw another one by `simshard \
             cluster rebalance plan`"
        )))
    }

    /// The next map, in which these nodes hold each shard.
    pub(crate) fn with(
        &self,
        nodes: impl Fn(ShardId) -> BTreeSet<NodeId>,
    ) -> Result<ShardMap, AdminError> {
        let entries = ShardId::all().map(|shard| nodes(shard).into_iter().collect());
        let entries: Vec<Vec<NodeId>> = entries.collect();
        Ok(ShardMap::new(self.map.version() + 1, &entries)?)
    }

    /// How heavy shards are, in documents. All alike, and a warning, where those of some are not known.
    pub(crate) fn weights(&self, admin: &Admin<'_>) -> ShardWeights {
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

    /// An even share of all shards for each of these nodes. Refuses it if one that gets shards has no room for copies.
    pub(crate) fn evenly(
        &self,
        admin: &Admin<'_>,
        nodes: &BTreeSet<NodeId>,
        replicas: usize,
    ) -> Result<Plan, AdminError> {
        let plan = self.even_plan(admin, nodes, replicas)?;
        self.check_room(&plan.map)?;
        Ok(plan)
    }

    /// An even share for each of these nodes, though one may lack room for it.
    pub(crate) fn even_plan(
        &self,
        admin: &Admin<'_>,
        nodes: &BTreeSet<NodeId>,
        replicas: usize,
    ) -> Result<Plan, AdminError> {
        self.check_filled(ShardSet::ALL)?;
        self.planned(&self.weights(admin), nodes, replicas, &BTreeSet::new())
    }

    /// An even share for each of these nodes, by few moves. `leaving` are to hold nothing afterwards.
    pub(crate) fn planned(
        &self,
        weights: &ShardWeights,
        nodes: &BTreeSet<NodeId>,
        replicas: usize,
        leaving: &BTreeSet<NodeId>,
    ) -> Result<Plan, AdminError> {
        if nodes.len() < replicas {
            return Err(self.too_few(nodes.len(), replicas, leaving));
        }
        self.planned_from(&self.map, weights, nodes, replicas)
    }

    /// The same from another map.
    pub(crate) fn planned_from(
        &self,
        map: &ShardMap,
        weights: &ShardWeights,
        nodes: &BTreeSet<NodeId>,
        replicas: usize,
    ) -> Result<Plan, AdminError> {
        let candidates = nodes.iter().cloned();
        let candidates = candidates.map(|node| self.cluster.candidate(node));
        let candidates: Vec<Candidate> = candidates.collect();
        let plan = plan(Some(map), &candidates, weights, replicas);
        plan.map_err(|error| AdminError::Impossible(error.to_string()))
    }

    /// Says which ways there are to a plan for which there are too few nodes.
    fn too_few(&self, left: usize, replicas: usize, leaving: &BTreeSet<NodeId>) -> AdminError {
        let stays = |node: &&NodeId| !leaving.contains(*node);
        let known = self.cluster.stores.values().map(|store| &store.node);
        let silent = self.silent();
        let (drained, others): (Vec<&NodeId>, Vec<&NodeId>) = known
            .filter(stays)
            .partition(|node| self.cluster.is_drained(node));
        let drained = drained.into_iter().filter(|node| !silent.contains(*node));
        let others = others.into_iter().filter(|node| silent.contains(*node));
        let named = |verb: &str, nodes: Vec<&NodeId>| {
            (!nodes.is_empty()).then(|| format!("{verb} {}", names(nodes)))
        };
        let fewer = (left > 0).then(|| {
            format!(
                "ask for fewer replicas by `simshard cluster set-replication --replicas {left}`"
            )
        });
        let ways = [
            named("start", others.collect()),
            named("undrain", drained.collect()),
            Some(format!("add {}", counted(replicas - left, "node"))),
            fewer,
        ];
        let ways: Vec<String> = ways.into_iter().flatten().collect();
        let are = match (leaving.is_empty(), left) {
            (true, 1) => "there is",
            (true, _) => "there are",
            (false, _) => "there would be",
        };
        AdminError::Impossible(format!(
            "each replica of a shard needs a node of its own: {replicas} are needed, and {are} {left} that may take \
             shards. To go on, {}",
            ways.join(", or ")
        ))
    }

    /// The map in which some shards are held by these nodes. Refuses nodes that would not come.
    pub(crate) fn moved(
        &self,
        shards: ShardSet,
        nodes: &BTreeSet<NodeId>,
    ) -> Result<ShardMap, AdminError> {
        self.check_filled(shards)?;
        check_answer(&self.cluster, nodes, "name another node")?;
        let after = self.with(|shard| {
            let moved = shards.contains(shard).then(|| nodes.clone());
            moved.unwrap_or_else(|| nodes_of(&self.map, shard))
        })?;
        self.check_room(&after)?;
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

    /// The shards that operators have sent elsewhere, and that are not there yet.
    pub(crate) fn on_their_way(&self) -> ShardSet {
        let shards = self.targeted.iter();
        shards.filter(|shard| !self.is_reached(*shard)).collect()
    }

    /// The targets that make the map this one. Those that have been chosen before, and are not reached yet, are among
    /// them.
    pub(crate) fn targets(&self, after: &ShardMap) -> Targets {
        let open = self.on_their_way();
        let is_there = |shard: &ShardId| {
            nodes_of(after, *shard) == nodes_of(&self.map, *shard) && !open.contains(*shard)
        };
        let wanted = ShardId::all().filter(|shard| !is_there(shard));
        wanted
            .map(|shard| (shard, nodes_of(after, shard)))
            .collect()
    }

    /// The node of each store that has registered.
    pub(crate) fn nodes_of_stores(&self) -> BTreeMap<StoreId, NodeId> {
        let stores = self.cluster.stores.iter();
        stores
            .map(|(store, known)| (*store, known.node.clone()))
            .collect()
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

/// The nodes that hold a shard by a map.
pub(crate) fn nodes_of(map: &ShardMap, shard: ShardId) -> BTreeSet<NodeId> {
    map.replicas(shard).iter().cloned().collect()
}

/// Nodes, with commas between.
pub(crate) fn names<'a>(nodes: impl IntoIterator<Item = &'a NodeId>) -> String {
    let names: Vec<&str> = nodes.into_iter().map(NodeId::as_str).collect();
    names.join(",")
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
                // A learner beside too few is to stay. One that came for a target that was taken back is not.
                let most = record.in_sync.len().max(record.want.into());
                let stores = record.write_set().take(most);
                let nodes = stores.filter_map(|store| cluster.stores.get(&store));
                nodes.map(|store| store.node.clone()).collect()
            }
        };
        entries.push(nodes);
    }
    Ok(ShardMap::new(1, &entries)?)
}
