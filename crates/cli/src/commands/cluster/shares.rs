//! What a plan gives each node, as a table.

use std::collections::BTreeSet;

use serde_json::json;
use simshard_topology::{NodeId, ShardMap};

use crate::args::JsonArgs;
use crate::say;

/// Prints how many shards each node holds, before and after, and how many it copies.
pub(super) fn print(before: &ShardMap, after: &ShardMap, output: JsonArgs) -> anyhow::Result<()> {
    let nodes: BTreeSet<&NodeId> = before.nodes().iter().chain(after.nodes()).collect();
    let mut text = "node\tshards before\tshards after\tto copy".to_owned();
    for node in nodes {
        let (old, new) = (before.shards_of(node), after.shards_of(node));
        let copied = new.difference(&old).len();
        if output.json {
            say::print_json(&json!({
                "node": node.to_string(),
                "before": old.to_string(),
                "after": new.to_string(),
                "to_copy": copied,
            }))?;
        } else {
            text.push_str(&format!("\n{node}\t{}\t{}\t{copied}", old.len(), new.len()));
        }
    }
    if output.json {
        return Ok(());
    }
    say::print(&text)
}
