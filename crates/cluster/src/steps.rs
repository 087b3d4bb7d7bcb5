//! Changing who holds shards, and their floors: steps of their records, many in one transaction.
//!
//! # Invariants
//! - CS1: a record replaces only the one that its step was taken from (`of_two_who_take_a_step_one_does`).
//! - CS2: what was written is known although the rest fails (`what_was_taken_is_known_though_the_rest_fails`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use simshard_topology::ShardId;
use simshard_topology::replication::{
    Epoch, ForceError, ShardRecord, ShardRecords, Step, StepError, StoreId,
};

use crate::key_value::{KeyValueStore, MAX_OPERATIONS, Revision, Snapshot, Transaction};
use crate::keys;
use crate::membership::{commit, random_nonce, with_registrations};
use crate::records;
use crate::registered::REGISTRATION_OPERATIONS;
use crate::store::MetadataError;

/// Attempts after others changed the records meanwhile.
const MOST_ATTEMPTS: usize = 8;

/// What became of changes of records, so far.
#[derive(Debug)]
pub struct Changed<E> {
    /// The records that were written.
    pub taken: ShardRecords,
    /// The shards whose records may not change so now, and why.
    pub refused: Vec<(ShardId, E)>,
}

impl<E> Default for Changed<E> {
    fn default() -> Self {
        Self {
            taken: ShardRecords::new(),
            refused: Vec::new(),
        }
    }
}

/// What became of steps.
pub type Steps = Changed<StepError>;

/// What became of force.
pub type Forced = Changed<ForceError>;

/// Takes the step of each shard that `step` names for its record; for the record after the step it must name none.
/// `synced` tells the epoch of a shard that a store has reported, and `is_lost` whether a store of a record answers no
/// searches. Another process may have taken the step: then it is not among those taken. `steps` has what was taken also
/// if the rest fails, or the future is dropped (CS2).
///
/// # Errors
/// [`MetadataError::Raced`] if the records change all the time, else when the keys cannot be read, written or understood.
pub async fn take_steps(
    keys: &dyn KeyValueStore,
    step: impl Fn(ShardId, &ShardRecord) -> Option<Step> + Send + Sync,
    synced: impl Fn(ShardId, StoreId) -> Epoch + Send + Sync,
    is_lost: impl Fn(ShardId, &ShardRecord, StoreId) -> bool + Send + Sync,
    steps: &mut Steps,
) -> Result<(), MetadataError> {
    let next = |shard, record: &ShardRecord| {
        let step = step(shard, record)?;
        let synced = |store| synced(shard, store);
        let is_lost = |store| is_lost(shard, record, store);
        Some(record.after(step, random_nonce(), synced, is_lost))
    };
    change(keys, next, steps).await
}

/// Wishes for another number of replicas, and of hot ones, of the shards that `is_meant` names for their records. It must
/// name none that has that wish already. `synced` tells the epoch of a shard that a store has reported.
///
/// # Errors
/// As [`take_steps`]. Some wishes may have been written.
pub async fn wish(
    keys: &dyn KeyValueStore,
    (want, hot): (u8, u8),
    is_meant: impl Fn(ShardId, &ShardRecord) -> bool + Send + Sync,
    synced: impl Fn(ShardId, StoreId) -> Epoch + Send + Sync,
) -> Result<Steps, MetadataError> {
    let next = |shard, record: &ShardRecord| {
        is_meant(shard, record).then(|| {
            let wished = record.clone().wishing(want, hot);
            wished.after(
                Step::Adjust,
                random_nonce(),
                |store| synced(shard, store),
                |_| false,
            )
        })
    };
    let mut wished = Steps::default();
    change(keys, next, &mut wished).await?;
    Ok(wished)
}

/// Lets a store go on alone with the shards that `is_meant` names for their records; for forced ones it must name none.
/// `answers` tells the stores that answer now.
///
/// # Errors
/// As [`take_steps`]. The store may go on with some of the shards.
pub async fn force(
    keys: &dyn KeyValueStore,
    store: StoreId,
    is_meant: impl Fn(ShardId, &ShardRecord) -> bool + Send + Sync,
    answers: impl Fn(StoreId) -> bool + Send + Sync,
) -> Result<Forced, MetadataError> {
    let next = |shard, record: &ShardRecord| {
        is_meant(shard, record).then(|| record.forced(store, random_nonce(), &answers))
    };
    let mut forced = Forced::default();
    change(keys, next, &mut forced).await?;
    Ok(forced)
}

