//! What went wrong in a fan-out: nodes that did not do their part, all in one error.

use std::collections::BTreeSet;

use simshard_cluster::CorpusName;
use simshard_topology::{NodeId, ShardSet};

use crate::error::{RouterError, Why};
use crate::nodes::CallError;
use crate::readers::{Avoided, ShardsOfNodes};

/// The failures of one fan-out: nodes that did not answer, all in one error.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// The nodes, and the shards of theirs that were asked for.
    pub(super) nodes: ShardsOfNodes,
    /// Nodes that have other records of shards: these may be asked again.
    pub(super) stale: ShardsOfNodes,
    /// Nodes that have no tables of shards: others may.
    pub(super) cold: ShardsOfNodes,
    /// Nodes that cannot read shards: others can.
    damaged: ShardsOfNodes,
    /// Nodes that gave no sign of life, where others may answer.
    silent: BTreeSet<NodeId>,
    /// Whether time ran out for one.
    late: bool,
    /// One that does not hold the corpus.
    pub(super) not_loaded: Option<NodeId>,
}

impl Failures {
    /// Notes that a node did not do its part; a refusal is an error at once.
    pub(super) fn note(
        &mut self,
        node: NodeId,
        shards: ShardSet,
        error: CallError,
    ) -> Result<(), RouterError> {
        match error {
            CallError::Refused(status) => return Err(RouterError::Node { node, status }),
            CallError::NoMemory => return Err(RouterError::NoMemory),
            CallError::NotLoaded => self.not_loaded = Some(node.clone()),
            CallError::Late => self.late = true,
            CallError::Unreachable => {}
            CallError::Silent => {
                self.silent.insert(node);
                return Ok(());
            }
            CallError::WrongEpoch => {
                self.refused(node, shards);
                return Ok(());
            }
            CallError::Cold(shards) => {
                self.cold.insert(node, shards);
                return Ok(());
            }
        }
        self.nodes.insert(node, shards);
        Ok(())
    }

    /// Notes that a node has other records of shards.
    pub(super) fn refused(&mut self, node: NodeId, shards: ShardSet) {
        add(&mut self.stale, node, shards);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
            && self.stale.is_empty()
            && self.cold.is_empty()
            && self.damaged.is_empty()
            && self.silent.is_empty()
    }

    /// Whether this node did not answer.
    pub(super) fn names(&self, node: &NodeId) -> bool {
        self.silent.contains(node) || self.nodes.contains_key(node)
    }

    /// Whether nodes may do their part a little later.
    pub(super) fn may_pass(&self) -> bool {
        !self.stale.is_empty() || !self.cold.is_empty()
    }

    /// Whether all that is missing is a newer record, of a node or of this router.
    pub(super) fn is_stale_only(&self) -> bool {
        !self.stale.is_empty()
            && self.nodes.is_empty()
            && self.cold.is_empty()
            && self.damaged.is_empty()
            && self.silent.is_empty()
    }

    /// Notes that a node cannot read shards that others can.
    pub(super) fn damaged(&mut self, node: NodeId, shards: ShardSet) {
        add(&mut self.damaged, node, shards);
    }

    /// Counts the nodes without tables as lost, their other shards included. Answers whether there are any.
    pub(super) fn give_up_cold(&mut self) -> bool {
        let has_cold = !self.cold.is_empty();
        self.nodes.append(&mut self.cold);
        has_cold
    }

    /// The nodes that another round does not ask.
    pub(super) fn down(&self) -> BTreeSet<NodeId> {
        self.nodes.keys().cloned().collect()
    }

    /// What another round avoids, while some nodes give no sign of life.
    pub(super) fn avoided(&self, silent: BTreeSet<NodeId>) -> Avoided {
        Avoided {
            down: self.down(),
            damaged: self.damaged.clone(),
            cold: self.cold.clone(),
            silent,
            stale: self.stale.clone(),
        }
    }

