//! Whether changes succeed: inserts and removals need each node that holds the shard.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use simshard_node::StoreAnswer;
use simshard_topology::replication::{Epoch, ShardRecord, ShardRecords, StoreId};
use simshard_topology::{NodeId, ShardId, ShardSet};

use crate::asked::{epoch_of, is_stuck, told};
use crate::finding::{Finding, finding};
use crate::nodes::Asked;
use crate::short::shards_where;

/// What changes of a shard wait for.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Waits {
    /// Stores hold the shards that have no record, so none knows where they are. Until they are back, no advice is given
    /// to go on without them.
    Unregistered,
    /// The nodes that answer go on without the others, by themselves.
    Passing,
    /// They cannot. One of them may go on alone, if an operator says so.
    Stuck { alone: Vec<String> },
}

/// Whether all that hold a shard answer. While one does not, its changes wait until the others go on without it.
pub(crate) fn changes(records: &ShardRecords, asked: &Asked) -> Finding {
    let mut waiting = BTreeMap::<(Waits, Vec<String>), ShardSet>::new();
    let (mut all, mut stuck) = (ShardSet::EMPTY, ShardSet::EMPTY);
    for (&shard, record) in records {
        if let Some(waits) = waits(shard, record, asked) {
            waiting.entry(waits).or_default().insert(shard);
            all.insert(shard);
        }
        if is_stuck(shard, record, |store| answer(store, asked)) {
            stuck.insert(shard);
        }
    }
    let sentences = waiting.iter().map(|((waits, silent), shards)| {
        let silent = silent.join(",");
        match waits {
            Waits::Unregistered => format!(
                "{shards} are held by {silent} too, of which the metadata has no record: restart the node with that \
                 store, so that it registers again"
            ),
            Waits::Passing => {
                format!("{shards} wait a moment, until the others go on without {silent}")
            }
            Waits::Stuck { alone } if alone.is_empty() => {
                format!(
                    "{shards} wait for {silent}, and none that answers is in sync: start each, or else see `simshard \
                     cluster force --rebuild`"
                )
            }
            Waits::Stuck { alone } => format!(
                "{shards} wait for {silent}: start one of them, or else let {} go on alone by `simshard cluster force`",
                alone.join(" or ")
            ),
        }
    });
    let full = full(records, asked);
    let of_full = full.iter().map(|(node, shards)| {
        format!(
            "the disk of {node} is full, or nearly: inserts of {shards} fail until you make room there, or it has left \
             these shards"
        )
    });
    let sentences: Vec<String> = sentences.chain(of_full).collect();
    let is_well = sentences.is_empty();
    let details = if is_well {
        "all nodes of each shard answer".to_owned()
    } else {
        sentences.join("; ")
    };
    let full = full
        .iter()
        .map(|(node, shards)| (node.as_str(), shards.to_string()));
    let facts = json!({
        "waiting": all.to_string(),
        "stuck": stuck.to_string(),
        "full": full.collect::<BTreeMap<_, _>>(),
    });
    finding("changes", is_well, details, facts)
}

/// The nodes that refuse inserts for want of room, or will soon, and what they hold or learn.
fn full<'a>(records: &ShardRecords, asked: &'a Asked) -> BTreeMap<&'a NodeId, ShardSet> {
    let mut full = BTreeMap::new();
    for (store, answer) in asked {
        let news = answer.as_ref().and_then(StoreAnswer::news);
        if news.is_some_and(|news| news.lacks_room) {
            let is_written =
                |record: &ShardRecord| record.write_set().any(|named| named == store.id);
            let held = shards_where(records, is_written);
            if !held.is_empty() {
                full.insert(&store.node, held);
            }
        }
    }
    full
}

/// Whether changes of a shard wait for what an operator does.
pub(crate) fn has_stuck(records: &ShardRecords, asked: &Asked) -> bool {
    let is_stuck = |(shard, record): (&ShardId, &Arc<ShardRecord>)| {
        is_stuck(*shard, record, |store| answer(store, asked))
    };
    records.iter().any(is_stuck)
}

/// What the changes of a shard wait for, and the nodes that are silent. `None` if they succeed.
fn waits(shard: ShardId, record: &ShardRecord, asked: &Asked) -> Option<(Waits, Vec<String>)> {
    let is_unregistered = |store: &StoreId| !asked.iter().any(|(known, _)| known.id == *store);
    let unregistered: Vec<StoreId> = record.write_set().filter(is_unregistered).collect();
    if !unregistered.is_empty() {
        let names = unregistered.iter().map(StoreId::to_string);
        return Some((Waits::Unregistered, names.collect()));
    }
    let is_silent = |store: &StoreId| answer(*store, asked).is_none();
    let mut silent: Vec<StoreId> = record.write_set().filter(is_silent).collect();
    let is_stuck = is_stuck(shard, record, |store| answer(store, asked));
    if silent.is_empty() && !is_stuck {
        return None;
    }
    if silent.is_empty() {
        // One that was forced waits for those that answered then.
        silent = record.previous.iter().copied().filter(is_silent).collect();
    }
    let node = |store: StoreId| {
        let known = asked.iter().find(|(known, _)| known.id == store);
        known.map(|(known, _)| &known.node)
    };
    let waits = if is_stuck {
        let in_sync = record.in_sync.iter().map(|entry| entry.store);
        let has_installed = |store: &StoreId| {
            let news = answer(*store, asked).and_then(StoreAnswer::news);
            news.is_some_and(|news| epoch_of(news, shard) > Epoch::NONE)
        };
        let alone = in_sync.filter(has_installed);
        Waits::Stuck {
            alone: told(alone.map(node)),
        }
    } else {
        Waits::Passing
    };
    Some((waits, told(silent.into_iter().map(node))))
}

/// What a store answers, if it lives.
fn answer(store: StoreId, asked: &Asked) -> Option<&StoreAnswer> {
    let (_, answer) = asked.iter().find(|(known, _)| known.id == store)?;
    answer.as_ref()
}
