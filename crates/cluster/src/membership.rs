//! A cluster whose nodes register themselves: its stores, and who holds which shard.
//!
//! # Invariants
//! - ME1: a store that a shard's record names stays registered, and no other store has its node's name
//!   (`a_store_that_holds_shards_is_not_replaced`, `a_store_that_gave_way_takes_no_shard`).
//! - ME2: a cluster begins once, with the map of one attempt. Its key is written after all records that it needs
//!   (`a_cluster_begins_once`, `a_cluster_has_the_map_of_one_attempt`).
//! - ME4: a cluster that begins anew has in sync only stores that were, by the newest record that a store has installed
//!   (`a_cluster_that_begins_anew_has_in_sync_what_was`).
//! - ME3: no two stores have the same address (`an_address_that_another_store_has_is_refused`).
//! - ME5: in a cluster that has begun, the address of a store that is registered changes only for the process whose start
//!   the metadata holds (`a_start_that_is_not_the_last_one_changes_no_address`).

use std::collections::{BTreeMap, BTreeSet};

use simshard_topology::replication::{Incarnation, ShardRecord, ShardRecords, StoreId};
use simshard_topology::{CorpusUid, NodeId, ShardId, ShardMap, ShardSet};
use uuid::Uuid;

use crate::corpora::Corpora;
use crate::corpus::{CorpusRecord, CorpusState};
use crate::holders::Holders;
use crate::key_value::{
    KeyValueError, KeyValueStore, MAX_OPERATIONS, Outcome, Revision, Snapshot, Transaction,
};
use crate::key_value_metadata::understand;
use crate::keys;
use crate::layout::{Node, check_nodes};
use crate::levels::RawCluster;
use crate::processes::newest_known;
use crate::published::{published, published_key};
use crate::records::{self, RegisteredStore};
use crate::registered::{Registered, cluster_in, node_of};
use crate::store::MetadataError;

/// Enters a store. One that is registered in a cluster that has begun stays as it is: another process may answer for it,
/// until [`register_start`]. Another store of the same node gives way if no record of a shard names it. Answers whether one
/// did, in a cluster that has begun: then the node has lost its data directory. The answer is the same until
/// [`end_replacement`](crate::end_replacement).
///
/// # Errors
/// [`MetadataError::StoreHolds`] if a record names the other store. [`MetadataError::OtherStore`] if one names
/// it alone in sync. [`MetadataError::OtherName`] if the store is that of another node.
/// [`MetadataError::UnusableRecords`] if the address is none or taken. Else an error when the keys cannot be read or
/// written.
pub async fn register(
    keys: &dyn KeyValueStore,
    store: &RegisteredStore,
) -> Result<bool, MetadataError> {
    loop {
        let registered = Registered::read(keys).await?;
        let entry = entry(keys, &registered, store).await?;
        let is_known = registered.cluster.is_some() && registered.has(store.id);
        if is_known || write(keys, &registered, &entry, Transaction::new()).await? {
            return Ok(entry.is_replacement);
        }
    }
}

/// Enters where a store answers, and what its directory holds, while the metadata holds this start of it. Answers whether
/// that is so: if not, another process has begun a later start, and nothing changes (ME5).
///
/// # Errors
/// As those of [`register`]. [`MetadataError::OtherStore`] if another store has taken the place of this one.
pub async fn register_start(
    keys: &dyn KeyValueStore,
    store: &RegisteredStore,
    start: Incarnation,
) -> Result<bool, MetadataError> {
    loop {
        let known = published(keys, store.id).await?;
        let key = published_key(store.id);
        let while_so = match known {
            Some((_, known)) if known.incarnation != start => return Ok(false),
            Some((revision, _)) => Transaction::new().if_unchanged(key, revision),
            // The metadata was lost, and nothing is compared.
            None => Transaction::new().if_absent(key),
        };
        let registered = Registered::read(keys).await?;
        check_not_replaced(&registered, store)?;
        let entry = entry(keys, &registered, store).await?;
        if write(keys, &registered, &entry, while_so).await? {
            return Ok(true);
        }
    }
}

/// What is registered for a store, if it may be.
async fn entry(
    keys: &dyn KeyValueStore,
    registered: &Registered,
    store: &RegisteredStore,
) -> Result<RegisteredStore, MetadataError> {
    let replaced = registered.replaced_by(store)?;
    let replaces = replaced.is_some() && store.in_sync.is_empty();
    let is_replacement = replaces || registered.is_replacement(store);
    if let Some(replaced) = replaced {
        // Read after the registrations: who names it later changes those too.
        check_holds_nothing(replaced, &records_in(&keys.read(keys::SHARDS).await?)?)?;
    }
    let is_other = |other: &&RegisteredStore| other.id != store.id && other.node != store.node;
    let others = registered.stores.iter().filter(is_other).map(node_of);
    let all: Vec<Node> = others.chain([node_of(store)]).collect();
    check_nodes(&all).map_err(MetadataError::UnusableRecords)?;
    Ok(RegisteredStore {
        is_replacement,
        ..store.clone()
    })
}

