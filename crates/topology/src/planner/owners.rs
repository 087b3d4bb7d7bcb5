//! Step 4: the order of a shard's replicas, the preferred owner first.
//!
//! Replicas that stay keep their order and come before new ones, so ownership stays with nodes
//! that have the data. Then it is levelled (P7), or a node that joins would never own a shard.

use crate::ids::{NodeId, ShardId};
use crate::planner::draft::Draft;
use crate::planner::ring::Ring;
use crate::shard_map::ShardMap;

/// The replicas of each shard in order.
pub(super) fn order_replicas(
    draft: &Draft,
    previous: &ShardMap,
    nodes: &[NodeId],
    ring: &Ring,
) -> Vec<Vec<usize>> {
    let mut entries = Vec::with_capacity(ShardId::COUNT);
    for shard in ShardId::all() {
        let mut entry: Vec<usize> = draft
            .nodes()
            .filter(|&node| draft.held[node].contains(shard))
            .collect();
        let replicas = previous.replicas(shard);
        entry.sort_by_key(|&node| {
            let old_place = replicas.iter().position(|old| *old == nodes[node]);
            (old_place.unwrap_or(replicas.len()), ring.place(shard, node))
        });
        entries.push(entry);
    }
    level_owners(&mut entries, nodes.len());
    entries
}

/// Makes another replica the owner, widest gap first, while an owner leads it by two shards.
///
/// Each step narrows the gap between two nodes, so it ends. It starts from the last shard and goes
/// on to the shards before it while the average allows, so that ownership passes in runs.
fn level_owners(entries: &mut [Vec<usize>], nodes: usize) {
    let average = ShardId::COUNT / nodes;
    let mut owned = vec![0_usize; nodes];
    for entry in entries.iter() {
        owned[entry[0]] += 1;
    }
    while let Some((shard, place)) = widest_gap(entries, &owned) {
        let (from, to) = (entries[shard][0], entries[shard][place]);
        pass(&mut entries[shard], place, &mut owned);
        for entry in entries[..shard].iter_mut().rev() {
            let place = entry.iter().position(|&node| node == to);
            let Some(place) = place.filter(|_| entry[0] == from) else {
                break;
            };
            if owned[from] <= average || owned[to] >= average {
                break;
            }
            pass(entry, place, &mut owned);
        }
    }
}

/// The last shard whose owner leads another replica by the most, if by two or more.
fn widest_gap(entries: &[Vec<usize>], owned: &[usize]) -> Option<(usize, usize)> {
    let mut widest = 1;
    let mut found = None;
    for (shard, entry) in entries.iter().enumerate().rev() {
        for (place, &node) in entry.iter().enumerate().skip(1) {
            let gap = owned[entry[0]].saturating_sub(owned[node]);
            if gap > widest {
                widest = gap;
                found = Some((shard, place));
            }
        }
    }
    found
}

/// Makes the replica at `place` the owner; the others keep their order behind it.
fn pass(entry: &mut [usize], place: usize, owned: &mut [usize]) {
    owned[entry[0]] -= 1;
    owned[entry[place]] += 1;
    entry[..=place].rotate_right(1);
}
