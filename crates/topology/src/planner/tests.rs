//! Plans, versions and refusals by example; the promises are in `tests/planner/`.

use std::num::NonZeroU32;

use super::*;

fn named(names: &[&str]) -> Vec<NodeId> {
    names
        .iter()
        .map(|name| NodeId::new(name).unwrap())
        .collect()
}

fn candidates(count: usize) -> Vec<Candidate> {
    let name = |i| NodeId::new(&format!("n{i:03}")).unwrap();
    (0..count).map(name).map(Candidate::new).collect()
}

fn capacity(capacity: u32) -> NonZeroU32 {
    NonZeroU32::new(capacity).unwrap()
}

/// All shards weigh 1, but some.
fn weights(some: &[(u8, u64)]) -> ShardWeights {
    let mut weights = [1; ShardId::COUNT];
    for &(shard, weight) in some {
        weights[usize::from(shard)] = weight;
    }
    ShardWeights::new(weights)
}

/// The shards of each node, in name order.
fn shown(map: &ShardMap) -> Vec<String> {
    map.nodes()
        .iter()
        .map(|node| format!("{node} {}", map.shards_of(node)))
        .collect()
}

/// How many replicas are on other nodes by the second map.
fn gained(before: &ShardMap, after: &ShardMap) -> usize {
    let new = |shard| {
        let (old, new) = (before.replicas(shard), after.replicas(shard));
        new.iter().filter(|node| !old.contains(node)).count()
    };
    ShardId::all().map(new).sum()
}

#[test]
fn from_scratch_each_node_gets_one_range_in_name_order() {
    let map = plan_evenly(None, &named(&["n3", "n1", "n2"]), 1).unwrap();
    assert_eq!(shown(&map), ["n1 00-55", "n2 56-aa", "n3 ab-ff"]);
    assert_eq!(map.version(), 1);
}

#[test]
fn the_version_grows_only_when_an_assignment_changes() {
    let three = plan_evenly(None, &named(&["a", "b", "c"]), 2).unwrap();
    let same = plan_evenly(Some(&three), &named(&["c", "b", "a"]), 2).unwrap();
    assert_eq!(same, three);
    let four = plan_evenly(Some(&three), &named(&["a", "b", "c", "d"]), 2).unwrap();
    assert_eq!(four.version(), 2);
    let strangers = plan_evenly(Some(&four), &named(&["x", "y"]), 2).unwrap();
    assert_eq!(strangers.version(), 3);
}

#[test]
fn nodes_that_join_many_others_get_their_part() {
    let nodes = candidates(80);
    for (before, after, fewest) in [(64, 80, 3), (32, 33, 7), (10, 11, 21), (20, 21, 11)] {
        let first = plan(None, &nodes[..before], &ShardWeights::EQUAL, 1).unwrap();
        let joined = plan(Some(&first.map), &nodes[..after], &ShardWeights::EQUAL, 1).unwrap();
        let held = |node: &Candidate| joined.map.shards_of(&node.id).len();
        let least = nodes[..after].iter().map(held).min();
        assert!(least >= Some(fewest), "{before} to {after}: {least:?}");
        let (moved, joining) = (gained(&first.map, &joined.map), after - before);
        assert!(moved <= joining * (fewest + 2), "{moved} moves");
        assert!(joined.balance.after <= joined.balance.before.unwrap());
    }
}

#[test]
fn dropping_to_fewer_replicas_moves_nothing() {
    let nodes = candidates(5);
    let three = plan(None, &nodes, &ShardWeights::EQUAL, 3).unwrap();
    let two = plan(Some(&three.map), &nodes, &ShardWeights::EQUAL, 2).unwrap();
    assert_eq!(gained(&three.map, &two.map), 0);
    let fresh = plan(None, &nodes, &ShardWeights::EQUAL, 2).unwrap();
    assert_eq!(shown(&two.map), shown(&fresh.map));
    assert_eq!(two.map.version(), 2);
}

#[test]
fn impossible_requests_are_refused_with_what_to_do() {
    let two = named(&["a", "b"]);
    let crowd: Vec<NodeId> = (0..257)
        .map(|i| NodeId::new(&format!("n{i}")).unwrap())
        .collect();
    let cases = [
        (
            plan_evenly(None, &two, 0),
            "0 replicas asked for, ask for at least 1",
        ),
        (
            plan_evenly(None, &[], 1),
            "no nodes to place 256 shards on, name at least one",
        ),
        (
            plan_evenly(None, &two, 3),
            "3 replicas need as many nodes but there are 2, add nodes or ask for fewer replicas",
        ),
        (
            plan_evenly(None, &named(&["a", "b", "a"]), 1),
            "node a is listed twice, list each node once",
        ),
        (
            plan_evenly(None, &crowd, 1),
            "257 nodes cannot each hold one of 256x1 replicas, use at most 256 nodes",
        ),
    ];
    for (result, message) in cases {
        assert_eq!(result.unwrap_err().to_string(), message);
    }
    assert_eq!(plan_evenly(None, &crowd, 2).unwrap().nodes().len(), 257);
}