/// Writes what is registered for a store, unless that is there. Answers false if a condition did not hold, or others have
/// registered since.
pub(crate) async fn write(
    keys: &dyn KeyValueStore,
    registered: &Registered,
    store: &RegisteredStore,
    conditions: Transaction,
) -> Result<bool, MetadataError> {
    if registered.stores.contains(store) {
        return Ok(true);
    }
    let key = keys::store(store.id);
    let text = records::store_text(&key, store)?;
    let mut change = registered
        .if_unchanged(conditions)
        .put(&*key, &*text)
        .put(keys::REGISTRATIONS, Uuid::new_v4().to_string());
    for other in &registered.stores {
        if other.id != store.id && other.node == store.node {
            change = change.delete(keys::store(other.id));
            change = change.delete(keys::published(other.id));
        }
    }
    Ok(commit(keys, &change, &key, &text).await?.is_some())
}

/// Refuses to replace a store that a record names.
fn check_holds_nothing(
    replaced: &RegisteredStore,
    records: &ShardRecords,
) -> Result<(), MetadataError> {
    let (node, store) = (replaced.node.clone(), replaced.id);
    let names = |record: &ShardRecord| record.write_set().any(|named| named == store);
    let named = records.iter().filter(|(_, record)| names(record));
    let is_last = |record: &ShardRecord| matches!(&*record.in_sync, [last] if last.store == store);
    if records.values().any(|record| is_last(record)) {
        return Err(MetadataError::OtherStore { node, store });
    }
    let shards: ShardSet = named.map(|(shard, _)| *shard).collect();
    if shards.is_empty() {
        return Ok(());
    }
    Err(MetadataError::StoreHolds {
        node,
        store,
        shards,
    })
}

/// Checks that a store is still the one of its node, as it was when it registered.
///
/// # Errors
/// [`MetadataError::OtherStore`] if it is not, else when the keys cannot be read.
pub async fn check_registered(
    keys: &dyn KeyValueStore,
    store: &RegisteredStore,
) -> Result<(), MetadataError> {
    check_not_replaced(&Registered::read(keys).await?, store)
}

fn check_not_replaced(
    registered: &Registered,
    store: &RegisteredStore,
) -> Result<(), MetadataError> {
    match registered.replaced_by(store)? {
        None => Ok(()),
        Some(other) => Err(MetadataError::OtherStore {
            node: other.node.clone(),
            store: other.id,
        }),
    }
}

/// Lets a transaction conflict with any registration, and with any other that does the same. Answers the stores that are
/// registered then.
pub(crate) async fn with_registrations(
    keys: &dyn KeyValueStore,
) -> Result<(Transaction, BTreeSet<StoreId>), MetadataError> {
    let registered = Registered::read(keys).await?;
    let change = registered.if_unchanged(Transaction::new());
    let stores = registered.stores.iter().map(|store| store.id);
    Ok((
        change.put(keys::REGISTRATIONS, Uuid::new_v4().to_string()),
        stores.collect(),
    ))
}

/// Begins a cluster with these corpora: each shard goes to the stores of the nodes that `map` names for it. The nodes
/// `lost` may lack what they must have held.
///
/// Of the replicas of each shard, the first `hot` answer searches. The level is the newest one that all registered nodes
/// know.
///
/// # Errors
/// [`MetadataError::AlreadyInitialized`] if there is one. [`MetadataError::NotRegistered`] if the map names a
/// node that has no store. [`MetadataError::OtherCorpora`] if the keys hold corpora already. [`MetadataError::Raced`]
/// if nodes or another process got in between. [`MetadataError::EmptiedStore`] if a store lacks what it held,
/// [`MetadataError::NotHeld`] or [`MetadataError::NoneBegins`] if none holds some shards,
/// [`MetadataError::PartnersAbsent`] if one that may hold newer changes has not registered. Else an error when the keys
/// cannot be read or written.
pub async fn initialize(
    keys: &dyn KeyValueStore,
    map: &ShardMap,
    hot: u8,
    corpora: &Corpora,
    lost: &[NodeId],
) -> Result<(), MetadataError> {
    let registered = Registered::read(keys).await?;
    let stores = registered.stores_of(map)?;
    let generation = registered.next_generation();
    let mut begin = registered.if_unchanged(Transaction::new());
    if let Some(mark) = take_over(keys, corpora).await? {
        begin = begin
            .if_unchanged(keys::TAKE_OVER, mark)
            .delete(keys::TAKE_OVER);
    }
    let corpora = understand(&keys.read(keys::CORPORA).await?.pairs)?;
    check_not_emptied(&stores, generation, &corpora, lost)?;
    let holders = Holders::of(&registered, &stores, map);
    if generation > 0 && lost.is_empty() && stores.values().any(|store| !store.corpora.is_empty()) {
        holders.check_all_held()?;
        holders.check_no_partner_is_absent()?;
    }
    holders.check_all_begin()?;
    let shards: Vec<ShardId> = ShardId::all().collect();
    for some in shards.chunks(MAX_OPERATIONS) {
        let (mut last, mut change) = (None, registered.if_unchanged(Transaction::new()));
        for &shard in some {
            let key = keys::shard(shard);
            let record = holders.first_record(generation, shard).with_hot(hot);
            let text = records::shard_text(&key, &record)?;
            change = change.put(&*key, &*text);
            last = Some((key, text));
        }
        if let Some((key, text)) = last {
            let revision = commit(keys, &change, &key, &text).await?;
            // Another attempt must not have written them since.
            begin = begin.if_unchanged(key, revision.ok_or(MetadataError::Raced)?);
        }
    }
    let level = newest_known(keys, &registered.stores).await?;
    let text = records::text_of(keys::CLUSTER, &RawCluster::new(level))?;
    let begin = begin.put(keys::CLUSTER, &*text);
    let begun = commit(keys, &begin, keys::CLUSTER, &text).await?;
    begun.map(|_| ()).ok_or(MetadataError::Raced)
}