    /// Adds those of the next round. Of records, only what was met last counts.
    pub(super) fn extend(&mut self, next: Self) {
        self.nodes.extend(next.nodes);
        for (node, shards) in next.cold {
            add(&mut self.cold, node, shards);
        }
        for (node, shards) in next.damaged {
            add(&mut self.damaged, node, shards);
        }
        self.stale = next.stale;
        self.silent = next.silent;
        self.late |= next.late;
        self.not_loaded = self.not_loaded.take().or(next.not_loaded);
    }

    /// The error that they amount to, for a request about a corpus.
    pub(super) fn error(self, corpus: &CorpusName) -> RouterError {
        match self.not_loaded {
            Some(node) => RouterError::NotLoaded {
                node,
                corpus: corpus.clone(),
            },
            None => self.unreachable(),
        }
    }

    fn unreachable(self) -> RouterError {
        let Self {
            nodes,
            stale,
            cold,
            late,
            ..
        } = self;
        let why = if late {
            Why::Late
        } else if nodes.is_empty() && stale.is_empty() {
            Why::Cold
        } else if nodes.is_empty() {
            Why::WrongEpoch
        } else {
            Why::Lost
        };
        let nodes = cold.into_iter().chain(stale).chain(nodes).collect();
        RouterError::Unreachable { nodes, why }
    }

    /// The error that they amount to, for a request about all corpora.
    pub(super) fn check_all(self) -> Result<(), RouterError> {
        if self.is_empty() {
            return Ok(());
        }
        Err(self.unreachable())
    }

    pub(super) fn check(self, corpus: &CorpusName) -> Result<(), RouterError> {
        if self.is_empty() {
            return Ok(());
        }
        Err(self.error(corpus))
    }
}

/// Adds shards of a node.
fn add(all: &mut ShardsOfNodes, node: NodeId, shards: ShardSet) {
    let of_node = all.entry(node).or_default();
    *of_node = of_node.union(&shards);
}

#[cfg(test)]
mod tests {
    use simshard_topology::ShardId;

    use super::*;

    fn node(number: usize) -> NodeId {
        NodeId::new(&format!("n{number}")).unwrap()
    }

    fn shard(shard: u8) -> ShardSet {
        [ShardId(shard)].into_iter().collect()
    }

    fn failed(number: usize, of: u8, error: CallError) -> Failures {
        let mut failures = Failures::default();
        failures.note(node(number), shard(of), error).unwrap();
        failures
    }

    #[test]
    fn of_records_only_what_was_met_last_counts() {
        let mut lost = failed(1, 1, CallError::Unreachable);
        lost.extend(failed(2, 1, CallError::WrongEpoch));
        lost.extend(failed(3, 1, CallError::Cold(shard(1))));
        assert!(lost.stale.is_empty());
        lost.extend(failed(3, 2, CallError::WrongEpoch));
        let silent: BTreeSet<NodeId> = [node(4)].into();
        let avoided = lost.avoided(silent.clone());
        assert_eq!(avoided.down, [node(1)].into());
        assert_eq!(avoided.cold, [(node(3), shard(1))].into());
        assert_eq!(avoided.stale, [(node(3), shard(2))].into());
        assert_eq!(avoided.silent, silent);
        lost.extend(failed(3, 2, CallError::Silent));
        assert!(lost.avoided(BTreeSet::new()).stale.is_empty());
        assert!(!lost.avoided(BTreeSet::new()).cold.is_empty());
    }

    #[test]
    fn a_round_is_stale_only_if_nothing_else_is_missing() {
        let stale = || failed(1, 1, CallError::WrongEpoch);
        assert!(stale().is_stale_only() && !Failures::default().is_stale_only());
        for error in [
            CallError::Unreachable,
            CallError::Late,
            CallError::Silent,
            CallError::Cold(shard(1)),
        ] {
            let mut failures = stale();
            failures.note(node(2), shard(1), error).unwrap();
            assert!(!failures.is_stale_only());
        }
        let mut damaged = stale();
        damaged.damaged(node(2), shard(1));
        assert!(!damaged.is_stale_only());
    }
}
