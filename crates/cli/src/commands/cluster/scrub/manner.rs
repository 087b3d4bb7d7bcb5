//! What both comparisons need: how they are done, who holds which shard, and how a state is told.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use simshard_cluster::{KeyValueStore, RegisteredStore, registered_stores, shard_records};
use simshard_node::{ScrubError, ScrubOptions};
use simshard_topology::replication::{ShardRecords, State, StoreId};
use simshard_topology::{ShardId, ShardSet, Version};
use tokio::time::sleep;

use super::super::patience::patiently;
use crate::args::JsonArgs;

/// How long attempts are repeated that fail, as records change, or a node does not answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between two attempts: a node that has died is taken out of the records by then.
const PAUSE: Duration = Duration::from_secs(1);

/// Documents that a table is followed by, at most.
pub(super) const SHOWN: usize = 10;

/// Patience with what may succeed later, shared by all shards: where a node stays away, each one would wait for it.
#[derive(Default)]
pub(super) struct Patience(Cell<Option<Instant>>);

impl Patience {
    /// Waits until another attempt is worthwhile, unless none has succeeded for long.
    pub(super) async fn is_left(&self) -> bool {
        let since = self.0.get().unwrap_or_else(Instant::now);
        self.0.set(Some(since));
        if since.elapsed() > PATIENCE {
            return false;
        }
        sleep(PAUSE).await;
        true
    }

    /// An attempt has succeeded.
    pub(super) fn renew(&self) {
        self.0.set(None);
    }
}

/// How shards are compared.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    pub(super) options: ScrubOptions,
    /// Shards that are compared at once.
    pub(super) at_once: NonZeroUsize,
    pub(super) output: JsonArgs,
}

/// Who holds which shard.
pub(super) struct Places {
    pub(super) records: ShardRecords,
    stores: BTreeMap<StoreId, RegisteredStore>,
}

impl Places {
    pub(super) async fn read(keys: &dyn KeyValueStore) -> anyhow::Result<Self> {
        // A command that compares for long must not end with a failed reading.
        let records = patiently(async || shard_records(keys).await).await?;
        let stores = patiently(async || registered_stores(keys).await).await?;
        let stores = stores.into_iter();
        let stores = stores.map(|store| (store.id, store)).collect();
        Ok(Self { records, stores })
    }

    /// The first store that holds a shard in sync, if it has registered.
    pub(super) fn reader(&self, shard: ShardId) -> Option<&RegisteredStore> {
        let first = self.records.get(&shard)?.in_sync.first()?;
        self.stores.get(&first.store)
    }

    /// The first store in sync of each of these shards, and which of them it is that of. Some may have none that has
    /// registered.
    pub(super) fn readers(&self, shards: ShardSet) -> Vec<(&RegisteredStore, ShardSet)> {
        let mut readers: BTreeMap<StoreId, (&RegisteredStore, ShardSet)> = BTreeMap::new();
        for shard in shards.iter() {
            if let Some(store) = self.reader(shard) {
                let reader = readers.entry(store.id).or_insert((store, ShardSet::EMPTY));
                reader.1.insert(shard);
            }
        }
        readers.into_values().collect()
    }

    /// All registered stores that hold any shard in sync.
    pub(super) fn in_sync(&self) -> impl Iterator<Item = &RegisteredStore> {
        let entries = self.records.values().flat_map(|record| &record.in_sync);
        let stores: BTreeSet<StoreId> = entries.map(|entry| entry.store).collect();
        stores
            .into_iter()
            .filter_map(|store| self.stores.get(&store))
    }

    /// Awaits what nodes do with shards. It fails once a store that held one of them in sync no longer does: what waits
    /// for a node that hangs may wait for ever.
    pub(super) async fn while_held<T>(
        &self,
        keys: &dyn KeyValueStore,
        shards: ShardSet,
        work: impl Future<Output = Result<T, ScrubError>>,
    ) -> Result<T, ScrubError> {
        tokio::select! {
            done = work => done,
            () = self.until_left(keys, shards) => Err(ScrubError::left()),
        }
    }

    async fn until_left(&self, keys: &dyn KeyValueStore, shards: ShardSet) {
        loop {
            sleep(PAUSE).await;
            // While the metadata is away, nodes stay in the records.
            let Ok(now) = shard_records(keys).await else {
                continue;
            };
            let has_left = |shard: ShardId| {
                let before = self.records.get(&shard);
                let mut before = before.into_iter().flat_map(|record| &record.in_sync);
                let now = now.get(&shard);
                !before.all(|entry| now.is_some_and(|now| now.in_sync(entry.store).is_some()))
            };
            if shards.iter().any(has_left) {
                return;
            }
        }
    }

    /// The highest version up to which any shard is settled.
    pub(super) fn settled(&self) -> Version {
        let settled = self.records.values().map(|record| record.settled);
        settled.max().unwrap_or(Version::NONE)
    }

    /// What a store is called: by its node, if it has registered.
    pub(super) fn name(&self, store: StoreId) -> String {
        let registered = self.stores.get(&store);
        registered.map_or_else(|| store.to_string(), |store| store.node.to_string())
    }

    pub(super) fn names(&self, stores: &[StoreId]) -> Vec<String> {
        let mut names: Vec<String> = stores.iter().map(|store| self.name(*store)).collect();
        names.sort_unstable();
        names
    }
}

/// Why shards are not compared, with the node that was to do it, if it has registered.
pub(super) fn problem_of(reader: Option<&RegisteredStore>, error: &ScrubError) -> String {
    reader.map_or_else(
        || error.to_string(),
        |reader| format!("{} at {}: {error}", reader.node, reader.address),
    )
}

/// A state, for people.
pub(super) fn state_text(state: Option<State>) -> String {
    match state {
        None => "absent".to_owned(),
        Some(State { version, live }) => {
            let what = if live { "live" } else { "removed" };
            format!("{what} at {version}")
        }
    }
}

/// A state, for programs.
pub(super) fn state_value(state: Option<State>) -> Value {
    state.map_or(
        Value::Null,
        |State { version, live }| json!({ "version": version.to_string(), "live": live }),
    )
}
