//! `simshard cluster force`: a node goes on alone with shards whose other nodes are gone for good, or begins those anew that
//! all nodes have lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};
use simshard_admin::{ANSWER_TIMEOUT, Admin, Cluster};
use simshard_cluster::{force, is_store_id, shard_records};
use simshard_topology::replication::{Epoch, ShardRecord, ShardRecords, StoreId};
use simshard_topology::{NodeId, ShardId, ShardSet};
use tokio::time::{Instant, sleep};

use super::{MetadataArgs, admin, node_name, rebuilding};
use crate::args::OutcomeArgs;
use crate::completion;
use crate::exit::UsageError;
use crate::say::note;

/// How long the nodes may take until they have the new records.
pub(super) const INSTALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Arguments of `cluster force`.
#[derive(Args, Debug)]
pub struct ForceArgs {
    /// The node that goes on alone: it runs, and holds the shards in sync; with --rebuild, it never held them
    #[arg(long, value_name = "NODE", value_parser = node_name, add = completion::nodes())]
    pub from: NodeId,
    /// The shards that may be changed, such as 00-1f,80 [default: all that cannot go on by themselves]
    #[arg(long, value_name = "SHARDS")]
    pub shards: Option<ShardSet>,
    /// Nodes that do not run, and never will with the data that they hold; removed ones by the id of their data
    #[arg(long, value_name = "NODE,…", value_delimiter = ',', value_parser = node_name, add = completion::nodes())]
    pub stopped: Vec<NodeId>,
    /// Begin shards anew that are lost, and fill them with what the other shards have of them
    #[arg(long)]
    pub rebuild: bool,
    /// Wait this long before shards are filled: longer than the largest --timeout-seconds of a router, as it may be ending
    /// earlier changes
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 40,
        requires = "rebuild"
    )]
    pub old_writes_seconds: u64,
    /// How the outcome is told.
    #[command(flatten)]
    pub output: OutcomeArgs,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

pub(super) async fn run(args: &ForceArgs) -> anyhow::Result<()> {
    let access = args.metadata.open()?;
    if args.rebuild {
        return rebuilding::run(&access, args).await;
    }
    let cluster = Cluster::ask(&admin(&access)).await?;
    let records = shard_records(access.keys()).await?;
    let from = check_from(&cluster, args)?;
    let within = args.shards.unwrap_or(ShardSet::ALL);
    let stuck = records.into_iter();
    let stuck: ShardRecords = stuck
        .filter(|(shard, record)| within.contains(*shard) && cluster.is_stuck(*shard, record))
        .collect();
    if stuck.is_empty() {
        let done = "nothing to do: the shards go on by themselves, or wait for the last node that holds them; if that one is \
                    gone for good, see --rebuild";
        return args.output.tell(done, &object_of(args, ShardSet::EMPTY));
    }
    let meant = meant_of(&cluster, from, &stuck)?;
    check_stopped(&cluster, args, &meant)?;
    let forced = force(access.keys(), from, are_still(&meant), |store| {
        cluster.answers(store)
    });
    let taken = forced.await?.taken;
    if !taken.is_empty() {
        let shards = shards_of(&taken);
        note(format!("{} goes on alone with shards {shards}", args.from));
        wait_until_installed(&admin(&access), &cluster, from, &taken).await?;
    }
    args.output.print(&object_of(args, shards_of(&taken)))?;
    check_unchanged(shards_of(&meant).difference(&shards_of(&taken)))
}

/// What was done, for programs: the shards with which the node goes on alone.
fn object_of(args: &ForceArgs, shards: ShardSet) -> Value {
    json!({ "node": args.from.as_str(), "shards": shards.to_string() })
}

pub(super) fn shards_of(records: &ShardRecords) -> ShardSet {
    records.keys().copied().collect()
}

/// Whether a record is still the one that the command looked at.
pub(super) fn are_still(
    meant: &ShardRecords,
) -> impl Fn(ShardId, &ShardRecord) -> bool + Send + Sync {
    |shard, record| {
        let meant = meant.get(&shard);
        meant.is_some_and(|meant| meant.epoch == record.epoch)
    }
}

/// Fails if records have changed since the command looked at them, so that it left these shards alone.
pub(super) fn check_unchanged(left: ShardSet) -> anyhow::Result<()> {
    if left.is_empty() {
        return Ok(());
    }
    bail!(
        "nothing was done to shards {left}: a node or another operator changed their records at the same time. Run this \
         command again: it looks at them anew"
    )
}

/// The store that is to go on, which runs.
pub(super) fn check_from(cluster: &Cluster, args: &ForceArgs) -> anyhow::Result<StoreId> {
    let from = cluster.of_node(&args.from)?;
    if !cluster.answers(from.id) {
        bail!(
            "{} does not answer at {}: start it, and run this command again",
            from.node,
            from.address
        );
    }
    if cluster.is_busy(from.id) {
        bail!(
            "{} is too busy to tell what it holds: run this command again",
            from.node
        );
    }
    let known: BTreeSet<String> = cluster.stores.keys().map(StoreId::to_string).collect();
    // Data that no node has now goes by its id. It may be that no shard waits for it any more.
    let is_of_none = |name: &&NodeId| is_store_id(name.as_str()) && !known.contains(name.as_str());
    for name in args.stopped.iter().filter(|name| !is_of_none(name)) {
        let stopped = cluster.of_node(name)?;
        if cluster.answers(stopped.id) {
            bail!(
                "{name} answers at {}: stop it, or leave it out of --stopped",
                stopped.address
            );
        }
    }
    Ok(from.id)
}