/// Lets the shards that `is_meant` names for their records begin anew, in a store that never had a record of them. `answers`
/// tells the stores that answer now.
///
/// # Errors
/// As [`take_steps`]. Some of the shards may have begun anew.
pub async fn rebuild(
    keys: &dyn KeyValueStore,
    store: StoreId,
    is_meant: impl Fn(ShardId, &ShardRecord) -> bool + Send + Sync,
    answers: impl Fn(StoreId) -> bool + Send + Sync,
) -> Result<Forced, MetadataError> {
    let next = |shard, record: &ShardRecord| {
        is_meant(shard, record).then(|| record.rebuilt(store, random_nonce(), &answers))
    };
    let mut rebuilt = Forced::default();
    change(keys, next, &mut rebuilt).await?;
    Ok(rebuilt)
}

/// Replaces the record of each shard that has a next one. Fails after that if a record cannot be understood.
async fn change<E>(
    keys: &dyn KeyValueStore,
    next: impl Fn(ShardId, &ShardRecord) -> Option<Result<ShardRecord, E>>,
    changed: &mut Changed<E>,
) -> Result<(), MetadataError> {
    for _ in 0..MOST_ATTEMPTS {
        let Plan {
            planned,
            refused,
            all_read,
        } = plan(&keys.read(keys::SHARDS).await?, &next);
        changed.refused = refused;
        let has_newcomer = planned.iter().any(|change| change.newcomer.is_some());
        let most = if has_newcomer {
            MAX_OPERATIONS - REGISTRATION_OPERATIONS
        } else {
            MAX_OPERATIONS
        };
        let mut has_conflict = false;
        for some in planned.chunks(most) {
            if replace(keys, some, among_registered(keys, some).await?).await? {
                let written = some.iter();
                let written = written.map(|change| (change.shard, Arc::clone(&change.next)));
                changed.taken.extend(written);
            } else {
                has_conflict = true;
            }
        }
        if !has_conflict {
            return all_read;
        }
    }
    Err(MetadataError::Raced)
}

/// What a transaction begins with: where it has newcomers, these must stay registered until it is made. The registrations
/// are read for each, as each changes them.
async fn among_registered(
    keys: &dyn KeyValueStore,
    some: &[Replacement],
) -> Result<Transaction, MetadataError> {
    if some.iter().all(|change| change.newcomer.is_none()) {
        return Ok(Transaction::new());
    }
    let (change, stores) = with_registrations(keys).await?;
    check_newcomers(some, &stores)?;
    Ok(change)
}

/// A record that is to replace another.
struct Replacement {
    shard: ShardId,
    /// Which wrote the record that it replaces.
    revision: Revision,
    next: Arc<ShardRecord>,
    /// The store that the next record names, and this one does not.
    newcomer: Option<StoreId>,
}

/// What is to be written, and what may not be.
struct Plan<E> {
    planned: Vec<Replacement>,
    refused: Vec<(ShardId, E)>,
    /// Fails with the first record that cannot be understood. It keeps no other shard as it is.
    all_read: Result<(), MetadataError>,
}

fn plan<E>(
    shards: &Snapshot,
    next: impl Fn(ShardId, &ShardRecord) -> Option<Result<ShardRecord, E>>,
) -> Plan<E> {
    let (mut planned, mut refused, mut all_read) = (Vec::new(), Vec::new(), Ok(()));
    let pairs = shards.pairs.iter().map(|pair| (&*pair.key, pair.revision));
    let revisions: BTreeMap<&str, Revision> = pairs.collect();
    for (shard, record) in records::shards_in(shards) {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                all_read = all_read.and(Err(error));
                continue;
            }
        };
        match next(shard, &record) {
            Some(Ok(next)) => planned.push(Replacement {
                newcomer: newcomer(&record, &next),
                shard,
                revision: revisions[&*keys::shard(shard)],
                next: Arc::new(next),
            }),
            Some(Err(error)) => refused.push((shard, error)),
            None => {}
        }
    }
    Plan {
        planned,
        refused,
        all_read,
    }
}