/// P3: bounds that can be computed by hand.
#[test]
fn the_least_balance_follows_from_the_heaviest_shards_and_from_distinct_nodes() {
    let least = |nodes: &[Candidate], weights: &ShardWeights, replicas| {
        let balance = plan(None, nodes, weights, replicas).unwrap().balance;
        assert!(balance.after >= balance.least - 1e-9, "{balance:?}");
        balance.least
    };
    let is =
        |least: f64, expected: f64| assert!((least - expected).abs() < 1e-9, "{least} {expected}");
    let mut nodes = candidates(4);
    is(least(&nodes, &ShardWeights::EQUAL, 3), 1.0);
    // The heaviest shard alone on a node, and one of each replica on two.
    let heavy = weights(&[(9, 745)]);
    is(least(&nodes, &heavy, 1), 745.0 / 250.0);
    is(least(&nodes, &heavy, 2), 745.0 / 500.0);
    // Two of five heavy shards share a node.
    let five = weights(&[(1, 1000), (2, 1000), (3, 1000), (4, 1000), (5, 1000)]);
    is(least(&nodes, &five, 1), 2000.0 / (5251.0 / 4.0));
    // The largest node takes the heaviest shard.
    nodes[3] = nodes[3].clone().with_capacity(capacity(2));
    is(least(&nodes, &heavy, 1), (745.0 / 2.0) / 200.0);
    // A node has a shard once, so the others share the second replicas.
    nodes[3] = nodes[3].clone().with_capacity(capacity(9));
    is(least(&nodes, &weights(&[(0, 45)]), 2), 100.0 / 50.0);
    // Of two zones each has a replica, also the one of a single node.
    let zoned = candidates(3).into_iter().zip(["a", "b", "b"]);
    let zoned: Vec<Candidate> = zoned.map(|(node, zone)| node.in_zone(zone)).collect();
    is(least(&zoned, &ShardWeights::EQUAL, 2), 1.5);
}

/// P8: a zone of three nodes takes no more than one of a single node.
#[test]
fn nodes_of_one_zone_share_what_the_zone_takes() {
    let zones = |names: &[&str]| {
        let nodes = candidates(names.len()).into_iter().zip(names);
        nodes
            .map(|(node, zone)| node.in_zone(zone))
            .collect::<Vec<_>>()
    };
    let four = ["a", "b", "c", "b"];
    let first = plan(None, &zones(&four), &ShardWeights::EQUAL, 3).unwrap();
    let joined = plan(
        Some(&first.map),
        &zones(&["a", "b", "c", "b", "a", "a"]),
        &ShardWeights::EQUAL,
        3,
    )
    .unwrap();
    let shards = |node: usize| joined.map.shards_of(&candidates(6)[node].id).len();
    let held: Vec<usize> = [0, 4, 5].map(shards).to_vec();
    assert!(
        held.iter().all(|shards| *shards >= 256 * 8 / 30),
        "{held:?}"
    );
}

/// P2.
#[test]
fn what_zones_cannot_meet_is_said() {
    let said = |zones: &[&str], replicas: usize| {
        let nodes = candidates(zones.len()).into_iter().zip(zones);
        let nodes: Vec<Candidate> = nodes.map(|(node, zone)| node.in_zone(zone)).collect();
        let unmet = plan(None, &nodes, &ShardWeights::EQUAL, replicas)
            .unwrap()
            .unmet;
        unmet.iter().map(Unmet::to_string).collect::<Vec<_>>()
    };
    assert_eq!(said(&["a", "b", "c", "a"], 2), [""; 0]);
    assert_eq!(
        said(&["a", "b", "a", "b"], 3),
        ["3 replicas are in 2 zones, so some zone has several of them: add zones"]
    );
    assert_eq!(
        said(&["a", "b", "b", "b"], 4),
        [
            "4 replicas are in 2 zones, so some zone has several of them: add zones",
            "zone a: 1 of the 2 nodes that its replicas need: add nodes there"
        ]
    );
    assert_eq!(
        said(&["a", "b", "b"], 2),
        ["zone a: its nodes hold at least 1.50 times the mean for their capacity: add nodes there"]
    );
    assert_eq!(
        plan(None, &candidates(3), &ShardWeights::EQUAL, 3)
            .unwrap()
            .unmet,
        []
    );
}

/// The largest plans allowed must still be quick to draw.
#[test]
fn hundreds_of_nodes_are_planned() {
    let crowd = candidates(768);
    let before = plan(None, &crowd[..300], &ShardWeights::EQUAL, 3).unwrap();
    let after = plan(Some(&before.map), &crowd, &ShardWeights::EQUAL, 3).unwrap();
    assert_eq!(after.map.nodes().len(), 768);
    assert_eq!(gained(&before.map, &after.map), 468);
}
