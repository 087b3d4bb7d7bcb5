//! `simshard cluster set-replication`: how many replicas shards are to have, and how many of them answer searches.

use clap::Args;
use simshard_admin::Replication;
use simshard_runtime::terminal::counted;

use super::placing::{DRY, PlannedArgs};
use super::{admin, shares};
use crate::confirmation::Confirmation;
use crate::exit::UsageError;
use crate::say::note;

/// Arguments of `cluster set-replication`.
#[derive(Args, Debug)]
pub struct ReplicationArgs {
    /// How many nodes hold each shard
    #[arg(long, value_name = "N", value_parser = super::count_of_replicas)]
    pub replicas: u8,
    /// How many of them answer searches [default: 2, or all replicas if they are fewer]
    #[arg(long, value_name = "N", value_parser = super::count_of_replicas)]
    pub hot: Option<u8>,
    /// Whether to ask, where shards get fewer replicas, or nodes that do not answer lose theirs.
    #[command(flatten)]
    pub confirmation: Confirmation,
    /// How it is done.
    #[command(flatten)]
    pub planned: PlannedArgs,
}

pub(super) async fn run(args: &ReplicationArgs) -> anyhow::Result<()> {
    let want = args.replicas;
    let Some(wished) = Replication::new(want, args.hot) else {
        let hot = args.hot.unwrap_or_default();
        return Err(UsageError(format!("--hot {hot} is more than --replicas {want}")).into());
    };
    let access = args.planned.metadata.open()?;
    let admin = admin(&access);
    let plan = admin.plan_replication(wished).await?;
    shares::print(&plan.outlook, args.planned.output)?;
    if args.planned.dry_run {
        if let Some(question) = &plan.question {
            note(question);
        }
        note(DRY);
        return Ok(());
    }
    if let Some(question) = &plan.question {
        args.confirmation.ask(question)?;
    }
    admin.wish_for(&plan).await?;
    let (replicas, hot) = (counted(want, "replica"), wished.hot());
    note(format!("shards are to have {replicas}, {hot} of them hot"));
    let placing = admin.place_replicas(plan).await?;
    args.planned.wait.until(&placing, &access).await
}
