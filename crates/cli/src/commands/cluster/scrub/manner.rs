//! What both comparisons need: how they are done, who holds which shard, and how a state is told.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use serde_json::{Value, json};
use simshard_cluster::{KeyValueStore, RegisteredStore, registered_stores, shard_records};
use simshard_node::ScrubOptions;
use simshard_topology::ShardId;
use simshard_topology::replication::{ShardRecords, State, StoreId};

use crate::args::JsonArgs;

/// How often a shard is tried whose record changes meanwhile, or a node of which does not answer.
pub(super) const ATTEMPTS: u32 = 11;

/// Between two attempts: a node that has died is taken out of the records by then.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// Documents that a table is followed by, at most.
pub(super) const SHOWN: usize = 10;

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
        let records = shard_records(keys).await?;
        let stores = registered_stores(keys).await?.into_iter();
        let stores = stores.map(|store| (store.id, store)).collect();
        Ok(Self { records, stores })
    }

    /// The first store that holds a shard in sync, if it has registered.
    pub(super) fn reader(&self, shard: ShardId) -> Option<&RegisteredStore> {
        let first = self.records.get(&shard)?.in_sync.first()?;
        self.stores.get(&first.store)
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
