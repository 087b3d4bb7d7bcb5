//! Compares the corpora of a node with the metadata, if the node can read that. It does so at the start, after each copy
//! of a shard, and every now and then.
//!
//! # Invariants
//! - AG1: a store gets in sync for a shard only after the metadata was read and all that was deleted was dropped. It
//!   reads the metadata after its copy of the shard was complete. A deletion that begins later asks this store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use simshard_cluster::{
    Corpora, CorpusRecord, CorpusState, CorpusUid, MetadataError, MetadataStore,
};
use simshard_topology::ShardId;
use simshard_topology::replication::{Epoch, Role};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{error, info, warn};

use crate::engine::Engine;

/// How often a node that has registered itself looks for corpora that were deleted while it was cut off.
const INTERVAL: Duration = Duration::from_secs(10);

/// How often it looks for copies of shards that are complete.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Where a node and the metadata differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    /// Corpora that the node holds and that were deleted, or are about to be: it was away when the others dropped them.
    pub(crate) deleted: Vec<CorpusUid>,
    /// Live corpora that the node does not hold.
    pub(crate) missing: Vec<CorpusRecord>,
    /// Corpora that the node holds and that have no record.
    pub(crate) unrecorded: Vec<CorpusUid>,
}

/// Follows what the metadata says of the corpora that the node holds, as far as it can be read here. Drops what is
/// being deleted, and logs what is missing. Where the metadata fails, routers refuse what depends on it.
pub(crate) async fn reconcile(engine: &Engine, store: &dyn MetadataStore) {
    let Differences {
        deleted,
        missing,
        unrecorded,
    } = match differences(engine, store).await {
        Ok(differences) => differences,
        Err(error) => {
            warn!(%error, "the node cannot compare what it stores with the corpora of the cluster");
            return;
        }
    };
    drop_deleted(engine, deleted).await;
    if store.names_stores() {
        make_missing(engine, &missing).await;
    }
    for CorpusRecord { name, uid, .. } in missing.iter().filter(|_| !store.names_stores()) {
        error!(
            corpus = %name, %uid,
            "the node does not hold this corpus, and refuses what concerns it: start it with the data directory that \
             it had; if that is lost, delete and create the corpus, then insert its documents again"
        );
    }
    for uid in unrecorded {
        warn!(
            %uid,
            "the node holds a corpus that has no record: `simshard corpus recover` restores it"
        );
    }
}

/// Copies of shards, by the epoch at which this store was added.
pub(crate) type Copies = BTreeMap<ShardId, Epoch>;

