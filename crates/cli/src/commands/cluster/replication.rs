//! `simshard cluster set-replication`: how many replicas shards are to have, and how many of them answer searches.

use anyhow::bail;
use clap::Args;
use simshard_cluster::{KeyValueStore, require_moving, set_targets, shard_records, wish};
use simshard_topology::replication::{Epoch, ShardRecord, ShardRecords};
use simshard_topology::{ShardId, ShardSet};
use tokio::time::{Instant, sleep};

use super::MetadataArgs;
use super::asked::{ANSWER_TIMEOUT, Cluster};
use super::layout::{Layout, nodes_of};
use super::placing::{Placing, Wait};
use super::shares;
use crate::confirmation::Confirmation;
use crate::exit::UsageError;
use crate::say::note;

/// Records that change just now are waited for.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

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
    let hot = args.hot.unwrap_or(super::HOT.min(want));
    if hot > want {
        return Err(UsageError(format!("--hot {hot} is more than --replicas {want}")).into());
    }
    let keys = args.metadata.keys()?;
    require_moving(&*keys).await?;
    // All that may be refused is known before anything is changed.
    refuse_rebuilt(&shard_records(&*keys).await?)?;
    let layout = Layout::read(&*keys).await?;
    let plan = layout.planned(&layout.nodes(None)?, want.into())?;
    shares::warn_of_unmet(&layout, &plan);
    let most = layout.records.values().map(|record| record.want).max();
    if most > Some(want) {
        let question = format!(
            "Shards get {want} replicas, and had {}.",
            most.unwrap_or(want)
        );
        args.confirmation.ask(&question)?;
    }
    wish_for(&*keys, want, hot).await?;
    note(format!(
        "shards are to have {want} replicas, {hot} of them hot"
    ));
    // Nodes that never held a shard come to a target at once.
    let targets = ShardId::all().map(|shard| (shard, nodes_of(&plan.map, shard)));
    let placing = Placing {
        targets: targets.collect(),
        wished: Some((want, hot)),
    };
    set_targets(&*keys, &placing.targets, ShardSet::EMPTY).await?;
    placing.wait(&*keys, &args.wait).await
}

/// Refuses to open shards to searches that are yet to be filled.
fn refuse_rebuilt(records: &ShardRecords) -> anyhow::Result<()> {
    let rebuilt = records.iter().filter(|(_, record)| record.is_rebuilt());
    let rebuilt: ShardSet = rebuilt.map(|(shard, _)| *shard).collect();
    if rebuilt.is_empty() {
        return Ok(());
    }
    bail!(
        "shards {rebuilt} are being rebuilt: end that by `simshard cluster force --rebuild` first"
    )
}

/// Writes down how many replicas shards are to have, and how many of them hot.
async fn wish_for(keys: &dyn KeyValueStore, want: u8, hot: u8) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        let cluster = Cluster::ask(keys).await?;
        let is_meant = |_, record: &ShardRecord| {
            !record.is_rebuilt() && (record.want, record.hot) != (want, hot)
        };
        let report = |shard, store| cluster.report(shard, store).unwrap_or(Epoch::NONE);
        let wished = wish(keys, (want, hot), is_meant, report).await?;
        let Some((shard, error)) = wished.refused.first() else {
            return Ok(());
        };
        if started.elapsed() > PATIENCE {
            bail!("shard {shard} cannot change now: {error}; run this command again");
        }
        sleep(ANSWER_TIMEOUT / 5).await;
    }
}
