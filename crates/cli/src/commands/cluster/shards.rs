//! `simshard cluster shards`: which nodes hold which shards.

use clap::Args;
use serde_json::{Value, json};
use simshard_admin::ReplicaGroup;
use simshard_cluster::KeyValueStore;
use simshard_topology::replication::Epoch;
use simshard_topology::{NodeId, ShardSet};

use super::listing::{Listing, show};
use super::{TableArgs, admin, node_name};

/// The arguments of `cluster shards`.
#[derive(Args, Debug)]
pub struct ShardsArgs {
    /// Only the shards that this node holds, copies or is to hold
    #[arg(long, value_name = "NODE", value_parser = node_name)]
    node: Option<NodeId>,
    /// What all lists have.
    #[command(flatten)]
    table: TableArgs,
}

pub(super) async fn run(args: &ShardsArgs) -> anyhow::Result<()> {
    show(&args.table, async |keys| {
        list(keys, args.node.as_ref()).await
    })
    .await
}

async fn list(keys: &dyn KeyValueStore, node: Option<&NodeId>) -> anyhow::Result<Listing> {
    let groups = admin(keys).shards(node).await?;
    let mut listing = Listing::new("shards\tepoch\tin_sync\thot\tlearners\ttarget");
    for group in &groups {
        listing.push_object(json_of(group));
    }
    rows(&groups)
        .into_iter()
        .for_each(|row| listing.push_row(row));
    Ok(listing)
}

/// A line for all shards that are alike apart from their epochs.
fn rows(groups: &[ReplicaGroup]) -> Vec<String> {
    let mut lines: Vec<(String, ShardSet, [Epoch; 2])> = Vec::new();
    for group in groups {
        let all = [&group.in_sync, &group.hot, &group.learners, &group.target];
        let names = all.map(|names| names.join(",")).join("\t");
        match lines.iter_mut().find(|(alike, ..)| *alike == names) {
            Some((_, shards, [first, last])) => {
                *shards = shards.union(&group.shards);
                *first = group.epoch.min(*first);
                *last = group.epoch.max(*last);
            }
            None => lines.push((names, group.shards, [group.epoch; 2])),
        }
    }
    let rows = lines.iter().map(|(names, shards, [first, last])| {
        let epochs = if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        };
        format!("{shards}\t{epochs}\t{names}")
    });
    rows.collect()
}

fn json_of(group: &ReplicaGroup) -> Value {
    json!({
        "shards": group.shards.to_string(),
        "epoch": group.epoch.to_string(),
        "in_sync": group.in_sync,
        "hot": group.hot,
        "learners": group.learners,
        "target": group.target,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_that_are_alike_apart_from_their_epochs_share_a_line() {
        let group = |shards: &str, number, holder: &str| ReplicaGroup {
            shards: shards.parse().unwrap(),
            epoch: Epoch {
                generation: 0,
                number,
            },
            in_sync: vec![holder.to_owned()],
            hot: vec![holder.to_owned()],
            learners: Vec::new(),
            target: vec!["n9".to_owned()],
        };
        let groups = [
            group("00-0f", 7, "n1"),
            group("10-1f", 5, "n2"),
            group("20-2f", 4, "n1"),
            group("30", 5, "n1"),
        ];
        assert_eq!(
            rows(&groups),
            [
                "00-0f,20-30\t0.4-0.7\tn1\tn1\t\tn9",
                "10-1f\t0.5\tn2\tn2\t\tn9"
            ]
        );
    }
}