/// Drops what was deleted while a node that has registered itself was cut off, and makes what was created, as long as it is
/// polled. Deletions do not wait for a node that is in no record of a shard. Tells which copies were complete before the
/// metadata was read (AG1).
pub(crate) async fn keep_reconciled(
    engine: &Engine,
    store: &dyn MetadataStore,
    agreed: &watch::Sender<Copies>,
) {
    let mut ticks = interval(LOOK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut next = Instant::now();
    let mut lacked: Vec<CorpusRecord> = Vec::new();
    let mut is_failing = false;
    loop {
        ticks.tick().await;
        let copies = complete_copies(engine);
        if *agreed.borrow() == copies && Instant::now() < next {
            continue;
        }
        next = Instant::now() + INTERVAL;
        let differences = differences(engine, store).await;
        let was_failing = std::mem::replace(&mut is_failing, differences.is_err());
        let Differences {
            deleted, missing, ..
        } = match differences {
            Ok(differences) => differences,
            Err(error) => {
                if !was_failing {
                    warn!(
                        %error,
                        "corpora cannot be compared with the metadata: until they can, this node joins no shard"
                    );
                }
                continue;
            }
        };
        if was_failing {
            info!("corpora can be compared with the metadata again");
        }
        // What is missing for the first time may just be made: a router has nodes do so.
        let is_again = |one: &&CorpusRecord| lacked.contains(*one);
        let again: Vec<CorpusRecord> = missing.iter().filter(is_again).cloned().collect();
        make_missing(engine, &again).await;
        lacked = missing;
        if drop_deleted(engine, deleted).await {
            agreed.send_replace(copies);
        }
    }
}

/// The copies that are complete, of shards that this store is still a learner of.
fn complete_copies(engine: &Engine) -> Copies {
    let roles = engine.roles().into_iter();
    let copied = roles.filter_map(|(shard, _, role)| match role {
        Role::Copied { added } => Some((shard, added)),
        Role::None | Role::Copying { .. } | Role::InSync => None,
    });
    copied.collect()
}

async fn differences(
    engine: &Engine,
    store: &dyn MetadataStore,
) -> Result<Differences, MetadataError> {
    let corpora = store.corpora().await?;
    let held = engine.uids();
    let has_record = |uid: &CorpusUid| corpora.of_uid(*uid).is_some();
    let gone = if held.iter().all(has_record) {
        BTreeSet::new()
    } else {
        store.deleted_corpora().await?
    };
    Ok(compare(&held, &corpora, &gone))
}

/// Makes corpora empty, so that the node needs no metadata when a request first needs them. One that was deleted meanwhile
/// stays dropped.
async fn make_missing(engine: &Engine, missing: &[CorpusRecord]) {
    for record in missing {
        if let Err(error) = engine.make_recorded(record).await {
            let CorpusRecord { name, uid, .. } = record;
            warn!(corpus = %name, %uid, %error, "the node cannot make a corpus, and tries again when it is needed");
        }
    }
}

/// Answers whether all of them are dropped.
async fn drop_deleted(engine: &Engine, deleted: Vec<CorpusUid>) -> bool {
    let mut are_dropped = true;
    for uid in deleted {
        match engine.drop_corpus(uid).await {
            Ok(()) => info!(%uid, "the node dropped a corpus that was deleted while it was away"),
            // If the deletion is not complete, it has to be repeated in any case.
            Err(error) => {
                are_dropped = false;
                warn!(%uid, %error, "the node cannot drop a corpus that was deleted");
            }
        }
    }
    are_dropped
}

/// Compares what a node holds with the metadata. Where this was never written, as beside a node that has only a copy
/// of the layout file, it says nothing.
pub(crate) fn compare(
    held: &[CorpusUid],
    corpora: &Corpora,
    gone: &BTreeSet<CorpusUid>,
) -> Differences {
    let mut differences = Differences::default();
    if corpora.revision() == 0 {
        return differences;
    }
    for &uid in held {
        match corpora.of_uid(uid).map(|record| record.state) {
            Some(CorpusState::Creating | CorpusState::Live) => {}
            Some(CorpusState::Deleting) => differences.deleted.push(uid),
            None if gone.contains(&uid) => differences.deleted.push(uid),
            None => differences.unrecorded.push(uid),
        }
    }
    let is_missing =
        |record: &&CorpusRecord| record.state == CorpusState::Live && !held.contains(&record.uid);
    let missing = corpora.records().filter(is_missing);
    differences.missing.extend(missing.cloned());
    differences
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use simshard_cluster::{
        ClusterLayout, CorpusName, MemoryStore, MetadataStore, Node, random_corpus_uid,
    };
    use simshard_topology::NodeId;

    use super::*;

    fn record(name: &str) -> CorpusRecord {
        CorpusRecord {
            name: CorpusName::new(name).unwrap(),
            uid: random_corpus_uid(),
            blocks: 5,
            distance: 3,
            recipe: "words-v1".to_owned(),
            create_time: SystemTime::UNIX_EPOCH,
            state: CorpusState::Live,
        }
    }

    fn store() -> MemoryStore {
        let node = Node {
            id: NodeId::new("n1").unwrap(),
            address: "http://127.0.0.1:7470".to_owned(),
        };
        MemoryStore::new(ClusterLayout::planned(vec![node], 1).unwrap())
    }

    #[tokio::test]
    async fn a_node_learns_what_was_deleted_is_missing_or_has_no_record() {
        let store = store();
        let [live, deleting, missing, gone] = ["a", "b", "c", "d"].map(record);
        let creating = CorpusRecord {
            state: CorpusState::Creating,
            ..record("e")
        };
        let not_yet = CorpusRecord {
            state: CorpusState::Creating,
            ..record("f")
        };
        for record in [&live, &deleting, &missing, &gone, &creating, &not_yet] {
            store.create_corpus(record.clone(), 9).await.unwrap();
        }
        for record in [&deleting, &gone] {
            store
                .begin_deletion(&record.name, &record.uid)
                .await
                .unwrap();
        }
        let stray = random_corpus_uid();
        let all = [live.uid, creating.uid, deleting.uid, stray];
        let corpora = store.corpora().await.unwrap();
        let expected = Differences {
            deleted: vec![deleting.uid],
            missing: vec![missing],
            unrecorded: vec![stray],
        };
        assert_eq!(compare(&all, &corpora, &BTreeSet::new()), expected);
    }

    /// A node may have a copy of the layout file only.
    #[tokio::test]
    async fn a_node_that_cannot_know_the_corpora_concludes_nothing() {
        let corpora = store().corpora().await.unwrap();
        let stored = [random_corpus_uid()];
        assert_eq!(
            compare(&stored, &corpora, &BTreeSet::new()),
            Differences::default()
        );
    }
}