/// Refuses a store that lacks what it must have held: its directory was lost, and it would answer as if nothing had been
/// stored. Before the metadata named stores, every node held every live corpus.
fn check_not_emptied(
    stores: &BTreeMap<&NodeId, &RegisteredStore>,
    generation: u32,
    corpora: &Corpora,
    lost: &[NodeId],
) -> Result<(), MetadataError> {
    let is_live = |corpus: &&CorpusRecord| corpus.state == CorpusState::Live;
    let live = corpora.records().filter(is_live);
    let live: Vec<CorpusUid> = live.map(|corpus| corpus.uid).collect();
    let may_lack = stores.values().all(|store| store.corpora.is_empty());
    let is_behind = |store: &RegisteredStore| {
        let has_no_record = store.next_generation < generation && !may_lack;
        has_no_record || live.iter().any(|uid| !store.corpora.contains(uid))
    };
    let mut stores = stores.values();
    let behind = stores.find(|store| is_behind(store) && !lost.contains(&store.node));
    behind.map_or(Ok(()), |store| {
        let node = store.node.clone();
        Err(MetadataError::EmptiedStore { node })
    })
}

/// Copies the records of corpora, before the cluster begins. Replaces what an earlier attempt copied, and nothing else:
/// corpora of a cluster with a layout file may be there. Answers the revision of its mark, unless there is nothing to do.
async fn take_over(
    keys: &dyn KeyValueStore,
    corpora: &Corpora,
) -> Result<Option<Revision>, MetadataError> {
    let there = keys.read(keys::CORPORA).await?.pairs;
    let are_copies = !keys.read(keys::TAKE_OVER).await?.pairs.is_empty();
    if corpora.is_empty() && !are_copies {
        return Ok(None);
    }
    if !there.is_empty() && !are_copies {
        return Err(MetadataError::OtherCorpora);
    }
    let attempt = Uuid::new_v4().to_string();
    let mut mark = Transaction::new().if_absent(keys::CLUSTER);
    if there.is_empty() {
        mark = mark.if_absent(keys::CORPORA_REVISION);
    }
    let mark = mark.put(keys::TAKE_OVER, &*attempt);
    let mark = commit(keys, &mark, keys::TAKE_OVER, &attempt).await?;
    let mark = mark.ok_or(MetadataError::Raced)?;
    let mut wanted = BTreeMap::new();
    if corpora.revision() > 0 {
        let revision = corpora.revision().to_string();
        wanted.insert(keys::CORPORA_REVISION.to_owned(), revision);
    }
    for record in corpora.records() {
        wanted.insert(keys::corpus(&record.name), records::corpus_text(record)?);
    }
    let old = there.into_iter().map(|pair| pair.key);
    let old: Vec<String> = old.filter(|key| !wanted.contains_key(key)).collect();
    let writes = wanted.into_iter().map(|(key, text)| (key, Some(text)));
    let writes: Vec<_> = writes
        .chain(old.into_iter().map(|key| (key, None)))
        .collect();
    for some in writes.chunks(MAX_OPERATIONS) {
        let mut change = Transaction::new()
            .if_absent(keys::CLUSTER)
            .if_unchanged(keys::TAKE_OVER, mark);
        for (key, text) in some {
            change = match text {
                Some(text) => change.put(&**key, &**text),
                None => change.delete(&**key),
            };
        }
        if keys.commit(&change).await? == Outcome::Conflict {
            return Err(MetadataError::Raced);
        }
    }
    Ok(Some(mark))
}

/// Makes a transaction that puts this text under this key, among others. Answers its revision; `None` if a condition
/// did not hold. Without an answer it looks: the text is unlike all others. If it finds another text, it fails: a store
/// without space must not look like one that others have changed.
pub(crate) async fn commit(
    keys: &dyn KeyValueStore,
    change: &Transaction,
    key: &str,
    text: &str,
) -> Result<Option<Revision>, MetadataError> {
    match keys.commit(change).await {
        Ok(Outcome::Committed(revision)) => Ok(Some(revision)),
        Ok(Outcome::Conflict) => Ok(None),
        Err(unknown @ KeyValueError::Unknown { .. }) => {
            let found = keys.read(key).await?.pairs;
            let mut found = found.into_iter().filter(|pair| pair.key == key);
            let made = found.find(|pair| pair.value == text).ok_or(unknown)?;
            Ok(Some(made.revision))
        }
        Err(error) => Err(error.into()),
    }
}

