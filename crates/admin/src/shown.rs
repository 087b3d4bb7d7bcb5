//! Which shards go where by the staged plan, and how far that is.

use std::collections::{BTreeMap, BTreeSet};

use simshard_cluster::{PlanState, StagedPlan, Targets, is_placed};
use simshard_topology::replication::ShardRecords;
use simshard_topology::{NodeId, ShardId, ShardSet};

use crate::placing::{NodesOfStores, holders};

/// How far a shard is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HowFar {
    /// The plan is not applied.
    Planned,
    /// It waits for its turn.
    Waits,
    /// A node copies it.
    Copies,
    /// All nodes of the plan hold it, and another one is to leave it.
    Leaves,
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
    /// The nodes of the stores that have registered.
    pub(crate) nodes: NodesOfStores,
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
    if matches!(plan.state, PlanState::Staged | PlanState::Beginning) {
        return HowFar::Planned;
    }
    let (record, to) = (&read.records[&shard], &plan.moves[&shard].to);
    let node_of = |store| read.nodes.get(&store);
    let is_for = |store| node_of(store).is_some_and(|node| to.contains(node));
    if read.targets.get(&shard) != Some(to) {
        HowFar::Elsewhere
    } else if is_placed(record, to, node_of) {
        HowFar::Arrived
    } else if record.learners.iter().any(|learner| is_for(learner.store)) {
        HowFar::Copies
    } else if to.is_subset(&holders(record, &read.nodes)) {
        HowFar::Leaves
    } else {
        HowFar::Waits
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use simshard_cluster::PlannedMove;
    use simshard_topology::replication::{Epoch, Learner, ShardRecord, StoreId};

    use super::*;

    const STORES: [StoreId; 3] = [StoreId([1; 16]), StoreId([2; 16]), StoreId([3; 16])];

    fn node(number: usize) -> NodeId {
        NodeId::new(&format!("n{number}")).unwrap()
    }

    /// What is read of shard 0 while it moves from n1 to n2, with these nodes in sync, and this one as a learner.
    fn read(in_sync: &[usize], learner: Option<usize>) -> Read {
        let in_sync: Vec<StoreId> = in_sync.iter().map(|number| STORES[number - 1]).collect();
        let mut record = ShardRecord::first(0, &in_sync, 7);
        let learner = learner.map(|number| Learner {
            store: STORES[number - 1],
            added: Epoch::FIRST,
        });
        record.learners.extend(learner);
        let shard = ShardId(0);
        Read {
            records: BTreeMap::from([(shard, Arc::new(record))]),
            targets: BTreeMap::from([(shard, BTreeSet::from([node(2)]))]),
            nodes: (1..)
                .zip(STORES)
                .map(|(number, store)| (store, node(number)))
                .collect(),
        }
    }

    /// The plan of that move, under way.
    fn plan() -> StagedPlan {
        let planned = PlannedMove {
            from: BTreeSet::from([node(1)]),
            to: BTreeSet::from([node(2)]),
            had_target: false,
        };
        let moves = BTreeMap::from([(ShardId(0), planned)]);
        StagedPlan::new(0, moves, BTreeMap::new()).turned(PlanState::Moving)
    }

    #[test]
    fn a_shard_waits_is_copied_leaves_its_former_nodes_and_has_arrived() {
        for (in_sync, learner, expected) in [
            (&[1][..], None, HowFar::Waits),
            (&[1], Some(2), HowFar::Copies),
            (&[1, 2], None, HowFar::Leaves),
            (&[2], None, HowFar::Arrived),
            // It came for another target.
            (&[1], Some(3), HowFar::Waits),
            (&[1, 2], Some(3), HowFar::Leaves),
        ] {
            let read = read(in_sync, learner);
            let found = how_far(ShardId(0), &plan(), &read);
            assert_eq!(found, expected, "{in_sync:?} {learner:?}");
        }
    }
}
