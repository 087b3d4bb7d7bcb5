//! Plans, versions, refusals and moves by example; the promises are in `tests/properties.rs`.

use super::*;

fn named(names: &[&str]) -> Vec<NodeId> {
    names
        .iter()
        .map(|name| NodeId::new(name).unwrap())
        .collect()
}

/// The shards of each node, in name order.
fn shown(map: &ShardMap) -> Vec<String> {
    map.nodes()
        .iter()
        .map(|node| format!("{node} {}", map.shards_of(node)))
        .collect()
}

#[test]
fn from_scratch_each_node_gets_one_range_in_name_order() {
    let map = plan(None, &named(&["n3", "n1", "n2"]), 1).unwrap();
    assert_eq!(shown(&map), ["n1 00-55", "n2 56-aa", "n3 ab-ff"]);
    assert_eq!(map.version(), 1);
}

#[test]
fn the_version_grows_only_when_an_assignment_changes() {
    let three = plan(None, &named(&["a", "b", "c"]), 2).unwrap();
    let same = plan(Some(&three), &named(&["c", "b", "a"]), 2).unwrap();
    assert_eq!(same, three);
    let four = plan(Some(&three), &named(&["a", "b", "c", "d"]), 2).unwrap();
    assert_eq!(four.version(), 2);
    let strangers = plan(Some(&four), &named(&["x", "y"]), 2).unwrap();
    assert_eq!(strangers.version(), 3);
}

#[test]
fn a_node_that_cannot_lower_the_cap_receives_nothing() {
    let names: Vec<String> = (100..165).map(|i| format!("n{i}")).collect();
    let nodes = named(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let before = plan(None, &nodes[..64], 1).unwrap();
    assert_eq!(plan(Some(&before), &nodes, 1), Ok(before));
}

#[test]
fn dropping_to_fewer_replicas_moves_nothing() {
    let nodes = named(&["a", "b", "c", "d", "e"]);
    let three = plan(None, &nodes, 3).unwrap();
    let two = plan(Some(&three), &nodes, 2).unwrap();
    assert_eq!(moves(Some(&three), &two), []);
    assert_eq!(shown(&two), shown(&plan(None, &nodes, 2).unwrap()));
    assert_eq!(two.version(), 2);
}

#[test]
fn impossible_requests_are_refused_with_what_to_do() {
    let two = named(&["a", "b"]);
    let crowd: Vec<NodeId> = (0..257)
        .map(|i| NodeId::new(&format!("n{i}")).unwrap())
        .collect();
    let cases = [
        (
            plan(None, &two, 0),
            "0 replicas asked for, ask for at least 1",
        ),
        (
            plan(None, &[], 1),
            "no nodes to place 256 shards on, name at least one",
        ),
        (
            plan(None, &two, 3),
            "3 replicas need as many nodes but there are 2, add nodes or ask for fewer replicas",
        ),
        (
            plan(None, &named(&["a", "b", "a"]), 1),
            "node a is listed twice, list each node once",
        ),
        (
            plan(None, &crowd, 1),
            "257 nodes cannot each hold one of 256x1 replicas, use at most 256 nodes",
        ),
    ];
    for (result, message) in cases {
        assert_eq!(result.unwrap_err().to_string(), message);
    }
    assert_eq!(plan(None, &crowd, 2).unwrap().nodes().len(), 257);
}

#[test]
fn moves_name_the_replica_that_is_replaced() {
    let two = plan(None, &named(&["a", "b"]), 1).unwrap();
    let first = moves(None, &two);
    assert_eq!(first.len(), 256);
    assert!(first.iter().all(|change| change.from.is_none()));

    let other = plan(Some(&two), &named(&["a", "c"]), 1).unwrap();
    let swapped = moves(Some(&two), &other);
    assert_eq!(swapped.len(), 128);
    for change in swapped {
        assert_eq!(change.from.as_ref().map(NodeId::as_str), Some("b"));
        assert_eq!(change.to.as_str(), "c");
    }

    let grown = plan(Some(&two), &named(&["a", "b"]), 2).unwrap();
    assert_eq!(moves(Some(&two), &grown).len(), 256);
    assert_eq!(moves(Some(&grown), &two), []);
}

/// The largest plans allowed must still be quick to draw.
#[test]
fn hundreds_of_nodes_are_planned() {
    let crowd: Vec<NodeId> = (0..768)
        .map(|i| NodeId::new(&format!("n{i:03}")).unwrap())
        .collect();
    let before = plan(None, &crowd[..300], 3).unwrap();
    let after = plan(Some(&before), &crowd, 3).unwrap();
    assert_eq!(after.nodes().len(), 768);
    assert_eq!(moves(Some(&before), &after).len(), 468);
}
