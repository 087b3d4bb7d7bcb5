//! The backend for processes that share a key-value store. The corpora are there, and so is the layout, unless a
//! layout file has it.
//!
//! # Invariants
//! - KM1: of two changes that were decided on the same corpora, one is made, and the other is decided anew
//!   (`the_store_of_key_values_keeps_the_contract`).
//! - KM2: a change that may have been made is not repeated by itself. It fails, and the caller reads before it retries
//!   (`a_change_of_unknown_outcome_is_not_repeated`).
//! - KM3: where the layout is in the store, a store that lost all its keys has no corpora and no cluster, and says the
//!   latter (`lost_keys_are_no_cluster_without_corpora`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use simshard_topology::CorpusUid;
use tokio::sync::watch;

use crate::corpora::Corpora;
use crate::corpus::{CorpusName, CorpusRecord};
use crate::followed_layout::{OnTurn, follow_layout, read_layout, wait_for_cluster};
use crate::key_value::{
    KeyValue, KeyValueError, KeyValueStore, Outcome, Revision, Snapshot, Transaction,
};
use crate::keys;
use crate::layout::ClusterLayout;
use crate::raw_corpus::RawCorpus;
use crate::records;
use crate::store::{MetadataError, MetadataStore};

/// Corpora in a key-value store, and a layout that is fixed or there as well.
#[derive(Debug)]
pub struct KeyValueMetadata {
    layout: watch::Receiver<Arc<ClusterLayout>>,
    /// Of a fixed layout. Never sent to; kept so that receivers stay connected.
    fixed: Option<watch::Sender<Arc<ClusterLayout>>>,
    store: Arc<dyn KeyValueStore>,
    last: Mutex<Understood>,
}

/// What the store held when it was last read.
#[derive(Debug, Clone, Default)]
struct Understood {
    pairs: Vec<KeyValue>,
    corpora: Arc<Corpora>,
}

impl KeyValueMetadata {
    /// Keeps the corpora of a cluster in `store`, beside a layout that does not change while this is open.
    #[must_use]
    pub fn with_layout(layout: Arc<ClusterLayout>, store: Arc<dyn KeyValueStore>) -> Self {
        let (sender, layout) = watch::channel(layout);
        Self {
            layout,
            fixed: Some(sender),
            store,
            last: Mutex::default(),
        }
    }

    /// Waits until a cluster has begun in `store`, and follows its layout. Calls `on_wait` if it has not begun yet, and
    /// `on_turn` with what goes wrong later, and when all is well again.
    ///
    /// # Errors
    /// When the store cannot be read, or its records make no layout.
    pub async fn follow(
        store: Arc<dyn KeyValueStore>,
        on_wait: impl FnOnce() + Send,
        on_turn: impl OnTurn + Clone,
    ) -> Result<Self, MetadataError> {
        wait_for_cluster(&store, on_wait, on_turn.clone()).await?;
        let layout = follow_layout(&store, on_turn).await?;
        Ok(Self {
            layout,
            fixed: None,
            store,
            last: Mutex::default(),
        })
    }

    async fn read(&self) -> Result<Understood, MetadataError> {
        let Snapshot { pairs, .. } = self.store.read(keys::CORPORA).await?;
        if pairs.is_empty() && self.names_stores() {
            self.check_cluster().await?;
        }
        {
            let last = self.last.lock();
            if last.pairs == pairs {
                return Ok(last.clone());
            }
        }
        let corpora = Arc::new(understand(&pairs)?);
        let understood = Understood { pairs, corpora };
        *self.last.lock() = understood.clone();
        Ok(understood)
    }

    /// Checks that the cluster is still there, which never goes (KM3).
    async fn check_cluster(&self) -> Result<(), MetadataError> {
        let cluster = self.store.read(keys::CLUSTER).await?;
        if cluster.pairs.is_empty() {
            return Err(MetadataError::NoCluster);
        }
        Ok(())
    }

