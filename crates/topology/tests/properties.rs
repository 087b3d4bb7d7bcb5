//! The planner's promises P1 to P7, held against random histories of a cluster.
//!
//! P3 is checked by a certificate rather than by a second planner: an assignment has the fewest
//! moves if and only if no cycle of exchanges, each within P1 and P2, lowers their number (the
//! optimality condition of minimum-cost flows). A plan is right however it was found.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use proptest::prelude::*;
use simshard_topology::{Move, NodeId, ShardId, ShardMap, ShardSet, moves, plan};

/// As many nodes as a history may name, and as many as may be present at once.
const NAMES: usize = 24;
const MOST_NODES: usize = 20;

/// One change of the cluster: these nodes join if absent, leave if present.
#[derive(Clone, Debug)]
struct Step {
    toggled: Vec<usize>,
    replicas: usize,
}

fn step(replicas: usize) -> impl Strategy<Value = Step> {
    let few = prop::sample::subsequence((0..NAMES).collect::<Vec<_>>(), 0..=3);
    let many = prop::sample::subsequence((0..NAMES).collect::<Vec<_>>(), 0..=NAMES);
    let toggled = prop_oneof![4 => few, 1 => many];
    let replicas = prop_oneof![7 => Just(replicas), 1 => 1..=3_usize];
    (toggled, replicas).prop_map(|(toggled, replicas)| Step { toggled, replicas })
}

fn history() -> impl Strategy<Value = Vec<Step>> {
    (1..=3_usize).prop_flat_map(|replicas| prop::collection::vec(step(replicas), 1..12))
}

/// The node lists and replica counts that `steps` lead through, impossible ones left out.
fn configurations(steps: &[Step]) -> Vec<(Vec<NodeId>, usize)> {
    let mut present = [false; NAMES];
    let mut configurations = Vec::new();
    for step in steps {
        for &node in &step.toggled {
            present[node] = !present[node];
        }
        let nodes: Vec<NodeId> = (0..NAMES).filter(|&i| present[i]).map(node).collect();
        if (step.replicas..=MOST_NODES).contains(&nodes.len()) {
            configurations.push((nodes, step.replicas));
        }
    }
    configurations
}

fn node(number: usize) -> NodeId {
    NodeId::new(&format!("n{number:02}")).unwrap()
}

fn cap(nodes: &[NodeId], replicas: usize) -> usize {
    (ShardId::COUNT * replicas).div_ceil(nodes.len())
}

/// What `node` held, where there was a map at all.
fn held(map: Option<&ShardMap>, node: &NodeId) -> ShardSet {
    map.map_or(ShardSet::EMPTY, |map| map.shards_of(node))
}

fn p1_each_shard_has_its_replicas(next: &ShardMap, nodes: &[NodeId], replicas: usize) {
    for shard in ShardId::all() {
        let entry = next.replicas(shard);
        assert_eq!(entry.len(), replicas, "P1: shard {shard}");
        for (i, node) in entry.iter().enumerate() {
            assert!(nodes.contains(node), "P1: shard {shard} on stranger {node}");
            assert!(
                !entry[..i].contains(node),
                "P1: shard {shard} twice on {node}"
            );
        }
    }
}

fn p2_no_node_is_above_the_cap(next: &ShardMap, nodes: &[NodeId], replicas: usize) {
    for node in nodes {
        let load = next.shards_of(node).len();
        assert!(load <= cap(nodes, replicas), "P2: {node} has {load} shards");
    }
}

fn p3_moves_are_the_fewest(
    previous: Option<&ShardMap>,
    next: &ShardMap,
    nodes: &[NodeId],
    replicas: usize,
) {
    let count = moves(previous, next).len();
    let can_stay: usize = nodes
        .iter()
        .map(|node| held(previous, node).len().min(cap(nodes, replicas)))
        .sum();
    let bound = ShardId::COUNT * replicas - can_stay.min(ShardId::COUNT * replicas);
    assert!(
        count >= bound,
        "the bound is wrong: {count} moves, at least {bound}"
    );
    if replicas == 1 && most_replicas(previous) <= 1 {
        assert_eq!(count, bound, "P3: with one replica the bound is exact");
    }
    assert!(
        !can_be_improved(previous, next, nodes, replicas),
        "P3: {count} moves are too many"
    );
}

fn most_replicas(map: Option<&ShardMap>) -> usize {
    map.map_or(0, |map| {
        ShardId::all()
            .map(|shard| map.replicas(shard).len())
            .max()
            .unwrap_or(0)
    })
}

