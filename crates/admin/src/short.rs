//! The shards that have fewer replicas, or hot ones, than are wished for.

use serde_json::json;
use simshard_topology::replication::{ShardRecord, ShardRecords};
use simshard_topology::{NodeId, ShardSet};

use crate::changes::has_stuck;
use crate::finding::{Finding, finding};
use crate::nodes::Asked;

/// Whether each shard has as many replicas in sync as are wished for.
pub(crate) fn replicas(records: &ShardRecords, asked: &Asked, drained: &[NodeId]) -> Finding {
    let takers = asked
        .iter()
        .filter(|(store, answer)| answer.is_some() && !drained.contains(&store.node));
    let most = records.values().map(|record| record.want).max();
    let advice = if has_stuck(records, asked) {
        "see `changes`"
    } else if takers.count() < usize::from(most.unwrap_or(0)) {
        "start the nodes that do not answer, undrain some, or add others"
    } else {
        "nodes copy them by themselves, and others do in the place of one that stays away: see `learners`"
    };
    short(
        "replicas",
        shards_where(records, ShardRecord::lacks_replicas),
        advice,
    )
}

/// Whether as many of them are hot.
pub(crate) fn hot(records: &ShardRecords) -> Finding {
    let advice = "replicas get hot by themselves, once enough are in sync";
    short("hot", shards_where(records, lacks_hot), advice)
}

fn lacks_hot(record: &ShardRecord) -> bool {
    let hot = record.in_sync.iter().filter(|entry| entry.hot);
    hot.count() < record.hot.min(record.want).into()
}

fn short(part: &'static str, shards: ShardSet, advice: &str) -> Finding {
    let details = if shards.is_empty() {
        "no shard is short".to_owned()
    } else {
        format!("short: {shards}: {advice}")
    };
    let facts = json!({ "short": shards.to_string() });
    finding(part, shards.is_empty(), details, facts)
}

/// The shards whose records are such.
pub(crate) fn shards_where(
    records: &ShardRecords,
    holds: impl Fn(&ShardRecord) -> bool,
) -> ShardSet {
    let shards = records.iter().filter(|(_, record)| holds(record));
    shards.map(|(shard, _)| *shard).collect()
}
