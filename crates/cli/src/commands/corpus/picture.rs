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

/// A line a node.
pub(crate) fn picture(nodes: &[NodeShards]) -> String {
    let rows: Vec<(String, String, String)> = nodes.iter().map(cells).collect();
    let width = |cell: fn(&(String, String, String)) -> &String, title: &str| {
        let longest = rows.iter().map(|row| cell(row).chars().count()).max();
        longest.unwrap_or(0).max(title.len())
    };
    let name = width(|row| &row.0, "node");
    let shards = width(|row| &row.1, "shards");
    let stored = width(|row| &row.2, "stored");
    let fullest = nodes.iter().flat_map(columns).max().unwrap_or(0);

    let mut picture = format!(
        "{:name$}  {:shards$}  {:>stored$}\n",
        "node", "shards", "stored"
    );
    for (node, row) in nodes.iter().zip(&rows) {
        let bars: String = columns(node).map(|count| height(count, fullest)).collect();
        let (a, b, c) = row;
        let line = format!("{a:name$}  {b:shards$}  {c:>stored$}  {bars}");
        let _ = writeln!(picture, "{}", line.trim_end());
    }
    picture
}

fn cells(node: &NodeShards) -> (String, String, String) {
    let shards: ShardSet = node
        .shards
        .iter()
        .filter_map(|&shard| u8::try_from(shard).ok())
        .map(ShardId)
        .collect();
    let stored = match node.state() {
        NodeState::Serving => node.document_counts.iter().sum::<u64>().to_string(),
        NodeState::Unreachable => "unreachable".to_owned(),
        NodeState::CorpusNotLoaded => "does not hold it".to_owned(),
        NodeState::Unspecified => "unknown".to_owned(),
    };
    (escaped(&node.node).into_owned(), shards.to_string(), stored)
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
}
