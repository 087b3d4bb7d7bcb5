//! `simshard cluster rebalance`: a plan of where all shards are to be. It is drawn and shown first, and carried out when the
//! operator says so.

mod shown;

use std::time::SystemTime;

use clap::{Args, Subcommand};
use serde_json::json;
use simshard_admin::Aborted;
use simshard_cluster::PlanState;
use simshard_runtime::amounts::time;
use simshard_topology::ShardSet;

use super::access::ClusterAccess;
use super::listing::{Listing, show};
use super::placing::Wait;
use super::{MetadataArgs, TableArgs, admin, shares};
use crate::args::{JsonArgs, OutcomeArgs};
use crate::confirmation::Confirmation;
use crate::say::note;

const NONE_STAGED: &str = "no plan is staged: `simshard cluster rebalance plan` draws one";

/// The verbs of `cluster rebalance`.
#[derive(Debug, Subcommand)]
pub enum RebalanceCommand {
    /// Draw a plan that shares the documents evenly, and keep it for `apply`
    #[command(after_help = "\
It prints what each node holds before and after, how much is to be copied, and
about how long that takes. Nothing moves by that. A plan that was not applied
gives way to the new one. A node counts a document once for each of its shards
that has it: a document is in a few shards.

The time is that of the node with most to copy, at the rate that `set-limits`
has set for it, or else at 20 MB a second, as beside requests. A cluster that
serves none is faster.")]
    Plan(PlanArgs),
    /// Show the plan: which shards go where, and how far that is
    #[command(after_help = "\
The states of shards:
  planned    the plan is not applied
  waits      the shard waits for its turn, or moves are paused
  copies     a node copies it
  leaves     its nodes have it, and another one is to give it up
  arrived    it is where the plan has it
  elsewhere  an operator has chosen other nodes since")]
    Show(TableArgs),
    /// Move the shards as the plan has them, and wait until they are there
    #[command(after_help = "\
The plan must fit the cluster still: it is refused if one of its shards is held
by other nodes meanwhile, or is to be, and if a node has another zone or
capacity by now. Then draw another one. End the command at any time: the nodes
go on. Run again, it waits for the same plan.")]
    Apply(ApplyArgs),
    /// Take the plan back: what has not arrived stays where it is
    #[command(after_help = "\
Shards that have arrived at their new nodes stay there. Others stay where they
were, and copies under way end. Where a node has left a shard by now, it copies
it back. A plan that is damaged goes too.")]
    Abort(ChangeArgs),
    /// Let no shard begin to move, by whatever command
    #[command(after_help = "\
Shards on their way arrive: a node has 64 at most on the way. A shard that is
short of replicas gets them as ever. It lasts until `resume`.")]
    Pause(ChangeArgs),
    /// Let shards begin to move again
    Resume(ChangeArgs),
}

