//! `simshard cluster upgrade`: which versions run, and the level that they permit the cluster.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use simshard_admin::{Process, UpgradeState};
use simshard_cluster::RunningProcess;
use simshard_topology::NodeId;

use super::access::ClusterAccess;
use super::listing::{Listing, show};
use super::{MetadataArgs, TableArgs, admin, node_name};
use crate::args::OutcomeArgs;
use crate::completion;
use crate::confirmation::Confirmation;

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
    /// How the outcome is told.
    #[command(flatten)]
    pub output: OutcomeArgs,
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

fn columns(process: &Process, next: u32) -> String {
    let shown = process.shown.as_ref();
    let version = shown.map_or("", |shown| &shown.version);
    let levels = shown.map_or_else(String::new, levels);
    let ready = yes(process.problem.is_none());
    let knows = || format!("knows level {next}");
    let details = process.problem.clone().unwrap_or_else(knows);
    let (role, name) = (process.role.name(), &process.name);
    format!("{role}\t{name}\t{version}\t{levels}\t{ready}\t{details}")
}

fn json_of(process: &Process) -> Value {
    let shown = process.shown.as_ref();
    json!({
        "role": process.role.name(),
        "name": process.name,
        "version": shown.map(|shown| &shown.version),
        "oldest": shown.map(|shown| shown.oldest),
        "newest": shown.map(|shown| shown.newest),
        "ready": process.problem.is_none(),
        "problem": process.problem,
    })
}

fn levels(process: &RunningProcess) -> String {
    format!("{}-{}", process.oldest, process.newest)
}

const fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

async fn list(access: &ClusterAccess) -> anyhow::Result<Listing> {
    let upgrade = admin(access).upgrade().await?;
    let waits_for = upgrade.waits_for();
    let mut listing = Listing::new("role\tname\tversion\tlevels\tready\tdetails");
    let UpgradeState { level, next, .. } = upgrade;
    let is_ready = waits_for.is_empty();
    let details = if level == next {
        "nothing is to be done: it is the newest level that this program knows".to_owned()
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
    for process in &upgrade.processes {
        listing.push(columns(process, next), json_of(process));
    }
    Ok(listing)
}

async fn finalize(args: &FinalizeArgs) -> anyhow::Result<()> {
    let access = args.metadata.open()?;
    let admin = admin(&access);
    let (level, question) = admin.question_before_finalize(&args.stopped).await?;
    let Some(question) = question else {
        let done = format!(
            "nothing to do: the cluster is at level {level}, the newest that this program knows"
        );
        let object = json!({ "level": level, "raised": false });
        return args.output.tell(done, &object);
    };
    args.confirmation.ask(&question)?;
    let level = admin.finalize(&args.stopped).await?;
    let done = format!("the cluster is at level {level}");
    let object = json!({ "level": level, "raised": true });
    args.output.tell(done, &object)
}
