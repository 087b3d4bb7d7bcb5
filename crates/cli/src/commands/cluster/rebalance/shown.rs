//! Which shards go where by the staged plan, and how far that is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use simshard_cluster::{PlanState, StagedPlan, Targets};
use simshard_topology::replication::ShardRecords;
use simshard_topology::{NodeId, ShardId, ShardSet};

/// How far a shard is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum HowFar {
    /// The plan is not applied.
    Planned,
    /// It waits for its turn.
    Waits,
    Copies,
    Arrived,
    /// An operator has chosen other nodes since.
    Elsewhere,
}

impl HowFar {
    const fn name(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Waits => "waits",
            Self::Copies => "copies",
            Self::Arrived => "arrived",
            Self::Elsewhere => "elsewhere",
        }
    }
}

/// What the metadata says of the shards.
pub(super) struct Read {
    pub(super) records: ShardRecords,
    pub(super) targets: Targets,
    pub(super) unreached: ShardSet,
}

/// The shards of a plan, those that are as far between the same nodes together: as columns and as an object.
pub(super) fn rows(plan: &StagedPlan, read: &Read) -> Vec<(String, Value)> {
    let rows = groups(plan, read)
        .into_iter()
        .map(|((state, from, to), shards)| {
            let (from, to, state) = (texts(from), texts(to), state.name());
            let columns = format!("{shards}\t{}\t{}\t{state}", from.join(","), to.join(","));
            let object =
                json!({ "shards": shards.to_string(), "from": from, "to": to, "state": state });
            (columns, object)
        });
    rows.collect()
}

/// How far a plan is, for people.
pub(super) const fn state_of(plan: &StagedPlan) -> &'static str {
    match plan.state {
        PlanState::Staged => {
            "is not applied: `simshard cluster rebalance apply` moves the shards so"
        }
        PlanState::Beginning => "has just begun",
        PlanState::Moving => "is being carried out",
        PlanState::Ending => "is being taken back",
    }
}

fn texts(nodes: &BTreeSet<NodeId>) -> Vec<&str> {
    nodes.iter().map(NodeId::as_str).collect()
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