/// Whether some cycle of exchanges lowers the number of moves.
///
/// An edge from one node to another is a shard that could pass between them; it costs 1 if that
/// makes a move more, -1 if it makes one less. One more vertex stands for room: a node with room
/// may end a chain of exchanges, and any node with a shard may begin one.
fn can_be_improved(
    previous: Option<&ShardMap>,
    next: &ShardMap,
    nodes: &[NodeId],
    replicas: usize,
) -> bool {
    const UNREACHABLE: i32 = 1 << 20;
    let room = nodes.len();
    let mut cost = vec![vec![UNREACHABLE; room + 1]; room + 1];
    let now: Vec<ShardSet> = nodes.iter().map(|node| next.shards_of(node)).collect();
    let before: Vec<ShardSet> = nodes.iter().map(|node| held(previous, node)).collect();
    for from in 0..room {
        for to in 0..room {
            for shard in now[from].difference(&now[to]).iter() {
                let change =
                    i32::from(before[from].contains(shard)) - i32::from(before[to].contains(shard));
                cost[from][to] = cost[from][to].min(change);
            }
        }
        if now[from].len() < cap(nodes, replicas) {
            cost[from][room] = 0;
        }
        if !now[from].is_empty() {
            cost[room][from] = 0;
        }
    }
    for via in 0..=room {
        for from in 0..=room {
            for to in 0..=room {
                if cost[from][via] < UNREACHABLE && cost[via][to] < UNREACHABLE {
                    cost[from][to] = cost[from][to].min(cost[from][via] + cost[via][to]);
                }
            }
        }
    }
    (0..=room).any(|vertex| cost[vertex][vertex] < 0)
}

fn p4_ranges_are_few(previous: &ShardMap, next: &ShardMap, nodes: &[NodeId]) {
    let mut kept_ranges = 0;
    let mut next_ranges = 0;
    let mut receivers = 0;
    let mut given = ShardSet::EMPTY;
    for node in nodes {
        let (before, now) = (previous.shards_of(node), next.shards_of(node));
        let kept = before.intersection(&now);
        let gained = now.difference(&before);
        assert!(
            kept.ranges().count() <= before.ranges().count(),
            "P4: {node} {before} -> {kept}"
        );
        kept_ranges += kept.ranges().count();
        next_ranges += now.ranges().count();
        receivers += usize::from(!gained.is_empty());
        given = given.union(&gained);
    }
    let most = kept_ranges + given.ranges().count() + receivers.saturating_sub(1);
    assert!(
        next_ranges <= most,
        "P4: {next_ranges} ranges, at most {most}"
    );
}

fn p4_each_node_has_one_range_in_name_order(fresh: &ShardMap, nodes: &[NodeId]) {
    let mut next = 0;
    for node in nodes {
        let ranges: Vec<_> = fresh.shards_of(node).ranges().collect();
        assert_eq!(ranges.len(), 1, "P4: {node}");
        assert_eq!(ranges[0].first().index(), next, "P4: {node}");
        next += ranges[0].len();
    }
    assert_eq!(next, ShardId::COUNT, "P4: no shard is left");
}

fn p5_the_order_of_nodes_does_not_matter(
    previous: Option<&ShardMap>,
    next: &ShardMap,
    nodes: &[NodeId],
    replicas: usize,
) {
    let mut shuffled = nodes.to_vec();
    shuffled.reverse();
    shuffled.rotate_left(nodes.len() / 3);
    assert_eq!(
        plan(previous, &shuffled, replicas).as_ref(),
        Ok(next),
        "P5: {shuffled:?}"
    );
}

fn p6_counts_differ_by_at_most_one(fresh: &ShardMap, nodes: &[NodeId]) {
    let loads: Vec<usize> = nodes
        .iter()
        .map(|node| fresh.shards_of(node).len())
        .collect();
    let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
    assert!(most - least <= 1, "P6: {loads:?}");
}

fn p7_owners_are_level(next: &ShardMap) {
    for shard in ShardId::all() {
        let owned = next.owned_by(next.owner(shard)).len();
        for other in &next.replicas(shard)[1..] {
            let owned_by_other = next.owned_by(other).len();
            assert!(
                owned < owned_by_other + 2,
                "P7: shard {shard}: {owned}, {owned_by_other}"
            );
        }
    }
}

fn check_version(previous: Option<&ShardMap>, next: &ShardMap) {
    let Some(previous) = previous else {
        return assert_eq!(next.version(), 1);
    };
    let is_same = ShardId::all().all(|shard| previous.replicas(shard) == next.replicas(shard));
    assert_eq!(next.version(), previous.version() + u64::from(!is_same));
}

