//! Changing who holds shards: steps of their records, many in one transaction.
//!
//! # Invariants
//! - CS1: a record replaces only the one that its step was taken from (`of_two_who_take_a_step_one_does`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use simshard_topology::ShardId;
use simshard_topology::replication::{
    Epoch, ForceError, ShardRecord, ShardRecords, Step, StepError, StoreId,
};

use crate::key_value::{KeyValueStore, MAX_OPERATIONS, Revision, Snapshot, Transaction};
use crate::keys;
use crate::membership::{commit, random_nonce, records_in, with_registrations};
use crate::records;
use crate::store::MetadataError;

/// Attempts after others changed the records meanwhile.
const MOST_ATTEMPTS: usize = 8;

/// What became of changes of records.
#[derive(Debug)]
pub struct Changed<E> {
    /// The records that were written.
    pub taken: ShardRecords,
    /// The shards whose records may not change so now, and why.
    pub refused: Vec<(ShardId, E)>,
}

/// What became of steps.
pub type Steps = Changed<StepError>;

/// What became of force.
pub type Forced = Changed<ForceError>;

/// Takes the step of each shard that `step` names for its record; for the record after the step it must name none.
/// `synced` tells the epoch of a shard that a store has reported, and `is_lost` whether a store of a record answers no
/// searches. Another
/// process may have taken the step: then it is not among those taken.
///
/// # Errors
/// [`MetadataError::Raced`] if the records change all the time, else when the keys cannot be read, written or understood.
/// Some steps may have been taken.
pub async fn take_steps(
    keys: &dyn KeyValueStore,
    step: impl Fn(ShardId, &ShardRecord) -> Option<Step> + Send + Sync,
    synced: impl Fn(ShardId, StoreId) -> Epoch + Send + Sync,
    is_lost: impl Fn(ShardId, &ShardRecord, StoreId) -> bool + Send + Sync,
) -> Result<Steps, MetadataError> {
    let next = |shard, record: &ShardRecord| {
        let step = step(shard, record)?;
        let synced = |store| synced(shard, store);
        let is_lost = |store| is_lost(shard, record, store);
        Some(record.after(step, random_nonce(), synced, is_lost))
    };
    change(keys, next).await
}

/// Wishes for another number of replicas, and of hot ones, of the shards that `is_meant` names for their records. It must
/// name none that has that wish already. `synced` tells the epoch of a shard that a store has reported.
///
/// # Errors
/// As [`take_steps`].
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
                Step::Keep,
                random_nonce(),
                |store| synced(shard, store),
                |_| false,
            )
        })
    };
    change(keys, next).await
}

/// Lets a store go on alone with the shards that `is_meant` names for their records; for forced ones it must name none.
/// `answers` tells the stores that answer now.
///
/// # Errors
/// As [`take_steps`].
pub async fn force(
    keys: &dyn KeyValueStore,
    store: StoreId,
    is_meant: impl Fn(ShardId, &ShardRecord) -> bool + Send + Sync,
    answers: impl Fn(StoreId) -> bool + Send + Sync,
) -> Result<Forced, MetadataError> {
    let next = |shard, record: &ShardRecord| {
        is_meant(shard, record).then(|| record.forced(store, random_nonce(), &answers))
    };
    change(keys, next).await
}

/// Replaces the record of each shard that has a next one.
async fn change<E>(
    keys: &dyn KeyValueStore,
    next: impl Fn(ShardId, &ShardRecord) -> Option<Result<ShardRecord, E>>,
) -> Result<Changed<E>, MetadataError> {
    let mut taken = ShardRecords::new();
    for _ in 0..MOST_ATTEMPTS {
        let Plan { planned, refused } = plan(&keys.read(keys::SHARDS).await?, &next)?;
        let mut has_conflict = false;
        let (registered, most) = if planned.iter().any(|change| change.newcomer.is_some()) {
            let (change, stores) = with_registrations(keys).await?;
            check_newcomers(&planned, &stores)?;
            (Some(change), MAX_OPERATIONS - 2)
        } else {
            (None, MAX_OPERATIONS)
        };
        for some in planned.chunks(most) {
            if replace(keys, some, registered.clone().unwrap_or_default()).await? {
                let written = some.iter();
                taken.extend(written.map(|change| (change.shard, Arc::clone(&change.next))));
            } else {
                has_conflict = true;
            }
        }
        if !has_conflict {
            return Ok(Changed { taken, refused });
        }
    }
    Err(MetadataError::Raced)
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
}

