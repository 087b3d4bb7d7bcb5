//! Step 1: nodes above the cap give up what is too much, from the ends of their ranges.
//!
//! Ranges that fit into what must go are given up whole, smallest first; the rest is cut from one
//! end. Of several ends, the one whose neighbour is also up for grabs makes the longest run for
//! the receiver. With several replicas, shards that already lack one come last: a receiver
//! can take each shard once only.

use std::cmp::Ordering;

use crate::ids::ShardId;
use crate::planner::draft::Draft;
use crate::shard_set::{ShardRange, ShardSet};

/// Brings every node down to the cap.
pub(super) fn to_cap(draft: &mut Draft) {
    for node in draft.nodes() {
        let mut missing = 0;
        while draft.load(node) > draft.cap {
            let whole = draft.held[node].intersection(&draft.missing_exactly(missing));
            let excess = draft.load(node) - draft.cap;
            match pick(draft, &whole, excess) {
                Some(range) => range.iter().for_each(|shard| draft.take(node, shard)),
                None => missing += 1,
            }
        }
    }
}

/// The next shards of `from` to give up: a whole range if one fits, else the best end of one.
fn pick(draft: &Draft, from: &ShardSet, excess: usize) -> Option<ShardRange> {
    let smallest = from.ranges().min_by_key(|range| range.len())?;
    if smallest.len() <= excess {
        return Some(smallest);
    }
    // Ties go to the last: the high end of the highest range.
    from.ranges()
        .flat_map(|range| {
            [
                low_end(draft, range, excess),
                high_end(draft, range, excess),
            ]
        })
        .max_by_key(|(appeal, _)| *appeal)
        .map(|(_, end)| end)
}

fn low_end(draft: &Draft, range: ShardRange, len: usize) -> (Appeal, ShardRange) {
    (appeal(draft, range.first().before()), range.lowest(len))
}

fn high_end(draft: &Draft, range: ShardRange, len: usize) -> (Appeal, ShardRange) {
    (appeal(draft, range.last().after()), range.highest(len))
}

/// How good it is to cut next to a shard, from worst to best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Appeal {
    /// It stays where it is.
    Settled,
    /// One of its nodes must still give up shards.
    MayFollow,
    /// One of its nodes has room to extend its range.
    CanExtend,
    /// It is looking for a node too.
    Joins,
}

fn appeal(draft: &Draft, neighbour: Option<ShardId>) -> Appeal {
    let Some(neighbour) = neighbour else {
        return Appeal::Settled;
    };
    if draft.missing(neighbour) > 0 {
        return Appeal::Joins;
    }
    let mut best = Appeal::Settled;
    for node in draft
        .nodes()
        .filter(|&node| draft.held[node].contains(neighbour))
    {
        best = best.max(match draft.load(node).cmp(&draft.cap) {
            Ordering::Less => Appeal::CanExtend,
            Ordering::Equal => Appeal::Settled,
            Ordering::Greater => Appeal::MayFollow,
        });
    }
    best
}
