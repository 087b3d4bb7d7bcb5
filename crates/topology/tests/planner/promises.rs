//! What the planner promises, as checks of a plan that say what is wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_topology::{Candidate, NodeId, Plan, ShardId, ShardMap, ShardSet};

use crate::scene::{Scene, capacity, moves};

/// The balance that is good enough.
const GOOD: f64 = 1.1;

/// A node below this part of the mean level is short.
const SHORT: f64 = 0.8;

/// What a float may be off by.
const ROUNDING: f64 = 1e-6;

type Checked = Result<(), String>;

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(what()) }
}

/// All promises.
pub(crate) fn all(scene: &Scene, plan: &Plan) -> Checked {
    p1_each_shard_has_its_replicas(scene, &plan.map)?;
    p2_replicas_are_spread_over_zones(scene, &plan.map)?;
    p3_the_balance_is_good_or_cannot_be_lowered(scene, plan)?;
    p4_little_changes(scene, plan)?;
    p5_the_order_of_nodes_does_not_matter(scene, plan)?;
    if scene.previous.is_none() && are_alike(scene) {
        p6_each_node_owns_one_range(scene, &plan.map)?;
    }
    version(scene, plan)
}

/// Whether nothing tells nodes apart but their names, nor shards.
fn are_alike(scene: &Scene) -> bool {
    let first = &scene.nodes[0];
    let is_alike = |node: &Candidate| (&node.zone, node.capacity) == (&first.zone, first.capacity);
    let weight = scene.weights.of(ShardId(0));
    scene.nodes.iter().all(is_alike) && ShardId::all().all(|s| scene.weights.of(s) == weight)
}

pub(crate) fn p1_each_shard_has_its_replicas(scene: &Scene, map: &ShardMap) -> Checked {
    for shard in ShardId::all() {
        let replicas = map.replicas(shard);
        let is_listed = |id: &NodeId| scene.nodes.iter().any(|node| node.id == *id);
        ensure(replicas.len() == scene.replicas, || {
            format!("P1: shard {shard} has {} replicas", replicas.len())
        })?;
        ensure(replicas.iter().all(is_listed), || {
            format!("P1: shard {shard} is on a stranger: {replicas:?}")
        })?;
    }
    Ok(())
}

type ZoneCounts<'a> = BTreeMap<&'a Option<Arc<str>>, (usize, usize)>;

/// The nodes of each zone, and the replicas of a shard there.
fn zone_counts<'a>(scene: &'a Scene, replicas: &[NodeId]) -> ZoneCounts<'a> {
    let mut counts = ZoneCounts::new();
    for node in &scene.nodes {
        let (size, held) = counts.entry(&node.zone).or_default();
        *size += 1;
        *held += usize::from(replicas.contains(&node.id));
    }
    counts
}

/// As even as can be: a zone has two replicas more than another only if the other has no more nodes.
fn is_even(scene: &Scene, replicas: &[NodeId]) -> bool {
    let counts = zone_counts(scene, replicas);
    let may_take = counts.values().filter(|(size, held)| held < size);
    let lowest = may_take.map(|(_, held)| *held).min().unwrap_or(usize::MAX);
    counts
        .values()
        .all(|(_, held)| *held <= lowest.saturating_add(1))
}

pub(crate) fn p2_replicas_are_spread_over_zones(scene: &Scene, map: &ShardMap) -> Checked {
    for shard in ShardId::all() {
        let replicas = map.replicas(shard);
        ensure(is_even(scene, replicas), || {
            format!(
                "P2: shard {shard} is on {replicas:?}, of zones {:?}",
                zone_counts(scene, replicas)
            )
        })?;
    }
    Ok(())
}

fn is_short(scene: &Scene, map: &ShardMap, node: &Candidate) -> bool {
    scene.level(map, node) < (SHORT - ROUNDING) * scene.mean()
}

fn balance(scene: &Scene, map: &ShardMap) -> f64 {
    let levels = scene.nodes.iter().map(|node| scene.level(map, node));
    levels.fold(0.0, f64::max) / scene.mean()
}

pub(crate) fn p3_the_balance_is_good_or_cannot_be_lowered(scene: &Scene, plan: &Plan) -> Checked {
    let (said, is) = (plan.balance, balance(scene, &plan.map));
    ensure((said.after - is).abs() < ROUNDING, || {
        format!("P3: the balance is {is}, not {}", said.after)
    })?;
    ensure(said.least <= said.after + ROUNDING, || {
        format!(
            "P3: {} was reached, which is less than {}",
            said.after, said.least
        )
    })?;
    let limit = (GOOD.max(said.least) + ROUNDING) * scene.mean();
    let above = |node: &&Candidate| scene.level(&plan.map, node) > limit;
    match scene
        .nodes
        .iter()
        .filter(above)
        .find_map(|node| improvement(scene, &plan.map, node))
    {
        Some(how) => Err(format!("P3: the balance is {is}, and {how} lowers a node")),
        None => Ok(()),
    }
}

