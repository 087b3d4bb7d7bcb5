//! `simshard cluster upgrade`: which versions run, and the level that they permit the cluster.

use std::collections::BTreeSet;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use simshard_cluster::{KeyValueStore, RegisteredStore, RunningProcess, Upgrade};
use simshard_topology::NodeId;

use super::listing::{Listing, show};
use super::nodes::ask;
use super::status::{Asked, Finding, finding};
use super::{MetadataArgs, TableArgs, node_name, repeat_if_raced};
use crate::completion;
use crate::confirmation::Confirmation;
use crate::say::note;

/// The verbs of `cluster upgrade`.
#[derive(Debug, Subcommand)]
pub enum UpgradeCommand {
    /// List the versions of nodes and routers, and what keeps the level from rising, as TSV
    #[command(after_help = "\
A version knows some levels of a cluster. At each level it writes what all
versions that know the level understand. A node or router is `ready` if it runs
and knows the newest level that this program knows. Routers of versions before
level 2 do not show themselves: they are missing in the list.")]
    Status(TableArgs),
    /// Raise the level of the cluster to the newest one that this program knows
    #[command(after_help = "\
It is refused while a node is of an earlier version, or does not run, and while
a router runs that does not know the new level. It cannot be taken back:
versions that do not know the level do not start any more. No process needs a
restart. Lost nodes that cannot be removed yet can be named by --stopped.

Routers of versions before level 2 do not show themselves. So the command asks
whether any runs. In scripts, --yes says that none does.")]
    Finalize(FinalizeArgs),
}

/// Arguments of `cluster upgrade finalize`.
#[derive(Args, Debug)]
pub struct FinalizeArgs {
    /// Whether it asks.
    #[command(flatten)]
    pub confirmation: Confirmation,
    /// Nodes that do not run, such as those that are lost: they start with a version that knows the level, or never
    #[arg(long, value_name = "NODE,…", value_delimiter = ',', value_parser = node_name, add = completion::nodes())]
    pub stopped: Vec<NodeId>,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

pub(super) async fn run(command: &UpgradeCommand) -> anyhow::Result<()> {
    match command {
        UpgradeCommand::Status(args) => show(args, list).await,
        UpgradeCommand::Finalize(args) => finalize(args).await,
    }
}

/// A node or a router.
struct Row {
    role: &'static str,
    name: String,
    process: Option<RunningProcess>,
    /// Whether it runs, as far as can be seen.
    answers: bool,
    /// Why the level cannot be raised yet.
    problem: Option<String>,
}

/// The nodes, then the routers.
fn rows(upgrade: &Upgrade, asked: &Asked) -> Vec<Row> {
    let nodes = upgrade.nodes.iter().map(|(store, process)| {
        let answers = answers(asked, store);
        Row {
            role: "node",
            name: store.node.to_string(),
            process: process.clone(),
            answers,
            problem: problem(upgrade, process.as_ref(), answers, &store.node),
        }
    });
    let routers = upgrade.routers.iter().map(|process| {
        let name = process.router.clone().unwrap_or_default();
        Row {
            role: "router",
            problem: problem(upgrade, Some(process), true, &name),
            process: Some(process.clone()),
            answers: true,
            name,
        }
    });
    nodes.chain(routers).collect()
}

/// Whether the node of a store answered.
fn answers(asked: &Asked, store: &RegisteredStore) -> bool {
    let mut asked = asked.iter();
    asked.any(|(other, reports)| other.id == store.id && reports.is_some())
}

/// What keeps the level from being raised, of a process.
fn problem(
    upgrade: &Upgrade,
    process: Option<&RunningProcess>,
    answers: bool,
    name: &impl ToString,
) -> Option<String> {
    let name = name.to_string();
    if !answers {
        return Some(format!(
            "does not answer: start it with this version; if it is gone for good, forget it by `simshard cluster remove {name}`, or \
             give --stopped {name}"
        ));
    }
    let next = upgrade.next;
    match process {
        None => Some("runs an earlier version: upgrade it".to_owned()),
        Some(process) if !process.knows(next) => {
            Some(format!("does not know level {next}: upgrade it"))
        }
        Some(_) => None,
    }
}

impl Row {
    fn columns(&self, next: u32) -> String {
        let process = self.process.as_ref();
        let version = process.map_or("", |process| &process.version);
        let levels = process.map_or_else(String::new, levels);
        let ready = yes(self.problem.is_none());
        let knows = || format!("knows level {next}");
        let details = self.problem.clone().unwrap_or_else(knows);
        format!(
            "{}\t{}\t{version}\t{levels}\t{ready}\t{details}",
            self.role, self.name
        )
    }

