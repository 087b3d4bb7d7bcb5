//! What a plan gives each node, as a table.

use std::collections::BTreeSet;

use serde_json::json;
use simshard_topology::{Balance, NodeId, Plan, ShardMap, ShardSet};

use super::layout::Layout;
use crate::args::JsonArgs;
use crate::say::{self, note, warn};

/// Prints how many shards and documents each node holds, before and after, and how much it copies. It says how even that is.
pub(super) fn print(layout: &Layout, plan: &Plan, output: JsonArgs) -> anyhow::Result<()> {
    print_map(layout, &plan.map, output)?;
    note(balance(plan.balance));
    warn_of_unmet(layout, plan);
    Ok(())
}

/// Warns of what was wanted, and cannot be had with the nodes there are.
pub(super) fn warn_of_unmet(layout: &Layout, plan: &Plan) {
    for unmet in &plan.unmet {
        warn(format!("warning: {unmet}"));
    }
    for node in layout.left_out() {
        warn(format!(
            "warning: {node} does not answer, so it gets no shards: start it and run this command again, or drain it"
        ));
    }
}

/// The same of a map that is no plan.
pub(super) fn print_map(layout: &Layout, after: &ShardMap, output: JsonArgs) -> anyhow::Result<()> {
    let before = &layout.map;
    let nodes: BTreeSet<&NodeId> = before.nodes().iter().chain(after.nodes()).collect();
    let mut text =
        "node\tshards before\tshards after\tdocuments before\tdocuments after\tto copy\tbytes to copy"
            .to_owned();
    let documents = |shards: ShardSet| layout.documents(shards);
    for node in nodes {
        let (old, new) = (before.shards_of(node), after.shards_of(node));
        let copied = new.difference(&old);
        if output.json {
            say::print_json(&json!({
                "node": node.to_string(),
                "before": old.to_string(),
                "after": new.to_string(),
                "documents_before": documents(old),
                "documents_after": documents(new),
                "to_copy": copied.len(),
                "documents_to_copy": documents(copied),
                "bytes_to_copy": layout.bytes(copied),
            }))?;
        } else {
            let (many_old, many_new) = (documents(old), documents(new));
            let bytes = layout.bytes(copied);
            let (old, new, copied) = (old.len(), new.len(), copied.len());
            text.push_str(&format!(
                "\n{node}\t{old}\t{new}\t{many_old}\t{many_new}\t{copied}\t{bytes}"
            ));
        }
    }
    if output.json {
        return Ok(());
    }
    say::print(&text)
}

/// How even a plan is, in a sentence.
fn balance(balance: Balance) -> String {
    let before = balance.before.unwrap_or(1.0);
    format!(
        "the fullest node has {before:.2} times the mean, and {:.2} times after it; no plan gets below {:.2}",
        balance.after, balance.least
    )
}