    /// Decides and writes, until nothing has changed in between (KM1).
    async fn change<T>(
        &self,
        change: impl Fn(&mut Corpora) -> Result<T, MetadataError> + Send + Sync,
    ) -> Result<T, MetadataError> {
        loop {
            let before = self.read().await?;
            let mut corpora = Corpora::clone(&before.corpora);
            let changed = change(&mut corpora)?;
            if corpora == *before.corpora {
                return Ok(changed);
            }
            let transaction = transaction(&before, &corpora)?;
            match self.store.commit(&transaction).await? {
                Outcome::Committed(_) => return Ok(changed),
                Outcome::Conflict => {}
            }
        }
    }
}

/// The records of corpora, without a layout.
///
/// # Errors
/// When the keys cannot be read or understood.
pub async fn recorded_corpora(keys: &dyn KeyValueStore) -> Result<Corpora, MetadataError> {
    understand(&keys.read(keys::CORPORA).await?.pairs)
}

/// The corpora that were deleted, without a layout.
///
/// # Errors
/// When the keys cannot be read or understood.
pub async fn deleted_corpora(
    store: &dyn KeyValueStore,
) -> Result<BTreeSet<CorpusUid>, MetadataError> {
    let pairs = store.read(keys::DELETED).await?.pairs.into_iter();
    let uid = |pair: KeyValue| {
        let uid = pair.key.strip_prefix(keys::DELETED).unwrap_or_default();
        let uid = uid.parse::<CorpusUid>();
        uid.map_err(|error| MetadataError::BadRecord {
            key: pair.key.clone(),
            reason: error.to_string(),
        })
    };
    pairs.map(uid).collect()
}

/// Those of some corpora that neither have a record nor were deleted: the metadata, or a part of it, was lost. `held` was
/// read before `recorded`: nodes hold no corpus before its record is there, and a deletion takes note of the corpus first.
///
/// # Errors
/// When the keys cannot be read or understood.
pub async fn without_record(
    keys: &dyn KeyValueStore,
    recorded: &Corpora,
    mut held: BTreeSet<CorpusUid>,
) -> Result<BTreeSet<CorpusUid>, MetadataError> {
    held.retain(|uid| recorded.of_uid(*uid).is_none());
    if !held.is_empty() {
        let deleted = deleted_corpora(keys).await?;
        held.retain(|uid| !deleted.contains(uid));
    }
    Ok(held)
}

/// The corpora that these keys tell of.
pub(crate) fn understand(pairs: &[KeyValue]) -> Result<Corpora, MetadataError> {
    let (mut revision, mut by_name) = (0, BTreeMap::new());
    for KeyValue { key, value, .. } in pairs {
        let bad = |reason| MetadataError::BadRecord {
            key: key.clone(),
            reason,
        };
        if key == keys::CORPORA_REVISION {
            let number = value.parse::<u64>();
            revision = number.map_err(|error| bad(error.to_string()))?;
        } else if keys::is_corpus(key) {
            let raw: RawCorpus = records::object_in(key, value)?;
            let record = raw.validated().map_err(bad)?;
            if *key != keys::corpus(&record.name) {
                return Err(bad(format!("it is the record of {}", record.name)));
            }
            by_name.insert(record.name.clone(), record);
        }
    }
    Ok(Corpora::at(revision, by_name))
}

/// What turns corpora that were read into others, if they are still as they were read.
fn transaction(before: &Understood, after: &Corpora) -> Result<Transaction, MetadataError> {
    let transaction = Transaction::new();
    let key = keys::CORPORA_REVISION;
    let mut transaction = match revision_of(&before.pairs) {
        Some(revision) => transaction.if_unchanged(key, revision),
        None => transaction.if_absent(key),
    };
    transaction = transaction.put(key, after.revision().to_string());
    for record in after.records() {
        if before.corpora.get(&record.name) != Some(record) {
            transaction =
                transaction.put(keys::corpus(&record.name), records::corpus_text(record)?);
        }
    }
    for record in before.corpora.records() {
        if after.get(&record.name).is_none() {
            transaction = transaction
                .delete(keys::corpus(&record.name))
                .put(keys::deleted(record.uid), record.name.as_str());
        }
    }
    Ok(transaction)
}

