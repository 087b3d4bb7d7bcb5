//! A picture of who holds what, for a terminal:
//!
//! ```text
//! node  shards  stored
//! n1    00-55     1204  ▂▁▁▄█▁▁▂
//! ```
//!
//! Each column of the bar chart is a run of shards, as high as the documents in
//! it compared with the fullest run of all nodes.

use std::fmt::Write;

use simshard_client::v1::{NodeShards, NodeState};
use simshard_runtime::terminal::escaped;
use simshard_topology::{ShardId, ShardSet};

/// Shards of one column.
const RUN: usize = 4;

/// Heights of a column, from empty to full.
const HEIGHTS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A line a node. Replicas without tables have a column if there are any.
pub(crate) fn picture(nodes: &[NodeShards]) -> String {
    let rows: Vec<Row> = nodes.iter().map(Row::of).collect();
    let width = |cell: fn(&Row) -> &String, title: &str| {
        let longest = rows.iter().map(|row| cell(row).chars().count()).max();
        longest.unwrap_or(0).max(title.len())
    };
    let name = width(|row| &row.name, "node");
    let shards = width(|row| &row.shards, "shards");
    let cold = width(|row| &row.cold, "cold");
    let stored = width(|row| &row.stored, "stored");
    let fullest = nodes.iter().flat_map(columns).max().unwrap_or(0);
    let has_cold = nodes.iter().any(|node| !node.cold_shards.is_empty());
    let cold_cell = |cell: &str| {
        if has_cold {
            format!("  {cell:cold$}")
        } else {
            String::new()
        }
    };

    let mut picture = format!(
        "{:name$}  {:shards$}{}  {:>stored$}\n",
        "node",
        "shards",
        cold_cell("cold"),
        "stored"
    );
    for (node, row) in nodes.iter().zip(&rows) {
        let bars: String = columns(node).map(|count| height(count, fullest)).collect();
        let (a, b, c, d) = (&row.name, &row.shards, cold_cell(&row.cold), &row.stored);
        let line = format!("{a:name$}  {b:shards$}{c}  {d:>stored$}  {bars}");
        let _ = writeln!(picture, "{}", line.trim_end());
    }
    picture
}

/// The cells of a node.
struct Row {
    name: String,
    shards: String,
    cold: String,
    stored: String,
}

impl Row {
    fn of(node: &NodeShards) -> Self {
        let stored = match node.state() {
            NodeState::Serving => node.document_counts.iter().sum::<u64>().to_string(),
            NodeState::Unreachable => "unreachable".to_owned(),
            NodeState::CorpusNotLoaded => "does not hold it".to_owned(),
            NodeState::OtherRecords => "has other records".to_owned(),
            NodeState::Unspecified => "unknown".to_owned(),
        };
        Self {
            name: escaped(&node.node).into_owned(),
            shards: ranges(&node.shards),
            cold: ranges(&node.cold_shards),
            stored,
        }
    }
}

fn ranges(shards: &[u32]) -> String {
    let shards = shards.iter().filter_map(|&shard| u8::try_from(shard).ok());
    shards.map(ShardId).collect::<ShardSet>().to_string()
}

fn columns(node: &NodeShards) -> impl Iterator<Item = u64> {
    node.document_counts.chunks(RUN).map(|run| run.iter().sum())
}

fn height(count: u64, fullest: u64) -> char {
    if count == 0 || fullest == 0 {
        return HEIGHTS[0];
    }
    let top = HEIGHTS.len() as u64 - 1;
    HEIGHTS[(count * top).div_ceil(fullest).min(top) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_stand_below_each_other_with_their_fullest_runs() {
        let node = |name: &str, first: u32, counts: &[u64]| NodeShards {
            node: name.to_owned(),
            address: String::new(),
            state: if counts.is_empty() {
                NodeState::Unreachable.into()
            } else {
                NodeState::Serving.into()
            },
            shards: (first..first + 8).collect(),
            document_counts: counts.to_vec(),
            cold_shards: Vec::new(),
        };
        let nodes = [
            node("n1", 0, &[1, 1, 1, 1, 0, 0, 0, 0]),
            node("node-2", 8, &[0, 0, 0, 1, 2, 2, 2, 2]),
            node("n3", 16, &[]),
        ];
        let expected = "\
node    shards       stored
n1      00-07             4  ▄·
node-2  08-0f             9  ▁█
n3      10-17   unreachable
";
        assert_eq!(picture(&nodes), expected);
    }

    #[test]
    fn a_node_with_other_records_is_no_unreachable_one() {
        let node = NodeShards {
            node: "n1".to_owned(),
            state: NodeState::OtherRecords.into(),
            ..NodeShards::default()
        };
        let picture = picture(&[node]);
        assert!(picture.contains("  has other records\n"), "{picture}");
    }

    #[test]
    fn replicas_without_tables_have_a_column_if_there_are_any() {
        let node = |name: &str, shards: &[u32], cold: &[u32]| NodeShards {
            node: name.to_owned(),
            state: NodeState::Serving.into(),
            shards: shards.to_vec(),
            document_counts: vec![1; shards.len()],
            cold_shards: cold.to_vec(),
            ..NodeShards::default()
        };
        let nodes = [node("n1", &[0, 1, 2, 3], &[]), node("n2", &[], &[0, 1, 7])];
        let expected = "\
node  shards  cold      stored
n1    00-03   none           4  █
n2    none    00-01,07       0
";
        assert_eq!(picture(&nodes), expected);
    }
}
