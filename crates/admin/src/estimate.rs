//! How much a plan copies, and about how long that takes.

use std::collections::BTreeMap;
use std::fmt;

use simshard_cluster::PlannedMove;
use simshard_node::COPY_RATE_BESIDE_REQUESTS;
use simshard_runtime::amounts::{bytes, time};
use simshard_topology::{NodeId, ShardId, ShardSet};

use crate::layout::Layout;

/// What is to be copied.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The bytes that nodes receive.
    pub bytes: u64,
    /// The node that takes longest, and how long in seconds, where anything is known to be copied.
    pub longest: Option<(NodeId, f64)>,
}

impl Estimate {
    pub(crate) fn of(layout: &Layout, moves: &BTreeMap<ShardId, PlannedMove>) -> Self {
        let size = |shard| layout.bytes(ShardSet::from_iter([shard]));
        let rate = |node: &NodeId| {
            let rate = layout.copy_rate(node);
            f64::from(rate.unwrap_or(COPY_RATE_BESIDE_REQUESTS).get()) * 1e6
        };
        Self::by(moves, size, rate)
    }

    /// `size` tells the bytes of a shard, and `rate` how many bytes a node copies in a second, in each direction.
    fn by(
        moves: &BTreeMap<ShardId, PlannedMove>,
        size: impl Fn(ShardId) -> u64,
        rate: impl Fn(&NodeId) -> f64,
    ) -> Self {
        let mut received = BTreeMap::<&NodeId, u64>::new();
        let mut sent = BTreeMap::<&NodeId, f64>::new();
        for (shard, planned) in moves {
            let bytes = size(*shard);
            for node in planned.to.difference(&planned.from) {
                *received.entry(node).or_default() += bytes;
                // Any of those that hold it may send it.
                for source in &planned.from {
                    *sent.entry(source).or_default() += bytes as f64 / planned.from.len() as f64;
                }
            }
        }
        let received_by = received.iter().map(|(node, bytes)| (*node, *bytes as f64));
        let both = received_by.chain(sent.iter().map(|(node, bytes)| (*node, *bytes)));
        let times = both.map(|(node, bytes)| (node.clone(), bytes / rate(node)));
        let longest = times.filter(|(_, seconds)| *seconds > 0.0);
        Self {
            bytes: received.values().sum(),
            longest: longest.max_by(|one, other| one.1.total_cmp(&other.1)),
        }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((node, seconds)) = &self.longest else {
            return write!(out, "no node told of bytes that are to be copied");
        };
        write!(
            out,
            "{} are to be copied; that takes about {}, longest for {node}",
            bytes(self.bytes as f64),
            time(*seconds)
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn node(name: &str) -> NodeId {
        NodeId::new(name).unwrap()
    }

    fn planned(from: &[&str], to: &[&str]) -> PlannedMove {
        let nodes =
            |names: &[&str]| -> BTreeSet<NodeId> { names.iter().map(|name| node(name)).collect() };
        PlannedMove {
            from: nodes(from),
            to: nodes(to),
            had_target: false,
        }
    }

    #[test]
    fn a_plan_takes_as_long_as_the_node_that_takes_longest() {
        let moves = BTreeMap::from([
            (ShardId(1), planned(&["n1", "n2"], &["n1", "n3"])),
            (ShardId(2), planned(&["n1", "n2"], &["n2", "n4"])),
            (ShardId(3), planned(&["n1"], &["n3"])),
        ]);
        let size = |shard: ShardId| u64::from(shard.0) * 1_000_000_000;
        // n1 sends half of the first two, and all of the third: 4.5 GB.
        let same = Estimate::by(&moves, size, |_| 100e6);
        assert_eq!(
            same.to_string(),
            "6.0 GB are to be copied; that takes about 45 s, longest for n1"
        );
        let limited = Estimate::by(
            &moves,
            size,
            |of| if *of == node("n4") { 10e6 } else { 100e6 },
        );
        assert_eq!(
            limited.to_string(),
            "6.0 GB are to be copied; that takes about 3 minutes, longest for n4"
        );
        // What only leaves is not copied.
        let fewer = BTreeMap::from([(ShardId(1), planned(&["n1", "n2"], &["n1"]))]);
        let nothing = Estimate::by(&fewer, size, |_| 100e6);
        assert_eq!(
            nothing.to_string(),
            "no node told of bytes that are to be copied"
        );
    }
}
