//! What keeps shards from moving: nodes that would not come, and shards that nothing can be copied of.

use std::collections::BTreeSet;

use simshard_runtime::amounts::bytes;
use simshard_topology::replication::{ShardRecord, StoreId};
use simshard_topology::{NodeId, ShardId, ShardMap, ShardSet};

use crate::AdminError;
use crate::asked::Cluster;
use crate::layout::{Layout, names};

/// Refuses nodes that would not come. What an operator may do instead of starting them follows `or`.
pub(crate) fn check_answer(
    cluster: &Cluster,
    nodes: &BTreeSet<NodeId>,
    or: &str,
) -> Result<(), AdminError> {
    let mut silent = Vec::new();
    for node in nodes {
        let store = cluster.of_node(node)?;
        if !cluster.answers(store.id) {
            silent.push(store);
        }
    }
    match &silent[..] {
        [] => Ok(()),
        [one] => Err(AdminError::Refused(format!(
            "{} does not answer at {}: start it, or {or}, and run this command again",
            one.node, one.address
        ))),
        several => Err(AdminError::Refused(format!(
            "{} do not answer: start each, or {or}, and run this command again",
            names(several.iter().map(|store| &store.node))
        ))),
    }
}

impl Layout {
    /// Refuses a map by which a node gets shards without room for copies, or more bytes than it has room for.
    pub(crate) fn check_room(&self, after: &ShardMap) -> Result<(), AdminError> {
        for node in after.nodes() {
            let held = after.shards_of(node);
            let gains = held.difference(&self.map.shards_of(node));
            if gains.is_empty() {
                continue;
            }
            let store = self.cluster.of_node(node)?.id;
            if !self.cluster.has_room(store) {
                return Err(AdminError::Refused(format!(
                    "{node} has too little room on its disk for copies of shards {gains}: it would not take them; make \
                     room there, or drain it"
                )));
            }
            // With what is on its way there, and has not begun to come.
            let names = |shard: &ShardId| self.records[shard].names(store);
            let coming: ShardSet = held.iter().filter(|shard| !names(shard)).collect();
            let wanted = self.bytes(coming);
            let room = self
                .cluster
                .news(store)
                .and_then(|news| news.bytes_for_copies);
            if let Some(room) = room.filter(|room| *room < wanted) {
                let (wanted, room) = (bytes(wanted as f64), bytes(room as f64));
                return Err(AdminError::Refused(format!(
                    "{node} has too little room on its disk for copies of shards {coming}: they take {wanted}, and it takes \
                     {room} until its disk is too full for copies; make room there, let it take fewer shards, or drain it"
                )));
            }
        }
        Ok(())
    }

    /// Refuses to move shards that are yet to be filled: no node may copy them.
    pub(crate) fn check_filled(&self, shards: ShardSet) -> Result<(), AdminError> {
        let rebuilt = self
            .records
            .iter()
            .filter(|(_, record)| record.is_rebuilt());
        let rebuilt: ShardSet = rebuilt.map(|(shard, _)| *shard).collect();
        let unfilled = rebuilt.intersection(&shards);
        if unfilled.is_empty() {
            return Ok(());
        }
        Err(AdminError::Refused(format!(
            "shards {unfilled} are being rebuilt: end that by `simshard cluster force --rebuild` first"
        )))
    }

    /// Refuses to move shards that nothing can be copied of, or whose records cannot change: the move would never end.
    pub(crate) fn check_movable(&self, shards: ShardSet) -> Result<(), AdminError> {
        self.check_filled(shards)?;
        let answers = |store: StoreId| self.cluster.answers(store);
        let in_sync = |record: &ShardRecord| -> Vec<StoreId> {
            record.in_sync.iter().map(|entry| entry.store).collect()
        };
        let is_lost = |_, record: &ShardRecord| !in_sync(record).into_iter().any(answers);
        let (lost, silent) = self.held_up(shards, is_lost, in_sync);
        if !lost.is_empty() {
            let silent = self.cluster.names(silent.into_iter());
            return Err(AdminError::Refused(format!(
                "no node that answers holds shards {lost} in sync, so none can copy them: start {silent}; if the data is \
                 gone for good, begin these shards anew by `simshard cluster force --rebuild --from NODE --stopped \
                 {silent}`"
            )));
        }
        let is_stuck = |shard, record: &ShardRecord| self.cluster.is_stuck(shard, record);
        let named = |record: &ShardRecord| -> Vec<StoreId> {
            let previous = record.previous.iter().copied();
            record.write_set().chain(previous).collect()
        };
        let (stuck, silent) = self.held_up(shards, is_stuck, named);
        if !stuck.is_empty() {
            let silent = self.cluster.told(silent.into_iter());
            return Err(AdminError::Refused(format!(
                "shards {stuck} cannot move while they wait for {silent}: start one of them, or else let another node go \
                 on alone by `simshard cluster force`"
            )));
        }
        Ok(())
    }

    /// Those of some shards of which something holds, and which of their nodes do not answer.
    fn held_up(
        &self,
        shards: ShardSet,
        holds: impl Fn(ShardId, &ShardRecord) -> bool,
        nodes: impl Fn(&ShardRecord) -> Vec<StoreId>,
    ) -> (ShardSet, BTreeSet<StoreId>) {
        let records = self.records.iter();
        let records =
            records.filter(|(shard, record)| shards.contains(**shard) && holds(**shard, record));
        let (mut held_up, mut silent) = (ShardSet::EMPTY, BTreeSet::new());
        for (shard, record) in records {
            held_up.insert(*shard);
            let stores = nodes(record).into_iter();
            silent.extend(stores.filter(|store| !self.cluster.answers(*store)));
        }
        (held_up, silent)
    }
}
