//! The metadata store: linearizable, and away at times.

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_topology::replication::{PublishedStore, ShardRecord, ShardRecords, StoreId};

use crate::message::{Message, Place, Targets};
use crate::scene::{Scene, shards, store};
use crate::world::World;

pub(crate) struct Metadata {
    pub(crate) records: ShardRecords,
    pub(crate) published: BTreeMap<StoreId, PublishedStore>,
    pub(crate) targets: Targets,
    pub(crate) is_away: bool,
    /// How often records changed.
    pub(crate) steps: usize,
    /// How often floors were settled.
    pub(crate) settled: usize,
}

impl Metadata {
    pub(crate) fn new(scene: &Scene) -> Self {
        let first = |shard: u8| {
            let nodes = (0..scene.replicas).map(|place| (place + shard as usize) % scene.nodes);
            let stores: Vec<_> = nodes.map(|node| store(node, 0)).collect();
            Arc::new(ShardRecord::first(0, &stores, shard.into()).with_hot(scene.hot))
        };
        Self {
            records: shards().map(|shard| (shard, first(shard.0))).collect(),
            published: BTreeMap::new(),
            targets: Targets::new(),
            is_away: false,
            steps: 0,
            settled: 0,
        }
    }
}

impl World {
    pub(crate) fn metadata_takes(&mut self, from: Place, message: Message) {
        if self.metadata.is_away {
            return;
        }
        match message {
            Message::ReadMetadata(purpose) => {
                let answer = Message::Metadata {
                    purpose,
                    records: self.metadata.records.clone(),
                    published: self.metadata.published.clone(),
                    targets: self.metadata.targets.clone(),
                };
                self.send(Place::Metadata, from, answer);
            }
            Message::Commit {
                shard,
                replaces,
                record,
            } => {
                let current = &self.metadata.records[&shard];
                if *current == replaces {
                    let before = Arc::clone(current);
                    self.metadata.steps += 1;
                    self.metadata.settled += usize::from(record.settled > before.settled);
                    self.oracle.record_changed(shard, &before, &record);
                    let drained = self.scene.drained;
                    self.oracle.step_taken(shard, &before, &record, drained);
                    self.metadata.records.insert(shard, record);
                }
            }
            Message::Publish {
                store,
                replaces,
                published,
            } => {
                let known = &mut self.metadata.published;
                if known.get(&store).copied() == replaces {
                    known.insert(store, published);
                }
            }
            Message::Write(_)
            | Message::Written { .. }
            | Message::WriteFailed { .. }
            | Message::Query { .. }
            | Message::Answer { .. }
            | Message::Confirm { .. }
            | Message::Confirmed { .. }
            | Message::Ping
            | Message::Pong { .. }
            | Message::Tell { .. }
            | Message::Metadata { .. }
            | Message::CopyShard { .. }
            | Message::Compare(_)
            | Message::Compared(_)
            | Message::Repair(_)
            | Message::Repaired(..)
            | Message::Part { .. } => unreachable!("no message to the metadata"),
        }
    }
}
