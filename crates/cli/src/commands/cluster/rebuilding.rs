//! Shards that begin anew, as all that held them is lost, and are filled from the other shards.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use serde_json::{Value, json};
use simshard_admin::{ANSWER_TIMEOUT, Cluster, DEFAULT_HOT};
use simshard_cluster::{Feature, rebuild, require, shard_records, wish};
use simshard_runtime::terminal::counted;
use simshard_topology::replication::{Epoch, ShardRecord, ShardRecords, StoreId};
use simshard_topology::{ShardId, ShardSet};
use tokio::time::{Instant, sleep};

use super::access::ClusterAccess;
use super::force::{
    ForceArgs, INSTALL_TIMEOUT, are_still, check_from, check_stopped, check_unchanged, named,
    shards_of, wait_until_installed,
};
use super::{admin, scrub};
use crate::exit::UsageError;
use crate::progress;
use crate::say::note;

/// Begins lost shards anew, fills them, and opens them to searches. What an earlier run began is ended, too.
pub(super) async fn run(access: &ClusterAccess, args: &ForceArgs) -> anyhow::Result<()> {
    // A node of an earlier version would let a shard answer searches before it is filled.
    require(access.keys(), Feature::Rebuilding).await?;
    let within = args.shards.unwrap_or(ShardSet::ALL);
    let begun = begin(access, args, within).await?;
    if begun.is_empty() {
        let done = "nothing to do: a node in sync answers for each of these shards";
        return args.output.tell(done, &object_of(ShardSet::EMPTY, 0, None));
    }
    wait(args.old_writes_seconds).await;
    let changes = scrub::fill(access, shards_of(&begun)).await?;
    open(access, &begun).await?;
    let (shards, documents) = (
        shards_of(&begun),
        documents(access, shards_of(&begun)).await?,
    );
    let filled_by = counted(changes, "change");
    let hold = documents.map_or_else(
        || "are searched once their tables are made".to_owned(),
        |documents| format!("hold {}", counted(documents, "document")),
    );
    let done = format!(
        "shards {shards} are filled by {filled_by}, and {hold}; documents that no other shard has are lost"
    );
    args.output
        .tell(done, &object_of(shards, changes, documents))
}

/// What was done, for programs.
fn object_of(shards: ShardSet, changes: u64, documents: Option<u64>) -> Value {
    json!({ "shards": shards.to_string(), "changes": changes, "documents": documents })
}

/// Lets the lost shards begin anew. Answers the records of all that are to be filled.
async fn begin(
    access: &ClusterAccess,
    args: &ForceArgs,
    within: ShardSet,
) -> anyhow::Result<ShardRecords> {
    let cluster = Cluster::ask(&admin(access)).await?;
    let records = shard_records(access.keys()).await?;
    let from = check_from(&cluster, args)?;
    check_others_go_on(&cluster, &records)?;
    let is_filled = |record: &Arc<ShardRecord>| !record.is_rebuilt() && !has_lost(&cluster, record);
    if records.values().all(is_filled) {
        return match cluster.advice_on_damage(&records) {
            Some(advice) => Err(UsageError(format!("no shard is lost, but {advice}")).into()),
            None => Ok(ShardRecords::new()),
        };
    }
    let lost: ShardRecords = records
        .into_iter()
        .filter(|(shard, record)| within.contains(*shard) && has_lost(&cluster, record))
        .collect();
    let mut left = shards_of(&lost);
    if !lost.is_empty() {
        check_never_held(&cluster, from, &lost)?;
        check_stopped(&cluster, args, &lost)?;
        let rebuilt = rebuild(access.keys(), from, are_still(&lost), |store| {
            cluster.answers(store)
        })
        .await?;
        let shards = shards_of(&rebuilt.taken);
        left = left.difference(&shards);
        if !shards.is_empty() {
            note(format!(
                "{} begins shards {shards} anew: they take changes now, and answer searches once they are filled",
                args.from
            ));
        }
        wait_until_installed(&admin(access), &cluster, from, &rebuilt.taken).await?;
    }
    let records = shard_records(access.keys()).await?;
    check_unchanged(not_begun(left, &records))?;
    let still_lost = records
        .iter()
        .filter(|(_, record)| has_lost(&cluster, record));
    let still_lost: ShardSet = still_lost.map(|(shard, _)| *shard).collect();
    // All that were begun, also by an earlier run: each may have what another one lacks.
    let begun = records.into_iter();
    let begun: ShardRecords = begun.filter(|(_, record)| record.is_rebuilt()).collect();
    if !begun.is_empty() && !still_lost.is_empty() {
        bail!(
            "shards {still_lost} are lost too, and may have what {} lack: begin them first, by --shards {still_lost}",
            shards_of(&begun)
        );
    }
    Ok(begun)
}

/// Refuses while shards that are not lost wait for nodes that do not answer. They may have what lost ones lack, and each
/// comparison with one of them would fail.
fn check_others_go_on(cluster: &Cluster, records: &ShardRecords) -> Result<(), UsageError> {
    let waits = |shard, record: &ShardRecord| {
        !has_lost(cluster, record) && !record.is_rebuilt() && cluster.is_stuck(shard, record)
    };
    let waiting = records
        .iter()
        .filter(|(shard, record)| waits(**shard, record));
    let waiting: ShardRecords = waiting
        .map(|(shard, record)| (*shard, Arc::clone(record)))
        .collect();
    if waiting.is_empty() {
        return Ok(());
    }
    let silent = waiting.values().flat_map(|record| named(record));
    let silent: BTreeSet<StoreId> = silent.filter(|store| !cluster.answers(*store)).collect();
    let (shards, told) = (shards_of(&waiting), cluster.told(silent.iter().copied()));
    let stopped = cluster.names(silent.into_iter());
    Err(UsageError(format!(
        "shards {shards} are not lost, and wait for {told}. Start one that can come back with its data. Else let a node that \
         holds them go on alone first, by `simshard cluster force --from NODE --stopped {stopped}`. If other shards are \
         lost, run this command again then"
    )))
}

