//! `simshard cluster set-replication`: how many replicas shards are to have, and how many of them answer searches.

use clap::Args;
use simshard_admin::Replication;

use super::placing::Wait;
use super::{MetadataArgs, admin, shares};
use crate::confirmation::Confirmation;
use crate::exit::UsageError;
use crate::say::note;

/// Arguments of `cluster set-replication`.
#[derive(Args, Debug)]
pub struct ReplicationArgs {
    /// How many nodes hold each shard
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=5))]
    pub replicas: u8,
    /// How many of them answer searches [default: 2, or all replicas if they are fewer]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=5))]
    pub hot: Option<u8>,
    /// Whether to ask, where shards get fewer replicas.
    #[command(flatten)]
    pub confirmation: Confirmation,
    /// Whether to wait.
    #[command(flatten)]
    pub wait: Wait,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

pub(super) async fn run(args: &ReplicationArgs) -> anyhow::Result<()> {
    let want = args.replicas;
    let Some(wished) = Replication::new(want, args.hot) else {
        let hot = args.hot.unwrap_or_default();
        return Err(UsageError(format!("--hot {hot} is more than --replicas {want}")).into());
    };
    let keys = args.metadata.keys()?;
    let admin = admin(&*keys);
    let plan = admin.plan_replication(wished).await?;
    shares::warn_of(&plan.unmet);
    if let Some(question) = &plan.question {
        args.confirmation.ask(question)?;
    }
    admin.wish_for(&plan).await?;
    let hot = wished.hot();
    note(format!(
        "shards are to have {want} replicas, {hot} of them hot"
    ));
    let placing = admin.place_replicas(plan).await?;
    args.wait.until(&placing, &*keys).await
}