fn revision_of(pairs: &[KeyValue]) -> Option<Revision> {
    let mut pairs = pairs.iter();
    let pair = pairs.find(|pair| pair.key == keys::CORPORA_REVISION);
    pair.map(|pair| pair.revision)
}

impl From<KeyValueError> for MetadataError {
    fn from(error: KeyValueError) -> Self {
        Self::KeyValues(error)
    }
}

#[async_trait]
impl MetadataStore for KeyValueMetadata {
    async fn layout(&self) -> Result<Arc<ClusterLayout>, MetadataError> {
        if self.names_stores() {
            Ok(Arc::new(read_layout(&*self.store).await?))
        } else {
            Ok(Arc::clone(&self.layout.borrow()))
        }
    }

    fn watch_layout(&self) -> watch::Receiver<Arc<ClusterLayout>> {
        self.layout.clone()
    }

    fn registry(&self) -> Option<Arc<dyn KeyValueStore>> {
        let is_followed = self.fixed.is_none();
        is_followed.then(|| Arc::clone(&self.store))
    }

    async fn corpora(&self) -> Result<Arc<Corpora>, MetadataError> {
        Ok(self.read().await?.corpora)
    }

    async fn deleted_corpora(&self) -> Result<BTreeSet<CorpusUid>, MetadataError> {
        deleted_corpora(&*self.store).await
    }

    async fn create_corpus(
        &self,
        record: CorpusRecord,
        max_corpora: usize,
    ) -> Result<CorpusRecord, MetadataError> {
        self.change(|corpora| corpora.create(record.clone(), max_corpora))
            .await
    }

    async fn finish_creation(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        self.change(|corpora| corpora.finish_creation(name, uid))
            .await
    }

    async fn begin_deletion(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        self.change(|corpora| corpora.begin_deletion(name, uid))
            .await
    }

    async fn finish_deletion(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        self.change(|corpora| corpora.finish_deletion(name, uid))
            .await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, SystemTime};

    use simshard_topology::NodeId;

    use super::*;
    use crate::corpus::{CorpusState, random_corpus_uid};
    use crate::key_value::{Changes, LeaseId, MemoryKeyValues};
    use crate::layout::Node;

    /// A store that makes each change and does not confirm it.
    #[derive(Debug, Default)]
    struct Unconfirming {
        store: MemoryKeyValues,
        commits: AtomicUsize,
    }

    #[async_trait]
    impl KeyValueStore for Unconfirming {
        async fn read(&self, prefix: &str) -> Result<Snapshot, KeyValueError> {
            self.store.read(prefix).await
        }

        fn changes(&self, prefix: &str) -> Box<dyn Changes + '_> {
            self.store.changes(prefix)
        }

        async fn commit(&self, transaction: &Transaction) -> Result<Outcome, KeyValueError> {
            self.commits.fetch_add(1, Ordering::Relaxed);
            let _made = self.store.commit(transaction).await?;
            Err(KeyValueError::Unknown {
                store: "the store".to_owned(),
                reason: "it is a test".to_owned(),
            })
        }

        async fn grant(&self, time_to_live: Duration) -> Result<LeaseId, KeyValueError> {
            self.store.grant(time_to_live).await
        }

        async fn keep_alive(&self, lease: LeaseId) -> Result<(), KeyValueError> {
            self.store.keep_alive(lease).await
        }

