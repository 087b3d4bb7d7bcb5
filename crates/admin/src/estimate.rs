//! How much a plan copies, and about how long that takes.

use std::collections::BTreeMap;
use std::fmt;

use simshard_cluster::PlannedMove;
use simshard_node::{COPY_RATE_BESIDE_REQUESTS, PAUSE_BETWEEN_STEPS};
use simshard_runtime::amounts::{bytes, time};
use simshard_topology::replication::MOST_AT_ONCE;
use simshard_topology::{NodeId, ShardId, ShardSet};

use crate::layout::Layout;

/// What is to be copied.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The bytes that nodes receive.
    pub bytes: u64,
    /// The node that takes longest, and how long in seconds, where anything moves.
    pub longest: Option<(NodeId, f64)>,
}

impl Estimate {
    pub(crate) fn of(layout: &Layout, moves: &BTreeMap<ShardId, PlannedMove>) -> Self {
        let size = |shard| layout.bytes(ShardSet::from_iter([shard]));
        let rate = |node: &NodeId| {
            let rate = layout.copy_rate(node);
            f64::from(rate.unwrap_or(COPY_RATE_BESIDE_REQUESTS).get()) * 1e6
        };
        Self::by(moves, size, rate, |shard| layout.copy_source(shard))
    }

    /// `size` tells the bytes of a shard, and `source` the node that sends it. `rate` tells how many bytes a node copies in a
    /// second, in each direction.
    fn by<'a>(
        moves: &'a BTreeMap<ShardId, PlannedMove>,
        size: impl Fn(ShardId) -> u64,
        rate: impl Fn(&NodeId) -> f64,
        source: impl Fn(ShardId) -> Option<&'a NodeId>,
    ) -> Self {
        let mut received = BTreeMap::<&NodeId, Received>::new();
        let mut sent = BTreeMap::<&NodeId, f64>::new();
        for (shard, planned) in moves {
            let bytes = size(*shard);
            for node in planned.to.difference(&planned.from) {
                received.entry(node).or_default().add(bytes);
                if let Some(source) = source(*shard) {
                    *sent.entry(source).or_default() += bytes as f64;
                }
            }
        }
        let of_receivers = received.iter().map(|(node, received)| {
            let copying = received.bytes as f64 / rate(node);
            ((*node).clone(), copying + received.pauses())
        });
        let of_senders = sent
            .iter()
            .map(|(node, bytes)| ((*node).clone(), bytes / rate(node)));
        let times = of_receivers.chain(of_senders);
        let longest = times.filter(|(_, seconds)| *seconds > 0.0);
        Self {
            bytes: received.values().map(|received| received.bytes).sum(),
            longest: longest.max_by(|one, other| one.1.total_cmp(&other.1)),
        }
    }
}

/// What a node receives.
#[derive(Default)]
struct Received {
    shards: usize,
    bytes: u64,
}

impl Received {
    const fn add(&mut self, bytes: u64) {
        self.shards += 1;
        self.bytes += bytes;
    }

    /// The seconds between its steps, as beside requests. Some shards begin together, and the next ones once half of these
    /// have arrived, which is a step of its own. At last the nodes leave that held them before.
    fn pauses(&self) -> f64 {
        let later = self.shards.saturating_sub(MOST_AT_ONCE);
        let beginnings = 1 + later.div_ceil(MOST_AT_ONCE / 2);
        PAUSE_BETWEEN_STEPS.as_secs_f64() * (beginnings + 1) as f64
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none = "no node told of bytes that are to be copied";
        match &self.longest {
            None => out.write_str(none),
            Some((_, seconds)) if self.bytes == 0 => {
                let seconds = time(*seconds);
                write!(out, "{none}; the steps of the moves take about {seconds}")
            }
            Some((node, seconds)) => {
                let (bytes, seconds) = (bytes(self.bytes as f64), time(*seconds));
                write!(
                    out,
                    "{bytes} are to be copied; that takes about {seconds}, longest for {node}"
                )
            }
        }
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
        let size = |shard: ShardId| u64::from(shard.0) * 500_000_000;
        let (n1, n2) = (node("n1"), node("n2"));
        // 2.5 GB.
        let of_n2 = |shard: ShardId| Some(if shard.0 == 1 { &n1 } else { &n2 });
        let same = Estimate::by(&moves, size, |_| 25e6, of_n2);
        assert_eq!(
            same.to_string(),
            "3.0 GB are to be copied; that takes about 100 s, longest for n2"
        );
        let limited = |of: &NodeId| if *of == node("n4") { 5e6 } else { 25e6 };
        let limited = Estimate::by(&moves, size, limited, of_n2);
        assert_eq!(
            limited.to_string(),
            "3.0 GB are to be copied; that takes about 3 minutes, longest for n4"
        );
        // What only leaves is not copied.
        let fewer = BTreeMap::from([(ShardId(1), planned(&["n1", "n2"], &["n1"]))]);
        let nothing = Estimate::by(&fewer, size, |_| 100e6, of_n2);
        assert_eq!(
            nothing.to_string(),
            "no node told of bytes that are to be copied"
        );
    }

    /// A shard that moves takes a few seconds, however little it holds: each step waits for the next look.
    #[test]
    fn the_pauses_between_the_steps_of_moves_count() {
        let n1 = node("n1");
        let of = |shards: u8, bytes| {
            let moves = (0..shards).map(|shard| (ShardId(shard), planned(&["n1"], &["n2"])));
            Estimate::by(&moves.collect(), |_| bytes, |_| 100e6, |_| Some(&n1))
        };
        assert_eq!(
            of(1, 0).to_string(),
            "no node told of bytes that are to be copied; the steps of the moves take about 8.0 s"
        );
        let pause = PAUSE_BETWEEN_STEPS.as_secs_f64();
        for (shards, pauses) in [(64, 2.0), (65, 3.0), (192, 6.0)] {
            assert_eq!(of(shards, 0).longest.unwrap().1, pauses * pause);
        }
        let (node_that_copies, seconds) = of(1, 50_000_000).longest.unwrap();
        assert_eq!((node_that_copies, seconds), (node("n2"), 0.5 + 2.0 * pause));
    }
}