/// Arguments of `cluster rebalance plan`.
#[derive(Args, Debug)]
pub struct PlanArgs {
    /// How the plan is printed.
    #[command(flatten)]
    pub output: JsonArgs,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// Arguments of `cluster rebalance apply`.
#[derive(Args, Debug)]
pub struct ApplyArgs {
    /// Whether to ask.
    #[command(flatten)]
    pub confirmation: Confirmation,
    /// Whether to wait.
    #[command(flatten)]
    pub wait: Wait,
    /// How the outcome is told.
    #[command(flatten)]
    pub output: OutcomeArgs,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// Arguments of `cluster rebalance abort`, `pause` and `resume`.
#[derive(Args, Debug)]
pub struct ChangeArgs {
    /// How the outcome is told.
    #[command(flatten)]
    pub output: OutcomeArgs,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

pub(super) async fn run(command: &RebalanceCommand) -> anyhow::Result<()> {
    match command {
        RebalanceCommand::Plan(args) => draw(args).await,
        RebalanceCommand::Show(args) => show(args, shown).await,
        RebalanceCommand::Apply(args) => apply(args).await,
        RebalanceCommand::Abort(args) => abort(args).await,
        RebalanceCommand::Pause(args) => pause(args).await,
        RebalanceCommand::Resume(args) => resume(args).await,
    }
}

/// Draws a plan, prints it, and stages it.
async fn draw(args: &PlanArgs) -> anyhow::Result<()> {
    let access = args.metadata.open()?;
    let admin = admin(&access);
    let drawn = admin.draw_plan().await?;
    shares::print(&drawn.outlook, args.output)?;
    if !drawn.on_their_way.is_empty() {
        note(format!(
            "shards {} are on their way already: they count, before and after, where they are to be",
            drawn.on_their_way
        ));
    }
    if !drawn.is_empty() {
        note(&drawn.estimate);
    }
    admin.stage(&drawn).await?;
    if drawn.discards_another() {
        note("the plan of before is gone: it was not applied");
    }
    note(if drawn.is_empty() {
        "nothing is to move, so there is no plan to apply"
    } else {
        "nothing is moved yet: `simshard cluster rebalance apply` moves the shards so"
    });
    Ok(())
}

/// Which shards go where by the staged plan, and how far that is.
async fn shown(access: &ClusterAccess) -> anyhow::Result<Listing> {
    let mut listing = Listing::new("shards\tfrom\tto\tstate");
    let admin = admin(access);
    if let Some(paused) = admin.paused().await? {
        let paused = match paused.since {
            Some(since) => format!("moves were paused {} ago", ago(since)),
            None => "moves are paused".to_owned(),
        };
        note(format!(
            "{paused}: `simshard cluster rebalance resume` lets them go on"
        ));
    }
    let Some(plan) = admin.plan().await? else {
        note(NONE_STAGED);
        return Ok(listing);
    };
    let state = shown::state_of(&plan);
    note(format!(
        "the plan was drawn {} ago, and {state}",
        ago(plan.drawn_at)
    ));
    if plan.state == PlanState::Staged {
        note(match admin.applicable().await {
            Ok(_) => "`simshard cluster rebalance apply` moves the shards so".to_owned(),
            Err(error) => {
                format!("`simshard cluster rebalance apply` would refuse it now: {error}")
            }
        });
    }
    for (columns, object) in plan.moves.iter().map(shown::row) {
        listing.push(columns, object);
    }
    Ok(listing)
}

/// How long ago a time is, in seconds since the beginning of 1970.
fn ago(then: u64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.unwrap_or_default().as_secs();
    time(now.saturating_sub(then) as f64)
}

/// Carries out the staged plan, and waits until that is done.
async fn apply(args: &ApplyArgs) -> anyhow::Result<()> {
    let access = args.metadata.open()?;
    let admin = admin(&access);
    let plan = admin.applicable().await?;
    if let Some(question) = &plan.question {
        args.confirmation.ask(question)?;
    }
    let placing = admin.apply(&plan).await?;
    args.wait.until(&placing, &access).await?;
    let has_arrived = !args.wait.no_wait;
    if has_arrived {
        admin.forget(&plan).await?;
    }
    args.output.print(&json!({
        "shards": placing.targets.keys().copied().collect::<ShardSet>().to_string(),
        "given_up": placing.given_up.to_string(),
        "arrived": has_arrived,
    }))
}

/// Takes the staged plan back.
async fn abort(args: &ChangeArgs) -> anyhow::Result<()> {
    let aborted = admin(&args.metadata.open()?).abort().await?;
    let done = match &aborted {
        Aborted::None => "no plan is staged".to_owned(),
        Aborted::Damaged => {
            "the plan could not be understood, and is gone; targets that it has set stay".to_owned()
        }
        Aborted::Unmoved => "the plan is gone; nothing had moved by it".to_owned(),
        Aborted::Moved { all, arrived } => format!(
            "the plan is gone: {arrived} of its {all} shards had arrived and stay; the others stay where they were, or go \
             back there"
        ),
    };
    let arrived = match aborted {
        Aborted::Moved { arrived, .. } => Some(arrived),
        Aborted::Unmoved => Some(0),
        Aborted::None | Aborted::Damaged => None,
    };
    let object = json!({ "aborted": aborted != Aborted::None, "arrived": arrived });
    args.output.tell(done, &object)
}

async fn pause(args: &ChangeArgs) -> anyhow::Result<()> {
    let was_paused = admin(&args.metadata.open()?).pause().await?.was_there;
    let done = if was_paused {
        "moves are paused already"
    } else {
        "no shard begins to move until `simshard cluster rebalance resume`; those on their way arrive"
    };
    let object = json!({ "paused": true, "was_paused": was_paused });
    args.output.tell(done, &object)
}

async fn resume(args: &ChangeArgs) -> anyhow::Result<()> {
    let was_paused = admin(&args.metadata.open()?).resume().await?;
    let done = if was_paused {
        "shards move again"
    } else {
        "moves were not paused"
    };
    let object = json!({ "paused": false, "was_paused": was_paused });
    args.output.tell(done, &object)
}
