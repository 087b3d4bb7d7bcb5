//! Shards that do not come to nodes whose disks have too little room for copies.

use std::collections::BTreeMap;
use std::fmt;

use simshard_node::StoreNews;
use simshard_topology::replication::{Epoch, ShardRecord, StoreId};
use simshard_topology::{NodeId, ShardId, ShardSet};

use crate::asked::{Cluster, epoch_of};
use crate::{Admin, AdminError};

/// Whether a store takes no copy of a shard for lack of room. It comes back to one that it held before if it has some room,
/// and a copy under way goes on.
pub(crate) fn lacks_room(
    news: &StoreNews,
    store: StoreId,
    shard: ShardId,
    record: &ShardRecord,
) -> bool {
    let never_held = epoch_of(news, shard) == Epoch::NONE;
    let stays_away = never_held || news.lacks_room;
    !news.has_room_for_copies && stays_away && !record.names(store)
}

/// What is said of nodes with too little room for shards.
pub fn without_room_text<N: fmt::Display>(by_node: &BTreeMap<N, ShardSet>) -> String {
    let all = by_node.iter();
    let all = all.map(|(node, shards)| {
        format!("{node} has too little room for {shards}: make room there, or drain it")
    });
    all.collect::<Vec<String>>().join("; ")
}

impl Admin<'_> {
    /// Those of the shards that some nodes are to hold which do not come for lack of room there.
    ///
    /// # Errors
    /// If the metadata cannot be read.
    pub async fn without_room(
        &self,
        lacking: &BTreeMap<NodeId, ShardSet>,
    ) -> Result<BTreeMap<NodeId, ShardSet>, AdminError> {
        let cluster = Cluster::ask(self).await?;
        let records = simshard_cluster::shard_records(self.keys).await?;
        let mut without_room = BTreeMap::new();
        for (node, shards) in lacking {
            let Ok(store) = cluster.of_node(node) else {
                continue;
            };
            let Some(news) = cluster.news(store.id) else {
                continue;
            };
            let stays_away = |shard: &ShardId| {
                let record = records.get(shard);
                record.is_some_and(|record| lacks_room(news, store.id, *shard, record))
            };
            let shards: ShardSet = shards.iter().filter(stays_away).collect();
            if !shards.is_empty() {
                without_room.insert(node.clone(), shards);
            }
        }
        Ok(without_room)
    }
}
