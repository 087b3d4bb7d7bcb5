//! Random lives of clusters: nodes come and go, shards grow, replicas get more and fewer.

use std::collections::BTreeSet;

use fastrand::Rng;
use simshard_topology::{Candidate, NodeId, Plan, ShardId, ShardMap, ShardWeights};

use crate::promises;
use crate::scene::{Kind, Scene, capacity, moves, nodes, random_weights, text_weights};

/// Lives that are tried if the tests are short, or long.
const SEEDS: [u64; 2] = [100, 5_000];

/// Nodes that a life may name.
const NAMES: u64 = 24;

/// Plans of a life.
const STEPS: usize = 8;

/// Runs a life for each seed.
fn each_seed(life: impl Fn(&mut Rng) -> Result<(), String>) {
    let is_long = std::env::var_os("SIMSHARD_LONG").is_some();
    let only = std::env::var("SIMSHARD_SEED").ok();
    let only = only.map(|seed| seed.parse::<u64>().expect("SIMSHARD_SEED is a number"));
    let most = SEEDS[usize::from(is_long)];
    for seed in only.map_or(0..most, |seed| seed..seed + 1) {
        if let Err(breach) = life(&mut Rng::with_seed(seed)) {
            panic!("seed {seed}: {breach}");
        }
    }
}

/// Some of the nodes come or go: few of them most times.
fn toggle(rng: &mut Rng, present: &mut BTreeSet<u64>) {
    let most = if rng.u8(..5) == 0 { NAMES } else { 4 };
    for _ in 0..rng.u64(..most) {
        let node = rng.u64(..NAMES);
        if !present.remove(&node) {
            present.insert(node);
        }
    }
}

/// All documents grow, and some shards more than others.
fn grown(rng: &mut Rng, weights: &ShardWeights) -> ShardWeights {
    let mut grown = [0; ShardId::COUNT];
    for shard in ShardId::all() {
        let more = if rng.u8(..20) == 0 { 300 } else { 120 };
        grown[shard.index()] = weights.of(shard) * rng.u64(100..more) / 100;
    }
    ShardWeights::new(grown)
}

#[test]
fn every_plan_in_the_life_of_a_cluster_keeps_the_promises() {
    each_seed(|rng| {
        let (mut kind, mut present) = (Kind::random(rng), BTreeSet::new());
        let wished = rng.usize(1..=4);
        let mut scene = Scene {
            weights: random_weights(rng),
            ..Scene::fresh(Vec::new(), wished)
        };
        for _ in 0..STEPS {
            toggle(rng, &mut present);
            if rng.u8(..4) == 0 {
                kind = Kind::random(rng);
            }
            scene.nodes = present.iter().map(|&number| kind.node(number)).collect();
            rng.shuffle(&mut scene.nodes);
            scene.replicas = if rng.u8(..6) == 0 {
                rng.usize(1..=5)
            } else {
                wished
            };
            if scene.nodes.len() < scene.replicas {
                continue;
            }
            let plan = scene.plan();
            promises::all(&scene, &plan)?;
            scene.previous = Some(plan.map);
            scene.weights = grown(rng, &scene.weights);
        }
        Ok(())
    });
}

/// A map edited by hand may be far from what the planner would draw.
#[test]
fn a_plan_from_any_map_keeps_the_promises() {
    each_seed(|rng| {
        let kind = Kind::random(rng);
        let count = rng.u64(3..NAMES);
        let entry = |_| {
            let some = rng.usize(1..4);
            let numbers = rng.choose_multiple(0..NAMES, some).into_iter();
            numbers.map(|number| kind.node(number).id).collect()
        };
        let entries: Vec<Vec<NodeId>> = (0..ShardId::COUNT).map(entry).collect();
        let numbers = rng.choose_multiple(0..NAMES, count as usize).into_iter();
        let scene = Scene {
            previous: Some(ShardMap::new(41, &entries).unwrap()),
            nodes: numbers.map(|number| kind.node(number)).collect(),
            weights: random_weights(rng),
            replicas: rng.usize(1..=3),
        };
        promises::all(&scene, &scene.plan())
    });
}

#[test]
fn every_cluster_of_up_to_twenty_nodes_starts_balanced_and_survives_a_join_and_a_leave() {
    for count in 1..=20 {
        for replicas in 1..=count.min(3) {
            let fresh = Scene::fresh(nodes(count), replicas);
            let joined = fresh.after(&fresh.plan().map, nodes(count + 1));
            let left = joined.after(&joined.plan().map, nodes(count + 1)[1..].to_vec());
            for scene in [fresh, joined, left] {
                promises::all(&scene, &scene.plan()).unwrap();
            }
        }
    }
}

