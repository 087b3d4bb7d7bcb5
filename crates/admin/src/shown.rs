//! Which shards go where by the staged plan, and how far that is.

use std::collections::{BTreeMap, BTreeSet};

use simshard_cluster::{PlanState, StagedPlan, Targets};
use simshard_topology::replication::ShardRecords;
use simshard_topology::{NodeId, ShardId, ShardSet};

/// How far a shard is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HowFar {
    /// The plan is not applied.
    Planned,
    /// It waits for its turn.
    Waits,
    /// A node copies it.
    Copies,
    /// It is where the plan has it.
    Arrived,
    /// An operator has chosen other nodes since.
    Elsewhere,
}

/// The shards of a plan that are as far between the same nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownMove {
    /// The shards.
    pub shards: ShardSet,
    /// The nodes that held them, or were to, when the plan was drawn.
    pub from: BTreeSet<NodeId>,
    /// The nodes that are to hold them.
    pub to: BTreeSet<NodeId>,
    /// How far they are.
    pub how_far: HowFar,
}

/// What the metadata says of the shards.
pub(crate) struct Read {
    pub(crate) records: ShardRecords,
    pub(crate) targets: Targets,
    pub(crate) unreached: ShardSet,
}

/// The shards of a plan, those that are as far between the same nodes together.
pub(crate) fn moves(plan: &StagedPlan, read: &Read) -> Vec<ShownMove> {
    let moves = groups(plan, read).into_iter();
    let moves = moves.map(|((how_far, from, to), shards)| ShownMove {
        shards,
        from: from.clone(),
        to: to.clone(),
        how_far,
    });
    moves.collect()
}

type Group<'a> = (HowFar, &'a BTreeSet<NodeId>, &'a BTreeSet<NodeId>);

/// The shards that are as far, between the same nodes.
fn groups<'a>(plan: &'a StagedPlan, read: &Read) -> BTreeMap<Group<'a>, ShardSet> {
    let mut groups = BTreeMap::<Group<'a>, ShardSet>::new();
    for (shard, planned) in &plan.moves {
        let group = (how_far(*shard, plan, read), &planned.from, &planned.to);
        groups.entry(group).or_default().insert(*shard);
    }
    groups
}

fn how_far(shard: ShardId, plan: &StagedPlan, read: &Read) -> HowFar {
    let has_targets = !matches!(plan.state, PlanState::Staged | PlanState::Beginning);
    if !has_targets {
        HowFar::Planned
    } else if read.targets.get(&shard) != Some(&plan.moves[&shard].to) {
        HowFar::Elsewhere
    } else if !read.unreached.contains(shard) {
        HowFar::Arrived
    } else if read.records[&shard].learners.is_empty() {
        HowFar::Waits
    } else {
        HowFar::Copies
    }
}