    fn json(&self) -> Value {
        let process = self.process.as_ref();
        json!({
            "role": self.role,
            "name": self.name,
            "version": process.map(|process| &process.version),
            "oldest": process.map(|process| process.oldest),
            "newest": process.map(|process| process.newest),
            "ready": self.problem.is_none(),
            "problem": self.problem,
        })
    }
}

fn levels(process: &RunningProcess) -> String {
    format!("{}-{}", process.oldest, process.newest)
}

const fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

async fn list(keys: &dyn KeyValueStore) -> anyhow::Result<Listing> {
    let upgrade = Upgrade::read(keys).await?;
    let rows = rows(&upgrade, &ask(keys).await?);
    let waits_for = rows.iter().filter(|row| row.problem.is_some());
    let waits_for: Vec<&str> = waits_for.map(|row| &*row.name).collect();
    let mut listing = Listing::new("role\tname\tversion\tlevels\tready\tdetails");
    let Upgrade { level, next, .. } = upgrade;
    let is_ready = waits_for.is_empty();
    let details = if level == next {
        "the newest level that this program knows".to_owned()
    } else if is_ready {
        format!("`simshard cluster upgrade finalize` raises it to {next}")
    } else {
        format!(
            "to be at level {next}, it waits for {}",
            waits_for.join(",")
        )
    };
    let ready = yes(is_ready);
    listing.push(
        format!("cluster\t\t\t{level}\t{ready}\t{details}"),
        json!({
            "role": "cluster",
            "level": level,
            "next": next,
            "ready": is_ready,
            "waits_for": waits_for,
        }),
    );
    for row in &rows {
        listing.push(row.columns(next), row.json());
    }
    Ok(listing)
}

async fn finalize(args: &FinalizeArgs) -> anyhow::Result<()> {
    let keys = args.metadata.keys()?;
    let stopped = &args.stopped;
    let upgrade = checked(&*keys, stopped).await?;
    if upgrade.level == upgrade.next {
        note(format!(
            "nothing to do: the cluster is at level {}, the newest that this program knows",
            upgrade.level
        ));
        return Ok(());
    }
    args.confirmation.ask(&question(&upgrade))?;
    let next = upgrade.next;
    let raise = async || {
        let upgrade = checked(&*keys, stopped).await?;
        Ok(upgrade.raise(&*keys, stopped).await?)
    };
    repeat_if_raced(raise).await?;
    note(format!("the cluster is at level {next}"));
    Ok(())
}

/// The processes of a cluster, if none keeps the level from being raised. Nodes that are `stopped` do not.
async fn checked(keys: &dyn KeyValueStore, stopped: &[NodeId]) -> anyhow::Result<Upgrade> {
    let upgrade = Upgrade::read(keys).await?;
    if upgrade.level == upgrade.next {
        return Ok(upgrade);
    }
    let rows = rows(&upgrade, &ask(keys).await?);
    let is_stopped = |row: &&Row| {
        let mut stopped = stopped.iter();
        !row.answers && stopped.any(|node| node.as_str() == row.name)
    };
    let rows = rows.iter().filter(|row| !is_stopped(row));
    let problems = rows.filter_map(|row| {
        let problem = row.problem.as_ref()?;
        Some(format!("{} {} {problem}", row.role, row.name))
    });
    let problems: Vec<String> = problems.collect();
    if !problems.is_empty() {
        bail!("the level stays {}: {}", upgrade.level, problems.join("; "));
    }
    Ok(upgrade)
}

/// What an operator is to know before the level rises: routers that do not show themselves.
fn question(upgrade: &Upgrade) -> String {
    let shown = upgrade.routers.iter();
    let shown: Vec<&str> = shown
        .filter_map(|process| process.router.as_deref())
        .collect();
    let shown = match &*shown.join(", ") {
        "" => "none".to_owned(),
        shown => shown.to_owned(),
    };
    format!(
        "routers of versions before level 2 do not show themselves; those that do: {shown}. Does no other router run, and \
         is the level to be {} for good?",
        upgrade.next
    )
}

/// The level of the cluster, and the versions that run. A node that runs, and does not know the level, is to be replaced.
pub(super) fn versions(upgrade: &Upgrade, asked: &Asked) -> Finding {
    let Upgrade { level, next, .. } = upgrade;
    let nodes = upgrade.nodes.iter();
    let nodes: Vec<_> = nodes.filter(|(store, _)| answers(asked, store)).collect();
    // Level 1 is that of versions that do not show themselves.
    let knows = |process: &Option<RunningProcess>| {
        let process = process.as_ref();
        process.map_or(*level == 1, |process| process.knows(*level))
    };
    let late = nodes.iter().filter(|(_, process)| !knows(process));
    let late: Vec<String> = late.map(|(store, _)| store.node.to_string()).collect();
    let of_nodes = nodes.iter().map(|(_, process)| process.as_ref());
    let of_routers = upgrade.routers.iter().map(Some);
    let versions = of_nodes.chain(of_routers).map(|process| {
        let version = process.map(|process| process.version.clone());
        version.unwrap_or_else(|| "earlier".to_owned())
    });
    let versions: BTreeSet<String> = versions.collect();
    let names = Vec::from_iter(versions.iter().map(String::as_str)).join(", ");
    let mut details = format!("level {level}; versions: {names}");
    if level < next {
        details += &format!("; `simshard cluster upgrade finalize` raises the level to {next}");
    }
    if !late.is_empty() {
        details += &format!("; too old for the level: {}: upgrade them", late.join(","));
    }
    let facts = json!({ "level": level, "next": next, "versions": versions, "too_old": late });
    finding("versions", late.is_empty(), details, facts)
}