/// Applying the moves to the previous map, and dropping who left, gives the next map.
fn check_moves_lead_to_the_next_map(previous: Option<&ShardMap>, next: &ShardMap) {
    let mut all = moves(previous, next).into_iter().peekable();
    for shard in ShardId::all() {
        let old: Vec<NodeId> =
            previous.map_or(Vec::new(), |previous| previous.replicas(shard).to_vec());
        let mut entry: Vec<NodeId> = old
            .iter()
            .filter(|node| next.replicas(shard).contains(node))
            .cloned()
            .collect();
        while let Some(Move { from, to, .. }) = all.next_if(|change| change.shard == shard) {
            assert!(from.is_none_or(|from| old.contains(&from) && !entry.contains(&from)));
            entry.push(to);
        }
        entry.sort();
        let mut expected = next.replicas(shard).to_vec();
        expected.sort();
        assert_eq!(entry, expected, "shard {shard}");
    }
    assert_eq!(all.next(), None);
}

fn check_plan(previous: Option<&ShardMap>, nodes: &[NodeId], replicas: usize) -> ShardMap {
    let next = plan(previous, nodes, replicas).unwrap();
    p1_each_shard_has_its_replicas(&next, nodes, replicas);
    p2_no_node_is_above_the_cap(&next, nodes, replicas);
    p3_moves_are_the_fewest(previous, &next, nodes, replicas);
    p5_the_order_of_nodes_does_not_matter(previous, &next, nodes, replicas);
    check_version(previous, &next);
    check_moves_lead_to_the_next_map(previous, &next);
    match previous {
        None => {
            p6_counts_differ_by_at_most_one(&next, nodes);
            if replicas == 1 {
                p4_each_node_has_one_range_in_name_order(&next, nodes);
            }
        }
        Some(previous) => {
            if replicas == 1 && most_replicas(Some(previous)) == 1 {
                p4_ranges_are_few(previous, &next, nodes);
            }
        }
    }
    if previous != Some(&next) {
        p7_owners_are_level(&next);
    }
    assert_eq!(
        plan(Some(&next), nodes, replicas).as_ref(),
        Ok(&next),
        "planning again"
    );
    next
}

proptest! {
    #[test]
    fn every_plan_in_the_life_of_a_cluster_keeps_the_promises(steps in history()) {
        let mut map: Option<ShardMap> = None;
        for (nodes, replicas) in configurations(&steps) {
            map = Some(check_plan(map.as_ref(), &nodes, replicas));
        }
    }

    /// A map edited by hand may be far from what the planner would draw.
    #[test]
    fn a_plan_from_any_map_keeps_the_promises(
        seeds in prop::collection::vec((0..NAMES, 1..NAMES, 1..=3_usize), ShardId::COUNT),
        present in prop::sample::subsequence((0..NAMES).collect::<Vec<_>>(), 3..=MOST_NODES),
        replicas in 1..=3_usize,
    ) {
        let entries: Vec<Vec<NodeId>> = seeds
            .iter()
            .map(|&(first, stride, count)| {
                let mut entry: Vec<NodeId> =
                    (0..count).map(|i| node((first + i * stride) % NAMES)).collect();
                let mut seen = Vec::new();
                entry.retain(|node| !seen.contains(node) && { seen.push(node.clone()); true });
                entry
            })
            .collect();
        let previous = ShardMap::new(41, &entries).unwrap();
        let nodes: Vec<NodeId> = present.into_iter().map(node).collect();
        check_plan(Some(&previous), &nodes, replicas);
    }
}

#[test]
fn every_cluster_of_up_to_twenty_nodes_starts_balanced_and_survives_a_join_and_a_leave() {
    for count in 1..=MOST_NODES {
        let nodes: Vec<NodeId> = (0..=count).map(node).collect();
        for replicas in 1..=count.min(3) {
            let fresh = check_plan(None, &nodes[..count], replicas);
            let joined = check_plan(Some(&fresh), &nodes, replicas);
            check_plan(Some(&joined), &nodes[1..], replicas);
        }
    }
}

#[test]
fn the_certificate_of_fewest_moves_rejects_a_wasteful_plan() {
    let nodes: Vec<NodeId> = (0..5).map(node).collect();
    for replicas in 1..=3 {
        let before = plan(None, &nodes[..4], replicas).unwrap();
        let wasteful = plan(None, &nodes, replicas).unwrap();
        assert!(can_be_improved(Some(&before), &wasteful, &nodes, replicas));
    }
}