/// A number that differs from all others.
#[must_use]
pub fn random_nonce() -> u64 {
    Uuid::new_v4().as_u64_pair().1
}

/// The records of all shards.
///
/// # Errors
/// [`MetadataError::NoCluster`] if there is none, else when the keys cannot be read or understood.
pub async fn shard_records(keys: &dyn KeyValueStore) -> Result<ShardRecords, MetadataError> {
    if cluster_in(&keys.read(keys::CLUSTER).await?)?.is_none() {
        return Err(MetadataError::NoCluster);
    }
    records_in(&keys.read(keys::SHARDS).await?)
}

/// Whether a cluster has begun.
///
/// # Errors
/// When the key cannot be read or understood.
pub async fn has_cluster(keys: &dyn KeyValueStore) -> Result<bool, MetadataError> {
    Ok(cluster_in(&keys.read(keys::CLUSTER).await?)?.is_some())
}

/// Whether shards have records, though there is no cluster: an attempt to begin one was cut off, or its key is lost.
///
/// # Errors
/// When the keys cannot be read or understood.
pub async fn has_records_without_cluster(keys: &dyn KeyValueStore) -> Result<bool, MetadataError> {
    Ok(!has_cluster(keys).await? && !keys.read(keys::SHARDS).await?.pairs.is_empty())
}

pub(crate) fn records_in(shards: &Snapshot) -> Result<ShardRecords, MetadataError> {
    let records = records::shards_in(shards);
    records
        .map(|(shard, record)| Ok((shard, record?)))
        .collect()
}

#[cfg(test)]
mod tests {
    /// All replicas are hot.
    const ALL_HOT: u8 = u8::MAX;

    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use simshard_topology::replication::{Epoch, PublishedStore};

    use super::*;
    use crate::corpus::{CorpusName, random_corpus_uid};
    use crate::followed_layout::layout_of;
    use crate::key_value::{Changes, LeaseId, MemoryKeyValues};
    use crate::key_value_metadata::KeyValueMetadata;
    use crate::layout::ClusterLayout;
    use crate::published::publish;
    use crate::registered::registered_stores;
    use crate::store::MetadataStore;

    fn id(byte: u8) -> StoreId {
        StoreId([byte; 16])
    }

    fn node(number: u8) -> NodeId {
        NodeId::new(&format!("n{number}")).unwrap()
    }

    fn store(id: StoreId, number: u8, port: u16) -> RegisteredStore {
        RegisteredStore::new(id, node(number), format!("http://127.0.0.1:{port}"))
    }

    /// Nodes `n1` and `n2` with stores 1 and 2.
    async fn two_nodes() -> MemoryKeyValues {
        two_nodes_with(BTreeSet::new()).await
    }

    /// The same, holding corpora.
    async fn two_nodes_with(corpora: BTreeSet<CorpusUid>) -> MemoryKeyValues {
        let keys = MemoryKeyValues::new();
        for number in [1, 2] {
            let store = RegisteredStore {
                corpora: corpora.clone(),
                ..store(id(number), number, 7000 + u16::from(number))
            };
            register(&keys, &store).await.unwrap();
        }
        keys
    }

    fn halves() -> ShardMap {
        simshard_topology::plan_evenly(None, &[node(1), node(2)], 1).unwrap()
    }

    async fn layout(keys: &MemoryKeyValues) -> ClusterLayout {
        let (shards, stores) = (keys.read(keys::SHARDS).await, keys.read(keys::STORES).await);
        layout_of(&stores.unwrap(), &shards.unwrap()).unwrap()
    }

    async fn begin(keys: &MemoryKeyValues, map: &ShardMap) -> Result<(), MetadataError> {
        initialize(keys, map, ALL_HOT, &Corpora::default(), &[]).await
    }

    #[tokio::test]
    async fn a_cluster_has_the_map_that_it_began_with_and_the_addresses_of_now() {
        let keys = two_nodes().await;
        begin(&keys, &halves()).await.unwrap();
        let found = layout(&keys).await;
        assert_eq!(found.map().digest(), halves().digest());
        assert_eq!(
            found.node(&node(2)).unwrap().address,
            "http://127.0.0.1:7002"
        );
        let revision = keys.read("").await.unwrap().revision;
        for port in [7002, 9] {
            register(&keys, &store(id(2), 2, port)).await.unwrap();
            assert_eq!(keys.read("").await.unwrap().revision, revision);
        }
        let started = register_start(&keys, &store(id(2), 2, 9), start(1)).await;
        assert!(started.unwrap());
        let found = layout(&keys).await;
        assert_eq!(found.node(&node(2)).unwrap().address, "http://127.0.0.1:9");
    }