        async fn revoke(&self, lease: LeaseId) -> Result<(), KeyValueError> {
            self.store.revoke(lease).await
        }
    }

    fn layout() -> Arc<ClusterLayout> {
        let node = Node {
            id: NodeId::new("n1").unwrap(),
            address: "http://127.0.0.1:7470".to_owned(),
        };
        Arc::new(ClusterLayout::planned(vec![node], 1).unwrap())
    }

    fn record(name: &str) -> CorpusRecord {
        CorpusRecord {
            name: CorpusName::new(name).unwrap(),
            uid: random_corpus_uid(),
            blocks: 5,
            distance: 3,
            recipe: "words-v2".to_owned(),
            create_time: SystemTime::UNIX_EPOCH,
            state: CorpusState::Creating,
        }
    }

    /// KM2.
    #[tokio::test]
    async fn a_change_of_unknown_outcome_is_not_repeated() {
        let store = Arc::new(Unconfirming::default());
        let keys: Arc<dyn KeyValueStore> = Arc::<Unconfirming>::clone(&store);
        let metadata = KeyValueMetadata::with_layout(layout(), keys);
        let record = record("c");
        let created = metadata.create_corpus(record.clone(), 9).await;
        let unknown = |error: &MetadataError| {
            matches!(
                error,
                MetadataError::KeyValues(KeyValueError::Unknown { .. })
            )
        };
        assert!(created.is_err_and(|error| unknown(&error)));
        assert_eq!(store.commits.load(Ordering::Relaxed), 1);
        assert_eq!(metadata.corpus(&record.name).await.unwrap(), Some(record));
    }

    /// KM3.
    #[tokio::test]
    async fn lost_keys_are_no_cluster_without_corpora() {
        let store = Arc::new(crate::steps::tests::cluster().await);
        let keys: Arc<dyn KeyValueStore> = Arc::<MemoryKeyValues>::clone(&store);
        let followed = KeyValueMetadata::follow(keys, || {}, |_| {}).await;
        let metadata = followed.unwrap();
        assert_eq!(metadata.corpora().await.unwrap().len(), 0);
        let lose = Transaction::new().delete(keys::CLUSTER);
        let outcome = store.commit(&lose).await.unwrap();
        assert!(matches!(outcome, Outcome::Committed(_)));
        let lost = metadata.corpora().await;
        assert!(matches!(lost, Err(MetadataError::NoCluster)), "{lost:?}");
    }

    #[tokio::test]
    async fn a_corpus_that_nodes_hold_has_lost_its_record_unless_it_was_deleted() {
        let store = Arc::new(crate::steps::tests::cluster().await);
        let metadata =
            KeyValueMetadata::with_layout(layout(), Arc::<MemoryKeyValues>::clone(&store));
        let [recorded, deleted] = ["c", "d"].map(record);
        for record in [&recorded, &deleted] {
            metadata.create_corpus(record.clone(), 9).await.unwrap();
        }
        let CorpusRecord { name, uid, .. } = &deleted;
        metadata.begin_deletion(name, uid).await.unwrap();
        metadata.finish_deletion(name, uid).await.unwrap();
        let lost = random_corpus_uid();
        let held = BTreeSet::from([recorded.uid, deleted.uid, lost]);
        let records = recorded_corpora(&*store).await.unwrap();
        let unrecorded = without_record(&*store, &records, held).await.unwrap();
        assert_eq!(unrecorded, BTreeSet::from([lost]));
    }

    #[tokio::test]
    async fn a_record_that_is_damaged_or_under_another_name_is_refused_by_its_key() {
        let store = Arc::new(MemoryKeyValues::new());
        let keys: Arc<dyn KeyValueStore> = Arc::<MemoryKeyValues>::clone(&store);
        let metadata = KeyValueMetadata::with_layout(layout(), keys);
        metadata.create_corpus(record("c"), 9).await.unwrap();
        let good = store.read("corpora/by-name/c").await.unwrap();
        let good = &good.pairs[0].value;
        let bad = [
            "",
            "{}",
            &good.replace("blocks", "later"),
            &good.replace('c', "d"),
        ];
        for value in bad.into_iter().chain([good.as_str()]) {
            let put = Transaction::new().put("corpora/by-name/other", value);
            let Outcome::Committed(_) = store.commit(&put).await.unwrap() else {
                panic!("it has no condition");
            };
            let error = metadata.corpora().await.unwrap_err();
            assert!(
                matches!(&error, MetadataError::BadRecord { key, .. } if key == "corpora/by-name/other"),
                "{error}"
            );
        }
    }
}