/// The store that a record names and the one before it does not.
fn newcomer(record: &ShardRecord, next: &ShardRecord) -> Option<StoreId> {
    let is_new = |store: &StoreId| !record.write_set().any(|named| named == *store);
    next.write_set().find(is_new)
}

/// Refuses newcomers that have not registered, as another store has taken their place.
fn check_newcomers(
    planned: &[Replacement],
    stores: &BTreeSet<StoreId>,
) -> Result<(), MetadataError> {
    let newcomers = planned.iter().filter_map(|change| change.newcomer);
    let mut unknown = newcomers.filter(|store| !stores.contains(store));
    unknown.next().map_or(Ok(()), |store| {
        let missing = format!("the node of store {store}");
        Err(MetadataError::NotRegistered { missing })
    })
}

/// Adds records to a transaction and makes it, if none of those that they replace has changed. Answers whether it did.
async fn replace(
    keys: &dyn KeyValueStore,
    replacements: &[Replacement],
    mut change: Transaction,
) -> Result<bool, MetadataError> {
    let mut last = None;
    for Replacement {
        shard,
        revision,
        next,
        newcomer: _,
    } in replacements
    {
        let key = keys::shard(*shard);
        let text = records::shard_text(&key, next)?;
        change = change.if_unchanged(&*key, *revision).put(&*key, &*text);
        last = Some((key, text));
    }
    match last {
        Some((key, text)) => Ok(commit(keys, &change, &key, &text).await?.is_some()),
        None => Ok(true),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use simshard_topology::replication::Incarnation;
    use simshard_topology::{NodeId, ShardSet};

    use super::*;
    use crate::corpora::Corpora;
    use crate::disturbed::{Before, Disturbed};
    use crate::key_value::{KeyValueStore, MemoryKeyValues, Outcome, Transaction};
    use crate::keys;
    use crate::levels::{NEWEST_LEVEL, RawCluster};
    use crate::membership::{initialize, register, register_start, shard_records};
    use crate::records::RegisteredStore;
    use crate::registered::registered_stores;
    use crate::replacement::end_replacement;

    pub(crate) const STORES: [StoreId; 3] = [StoreId([1; 16]), StoreId([2; 16]), StoreId([3; 16])];

    fn node(store: StoreId) -> NodeId {
        NodeId::new(&format!("n{}", store.0[0])).unwrap()
    }

    /// A store as it registers.
    pub(crate) fn registered(store: StoreId) -> RegisteredStore {
        RegisteredStore::new(
            store,
            node(store),
            format!("http://127.0.0.1:{}", store.0[0]),
        )
    }

    /// A cluster of the nodes n1 to n3, which hold each shard.
    pub(crate) async fn cluster() -> MemoryKeyValues {
        let keys = earlier_cluster().await;
        // As if all nodes had shown that they know it.
        let newest = serde_json::to_string(&RawCluster::new(NEWEST_LEVEL)).unwrap();
        let raise = Transaction::new().put(keys::CLUSTER, newest);
        let raised = keys.commit(&raise).await;
        assert!(matches!(raised, Ok(Outcome::Committed(_))));
        keys
    }

    /// The same at the first level.
    pub(crate) async fn earlier_cluster() -> MemoryKeyValues {
        let keys = MemoryKeyValues::new();
        for store in STORES {
            register(&keys, &registered(store)).await.unwrap();
        }
        let map = simshard_topology::plan_evenly(None, &STORES.map(node), 3).unwrap();
        let corpora = Corpora::default();
        initialize(&keys, &map, u8::MAX, &corpora, &[])
            .await
            .unwrap();
        keys
    }

    /// What became of steps, if all went well.
    async fn taken(
        keys: &dyn KeyValueStore,
        step: impl Fn(ShardId, &ShardRecord) -> Option<Step> + Send + Sync,
        synced: Epoch,
    ) -> Result<Steps, MetadataError> {
        let mut steps = Steps::default();
        let none_lost = |_, _: &ShardRecord, _| false;
        take_steps(keys, step, |_, _| synced, none_lost, &mut steps).await?;
        Ok(steps)
    }

    fn evict(store: StoreId) -> impl Fn(ShardId, &ShardRecord) -> Option<Step> {
        move |_, record| record.in_sync(store).map(|_| Step::Evict(store))
    }

    fn add(store: StoreId) -> impl Fn(ShardId, &ShardRecord) -> Option<Step> {
        move |_, record| {
            let is_there = record.write_set().any(|named| named == store);
            (!is_there).then_some(Step::AddLearner(store))
        }
    }

    const LATEST: Epoch = Epoch {
        generation: u32::MAX,
        number: u64::MAX,
    };

    #[tokio::test]
    async fn a_store_leaves_all_its_shards_in_batches() {
        let keys = cluster().await;
        let before = keys.read("").await.unwrap().revision;
        let steps = taken(&keys, evict(STORES[0]), Epoch::NONE).await;
        let steps = steps.unwrap();
        let shards: ShardSet = steps.taken.keys().copied().collect();
        assert_eq!((shards, steps.refused.len()), (ShardSet::ALL, 0));
        let after = keys.read("").await.unwrap().revision;
        assert_eq!(after.0 - before.0, 2);
        assert_eq!(shard_records(&keys).await.unwrap(), steps.taken);
        for record in steps.taken.values() {
            assert_eq!(record.in_sync(STORES[0]), None);
            assert_eq!(record.in_sync.len(), 2);
        }
        // Nothing is left to do.
        let again = taken(&keys, evict(STORES[0]), Epoch::NONE).await;
        assert!(again.unwrap().taken.is_empty());
    }

    #[tokio::test]
    async fn a_step_that_may_not_be_taken_says_why() {
        let keys = cluster().await;
        let _ = taken(&keys, evict(STORES[0]), Epoch::NONE).await.unwrap();
        for (reported, expected) in [
            (Epoch::NONE, "too few stores"),
            (LATEST, "an eviction must"),
        ] {
            let steps = taken(&keys, evict(STORES[1]), reported).await;
            let steps = steps.unwrap();
            assert_eq!((steps.taken.len(), steps.refused.len()), (0, 256));
            let (_, why) = steps.refused[0];
            assert!(why.to_string().starts_with(expected), "{why}");
        }
    }

    #[tokio::test]
    async fn an_operator_lets_a_store_go_on_alone() {
        let keys = cluster().await;
        let reports = |store| (store == STORES[2]).then_some(Epoch::FIRST);
        let is_meant =
            |shard: ShardId, record: &ShardRecord| shard.0 < 4 && record.is_stuck(reports);
        let forced = force(&keys, STORES[2], is_meant, |store| store == STORES[2]).await;
        let forced = forced.unwrap();
        assert_eq!((forced.taken.len(), forced.refused.len()), (4, 0));
        let records = shard_records(&keys).await.unwrap();
        for (shard, record) in records {
            assert_eq!(record.epoch.generation, u32::from(shard.0 < 4));
            assert_eq!(record.is_forced(), shard.0 < 4);
        }
        let silent = force(&keys, STORES[1], |shard, _| shard.0 == 9, |_| false).await;
        assert_eq!(
            silent.unwrap().refused,
            [(ShardId(9), ForceError::Silent(STORES[1]))]
        );
    }

    /// ME1.
    #[tokio::test]
    async fn a_store_that_gave_way_takes_no_shard() {
        let keys = cluster().await;
        let (old, new) = (STORES[0], StoreId([4; 16]));
        let registered = |id| RegisteredStore::new(id, node(old), "http://127.0.0.1:9".to_owned());
        let refused = register(&keys, &registered(new)).await.unwrap_err();
        let held = matches!(&refused, MetadataError::StoreHolds { shards, .. } if *shards == ShardSet::ALL);
        assert!(held, "{refused}");
        taken(&keys, evict(old), Epoch::NONE).await.unwrap();
        assert!(register(&keys, &registered(new)).await.unwrap());
        let steps = taken(&keys, add(old), LATEST).await;
        assert!(
            matches!(steps, Err(MetadataError::NotRegistered { .. })),
            "{steps:?}"
        );
        let steps = taken(&keys, add(new), LATEST).await.unwrap();
        assert_eq!(steps.taken.len(), 256);
        let in_sync = RegisteredStore {
            in_sync: BTreeMap::from([(Epoch::FIRST, ShardSet::ALL)]),
            ..registered(new)
        };
        let start = Incarnation {
            number: 1,
            nonce: 7,
        };
        // However often it starts before no shard lacks a replica.
        for store in [registered(new), in_sync] {
            assert!(register(&keys, &store).await.unwrap());
            assert!(register_start(&keys, &store, start).await.unwrap());
        }
        end_replacement(&keys, old).await.unwrap();
        assert!(register(&keys, &registered(new)).await.unwrap());
        let known = async || {
            let stores = registered_stores(&keys).await.unwrap();
            stores.into_iter().find(|store| store.id == new).unwrap()
        };
        let before = known().await;
        end_replacement(&keys, new).await.unwrap();
        let ended = RegisteredStore {
            is_replacement: false,
            ..before
        };
        assert_eq!(known().await, ended);
        assert!(!register(&keys, &registered(new)).await.unwrap());
    }

    /// Of two that happen at once, one sees the other: a node takes a shard while its store gives way.
    #[tokio::test]
    async fn a_store_that_comes_back_does_not_give_way_meanwhile() {
        let keys = cluster().await;
        let before = with_registrations(&keys).await.unwrap().0;
        let coming = with_registrations(&keys).await.unwrap().0;
        assert!(matches!(
            keys.commit(&coming).await.unwrap(),
            Outcome::Committed(_)
        ));
        assert_eq!(keys.commit(&before).await.unwrap(), Outcome::Conflict);
    }

    /// A cluster, and a store that has registered since.
    async fn with_newcomer() -> (MemoryKeyValues, StoreId) {
        let (keys, new) = (cluster().await, registered(StoreId([4; 16])));
        register(&keys, &new).await.unwrap();
        (keys, new.id)
    }

    #[tokio::test]
    async fn a_store_comes_to_all_shards_without_conflicts_with_itself() {
        let (keys, new) = with_newcomer().await;
        let keys = Disturbed::commits(keys, []);
        let steps = taken(&keys, add(new), LATEST).await.unwrap();
        assert_eq!(steps.taken.len(), 256);
        assert_eq!(keys.committed(), (3, 0));
    }

    /// CS2.
    #[tokio::test]
    async fn what_was_taken_is_known_though_the_rest_fails() {
        let (keys, new) = with_newcomer().await;
        let keys = Disturbed::commits(keys, [Before::Nothing, Before::Failure]);
        let mut steps = Steps::default();
        let none_lost = |_, _: &ShardRecord, _| false;
        let outcome = take_steps(&keys, add(new), |_, _| LATEST, none_lost, &mut steps).await;
        assert!(
            matches!(outcome, Err(MetadataError::KeyValues(_))),
            "{outcome:?}"
        );
        let mut records = shard_records(&keys).await.unwrap();
        records.retain(|_, record| record.names(new));
        assert!(!records.is_empty());
        assert_eq!(steps.taken, records);
    }

    /// CS1.
    #[tokio::test]
    async fn of_two_who_take_a_step_one_does() {
        let keys = cluster().await;
        let seen = keys.read(keys::SHARDS).await.unwrap();
        let leaves = |_, record: &ShardRecord| {
            Some(record.after(Step::Evict(STORES[1]), 7, |_| LATEST, |_| false))
        };
        let planned = plan(&seen, leaves).planned;
        let steps = taken(&keys, evict(STORES[0]), LATEST).await;
        let steps = steps.unwrap();
        assert!(
            !replace(&keys, &planned[..MAX_OPERATIONS], Transaction::new())
                .await
                .unwrap()
        );
        assert_eq!(shard_records(&keys).await.unwrap(), steps.taken);
    }
}