    const fn start(number: u64) -> Incarnation {
        Incarnation { number, nonce: 7 }
    }

    /// ME5.
    #[tokio::test]
    async fn a_start_that_is_not_the_last_one_changes_no_address() {
        let keys = two_nodes().await;
        begin(&keys, &halves()).await.unwrap();
        for number in [1, 2] {
            let read = published(&keys, id(2)).await.unwrap();
            let news = PublishedStore {
                incarnation: start(number),
                synced: 0,
            };
            let revision = read.map(|(revision, _)| revision);
            assert!(publish(&keys, id(2), revision, &news).await.unwrap());
        }
        for (port, number, expected) in [(8, 1, 7002), (8, 3, 7002), (9, 2, 9), (8, 1, 9)] {
            let registered = register_start(&keys, &store(id(2), 2, port), start(number)).await;
            assert_eq!(registered.unwrap(), number == 2);
            let found = layout(&keys).await;
            let expected = format!("http://127.0.0.1:{expected}");
            assert_eq!(found.node(&node(2)).unwrap().address, expected);
        }
    }

    /// ME1: it was about to start when a store with an empty directory took its place.
    #[tokio::test]
    async fn a_store_that_was_replaced_does_not_take_its_place_back() {
        let keys = two_nodes().await;
        begin(&keys, &halves()).await.unwrap();
        let (replaced, by) = (store(id(3), 3, 7003), store(id(4), 3, 7004));
        register(&keys, &replaced).await.unwrap();
        assert!(register(&keys, &by).await.unwrap());
        let refused = register_start(&keys, &replaced, start(1)).await;
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, MetadataError::OtherStore { .. }),
            "{refused}"
        );
        let stores = registered_stores(&keys).await.unwrap();
        let ids: Vec<StoreId> = stores.iter().map(|store| store.id).collect();
        assert_eq!(ids, [id(1), id(2), id(4)]);
    }

    /// ME3.
    #[tokio::test]
    async fn an_address_that_another_store_has_is_refused() {
        let keys = two_nodes().await;
        for port in [0, 7001] {
            let refused = register(&keys, &store(id(2), 2, port)).await.unwrap_err();
            assert!(
                matches!(refused, MetadataError::UnusableRecords(_)),
                "{refused}"
            );
        }
        // The store that gives way keeps no address.
        register(&keys, &store(id(3), 2, 7002)).await.unwrap();
    }

    /// ME1.
    #[tokio::test]
    async fn a_store_that_holds_shards_is_not_replaced() {
        let keys = two_nodes().await;
        let first = store(id(2), 2, 7002);
        // Before the cluster begins, an emptied directory is no loss.
        register(&keys, &store(id(3), 2, 7002)).await.unwrap();
        assert_eq!(registered_stores(&keys).await.unwrap().len(), 2);
        check_registered(&keys, &first).await.unwrap();
        begin(&keys, &halves()).await.unwrap();
        let renamed = register(&keys, &store(id(3), 5, 7005)).await.unwrap_err();
        assert!(
            matches!(&renamed, MetadataError::OtherName { node: name } if *name == node(2)),
            "{renamed}"
        );
        let replaced = [
            register(&keys, &store(id(4), 2, 7002)).await.map(|_| ()),
            check_registered(&keys, &first).await,
        ];
        for refused in replaced {
            let Err(MetadataError::OtherStore { node: name, store }) = refused else {
                panic!("{refused:?}");
            };
            assert_eq!((name, store), (node(2), id(3)));
        }
    }

    /// ME2.
    #[tokio::test]
    async fn a_cluster_begins_once() {
        let keys = MemoryKeyValues::new();
        register(&keys, &store(id(1), 1, 7001)).await.unwrap();
        let error = begin(&keys, &halves()).await.unwrap_err();
        assert!(
            matches!(&error, MetadataError::NotRegistered { missing } if missing == "n2"),
            "{error}"
        );
        register(&keys, &store(id(2), 2, 7002)).await.unwrap();
        begin(&keys, &halves()).await.unwrap();
        let error = begin(&keys, &halves()).await.unwrap_err();
        assert!(
            matches!(error, MetadataError::AlreadyInitialized),
            "{error}"
        );
    }

    /// A store in which something else happens before a transaction.
    #[derive(Debug)]
    struct Interrupted {
        keys: Arc<MemoryKeyValues>,
        /// Transactions before the one that is interrupted.
        before: AtomicUsize,
        by: Interruption,
    }

    #[derive(Debug, Clone, Copy)]
    enum Interruption {
        /// The process ends.
        End,
        /// Another process begins the cluster with another map.
        OtherBeginning,
        /// Another process, with another map, ends after its first transaction.
        OtherAttempt,
        /// A store gives way to another.
        Replacement,
        /// The keys have no space. That is no confirmation, and nothing is written.
        NoSpace,
    }

    #[async_trait::async_trait]
    impl KeyValueStore for Interrupted {
        async fn read(&self, prefix: &str) -> Result<Snapshot, KeyValueError> {
            self.keys.read(prefix).await
        }

        fn changes(&self, prefix: &str) -> Box<dyn Changes + '_> {
            self.keys.changes(prefix)
        }

        async fn commit(&self, transaction: &Transaction) -> Result<Outcome, KeyValueError> {
            if self.before.fetch_sub(1, Ordering::Relaxed) == 0 {
                match self.by {
                    Interruption::End => return Err(KeyValueError::NoLease),
                    Interruption::NoSpace => return Err(no_space()),
                    Interruption::OtherBeginning => begin(&self.keys, &swapped()).await.unwrap(),
                    Interruption::OtherAttempt => {
                        let other = Self {
                            keys: Arc::clone(&self.keys),
                            before: AtomicUsize::new(1),
                            by: Interruption::End,
                        };
                        let (map, none) = (swapped(), Corpora::default());
                        let ended = Box::pin(initialize(&other, &map, ALL_HOT, &none, &[]));
                        assert!(ended.await.is_err());
                    }
                    Interruption::Replacement => {
                        let other = store(id(9), 2, 7009);
                        register(&*self.keys, &other).await.unwrap();
                    }
                }
            }
            self.keys.commit(transaction).await
        }

        async fn grant(&self, time_to_live: Duration) -> Result<LeaseId, KeyValueError> {
            self.keys.grant(time_to_live).await
        }

        async fn keep_alive(&self, lease: LeaseId) -> Result<(), KeyValueError> {
            self.keys.keep_alive(lease).await
        }

        async fn revoke(&self, lease: LeaseId) -> Result<(), KeyValueError> {
            self.keys.revoke(lease).await
        }
    }

    fn no_space() -> KeyValueError {
        KeyValueError::Unknown {
            store: "etcd".to_owned(),
            reason: "database space exceeded".to_owned(),
        }
    }

    #[tokio::test]
    async fn a_change_that_was_not_made_for_lack_of_space_is_no_conflict() {
        let full = Interrupted {
            keys: Arc::new(MemoryKeyValues::new()),
            before: AtomicUsize::new(0),
            by: Interruption::NoSpace,
        };
        let registered = register(&full, &store(id(1), 1, 7001)).await;
        let Err(MetadataError::KeyValues(error)) = registered else {
            panic!("{registered:?}");
        };
        assert_eq!(error, no_space());
    }

    /// `halves()` with the nodes in each other's place.
    fn swapped() -> ShardMap {
        let halves = halves();
        let is_first = |shard| *halves.owner(shard) == node(1);
        let other = |shard| vec![node(if is_first(shard) { 2 } else { 1 })];
        let entries: Vec<Vec<NodeId>> = ShardId::all().map(other).collect();
        ShardMap::new(1, &entries).unwrap()
    }

    /// ME1, ME2.
    #[tokio::test]
    async fn a_cluster_has_the_map_of_one_attempt() {
        let transactions = 256_usize.div_ceil(MAX_OPERATIONS) + 1;
        for before in 0..transactions {
            for by in [
                Interruption::End,
                Interruption::NoSpace,
                Interruption::OtherBeginning,
                Interruption::OtherAttempt,
                Interruption::Replacement,
            ] {
                let interrupted = Interrupted {
                    keys: Arc::new(two_nodes().await),
                    before: AtomicUsize::new(before),
                    by,
                };
                let none = Corpora::default();
                let outcome = initialize(&interrupted, &halves(), ALL_HOT, &none, &[]).await;
                let keys = &interrupted.keys;
                let expected = match by {
                    Interruption::End | Interruption::NoSpace => {
                        assert!(outcome.is_err());
                        begin(keys, &halves()).await.unwrap();
                        halves()
                    }
                    Interruption::OtherBeginning => {
                        assert!(matches!(outcome, Err(MetadataError::Raced)), "{before}");
                        swapped()
                    }
                    // The first transaction replaces what the other attempt wrote.
                    Interruption::OtherAttempt if before == 0 => {
                        outcome.unwrap();
                        halves()
                    }
                    Interruption::OtherAttempt | Interruption::Replacement => {
                        assert!(matches!(outcome, Err(MetadataError::Raced)), "{before}");
                        begin(keys, &halves()).await.unwrap();
                        halves()
                    }
                };
                assert_eq!(layout(keys).await.map().digest(), expected.digest());
            }
        }
    }

    fn live(name: &str) -> CorpusRecord {
        CorpusRecord {
            name: CorpusName::new(name).unwrap(),
            uid: random_corpus_uid(),
            blocks: 5,
            distance: 3,
            recipe: "words-v2".to_owned(),
            create_time: std::time::SystemTime::UNIX_EPOCH,
            state: CorpusState::Live,
        }
    }

    /// In sync by the new records, it would answer as if nothing had been stored.
    #[tokio::test]
    async fn a_store_that_lacks_what_others_hold_is_refused() {
        let mut corpora = Corpora::default();
        let held = corpora.create(live("c"), 9).unwrap().uid;
        let (one, none) = (BTreeSet::from([held]), BTreeSet::new());
        let other = BTreeSet::from([random_corpus_uid()]);
        let no_corpora = Corpora::default();
        let cases = [
            (0, 0, &none, &corpora, false),
            (0, 0, &other, &corpora, false),
            (0, 0, &one, &corpora, true),
            (0, 0, &none, &no_corpora, true),
            (2, 0, &one, &no_corpora, false),
            (2, 1, &one, &corpora, false),
            (2, 2, &one, &corpora, true),
        ];
        for (of_one, of_two, held_by_two, corpora, begins) in cases {
            let keys = MemoryKeyValues::new();
            for (number, next_generation, held) in [(1, of_one, &one), (2, of_two, held_by_two)] {
                let records = (next_generation > 0).then_some((Epoch::FIRST, ShardSet::ALL));
                let store = RegisteredStore {
                    next_generation,
                    in_sync: records.into_iter().collect(),
                    corpora: held.clone(),
                    ..store(id(number), number, 7000 + u16::from(number))
                };
                register(&keys, &store).await.unwrap();
            }
            let begun = initialize(&keys, &halves(), ALL_HOT, corpora, &[]).await;
            let case = (of_one, of_two, held_by_two);
            match begun {
                Ok(()) => assert!(begins, "{case:?}"),
                Err(MetadataError::EmptiedStore { node: behind }) => {
                    assert!(!begins && behind == node(2), "{case:?}");
                    let lost = [node(2)];
                    initialize(&keys, &halves(), ALL_HOT, corpora, &lost)
                        .await
                        .unwrap();
                }
                Err(other) => panic!("{case:?}: {other}"),
            }
        }
        // Nothing was ever stored: a node may have been killed before it installed the first records.
        let keys = two_nodes().await;
        let installed = halves().shards_of(&node(1));
        let store = RegisteredStore {
            next_generation: 1,
            in_sync: BTreeMap::from([(Epoch::FIRST, installed)]),
            ..store(id(1), 1, 7001)
        };
        register(&keys, &store).await.unwrap();
        begin(&keys, &halves()).await.unwrap();
    }

    fn epoch(number: u64) -> Epoch {
        let generation = 0;
        Epoch { generation, number }
    }

    fn of(shards: &[u8]) -> ShardSet {
        ShardSet::from_iter(shards.iter().copied().map(ShardId))
    }

    /// ME4.
    #[tokio::test]
    async fn a_cluster_that_begins_anew_has_in_sync_what_was() {
        let held = BTreeSet::from([random_corpus_uid()]);
        let rest = ShardSet::ALL.difference(&of(&[1, 2]));
        // The first one was taken out of a shard, and does not know; the second one copies another.
        let one = [(epoch(1), of(&[1, 2])), (epoch(3), rest)];
        let two = [(epoch(2), of(&[1])), (epoch(3), rest)];
        let keys = MemoryKeyValues::new();
        for (number, in_sync) in [(1, one), (2, two)] {
            let store = RegisteredStore {
                next_generation: 1,
                corpora: held.clone(),
                in_sync: BTreeMap::from(in_sync),
                ..store(id(number), number, 7000 + u16::from(number))
            };
            register(&keys, &store).await.unwrap();
        }
        let map = simshard_topology::plan_evenly(None, &[node(1), node(2)], 2).unwrap();
        begin(&keys, &map).await.unwrap();
        let records = shard_records(&keys).await.unwrap();
        let in_sync = |shard| {
            let record = &records[&ShardId(shard)];
            assert_eq!((record.epoch.generation, record.want), (1, 2));
            let mut stores: Vec<_> = record.in_sync.iter().map(|entry| entry.store).collect();
            stores.sort_unstable();
            let learners = record.learners.iter();
            (
                stores,
                learners.map(|entry| entry.store).collect::<Vec<_>>(),
            )
        };
        assert_eq!(in_sync(0), (vec![id(1), id(2)], vec![]));
        assert_eq!(in_sync(1), (vec![id(2)], vec![id(1)]));
        assert_eq!(in_sync(2), (vec![id(1)], vec![id(2)]));
    }

    /// ME4: without the one that holds a shard, nothing begins.
    #[tokio::test]
    async fn a_cluster_begins_anew_with_all_shards_held_or_empty() {
        let held = BTreeSet::from([random_corpus_uid()]);
        let rest = ShardSet::ALL.difference(&of(&[1, 2]));
        let keys = MemoryKeyValues::new();
        let holds_most = RegisteredStore {
            next_generation: 1,
            corpora: held,
            in_sync: BTreeMap::from([(epoch(3), rest)]),
            ..store(id(1), 1, 7001)
        };
        register(&keys, &holds_most).await.unwrap();
        let map = simshard_topology::plan_evenly(None, &[node(1)], 1).unwrap();
        let refused = begin(&keys, &map).await.unwrap_err();
        assert!(
            matches!(refused, MetadataError::NotHeld { shards } if shards == of(&[1, 2])),
            "{refused}"
        );
        // It does not begin these empty either: it has installed records by which it holds no copy.
        let lost = [node(2)];
        let refused = initialize(&keys, &map, ALL_HOT, &Corpora::default(), &lost).await;
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, MetadataError::NoneBegins { shards } if shards == of(&[1, 2])),
            "{refused}"
        );
        register(&keys, &store(id(2), 2, 7002)).await.unwrap();
        let map = simshard_topology::plan_evenly(None, &[node(1), node(2)], 2).unwrap();
        initialize(&keys, &map, ALL_HOT, &Corpora::default(), &lost)
            .await
            .unwrap();
        let records = shard_records(&keys).await.unwrap();
        let holds_alone = |shard, store| {
            let record = &records[&ShardId(shard)];
            matches!(&*record.in_sync, [entry] if entry.store == store)
        };
        assert!(holds_alone(0, id(1)) && holds_alone(1, id(2)) && holds_alone(2, id(2)));
    }

    /// ME4: a store that was left out of all shards does not know it, and does not begin a cluster without the others.
    #[tokio::test]
    async fn a_cluster_begins_anew_with_all_whom_the_newest_records_name() {
        let held = BTreeSet::from([random_corpus_uid()]);
        let keys = MemoryKeyValues::new();
        let holds = |number: u8, at, partners: &[u8]| RegisteredStore {
            next_generation: 1,
            corpora: held.clone(),
            in_sync: BTreeMap::from([(epoch(at), ShardSet::ALL)]),
            partners: partners
                .iter()
                .map(|&other| (id(other), of(&[7])))
                .collect(),
            ..store(id(number), number, 7000 + u16::from(number))
        };
        register(&keys, &holds(3, 1, &[1, 2])).await.unwrap();
        let map = |nodes: &[NodeId]| simshard_topology::plan_evenly(None, nodes, 1).unwrap();
        let refused = begin(&keys, &map(&[node(3)])).await.unwrap_err();
        let told = refused.to_string();
        for name in [id(1), id(2)] {
            assert!(told.contains(&name.to_string()), "{told}");
        }
        assert!(told.contains("shards 07 "), "{told}");
        // By a newer record, which no store names that is away.
        register(&keys, &holds(2, 2, &[])).await.unwrap();
        begin(&keys, &map(&[node(2), node(3)])).await.unwrap();

        let keys = MemoryKeyValues::new();
        register(&keys, &holds(3, 1, &[1, 2])).await.unwrap();
        let (none, lost) = (Corpora::default(), [node(1), node(2)]);
        initialize(&keys, &map(&[node(3)]), ALL_HOT, &none, &lost)
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn corpora_are_taken_over_unless_there_are_others() {
        let mut corpora = Corpora::default();
        for number in 0..200 {
            corpora.create(live(&format!("c{number}")), 999).unwrap();
        }
        let held = corpora.records().map(|corpus| corpus.uid).collect();
        let keys = Arc::new(two_nodes_with(held).await);
        // An attempt that was cut short copied some, which have changed since.
        let gone = live("gone");
        let cut = Transaction::new()
            .put(keys::TAKE_OVER, "")
            .put(keys::CORPORA_REVISION, "200")
            .put(
                keys::corpus(&gone.name),
                records::corpus_text(&gone).unwrap(),
            );
        assert_ne!(keys.commit(&cut).await.unwrap(), Outcome::Conflict);
        initialize(&*keys, &halves(), ALL_HOT, &corpora, &[])
            .await
            .unwrap();
        let followed: Arc<dyn KeyValueStore> = Arc::<MemoryKeyValues>::clone(&keys);
        let metadata = KeyValueMetadata::follow(followed, || panic!("it has begun"), |_| {});
        assert_eq!(*metadata.await.unwrap().corpora().await.unwrap(), corpora);
        assert_eq!(keys.read(keys::TAKE_OVER).await.unwrap().pairs, []);
        let again = initialize(&*keys, &halves(), ALL_HOT, &Corpora::default(), &[]).await;
        assert!(matches!(again, Err(MetadataError::AlreadyInitialized)));

        // Copies of an attempt that was given up do not become corpora.
        let keys = two_nodes().await;
        assert_ne!(keys.commit(&cut).await.unwrap(), Outcome::Conflict);
        begin(&keys, &halves()).await.unwrap();
        assert_eq!(keys.read(keys::CORPORA).await.unwrap().pairs, []);

        let other = live("other");
        let keys = two_nodes_with(BTreeSet::from([other.uid])).await;
        let text = records::corpus_text(&other).unwrap();
        let put = Transaction::new().put(keys::corpus(&other.name), text);
        assert_ne!(keys.commit(&put).await.unwrap(), Outcome::Conflict);
        let refused = initialize(&keys, &halves(), ALL_HOT, &corpora, &[])
            .await
            .unwrap_err();
        assert!(matches!(refused, MetadataError::OtherCorpora), "{refused}");
        // A cluster that kept its corpora here beside a layout file goes on with them.
        begin(&keys, &halves()).await.unwrap();
        assert_eq!(keys.read(keys::CORPORA).await.unwrap().pairs.len(), 1);
    }
}