fn plan<E>(
    shards: &Snapshot,
    next: impl Fn(ShardId, &ShardRecord) -> Option<Result<ShardRecord, E>>,
) -> Result<Plan<E>, MetadataError> {
    let (mut planned, mut refused) = (Vec::new(), Vec::new());
    let pairs = shards.pairs.iter().map(|pair| (&*pair.key, pair.revision));
    let revisions: BTreeMap<&str, Revision> = pairs.collect();
    for (shard, record) in records_in(shards)? {
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
    Ok(Plan { planned, refused })
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
    use simshard_topology::{NodeId, ShardSet};

    use super::*;
    use crate::corpora::Corpora;
    use crate::key_value::{KeyValueStore, MemoryKeyValues, Outcome};
    use crate::membership::{initialize, register, shard_records};
    use crate::records::RegisteredStore;

    const STORES: [StoreId; 3] = [StoreId([1; 16]), StoreId([2; 16]), StoreId([3; 16])];

    fn node(store: StoreId) -> NodeId {
        NodeId::new(&format!("n{}", store.0[0])).unwrap()
    }

    /// A store as it registers.
    pub(crate) fn registered(store: StoreId) -> RegisteredStore {
        RegisteredStore {
            id: store,
            node: node(store),
            address: format!("http://127.0.0.1:{}", store.0[0]),
            next_generation: 0,
            corpora: std::collections::BTreeSet::new(),
            in_sync: std::collections::BTreeMap::new(),
            partners: std::collections::BTreeMap::new(),
            is_replacement: false,
        }
    }

    /// A cluster of the nodes n1 to n3, which hold each shard.
    pub(crate) async fn cluster() -> MemoryKeyValues {
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

    fn evict(store: StoreId) -> impl Fn(ShardId, &ShardRecord) -> Option<Step> {
        move |_, record| record.in_sync(store).map(|_| Step::Evict(store))
    }

    const fn none_lost(_: ShardId, _: &ShardRecord, _: StoreId) -> bool {
        false
    }

    const LATEST: Epoch = Epoch {
        generation: u32::MAX,
        number: u64::MAX,
    };

    #[tokio::test]
    async fn a_store_leaves_all_its_shards_in_batches() {
        let keys = cluster().await;
        let before = keys.read("").await.unwrap().revision;
        let nothing_reported = |_, _| Epoch::NONE;
        let steps = take_steps(&keys, evict(STORES[0]), nothing_reported, none_lost).await;
        let steps = steps.unwrap();
        let taken: ShardSet = steps.taken.keys().copied().collect();
        assert_eq!((taken, steps.refused.len()), (ShardSet::ALL, 0));
        let after = keys.read("").await.unwrap().revision;
        assert_eq!(after.0 - before.0, 2);
        assert_eq!(shard_records(&keys).await.unwrap(), steps.taken);
        for record in steps.taken.values() {
            assert_eq!(record.in_sync(STORES[0]), None);
            assert_eq!(record.in_sync.len(), 2);
        }
        // Nothing is left to do.
        let again = take_steps(&keys, evict(STORES[0]), nothing_reported, none_lost).await;
        assert!(again.unwrap().taken.is_empty());
    }

    #[tokio::test]
    async fn a_step_that_may_not_be_taken_says_why() {
        let keys = cluster().await;
        let _ = take_steps(&keys, evict(STORES[0]), |_, _| Epoch::NONE, none_lost)
            .await
            .unwrap();
        for (reported, expected) in [
            (Epoch::NONE, "too few stores"),
            (LATEST, "an eviction must"),
        ] {
            let steps = take_steps(&keys, evict(STORES[1]), |_, _| reported, none_lost).await;
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
        let registered = |id| RegisteredStore {
            id,
            node: node(old),
            address: "http://127.0.0.1:9".to_owned(),
            next_generation: 0,
            corpora: BTreeSet::new(),
            in_sync: std::collections::BTreeMap::new(),
            partners: std::collections::BTreeMap::new(),
            is_replacement: false,
        };
        let refused = register(&keys, &registered(new)).await.unwrap_err();
        let held = matches!(&refused, MetadataError::StoreHolds { shards, .. } if *shards == ShardSet::ALL);
        assert!(held, "{refused}");
        let nothing_reported = |_, _| Epoch::NONE;
        take_steps(&keys, evict(old), nothing_reported, none_lost)
            .await
            .unwrap();
        // However often it starts before it is in sync.
        for _ in 0..2 {
            assert!(register(&keys, &registered(new)).await.unwrap());
        }
        let add = |store| {
            move |_, record: &ShardRecord| {
                let is_there = record.write_set().any(|named| named == store);
                (!is_there).then_some(Step::AddLearner(store))
            }
        };
        let steps = take_steps(&keys, add(old), |_, _| LATEST, none_lost).await;
        assert!(
            matches!(steps, Err(MetadataError::NotRegistered { .. })),
            "{steps:?}"
        );
        let steps = take_steps(&keys, add(new), |_, _| LATEST, none_lost)
            .await
            .unwrap();
        assert_eq!(steps.taken.len(), 256);
        let in_sync = RegisteredStore {
            in_sync: BTreeMap::from([(Epoch::FIRST, ShardSet::ALL)]),
            ..registered(new)
        };
        assert!(!register(&keys, &in_sync).await.unwrap());
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

    /// CS1.
    #[tokio::test]
    async fn of_two_who_take_a_step_one_does() {
        let keys = cluster().await;
        let seen = keys.read(keys::SHARDS).await.unwrap();
        let leaves = |_, record: &ShardRecord| {
            Some(record.after(Step::Evict(STORES[1]), 7, |_| LATEST, |_| false))
        };
        let planned = plan(&seen, leaves).unwrap().planned;
        let steps = take_steps(&keys, evict(STORES[0]), |_, _| LATEST, none_lost).await;
        let steps = steps.unwrap();
        assert!(
            !replace(&keys, &planned[..MAX_OPERATIONS], Transaction::new())
                .await
                .unwrap()
        );
        assert_eq!(shard_records(&keys).await.unwrap(), steps.taken);
    }
}
