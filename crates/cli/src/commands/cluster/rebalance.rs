//! `simshard cluster rebalance`: a plan of where all shards are to be. It is drawn and shown first, and carried out when the
//! operator says so.

mod estimate;
mod shown;

use std::collections::BTreeMap;
use std::time::SystemTime;

use anyhow::bail;
use clap::{Args, Subcommand};
use simshard_cluster::{
    KeyValueStore, MetadataError, PlanState, PlannedMove, Revision, StagedPlan, carry_on, paused,
    remove_bad_plan, remove_plan, require_level, require_moving, set_paused, shard_records,
    stage_plan, staged_plan, targets, unreached,
};
use simshard_topology::{ShardId, ShardMap, ShardSet};

use super::asked::warn_of_bad;
use super::layout::{Layout, nodes_of};
use super::listing::{Listing, show};
use super::moving::replicas;
use super::placing::{Placing, Wait};
use super::{MetadataArgs, TableArgs, shares};
use crate::amounts::time;
use crate::args::JsonArgs;
use crate::confirmation::Confirmation;
use crate::say::note;

/// The level from which on nodes know that moves are paused.
const PAUSING: u32 = 2;

const NONE_STAGED: &str = "no plan is staged: `simshard cluster rebalance plan` draws one";

/// The verbs of `cluster rebalance`.
#[derive(Debug, Subcommand)]
pub enum RebalanceCommand {
    /// Draw a plan that shares the documents evenly, and keep it for `apply`
    #[command(after_help = "\
It prints what each node holds before and after, how much is to be copied, and
about how long that takes. Nothing moves by that. A plan that was not applied
gives way to the new one.

The time is that of the node with most to copy, at the rate that `set-limits`
has set for it, or else at 20 MB a second, as beside requests. A cluster that
serves none is faster.")]
    Plan(PlanArgs),
    /// Show the plan: which shards go where, and how far that is
    Show(TableArgs),
    /// Move the shards as the plan has them, and wait until they are there
    #[command(after_help = "\
The plan must fit the cluster still: it is refused if one of its shards is held
by other nodes meanwhile, or is to be. Then draw another one. End the command at
any time: the nodes go on. Run again, it waits for the same plan.")]
    Apply(ApplyArgs),
    /// Take the plan back: what has not arrived stays where it is
    #[command(after_help = "\
Shards that have arrived at their new nodes stay there. Others stay where they
are, or were on their way to: copies under way end. A plan that is damaged goes
too.")]
    Abort(MetadataArgs),
    /// Let no shard begin to move, by whatever command
    #[command(after_help = "\
Shards on their way arrive: a node has 64 at most on the way. A shard that is
short of replicas gets them as ever. It lasts until `resume`.")]
    Pause(MetadataArgs),
    /// Let shards begin to move again
    Resume(MetadataArgs),
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
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

pub(super) async fn run(command: &RebalanceCommand) -> anyhow::Result<()> {
    match command {
        RebalanceCommand::Plan(args) => draw(args).await,
        RebalanceCommand::Show(args) => show(args, shown).await,
        RebalanceCommand::Apply(args) => apply(args).await,
        RebalanceCommand::Abort(metadata) => abort(&*metadata.keys()?).await,
        RebalanceCommand::Pause(metadata) => pause(&*metadata.keys()?).await,
        RebalanceCommand::Resume(metadata) => {
            set_paused(&*metadata.keys()?, None).await?;
            note("shards move again");
            Ok(())
        }
    }
}

/// Seconds since the beginning of 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// Draws a plan, prints it, and stages it.
async fn draw(args: &PlanArgs) -> anyhow::Result<()> {
    let keys = args.metadata.keys()?;
    require_moving(&*keys).await?;
    let before = replaceable(&*keys).await?;
    let layout = Layout::read(&*keys).await?;
    let plan = layout.planned(&layout.nodes(None)?, replicas(&layout.records)?)?;
    shares::print(&layout, &plan, args.output)?;
    let moves = moves(&layout, &plan.map);
    if moves.is_empty() {
        note("nothing to move");
        return match before {
            Some(before) => remove_plan(&*keys, before).await.map_err(other_operator),
            None => Ok(()),
        };
    }
    estimate::Estimate::of(&layout, &moves).say();
    stage_plan(&*keys, &StagedPlan::new(now(), moves), before)
        .await
        .map_err(other_operator)?;
    note("nothing is moved yet: `simshard cluster rebalance apply` moves the shards so");
    Ok(())
}

/// Which shards go where by the staged plan, and how far that is.
async fn shown(keys: &dyn KeyValueStore) -> anyhow::Result<Listing> {
    let mut listing = Listing::new("shards\tfrom\tto\tstate");
    let ago = |then: u64| time(now().saturating_sub(then) as f64);
    if let Some(since) = paused(keys).await? {
        note(format!(
            "moves are paused since {} ago: `simshard cluster rebalance resume` lets them go on",
            ago(since)
        ));
    }
    let Some((plan, _)) = staged_plan(keys).await? else {
        note(NONE_STAGED);
        return Ok(listing);
    };
    let read = shown::Read {
        records: shard_records(keys).await?,
        targets: targets(keys, warn_of_bad).await?,
        unreached: unreached(keys, &plan).await?,
    };
    let state = shown::state_of(&plan);
    note(format!(
        "the plan was drawn {} ago, and {state}",
        ago(plan.drawn_at)
    ));
    for (columns, object) in shown::rows(&plan, &read) {
        listing.push(columns, object);
    }
    Ok(listing)
}

/// The revision of a plan that may give way to another one. Refuses one by which shards are moving.
async fn replaceable(keys: &dyn KeyValueStore) -> anyhow::Result<Option<Revision>> {
    let Some((plan, revision)) = staged_plan(keys).await? else {
        return Ok(None);
    };
    if plan.state == PlanState::Staged {
        return Ok(Some(revision));
    }
    let open = open(keys, &plan).await?;
    let is_over = plan.state == PlanState::Moving && open.is_empty();
    if is_over {
        return Ok(Some(revision));
    }
    bail!(
        "another plan is being carried out, or taken back: shards {open} are on their way. Wait for it by `simshard \
         cluster rebalance apply`, or take it back by `simshard cluster rebalance abort`"
    )
}

/// The shards that are still to move by a plan. One that an operator has sent elsewhere since is none of them.
async fn open(keys: &dyn KeyValueStore, plan: &StagedPlan) -> anyhow::Result<ShardSet> {
    let unreached = unreached(keys, plan).await?;
    let targets = targets(keys, |_| {}).await?;
    let is_meant = |shard| targets.get(&shard) == Some(&plan.moves[&shard].to);
    let has_begun = plan.state != PlanState::Beginning;
    Ok(unreached
        .iter()
        .filter(|shard| !has_begun || is_meant(*shard))
        .collect())
}

/// The shards that a map has elsewhere than they are, or are on their way to.
fn moves(layout: &Layout, after: &ShardMap) -> BTreeMap<ShardId, PlannedMove> {
    let targets = layout.targets(after).into_iter();
    let moves = targets.map(|(shard, to)| {
        let planned = PlannedMove {
            from: nodes_of(&layout.map, shard),
            to,
            had_target: layout.has_target(shard),
        };
        (shard, planned)
    });
    // What is on its way already is no part of the plan.
    moves
        .filter(|(_, planned)| planned.from != planned.to)
        .collect()
}

/// Another operator was faster.
fn other_operator(error: MetadataError) -> anyhow::Error {
    if matches!(error, MetadataError::Raced) {
        return anyhow::anyhow!(
            "another operator has changed the plan meanwhile: see `simshard cluster rebalance show`"
        );
    }
    error.into()
}

/// Carries out the staged plan, and waits until that is done.
async fn apply(args: &ApplyArgs) -> anyhow::Result<()> {
    let keys = args.metadata.keys()?;
    let Some((plan, revision)) = staged_plan(&*keys).await? else {
        note(NONE_STAGED);
        return Ok(());
    };
    match plan.state {
        PlanState::Staged => {
            begin(&*keys, &plan, revision, &args.confirmation).await?;
        }
        PlanState::Beginning => carry_on(&*keys).await.map_err(other_operator)?,
        PlanState::Moving => {}
        PlanState::Ending => {
            carry_on(&*keys).await.map_err(other_operator)?;
            bail!("the plan was being taken back: draw another one");
        }
    }
    let wanted = plan.targets();
    let placing = Placing {
        targets: wanted,
        wished: None,
    };
    placing.wait(&*keys, &args.wait).await?;
    if !args.wait.no_wait {
        forget(&*keys, &plan).await?;
    }
    Ok(())
}

/// Begins a plan that is staged, if it still fits the cluster, and the operator says so.
async fn begin(
    keys: &dyn KeyValueStore,
    plan: &StagedPlan,
    revision: Revision,
    confirmation: &Confirmation,
) -> anyhow::Result<()> {
    let layout = Layout::read(keys).await?;
    layout.check_staged(plan)?;
    let shards: ShardSet = plan.moves.keys().copied().collect();
    let estimate = estimate::Estimate::of(&layout, &plan.moves);
    confirmation.ask(&format!("{} shards move, {estimate}.", shards.len()))?;
    stage_plan(keys, &plan.turned(PlanState::Beginning), Some(revision))
        .await
        .map_err(other_operator)?;
    carry_on(keys).await.map_err(other_operator)
}

/// Removes a plan that is carried out. Another command may have done that.
async fn forget(keys: &dyn KeyValueStore, plan: &StagedPlan) -> anyhow::Result<()> {
    let now = staged_plan(keys).await?;
    let Some((_, revision)) = now.filter(|(now, _)| now.id == plan.id) else {
        return Ok(());
    };
    match remove_plan(keys, revision).await {
        Ok(()) | Err(MetadataError::Raced) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Takes the staged plan back.
async fn abort(keys: &dyn KeyValueStore) -> anyhow::Result<()> {
    let read = staged_plan(keys).await;
    if matches!(read, Err(MetadataError::BadRecord { .. })) && remove_bad_plan(keys).await? {
        note("the plan could not be understood, and is gone; targets that it has set stay");
        return Ok(());
    }
    let Some((plan, revision)) = read? else {
        note("no plan is staged");
        return Ok(());
    };
    if plan.state == PlanState::Staged {
        remove_plan(keys, revision).await.map_err(other_operator)?;
        note("the plan is gone; nothing had moved by it");
        return Ok(());
    }
    let unreached = unreached(keys, &plan).await?;
    stage_plan(keys, &plan.turned(PlanState::Ending), Some(revision))
        .await
        .map_err(other_operator)?;
    carry_on(keys).await.map_err(other_operator)?;
    let (all, left) = (plan.moves.len(), unreached.len());
    note(format!(
        "the plan is gone: {} of its {all} shards had arrived and stay",
        all - left
    ));
    Ok(())
}

async fn pause(keys: &dyn KeyValueStore) -> anyhow::Result<()> {
    if paused(keys).await.is_ok_and(|since| since.is_some()) {
        note("moves are paused already");
        return Ok(());
    }
    // Nodes of an earlier version would move shards all the same.
    require_level(keys, PAUSING, "`simshard cluster rebalance pause`").await?;
    set_paused(keys, Some(now())).await?;
    note(
        "no shard begins to move until `simshard cluster rebalance resume`; those on their way arrive",
    );
    Ok(())
}
