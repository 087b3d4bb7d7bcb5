//! Installing the records of shards: a node follows the metadata, and what other stores tell.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{ClusterLayout, METADATA_PATIENCE, MetadataStore};
use simshard_storage::InstallFailure;
use simshard_topology::ShardId;
use simshard_topology::replication::{Epoch, InstallError, ShardRecords, StoreId};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::engine::Engine;
use crate::peers::Peers;

/// How often records that wait for reports of other nodes are looked at again.
const REPORTS_INTERVAL: Duration = Duration::from_millis(100);

/// Installs the records of shards as they change, which the metadata or another store tells. Returns why it cannot go on.
pub(crate) async fn install_all(
    engine: &Engine,
    peers: &Peers,
    metadata: &dyn MetadataStore,
    mut followed: watch::Receiver<Arc<ClusterLayout>>,
) -> InstallFailure {
    let reported = |shard, store| peers.reported_epoch(shard, store);
    let mut told = peers.told();
    // It is followed as long as the metadata is open.
    loop {
        let layout = Arc::clone(&followed.borrow_and_update());
        // A reading that overlaps with news of another store may lack these news.
        let read = async {
            tokio::select! {
                read = timeout(METADATA_PATIENCE, metadata.layout()) => read.ok()?.ok(),
                Ok(()) = told.changed() => None,
            }
        };
        let mut installed = install_news(engine, &layout, reported, read).await;
        if installed.is_ok() {
            let news = told.borrow_and_update().clone();
            installed = install_told(engine, news, reported).await;
        }
        if let Err(problem) = installed {
            return problem;
        }
        // A record that adds this node as a learner waits for the report of another.
        let changed = timeout(REPORTS_INTERVAL, followed.changed()).await;
        if let Ok(Err(_)) = changed {
            return pending().await;
        }
    }
}

/// Installs records of which other stores told. They may be behind this one in some.
async fn install_told(
    engine: &Engine,
    mut news: ShardRecords,
    reported: impl Fn(ShardId, StoreId) -> Epoch,
) -> Result<(), InstallFailure> {
    news.retain(|shard, record| record.epoch >= engine.report(*shard));
    engine.install(&news, reported).await
}

/// Installs the records of a layout. If the node has a later one already, the layout may be old: then it installs those
/// that `read` finds in the metadata. What is installed stays if the metadata is away.
async fn install_news(
    engine: &Engine,
    layout: &ClusterLayout,
    reported: impl Fn(ShardId, StoreId) -> Epoch + Copy,
    read: impl Future<Output = Option<Arc<ClusterLayout>>>,
) -> Result<(), InstallFailure> {
    match install(engine, layout, reported).await {
        Err(InstallFailure::Record {
            problem: InstallError::NotNewer(_),
            ..
        }) => match read.await {
            Some(newest) => install(engine, &newest, reported).await,
            // Those who follow the metadata say so.
            None => Ok(()),
        },
        installed => installed,
    }
}

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
    use std::collections::BTreeSet;

    use simshard_cluster::{
        Corpora, KeyValueMetadata, KeyValueStore, MemoryKeyValues, RegisteredStore, initialize,
        register, take_steps,
    };
    use simshard_topology::replication::Step;

    use simshard_storage::{Holding, Options, Store};
    use simshard_topology::{NodeId, ShardSet, plan_evenly};

    use super::*;
    use crate::Node;
    use crate::engine::Threads;

    /// The layouts of a cluster of one node, one after the other, and the node's engine, which opened with the last.
    async fn opened() -> (Vec<Arc<ClusterLayout>>, Arc<Engine>, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let claim = Node::claim(directory.path().to_owned()).await.unwrap();
        let keys: Arc<dyn KeyValueStore> = Arc::new(MemoryKeyValues::new());
        let node = NodeId::new("n1").unwrap();
        let store = RegisteredStore {
            id: claim.store,
            node: node.clone(),
            address: "http://127.0.0.1:7470".to_owned(),
            next_generation: 0,
            corpora: BTreeSet::new(),
            in_sync: std::collections::BTreeMap::new(),
            partners: std::collections::BTreeMap::new(),
            is_replacement: false,
        };
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
            let steps = take_steps(
                &*keys,
                |_, _| Some(Step::Keep),
                |shard, _| records[&shard].epoch,
                |_, _, _| false,
            );
            assert!(!steps.await.unwrap().taken.is_empty());
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

    #[tokio::test]
    async fn a_layout_of_before_ends_a_node_only_if_the_metadata_has_it_now() {
        let (layouts, engine, _directory) = opened().await;
        let [first, second, third] = &layouts[..] else {
            panic!("{layouts:?}");
        };
        let none = |_, _| Epoch::NONE;
        let epoch = |layout: &ClusterLayout| layout.records().unwrap()[&ShardId(7)].epoch;
        let installed = || engine.store().report(ShardId(7));
        assert_eq!(installed(), epoch(second));
        let away = async { None };
        install_news(&engine, first, none, away).await.unwrap();
        assert_eq!(installed(), epoch(second));
        let older = async { Some(Arc::clone(first)) };
        let refused = install_news(&engine, first, none, older).await.unwrap_err();
        assert!(
            matches!(refused, InstallFailure::Record { .. }),
            "{refused}"
        );
        let newer = async { Some(Arc::clone(third)) };
        install_news(&engine, first, none, newer).await.unwrap();
        assert_eq!(installed(), epoch(third));
    }

    /// PE11: what another store tells is installed, and what is older there ends nothing.
    #[tokio::test]
    async fn records_that_another_store_tells_are_installed_unless_they_are_older() {
        let (layouts, engine, _directory) = opened().await;
        let none = |_, _| Epoch::NONE;
        let records = |layout: usize| layouts[layout].records().unwrap();
        let told = |layout| install_told(&engine, records(layout).clone(), none);
        told(0).await.unwrap();
        told(2).await.unwrap();
        told(1).await.unwrap();
        let installed = engine.store().report(ShardId(7));
        assert_eq!(installed, records(2)[&ShardId(7)].epoch);
        let mut other = records(2).clone();
        for record in other.values_mut() {
            Arc::make_mut(record).nonce ^= 1;
        }
        let refused = install_told(&engine, other, none).await.unwrap_err();
        assert!(matches!(
            refused,
            InstallFailure::Record {
                problem: InstallError::OtherHistory(_),
                ..
            }
        ));
    }
}
