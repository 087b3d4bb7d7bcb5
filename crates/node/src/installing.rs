//! Installing the records of shards: a node follows the metadata, and what other stores tell.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{ClusterLayout, METADATA_PATIENCE};
use simshard_storage::InstallFailure;
use simshard_topology::ShardId;
use simshard_topology::replication::{Epoch, ShardRecords, StoreId};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::engine::Engine;
use crate::peers::SOON;

/// How often records that wait for reports of other nodes are looked at again.
const REPORTS_INTERVAL: Duration = Duration::from_millis(100);

/// Installs the records of shards as they change, which the metadata or another store tells. `reported` tells the epoch of
/// a shard that a store has reported. If the node has a later record than those that it follows, these may be old. Then
/// those that `read` finds in the metadata decide, and the rest goes on meanwhile. Returns why the node cannot go on.
pub(crate) async fn install_all<R: Future<Output = Option<Arc<ClusterLayout>>>>(
    engine: &Engine,
    reported: impl Fn(ShardId, StoreId) -> Epoch + Copy,
    mut told: watch::Receiver<ShardRecords>,
    read: impl Fn() -> R,
    mut followed: watch::Receiver<Arc<ClusterLayout>>,
) -> InstallFailure {
    let mut reading = None;
    // It is followed as long as the metadata is open.
    loop {
        let layout = Arc::clone(&followed.borrow_and_update());
        let of_layout = layout.records().cloned().unwrap_or_default();
        let of_others = told.borrow_and_update().clone();
        let awaits_reports = engine.store().awaits_reports(&of_layout);
        match install_newer(engine, of_layout, reported).await {
            Err(problem) => return problem,
            Ok(HasOlder(true)) if reading.is_none() => reading = Some(begin(engine, &read)),
            Ok(HasOlder(_)) => {}
        }
        // They may be behind this store in some.
        if let Err(problem) = install_newer(engine, of_others, reported).await {
            return problem;
        }
        tokio::select! {
            changed = followed.changed() => if changed.is_err() {
                return pending().await;
            },
            // A record that adds this node as a learner waits for the report of another.
            () = sleep(if awaits_reports { SOON } else { REPORTS_INTERVAL }) => {}
            (since, newest) = end_of(&mut reading) => {
                reading = None;
                // A reading that overlaps with an installation may lack what was installed.
                if since == engine.reports().0
                    && let Some(newest) = newest
                    && let Err(problem) = install(engine, &newest, reported).await
                {
                    return problem;
                }
            }
        }
    }
}

/// A reading of the metadata.
struct Reading<R> {
    /// The number of installations before it.
    since: u64,
    layout: Pin<Box<R>>,
}

/// Begins a reading, after a pause: news may come first, and the metadata may fail at once each time.
fn begin<R: Future<Output = Option<Arc<ClusterLayout>>>>(
    engine: &Engine,
    read: impl Fn() -> R,
) -> Reading<impl Future<Output = R::Output>> {
    let layout = async move {
        sleep(REPORTS_INTERVAL).await;
        timeout(METADATA_PATIENCE, read()).await.ok().flatten()
    };
    Reading {
        since: engine.reports().0,
        layout: Box::pin(layout),
    }
}

/// The end of a reading, if there is one, and the number of installations before it. Those who follow the metadata say if
/// it is away.
async fn end_of<R: Future<Output = Option<Arc<ClusterLayout>>>>(
    reading: &mut Option<Reading<R>>,
) -> (u64, Option<Arc<ClusterLayout>>) {
    match reading {
        Some(reading) => (reading.since, reading.layout.as_mut().await),
        None => pending().await,
    }
}

/// Whether records are older than those of this store.
struct HasOlder(bool);

/// Installs those of some records that are not older than those of this store.
async fn install_newer(
    engine: &Engine,
    mut records: ShardRecords,
    reported: impl Fn(ShardId, StoreId) -> Epoch,
) -> Result<HasOlder, InstallFailure> {
    let count = records.len();
    records.retain(|shard, record| record.epoch >= engine.report(*shard));
    engine.install(&records, reported).await?;
    Ok(HasOlder(records.len() < count))
}