/// A move or an exchange that lowers a node by a hundredth of the mean, and raises no other one as high.
fn improvement(scene: &Scene, map: &ShardMap, from: &Candidate) -> Option<String> {
    let mut nodes: Vec<(&Candidate, f64, ShardSet)> = Vec::new();
    for node in &scene.nodes {
        nodes.push((node, scene.level(map, node), map.shards_of(&node.id)));
    }
    let (peak, held) = (scene.level(map, from), map.shards_of(&from.id));
    let good = peak - (0.01 + ROUNDING) * scene.mean();
    let may_go = |shard: ShardId, from: &Candidate, to: &Candidate| {
        let mut replicas = map.replicas(shard).to_vec();
        replicas.retain(|id| *id != from.id);
        replicas.push(to.id.clone());
        is_even(scene, &replicas)
    };
    for shard in held.iter() {
        for (to, level, theirs) in nodes.iter().filter(|(.., theirs)| !theirs.contains(shard)) {
            let lowers = |back: f64| {
                let gain = scene.weight([shard]) - back;
                peak - gain / capacity(from) <= good && level + gain / capacity(to) <= good
            };
            let lighter = theirs.difference(&held);
            let mut lighter = lighter.iter().filter(|back| lowers(scene.weight([*back])));
            if lowers(0.0) && may_go(shard, from, to) {
                return Some(format!("{shard} from {from:?} to {to:?}"));
            }
            if let Some(back) = lighter.find(|back| may_go(*back, to, from))
                && may_go(shard, from, to)
            {
                return Some(format!("{shard} from {from:?} for {back} of {to:?}"));
            }
        }
    }
    None
}

pub(crate) fn p4_little_changes(scene: &Scene, plan: &Plan) -> Checked {
    let again = scene.after(&plan.map, scene.nodes.clone()).plan();
    ensure(again.map == plan.map, || {
        let moves = moves(Some(&plan.map), &again.map).len();
        format!("P4: planned again, {moves} moves follow")
    })?;
    let Some(previous) = &scene.previous else {
        return Ok(());
    };
    let keeps = p1_each_shard_has_its_replicas(scene, previous)
        .and_then(|()| p2_replicas_are_spread_over_zones(scene, previous));
    let has_short = scene
        .nodes
        .iter()
        .any(|node| is_short(scene, previous, node));
    let highest = GOOD.max(plan.balance.least) - ROUNDING;
    let is_good = balance(scene, previous) <= highest && !has_short;
    ensure(keeps.is_err() || !is_good || plan.map == *previous, || {
        let moves = moves(Some(previous), &plan.map).len();
        format!("P4: {moves} moves from a good map")
    })
}

/// P4 where shards are light and may go to any node: how much nodes give up.
pub(crate) fn p4_nodes_give_up_their_excess_only(scene: &Scene, plan: &Plan) -> Checked {
    let previous = scene.previous.as_ref().unwrap();
    let has_short = scene
        .nodes
        .iter()
        .any(|node| is_short(scene, previous, node));
    let highest = if has_short {
        1.0
    } else {
        GOOD.max(plan.balance.least)
    };
    for node in &scene.nodes {
        let (before, after) = (previous.shards_of(&node.id), plan.map.shards_of(&node.id));
        let limit = highest * scene.mean() * capacity(node);
        let excess = (scene.weight(before.iter()) - limit).max(0.0);
        let given = scene.weight(before.difference(&after).iter());
        let kept = before.intersection(&after);
        let lightest = kept.iter().map(|shard| scene.weight([shard]));
        let lightest = lightest.fold(f64::INFINITY, f64::min);
        let is_little = given < excess + lightest || (excess == 0.0 && given == 0.0);
        ensure(is_little, || {
            format!(
                "P4: {node:?} gives up {given} for {excess}, the lightest that it keeps is {lightest}"
            )
        })?;
    }
    Ok(())
}

/// P8 where shards are light and may go to any node.
pub(crate) fn p8_no_node_is_short(scene: &Scene, plan: &Plan) -> Checked {
    for node in &scene.nodes {
        let level = scene.level(&plan.map, node) / scene.mean();
        ensure(!is_short(scene, &plan.map, node), || {
            format!("P8: {node:?} is at {level} of the mean level")
        })?;
    }
    Ok(())
}

pub(crate) fn p5_the_order_of_nodes_does_not_matter(scene: &Scene, plan: &Plan) -> Checked {
    let mut nodes = scene.nodes.clone();
    nodes.reverse();
    nodes.rotate_left(scene.nodes.len() / 3);
    let other = Scene {
        nodes,
        ..scene.clone()
    };
    ensure(other.plan() == *plan, || {
        "P5: another order, another plan".to_owned()
    })
}

pub(crate) fn p6_each_node_owns_one_range(scene: &Scene, map: &ShardMap) -> Checked {
    let mut names: Vec<&NodeId> = scene.nodes.iter().map(|node| &node.id).collect();
    names.sort();
    let mut next = 0;
    for name in &names {
        let ranges: Vec<_> = map.owned_by(name).ranges().collect();
        let is_next = |range: &simshard_topology::ShardRange| range.first().index() == next;
        let owns_one = match &ranges[..] {
            [] => names.len() > ShardId::COUNT,
            [one] => is_next(one),
            _ => false,
        };
        ensure(owns_one, || {
            format!("P6: {name} owns {ranges:?}, not one from {next}")
        })?;
        next += ranges.iter().map(|range| range.len()).sum::<usize>();
    }
    let counts = names.iter().map(|name| map.shards_of(name).len());
    let (least, most) = (counts.clone().min().unwrap(), counts.max().unwrap());
    ensure(most - least <= 1, || {
        format!("P6: nodes have {least} to {most} shards")
    })
}

fn version(scene: &Scene, plan: &Plan) -> Checked {
    let old = scene.previous.as_ref();
    let is_same = old.is_some_and(|old| old.digest() == plan.map.digest());
    let expected = old.map_or(0, ShardMap::version) + u64::from(!is_same);
    ensure(plan.map.version() == expected, || {
        format!("version {}, not {expected}", plan.map.version())
    })
}