/// Those of the shards that cannot go on which the store holds in sync.
fn meant_of(
    cluster: &Cluster,
    from: StoreId,
    stuck: &ShardRecords,
) -> Result<ShardRecords, UsageError> {
    let (meant, others): (ShardRecords, ShardRecords) = stuck
        .iter()
        .map(|(&shard, record)| (shard, record.clone()))
        .partition(|(shard, record)| holds(cluster, from, *shard, record));
    let shards = shards_of(&others);
    let in_sync = others.values().flat_map(|record| &record.in_sync);
    let (there, silent): (Vec<StoreId>, Vec<StoreId>) = in_sync
        .map(|entry| entry.store)
        .partition(|store| cluster.answers(*store));
    let (there, silent) = (
        cluster.names(there.into_iter()),
        cluster.names(silent.into_iter()),
    );
    let name = cluster.name(from);
    let choose = if there.is_empty() {
        format!("start {silent}, or see --rebuild if their data is gone for good")
    } else {
        format!("choose from {there}")
    };
    let lacking = format!("{name} does not hold shards {shards} in sync: for these, {choose}");
    if meant.is_empty() {
        return Err(UsageError(lacking));
    }
    if !others.is_empty() {
        note(lacking);
    }
    Ok(meant)
}

/// Whether a store is in sync by a record, and has installed one: it may go on alone by no other.
fn holds(cluster: &Cluster, store: StoreId, shard: ShardId, record: &ShardRecord) -> bool {
    record.in_sync(store).is_some() && cluster.report(shard, store) > Some(Epoch::NONE)
}

/// The stores that may have what is changed by a record, or were to by the one before it.
pub(super) fn named(record: &ShardRecord) -> impl Iterator<Item = StoreId> {
    let previous = record.previous.iter().copied();
    record.write_set().chain(previous)
}

/// Refuses to go on before the operator has said of each node that does not answer that it does not run.
pub(super) fn check_stopped(
    cluster: &Cluster,
    args: &ForceArgs,
    meant: &ShardRecords,
) -> Result<(), UsageError> {
    let named = meant.values().flat_map(|record| named(record));
    let is_stopped = |store: StoreId| {
        let name = cluster.name(store);
        args.stopped.iter().any(|stopped| stopped.as_str() == name)
    };
    let silent: BTreeSet<StoreId> = named.filter(|store| !cluster.answers(*store)).collect();
    if silent.iter().all(|store| is_stopped(*store)) {
        return Ok(());
    }
    let shards = shards_of(meant);
    let told = cluster.told(silent.iter().copied());
    let is_known = silent
        .iter()
        .all(|store| cluster.stores.contains_key(store));
    let of_before = if is_known {
        ""
    } else {
        ". Data that no node has now goes by its id: that of a removed node, or of one that began anew"
    };
    let names = cluster.names(silent.into_iter());
    Err(UsageError(format!(
        "shards {shards} wait for nodes that do not answer: {told}. If one of them can come back with its data, \
         start it instead. Else make sure that they do not run, and add --stopped {names}{of_before}"
    )))
}

/// Waits until all nodes that answered have the new records: then the store serves.
pub(super) async fn wait_until_installed(
    admin: &Admin<'_>,
    cluster: &Cluster,
    from: StoreId,
    forced: &ShardRecords,
) -> anyhow::Result<()> {
    let started = Instant::now();
    while let Some(store) = cluster.stores.get(&from) {
        let reports = admin.reports_of(store).await.unwrap_or_default();
        let has = |(shard, record): (_, &Arc<ShardRecord>)| {
            reports
                .get(shard)
                .is_some_and(|&epoch| epoch >= record.epoch)
        };
        if forced.iter().all(has) {
            return Ok(());
        }
        if started.elapsed() > INSTALL_TIMEOUT {
            let others = cluster.names(cluster.answering());
            bail!(
                "the records are written, and {} has not installed them yet. It may wait for all of {others}. If one \
                 of them has died meanwhile, run this command again",
                store.node
            );
        }
        sleep(ANSWER_TIMEOUT / 10).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use simshard_cluster::KeyValueStore;

    use super::super::two_nodes::{STORES, two_nodes};
    use super::*;

    async fn force_for(keys: &dyn KeyValueStore, meant: &ShardRecords) -> ShardRecords {
        let forced = force(keys, STORES[0], are_still(meant), |_| true).await;
        forced.unwrap().taken
    }

    /// Two operators looked at the same records, and one was faster.
    #[tokio::test]
    async fn shards_whose_records_change_meanwhile_are_left_alone_and_named() {
        let access = two_nodes().await;
        let mut meant = shard_records(access.keys()).await.unwrap();
        meant.retain(|shard, _| shard.0 < 4);
        let mut of_other = meant.clone();
        of_other.retain(|shard, _| shard.0 == 2);
        assert_eq!(
            shards_of(&force_for(access.keys(), &of_other).await).len(),
            1
        );
        let after_other = shard_records(access.keys()).await.unwrap();
        let taken = force_for(access.keys(), &meant).await;
        let left = shards_of(&meant).difference(&shards_of(&taken));
        assert_eq!(left, shards_of(&of_other));
        let refused = check_unchanged(left).unwrap_err().to_string();
        assert!(
            refused.starts_with("nothing was done to shards 02: ")
                && refused.contains("Run this command again"),
            "{refused}"
        );
        let now = shard_records(access.keys()).await.unwrap();
        assert_eq!(now[&ShardId(2)], after_other[&ShardId(2)]);
        let all = force_for(access.keys(), &now).await;
        check_unchanged(shards_of(&now).difference(&shards_of(&all))).unwrap();
    }
}