/// Installs the records of a layout. Fails if one is older than that of this store.
async fn install(
    engine: &Engine,
    layout: &ClusterLayout,
    reported: impl Fn(ShardId, StoreId) -> Epoch,
) -> Result<(), InstallFailure> {
    match layout.records() {
        Some(records) => engine.install(records, reported).await,
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use simshard_cluster::{
        Corpora, KeyValueMetadata, KeyValueStore, MemoryKeyValues, MetadataStore, Steps,
        initialize, register, take_steps,
    };
    use simshard_storage::{Holding, Options, Store};
    use simshard_topology::replication::{InstallError, Learner, ShardRecord, Step};
    use simshard_topology::{ShardSet, plan_evenly};
    use tokio::time::interval;

    use super::*;
    use crate::Node;
    use crate::engine::Threads;
    use crate::registration::tests::store_of;

    /// The layouts of a cluster of one node, one after the other, and the node's engine, which opened with the last.
    async fn opened() -> (Vec<Arc<ClusterLayout>>, Arc<Engine>, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let claim = Node::claim(directory.path().to_owned()).await.unwrap();
        let keys: Arc<dyn KeyValueStore> = Arc::new(MemoryKeyValues::new());
        let store = store_of(&claim);
        let node = store.node.clone();
        drop(claim);
        register(&*keys, &store).await.unwrap();
        let map = plan_evenly(None, &[node], 1).unwrap();
        initialize(&*keys, &map, 1, &Corpora::default(), &[])
            .await
            .unwrap();
        let metadata = KeyValueMetadata::follow(Arc::clone(&keys), || {}, |_| {}).await;
        let metadata = metadata.unwrap();
        let mut layouts = vec![metadata.layout().await.unwrap()];
        for _ in 0..2 {
            let records = layouts.last().unwrap().records().unwrap().clone();
            let mut steps = Steps::default();
            let taking = take_steps(
                &*keys,
                |_, _| Some(Step::Adjust),
                |shard, _| records[&shard].epoch,
                |_, _, _| false,
                &mut steps,
            );
            taking.await.unwrap();
            assert!(!steps.taken.is_empty());
            layouts.push(metadata.layout().await.unwrap());
        }
        let holding = Holding {
            shards: ShardSet::ALL,
            records: layouts[1].records().cloned(),
        };
        let opened = Store::open(directory.path(), holding, Options::default()).unwrap();
        let threads = Arc::new(Threads::start(2).unwrap());
        let engine = Engine::start(opened, map.digest(), None, threads, 1 << 20).unwrap();
        (layouts, Arc::new(engine), directory)
    }

    const NONE_REPORTED: fn(ShardId, StoreId) -> Epoch = |_, _| Epoch::NONE;

    fn told(records: ShardRecords) -> watch::Receiver<ShardRecords> {
        watch::channel(records).1
    }

    fn is_not_newer(failure: &InstallFailure) -> bool {
        matches!(
            failure,
            InstallFailure::Record {
                problem: InstallError::NotNewer(_),
                ..
            }
        )
    }

    /// Waits until something is so, while the installing goes on.
    async fn until(is_so: impl Fn() -> bool) {
        let mut ticks = interval(REPORTS_INTERVAL);
        while !is_so() {
            ticks.tick().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_layout_of_before_ends_a_node_only_if_the_metadata_has_it_now() {
        let (layouts, engine, _directory) = opened().await;
        let [first, second, third] = &layouts[..] else {
            panic!("{layouts:?}");
        };
        let epoch = |layout: &ClusterLayout| layout.records().unwrap()[&ShardId(7)].epoch;
        let installed = || engine.store().report(ShardId(7));
        let readings = Cell::new(0);
        let installing = |found: Option<&Arc<ClusterLayout>>| {
            let (engine, readings, found) = (&engine, &readings, found.cloned());
            let (_sender, followed) = watch::channel(Arc::clone(first));
            async move {
                let read = || async {
                    readings.set(readings.get() + 1);
                    found.clone()
                };
                let none = told(ShardRecords::new());
                let failure = install_all(engine, NONE_REPORTED, none, read, followed).await;
                drop(_sender);
                failure
            }
        };
        tokio::select! {
            ended = installing(None) => panic!("{ended}"),
            () = until(|| readings.get() > 2) => {}
        }
        assert_eq!(installed(), epoch(second));
        let refused = installing(Some(first)).await;
        assert!(is_not_newer(&refused), "{refused}");
        tokio::select! {
            ended = installing(Some(third)) => panic!("{ended}"),
            () = until(|| installed() == epoch(third)) => {}
        }
    }

    /// A record that makes the store of a node a learner of shard 7, beside another one.
    fn learning(layout: &ClusterLayout, other: StoreId) -> (Epoch, ShardRecords) {
        let mut record = ShardRecord::clone(&layout.records().unwrap()[&ShardId(7)]);
        record.epoch.number += 9;
        let added = record.epoch;
        let store = std::mem::replace(&mut record.in_sync[0].store, other);
        record.learners = vec![Learner { store, added }];
        (added, ShardRecords::from([(ShardId(7), Arc::new(record))]))
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_that_waits_for_a_report_does_not_wait_for_a_reading() {
        let (layouts, engine, _directory) = opened().await;
        let other = StoreId([9; 16]);
        let (added, records) = learning(&layouts[1], other);
        let (asked, reported) = (Cell::new(0), Cell::new(Epoch::NONE));
        let reports = |_, store| {
            assert_eq!(store, other);
            asked.set(asked.get() + 1);
            reported.get()
        };
        let (_sender, followed) = watch::channel(Arc::clone(&layouts[0]));
        let never = || pending::<Option<Arc<ClusterLayout>>>();
        let installed = || engine.store().report(ShardId(7));
        tokio::select! {
            ended = install_all(&engine, &reports, told(records), never, followed) => panic!("{ended}"),
            () = async {
                sleep(METADATA_PATIENCE / 2).await;
                assert!(asked.get() > 9, "{}", asked.get());
                assert_ne!(installed(), added);
                reported.set(added);
                until(|| installed() == added).await;
            } => {}
        }
    }

    /// PE11: what another store tells is installed, and what is older there ends nothing. Nor does it hold up other records.
    #[tokio::test]
    async fn records_that_another_store_tells_are_installed_unless_they_are_older() {
        let (layouts, engine, _directory) = opened().await;
        let records = |layout: usize| layouts[layout].records().unwrap();
        let told = |layout| install_newer(&engine, records(layout).clone(), NONE_REPORTED);
        assert!(told(0).await.unwrap().0);
        assert!(!told(2).await.unwrap().0);
        assert!(told(1).await.unwrap().0);
        let installed = engine.store().report(ShardId(7));
        assert_eq!(installed, records(2)[&ShardId(7)].epoch);
        // One of these is older.
        let mut mixed = records(2).clone();
        for (shard, record) in &mut mixed {
            let record = Arc::make_mut(record);
            let is_older = *shard == ShardId(7);
            record.epoch.number = if is_older { 1 } else { record.epoch.number + 1 };
        }
        let installed = install_newer(&engine, mixed, NONE_REPORTED).await;
        assert!(installed.unwrap().0);
        let numbers = [7, 8].map(|shard| engine.store().report(ShardId(shard)).number);
        assert_eq!(
            numbers,
            [
                records(2)[&ShardId(7)].epoch.number,
                records(2)[&ShardId(8)].epoch.number + 1
            ]
        );
        let mut other = records(2).clone();
        other.retain(|shard, _| *shard == ShardId(7));
        for record in other.values_mut() {
            Arc::make_mut(record).nonce ^= 1;
        }
        let refused = install_newer(&engine, other, NONE_REPORTED).await;
        let refused = refused.map(|_| ()).unwrap_err();
        assert!(matches!(
            refused,
            InstallFailure::Record {
                problem: InstallError::OtherHistory(_),
                ..
            }
        ));
    }
}
