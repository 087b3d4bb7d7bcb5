//! `simshard cluster shards`: which nodes hold which shards.

use clap::Args;
use serde_json::{Value, json};
use simshard_admin::ReplicaGroup;
use simshard_topology::replication::Epoch;
use simshard_topology::{NodeId, ShardSet};

use super::access::ClusterAccess;
use super::listing::{Listing, show};
use super::{TableArgs, admin, node_name};
use crate::completion;

/// The arguments of `cluster shards`.
#[derive(Args, Debug)]
pub struct ShardsArgs {
    /// Only the shards that this node holds, copies or is to hold
    #[arg(long, value_name = "NODE", value_parser = node_name, add = completion::nodes())]
    node: Option<NodeId>,
    /// What all lists have.
    #[command(flatten)]
    table: TableArgs,
}

pub(super) async fn run(args: &ShardsArgs) -> anyhow::Result<()> {
    show(&args.table, async |access| {
        list(access, args.node.as_ref()).await
    })
    .await
}

async fn list(access: &ClusterAccess, node: Option<&NodeId>) -> anyhow::Result<Listing> {
    let groups = admin(access).shards(node).await?;
    let mut listing = Listing::new(head(&groups));
    for group in &groups {
        listing.push_object(json_of(group));
    }
    rows(&groups)
        .into_iter()
        .for_each(|row| listing.push_row(row));
    Ok(listing)
}

/// Whether a scrub has begun to drop tombstones of any.
fn have_floors(groups: &[ReplicaGroup]) -> bool {
    groups.iter().any(|group| group.floor.is_some())
}

fn head(groups: &[ReplicaGroup]) -> &'static str {
    if have_floors(groups) {
        "shards\tepoch\tin_sync\thot\tlearners\ttarget\tsettled"
    } else {
        "shards\tepoch\tin_sync\thot\tlearners\ttarget"
    }
}

/// Up to which version tombstones may be dropped, and what a scrub is about to settle.
fn settled(group: &ReplicaGroup) -> String {
    let settled = group.settled.map(|settled| settled.to_string());
    let open = group.floor.filter(|floor| group.settled < Some(*floor));
    let open = open.map(|floor| {
        let state = if group.is_frozen { "frozen" } else { "closed" };
        format!("{state} to {floor}")
    });
    Vec::from_iter([settled, open].into_iter().flatten()).join(", ")
}

/// A line for all shards that are alike apart from their epochs.
fn rows(groups: &[ReplicaGroup]) -> Vec<String> {
    let have_floors = have_floors(groups);
    let mut lines: Vec<(String, ShardSet, [Epoch; 2])> = Vec::new();
    for group in groups {
        let all = [&group.in_sync, &group.hot, &group.learners, &group.target];
        let mut names = all.map(|names| names.join(",")).join("\t");
        if have_floors {
            names = format!("{names}\t{}", settled(group));
        }
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
        "floor": group.floor.map(|floor| floor.to_string()),
        "frozen": group.is_frozen,
        "settled": group.settled.map(|settled| settled.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use simshard_topology::Version;

    use super::*;

    fn group(shards: &str, number: u64, holder: &str) -> ReplicaGroup {
        ReplicaGroup {
            shards: shards.parse().unwrap(),
            epoch: Epoch {
                generation: 0,
                number,
            },
            in_sync: vec![holder.to_owned()],
            hot: vec![holder.to_owned()],
            learners: Vec::new(),
            target: vec!["n9".to_owned()],
            floor: None,
            is_frozen: false,
            settled: None,
        }
    }

    #[test]
    fn shards_that_are_alike_apart_from_their_epochs_share_a_line() {
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
        assert!(head(&groups).ends_with("\ttarget"));
    }

    #[test]
    fn what_is_settled_has_a_column_once_a_scrub_has_begun_to_drop_tombstones() {
        let of = |shards, floor, is_frozen, settled: u64| ReplicaGroup {
            floor: Some(Version::at(floor)),
            is_frozen,
            settled: (settled > 0).then(|| Version::at(settled)),
            ..group(shards, 5, "n1")
        };
        let groups = [
            group("00", 5, "n1"),
            of("01", 7, false, 7),
            of("02", 9, true, 7),
            of("03", 9, false, 0),
        ];
        assert!(head(&groups).ends_with("\ttarget\tsettled"));
        let rows = rows(&groups).into_iter();
        let last = rows.map(|row| row.rsplit('\t').next().map(str::to_owned));
        let last: Vec<String> = last.flatten().collect();
        assert_eq!(last, ["", "7.0", "7.0, frozen to 9.0", "closed to 9.0"]);
        let json = json_of(&groups[2]);
        let told = ["floor", "frozen", "settled"].map(|name| &json[name]);
        assert_eq!(told, [&json!("9.0"), &json!(true), &json!("7.0")]);
        assert_eq!(json_of(&groups[0])["floor"], Value::Null);
    }
}
