//! Plans a person can read, compared with the files in `golden/`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p simshard-topology --test planner` rewrites them; read the
//! difference before committing it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::num::NonZeroU32;
use std::path::Path;

use simshard_topology::{Candidate, NodeId, Plan, ShardMap, ShardSet, ShardWeights};

use crate::promises;
use crate::scene::{Scene, moves, nodes, text_weights};

/// One line per node: what it holds, and with several replicas what it owns.
fn describe_nodes(map: &ShardMap) -> String {
    let mut text = format!("version {}\n", map.version());
    for node in map.nodes() {
        let (held, owned) = (map.shards_of(node), map.owned_by(node));
        write!(text, "  {node}  {:3} shards  {held}", held.len()).unwrap();
        if owned != held {
            write!(text, "\n      {:3} owned   {owned}", owned.len()).unwrap();
        }
        text.push('\n');
    }
    text
}

/// The weight of each node, the balance, and what is not met.
fn describe_balance(scene: &Scene, plan: &Plan) -> String {
    let mut text = String::new();
    for node in &scene.nodes {
        let weight = scene.weights.sum(plan.map.shards_of(&node.id).iter());
        write!(text, "  {}  weight {weight}", node.id).unwrap();
        if node.capacity.get() > 1 {
            write!(text, ", capacity {}", node.capacity).unwrap();
        }
        if let Some(zone) = &node.zone {
            write!(text, ", zone {zone}").unwrap();
        }
        text.push('\n');
    }
    let balance = plan.balance;
    let before = balance
        .before
        .map_or("none".to_owned(), |before| format!("{before:.3}"));
    let (after, least) = (balance.after, balance.least);
    writeln!(text, "balance {before} -> {after:.3}, at least {least:.3}").unwrap();
    for unmet in &plan.unmet {
        writeln!(text, "not met: {unmet}").unwrap();
    }
    text
}

/// One line per pair of nodes: the shards that pass from one to the other.
fn describe_moves(scene: &Scene, plan: &Plan) -> String {
    let moves = moves(scene.previous.as_ref(), &plan.map);
    let weight = scene.weights.sum(moves.iter().map(|one| one.shard));
    let mut text = format!("{} moves, weight {weight}\n", moves.len());
    let mut moved: BTreeMap<(String, NodeId), ShardSet> = BTreeMap::new();
    for one in moves {
        let from = one.from.map_or("new".to_owned(), |from| from.to_string());
        moved.entry((from, one.to)).or_default().insert(one.shard);
    }
    for ((from, to), shards) in moved {
        writeln!(
            text,
            "  {from} -> {to}  {:3} shards  {shards}",
            shards.len()
        )
        .unwrap();
    }
    text
}

fn describe(scene: &Scene, plan: &Plan) -> String {
    let mut text = describe_nodes(&plan.map);
    text.push_str(&describe_balance(scene, plan));
    if scene.previous.is_some() {
        text.push_str(&describe_moves(scene, plan));
    }
    text
}

fn compare(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/planner/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, actual).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        actual, expected,
        "{name} differs, UPDATE_GOLDEN=1 rewrites it"
    );
}

/// Plans of a scene, and of what follows it with other nodes, one after the other.
fn compare_life(name: &str, title: &str, first: Scene, nodes: &[Vec<Candidate>]) {
    let mut text = format!("{title}, replicas: {}\n", first.replicas);
    let mut scene = first;
    let mut later = nodes.iter();
    loop {
        let plan = scene.plan();
        promises::all(&scene, &plan).unwrap();
        write!(text, "\n{}", describe(&scene, &plan)).unwrap();
        let Some(nodes) = later.next() else { break };
        scene = scene.after(&plan.map, nodes.clone());
    }
    compare(name, &text);
}

#[test]
fn plans_from_scratch_are_as_recorded() {
    for (count, replicas) in [(1, 1), (2, 1), (3, 1), (5, 1), (5, 3)] {
        let map = Scene::fresh(nodes(count), replicas).plan().map;
        let title = format!("nodes: {count}, from scratch, replicas: {replicas}");
        let name = match replicas {
            1 => format!("fresh_{count}.txt"),
            _ => format!("fresh_{count}_rf{replicas}.txt"),
        };
        compare(&name, &format!("{title}\n\n{}", describe_nodes(&map)));
    }
}

#[test]
fn joins_and_leaves_are_as_recorded() {
    for replicas in [1, 3] {
        let name = |what: &str| format!("{what}_rf{replicas}.txt");
        let four = Scene::fresh(nodes(4), replicas);
        compare_life(&name("join_4_to_5"), "n5 joins", four, &[nodes(5)]);
        let mut without_n2 = nodes(5);
        without_n2.remove(1);
        let five = Scene::fresh(nodes(5), replicas);
        compare_life(&name("leave_5_to_4"), "n2 leaves", five, &[without_n2]);
    }
}

/// No plan is better than the heaviest shard alone on a node.
#[test]
fn one_heavy_shard_is_as_recorded() {
    let mut weights = [1; 256];
    weights[0x80] = 200;
    let scene = Scene {
        weights: ShardWeights::new(weights),
        ..Scene::fresh(nodes(3), 1)
    };
    compare_life("heavy_shard.txt", "80 is heavy", scene, &[nodes(4)]);
}

#[test]
fn two_zones_with_three_replicas_are_as_recorded() {
    let zones = ["a", "b", "a", "b", "b"];
    let nodes = nodes(5).into_iter().zip(zones);
    let nodes: Vec<Candidate> = nodes.map(|(node, zone)| node.in_zone(zone)).collect();
    let scene = Scene::fresh(nodes[..4].to_vec(), 3);
    compare_life("two_zones_rf3.txt", "n5 joins zone b", scene, &[nodes]);
}

#[test]
fn capacities_are_as_recorded() {
    let capacities = [1, 2, 4].map(|capacity| NonZeroU32::new(capacity).unwrap());
    let nodes = nodes(3).into_iter().zip(capacities);
    let nodes: Vec<Candidate> = nodes
        .map(|(node, capacity)| node.with_capacity(capacity))
        .collect();
    for replicas in [1, 2] {
        let scene = Scene::fresh(nodes.clone(), replicas);
        let name = format!("capacities_rf{replicas}.txt");
        compare_life(&name, "capacities 1, 2 and 4", scene, &[]);
    }
}

#[test]
fn growth_with_weights_of_real_text_is_as_recorded() {
    let scene = Scene {
        weights: text_weights(),
        ..Scene::fresh(nodes(1), 1)
    };
    let later = [nodes(3), nodes(5), nodes(4), nodes(3)];
    compare_life(
        "growth.txt",
        "1, 3, 5, 4 and 3 nodes, 20 has 8 times the mean",
        scene,
        &later,
    );
}
