//! What the log says of the steps that a node takes.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use simshard_cluster::ClusterLayout;
use simshard_topology::replication::{Cause, ShardRecords, Step, StoreId};
use simshard_topology::{ShardId, ShardSet};
use tracing::{info, warn};

/// The step that was last chosen for each shard, and why the node leaves the shard, if it does by that.
#[derive(Debug, Default)]
pub(super) struct Chosen(Mutex<BTreeMap<ShardId, (Step, Option<Cause>)>>);

/// What the log says of a step, and the store that leaves, if one does.
type Line = (&'static str, Option<StoreId>);

impl Chosen {
    /// Takes note of a step.
    pub(super) fn note(&self, shard: ShardId, step: Step, cause: Option<Cause>) {
        self.0.lock().insert(shard, (step, cause));
    }

    /// Tells of those that were taken.
    pub(super) fn tell(self, taken: &ShardRecords, own: StoreId, layout: &ClusterLayout) {
        for ((says, other), shards) in self.lines(taken, own) {
            match other {
                None => info!(%shards, "{says}"),
                // It leaves, as something is wrong with it.
                Some(store) if store == own => warn!(%shards, "{says}"),
                Some(store) => {
                    let node = layout.node_of(store).map(|node| &node.id);
                    let node = node.map_or_else(|| store.to_string(), ToString::to_string);
                    info!(%shards, node, "{says}");
                }
            }
        }
    }

    /// Why the own store has left shards, once for each.
    pub(super) fn causes(&self, taken: &ShardRecords) -> Vec<Cause> {
        let chosen = self.0.lock();
        taken
            .keys()
            .filter_map(|shard| chosen.get(shard)?.1)
            .collect()
    }

    fn lines(self, taken: &ShardRecords, own: StoreId) -> BTreeMap<Line, ShardSet> {
        let mut lines = BTreeMap::<Line, Vec<ShardId>>::new();
        let chosen = self.0.into_inner().into_iter();
        for (shard, (step, cause)) in chosen.filter(|(shard, _)| taken.contains_key(shard)) {
            let line = match cause {
                // A move is what an operator wants.
                Some(cause @ (Cause::Surplus | Cause::Stops)) => (said_of(cause), None),
                Some(cause) => (said_of(cause), Some(own)),
                None => line_of(step),
            };
            lines.entry(line).or_default().push(shard);
        }
        let lines = lines.into_iter();
        lines
            .map(|(line, shards)| (line, shards.into_iter().collect()))
            .collect()
    }
}

/// Of a step by which the own store does not leave.
const fn line_of(step: Step) -> Line {
    match step {
        Step::AddLearner(_) => ("this node comes to shards, as a learner", None),
        Step::Promote { .. } => ("this node holds shards in sync", None),
        Step::Evict(store) | Step::DropLearner(store) => (
            "shards go on without a node that does not answer",
            Some(store),
        ),
        Step::Adjust => ("other replicas of shards are to be hot", None),
        Step::Confirm => (
            "each of two nodes can change the records of shards alone",
            None,
        ),
        Step::Warm(_) => (
            "a node makes tables of shards, to search them in the place of another one",
            None,
        ),
        Step::Cool(_) => ("a replica of shards is to be cold again", None),
        Step::Freeze(_) | Step::Thaw | Step::Settle { .. } => {
            ("a scrub raises the floors of shards", None)
        }
    }
}

const fn said_of(cause: Cause) -> &'static str {
    match cause {
        Cause::DiskHangs => "the disk of this node does not answer: shards go on without it",
        Cause::NoRoom => "this node has little room for more: shards go on without it until it has",
        Cause::Damage => {
            "files of this node are damaged: shards go on without it, and it copies them anew"
        }
        Cause::Stops => "this node stops: shards go on without it",
        Cause::SlowDisk => {
            "the disk of this node is much slower than those of others: shards go on without it for a while"
        }
        Cause::Surplus => "other nodes hold shards in its place: this node leaves them",
        Cause::NoSource => {
            "this node reaches no node that holds shards in sync: it does not copy them for now"
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use simshard_topology::replication::ShardRecord;

    use super::*;

    #[test]
    fn each_step_that_was_taken_is_told_by_what_it_is() {
        let (own, other) = (StoreId([1; 16]), StoreId([2; 16]));
        let record = Arc::new(ShardRecord::first(0, &[own, other], 7));
        let chosen = Chosen::default();
        let steps = [
            (Step::Evict(other), None),
            (Step::Evict(own), Some(Cause::Damage)),
            (
                Step::Promote {
                    store: own,
                    copied: record.epoch,
                },
                None,
            ),
            (Step::Evict(other), None),
            (Step::Evict(own), Some(Cause::Surplus)),
            (Step::Confirm, None),
            (Step::DropLearner(own), Some(Cause::SlowDisk)),
        ];
        for (shard, (step, cause)) in (0..).zip(steps) {
            chosen.note(ShardId(shard), step, cause);
        }
        // The last one was not taken.
        let taken = (0..6).map(|shard| (ShardId(shard), Arc::clone(&record)));
        let taken = taken.collect();
        assert_eq!(chosen.causes(&taken), [Cause::Damage, Cause::Surplus]);
        let lines = chosen.lines(&taken, own);
        let shards = |line: Line| lines[&line].to_string();
        assert_eq!(lines.len(), 5);
        assert_eq!(shards(line_of(Step::Evict(other))), "00,03");
        assert_eq!(shards((said_of(Cause::Damage), Some(own))), "01");
        assert_eq!(shards(("this node holds shards in sync", None)), "02");
        // Only what is wrong with a node is a warning.
        assert_eq!(shards((said_of(Cause::Surplus), None)), "04");
        assert_eq!(shards(line_of(Step::Confirm)), "05");
    }
}