/// The least weight that any plan moves that is as well balanced as it must be: a node keeps at most
/// what it has, and at most its limit, and a node that joins gets 0.9 of the mean.
fn least_moved(scene: &Scene, plan: &Plan) -> f64 {
    let highest = plan.balance.least.max(1.1) * scene.mean();
    let previous = scene.previous.as_ref().unwrap();
    let kept = |node: &Candidate| {
        let held = scene.weight(previous.shards_of(&node.id).iter());
        held.min(highest * capacity(node))
    };
    let all = scene.weight(ShardId::all()) * scene.replicas as f64;
    let excess = all - scene.nodes.iter().map(kept).sum::<f64>();
    let is_new = |node: &&Candidate| previous.shards_of(&node.id).is_empty();
    let lacking = scene.nodes.iter().filter(is_new).map(capacity).sum::<f64>();
    excess.max(0.9 * scene.mean() * lacking)
}

/// P4.
#[test]
fn a_fifth_node_moves_hardly_more_than_the_least_weight() {
    let check = |weights: ShardWeights, replicas| {
        let fresh = Scene {
            weights,
            ..Scene::fresh(nodes(4), replicas)
        };
        let joined = fresh.after(&fresh.plan().map, nodes(5));
        let plan = joined.plan();
        let moves = moves(joined.previous.as_ref(), &plan.map);
        let moved = joined.weight(moves.iter().map(|one| one.shard));
        let least = least_moved(&joined, &plan);
        if moved > 1.1 * least {
            return Err(format!("P4: {moved} moved, the least is {least}"));
        }
        promises::all(&joined, &plan)
    };
    for replicas in 1..=3 {
        check(ShardWeights::EQUAL, replicas).unwrap();
        check(text_weights(), replicas).unwrap();
    }
    each_seed(|rng| {
        let weights = std::array::from_fn(|_| rng.u64(1_000..5_000));
        check(ShardWeights::new(weights), rng.usize(1..=3))
    });
}

/// P4: a shard of a tenth of the mean always fits, since nodes may have that much above it.
#[test]
fn with_light_shards_nodes_give_up_hardly_more_than_they_must() {
    each_seed(|rng| {
        let weights = std::array::from_fn(|_| rng.u64(1_000..5_000));
        let mut scene = Scene {
            weights: ShardWeights::new(weights),
            ..Scene::fresh(nodes(rng.usize(1..6)), 1)
        };
        for _ in 0..STEPS {
            scene = scene.after(&scene.plan().map, nodes(rng.usize(1..8)));
            let plan = scene.plan();
            promises::all(&scene, &plan)?;
            let weights = ShardId::all().map(|shard| scene.weight([shard]));
            if weights.fold(0.0, f64::max) < 0.09 * scene.mean() {
                promises::p4_nodes_give_up_their_excess_only(&scene, &plan)?;
                promises::p8_no_node_is_short(&scene, &plan)?;
            }
            scene.weights = grown(rng, &scene.weights);
        }
        Ok(())
    });
}

/// P3: shards of real texts always fit, whatever comes and goes.
#[test]
fn clusters_of_real_texts_are_always_good() {
    each_seed(|rng| {
        let mut weights = std::array::from_fn(|_| rng.u64(500..5_000));
        weights[rng.usize(..256)] = weights.iter().sum::<u64>() / 256 * rng.u64(5..=10);
        let replicas = rng.usize(1..=3);
        let mut scene = Scene {
            weights: ShardWeights::new(weights),
            ..Scene::fresh(nodes(rng.usize(3..6)), replicas)
        };
        for _ in 0..STEPS {
            let plan = scene.plan();
            let balance = plan.balance;
            if balance.after > balance.least.max(1.1) + 1e-6 {
                return Err(format!("P3: {balance:?} with {} nodes", scene.nodes.len()));
            }
            scene = scene.after(&plan.map, nodes(rng.usize(replicas..12)));
            scene.weights = grown(rng, &scene.weights);
        }
        Ok(())
    });
}

/// What is moved in any case is moved once, and what comes back was not away.
#[test]
fn fewer_replicas_move_nothing_and_more_move_what_is_missing() {
    each_seed(|rng| {
        let weights = std::array::from_fn(|_| rng.u64(1_000..5_000));
        let nodes = nodes(rng.usize(5..12));
        let mut scene = Scene {
            weights: ShardWeights::new(weights),
            ..Scene::fresh(nodes, 3)
        };
        let three = scene.plan();
        scene.replicas = 1;
        scene.previous = Some(three.map);
        let one = scene.plan();
        promises::all(&scene, &one)?;
        let moves = moves(scene.previous.as_ref(), &one.map).len();
        if moves > 0 {
            return Err(format!("{moves} moves"));
        }
        Ok(())
    });
}