/// Those of some shards that have not begun anew by the command of another operator either.
fn not_begun(shards: ShardSet, records: &ShardRecords) -> ShardSet {
    let has_begun = |shard: &ShardId| records.get(shard).is_some_and(|record| record.is_rebuilt());
    shards.iter().filter(|shard| !has_begun(shard)).collect()
}

/// Whether no store in sync answers.
fn has_lost(cluster: &Cluster, record: &ShardRecord) -> bool {
    let mut in_sync = record.in_sync.iter();
    !in_sync.any(|entry| cluster.answers(entry.store))
}

/// Refuses a store that has had a record of a shard: it is no empty one.
fn check_never_held(
    cluster: &Cluster,
    from: StoreId,
    lost: &ShardRecords,
) -> Result<(), UsageError> {
    let has_record = |shard: ShardId, store| cluster.report(shard, store) != Some(Epoch::NONE);
    let held: ShardSet = shards_of(lost)
        .iter()
        .filter(|shard| has_record(*shard, from))
        .collect();
    if held.is_empty() {
        return Ok(());
    }
    let answering = cluster.answering();
    let others = answering.filter(|store| {
        !shards_of(lost)
            .iter()
            .any(|shard| has_record(shard, *store))
    });
    let others = cluster.names(others);
    let choose = if others.is_empty() {
        "start a new node, and choose that".to_owned()
    } else {
        format!("choose from {others}")
    };
    Err(UsageError(format!(
        "{} held shards {held} before: {choose}, or other shards by --shards",
        cluster.name(from)
    )))
}

/// Waits until routers have given up what they began by the records of before.
async fn wait(seconds: u64) {
    let bar = progress::bar("waiting until earlier changes have ended", Some(seconds));
    for _ in 0..seconds {
        sleep(Duration::from_secs(1)).await;
        bar.inc(1);
    }
    bar.finish_and_clear();
}

/// Opens shards to searches, with as many hot replicas as the others have. Only those that are still what was filled.
async fn open(access: &ClusterAccess, filled: &ShardRecords) -> anyhow::Result<()> {
    let records = shard_records(access.keys()).await?;
    let most = records.values().map(|record| record.hot).max();
    let most = most.filter(|most| *most > 0).unwrap_or(DEFAULT_HOT);
    let wants: BTreeSet<u8> = filled.values().map(|record| record.want).collect();
    let started = Instant::now();
    loop {
        let cluster = Cluster::ask(&admin(access)).await?;
        let report = |shard, store| cluster.report(shard, store).unwrap_or(Epoch::NONE);
        let mut refused = None;
        for &want in &wants {
            let is_meant = |shard, record: &ShardRecord| {
                let of_filled = filled.get(&shard).map(|record| record.epoch.generation);
                let is_filled = of_filled == Some(record.epoch.generation);
                record.want == want && record.is_rebuilt() && is_filled
            };
            let opened = wish(
                access.keys(),
                (want, most.min(want).max(1)),
                is_meant,
                report,
            )
            .await?;
            refused = refused.or_else(|| opened.refused.into_iter().next());
        }
        let Some((shard, error)) = refused else {
            return check_open(access, filled).await;
        };
        if started.elapsed() > INSTALL_TIMEOUT {
            bail!(
                "shard {shard} is filled, and cannot be opened now: {error}; run this command again"
            );
        }
        sleep(ANSWER_TIMEOUT / 5).await;
    }
}

/// Fails if a shard is yet to be opened: another operator may have begun it anew meanwhile.
async fn check_open(access: &ClusterAccess, filled: &ShardRecords) -> anyhow::Result<()> {
    let records = shard_records(access.keys()).await?;
    let is_closed = |shard: &ShardId| records.get(shard).is_none_or(|record| record.is_rebuilt());
    let closed: ShardSet = shards_of(filled)
        .iter()
        .filter(|shard| is_closed(shard))
        .collect();
    if !closed.is_empty() {
        bail!("shards {closed} have begun anew once more since: run this command again");
    }
    Ok(())
}

/// How many documents shards hold, once they are searched; `None` if that takes long.
async fn documents(access: &ClusterAccess, shards: ShardSet) -> anyhow::Result<Option<u64>> {
    let started = Instant::now();
    loop {
        let cluster = Cluster::ask(&admin(access)).await?;
        let records = shard_records(access.keys()).await?;
        let counts = shards
            .iter()
            .map(|shard| cluster.documents(shard, records.get(&shard)?));
        let documents = counts.sum::<Option<u64>>();
        if documents.is_some() || started.elapsed() > INSTALL_TIMEOUT {
            return Ok(documents);
        }
        sleep(ANSWER_TIMEOUT / 5).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another operator began one of them, and a node that came back has the other.
    #[test]
    fn a_shard_that_another_operator_began_is_filled_and_another_one_is_looked_at_anew() {
        let stores = [StoreId([1; 16]), StoreId([2; 16])];
        let held = ShardRecord::first(0, &stores[..1], 7);
        let begun = held.rebuilt(stores[1], 8, |store| store == stores[1]);
        let records = ShardRecords::from([
            (ShardId(3), Arc::new(held)),
            (ShardId(4), Arc::new(begun.unwrap())),
        ]);
        let left = not_begun(shards_of(&records), &records);
        assert_eq!(left, ShardSet::from_iter([ShardId(3)]));
    }
}
