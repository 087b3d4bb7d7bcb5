//! Plans a person can read, compared with the files in `golden/`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p simshard-topology --test golden` rewrites them; read the
//! difference before committing it.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use simshard_topology::{NodeId, ShardMap, ShardSet, moves, plan};

/// Nodes `n1` to `n<count>`.
fn nodes(count: usize) -> Vec<NodeId> {
    (1..=count)
        .map(|i| NodeId::new(&format!("n{i}")).unwrap())
        .collect()
}

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

/// One line per pair of nodes: the shards that pass from one to the other.
fn describe_moves(before: &ShardMap, after: &ShardMap) -> String {
    let all = moves(Some(before), after);
    let mut text = format!("{} moves\n", all.len());
    let mut grouped: BTreeMap<(String, NodeId), ShardSet> = BTreeMap::new();
    for change in all {
        let from = change
            .from
            .map_or("new".to_owned(), |node| node.to_string());
        grouped
            .entry((from, change.to))
            .or_default()
            .insert(change.shard);
    }
    for ((from, to), shards) in grouped {
        writeln!(
            text,
            "  {from} -> {to}  {:3} shards  {shards}",
            shards.len()
        )
        .unwrap();
    }
    text
}

fn fresh(count: usize, replicas: usize) -> String {
    let map = plan(None, &nodes(count), replicas).unwrap();
    format!(
        "nodes: {count}, from scratch, replicas: {replicas}\n\n{}",
        describe_nodes(&map)
    )
}

fn change(title: &str, before: &[NodeId], after: &[NodeId], replicas: usize) -> String {
    let old = plan(None, before, replicas).unwrap();
    let new = plan(Some(&old), after, replicas).unwrap();
    format!(
        "{title}, replicas: {replicas}\n\n{}\n{}\n{}",
        describe_nodes(&old),
        describe_nodes(&new),
        describe_moves(&old, &new)
    )
}

fn compare(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
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

#[test]
fn fresh_plans_are_as_recorded() {
    for count in [1, 2, 3, 5] {
        compare(&format!("fresh_{count}.txt"), &fresh(count, 1));
    }
    compare("fresh_5_rf3.txt", &fresh(5, 3));
}

#[test]
fn joins_and_leaves_are_as_recorded() {
    let six = nodes(6);
    compare(
        "join_3_to_4.txt",
        &change("n4 joins", &six[..3], &six[..4], 1),
    );
    compare(
        "join_3_to_5.txt",
        &change("n4 and n5 join", &six[..3], &six[..5], 1),
    );
    let without_n2 = [six[0].clone(), six[2].clone(), six[3].clone()];
    compare(
        "leave_4_to_3.txt",
        &change("n2 leaves", &six[..4], &without_n2, 1),
    );
    compare(
        "join_5_to_6_rf3.txt",
        &change("n6 joins", &six[..5], &six, 3),
    );
    compare(
        "leave_5_to_4_rf3.txt",
        &change("n5 leaves", &six[..5], &six[..4], 3),
    );
    compare(
        "join_3_to_4_rf3.txt",
        &change("n4 joins", &six[..3], &six[..4], 3),
    );
}

/// A node that joins and leaves again.
#[test]
fn there_and_back_is_as_recorded() {
    let four = nodes(4);
    let three = plan(None, &four[..3], 1).unwrap();
    let joined = plan(Some(&three), &four, 1).unwrap();
    let left = plan(Some(&joined), &four[..3], 1).unwrap();
    let text = format!(
        "n4 joins, then leaves, replicas: 1\n\n{}\n{}\n{}\n{}",
        describe_nodes(&three),
        describe_nodes(&joined),
        describe_nodes(&left),
        describe_moves(&joined, &left)
    );
    compare("join_and_leave.txt", &text);
}
