//! Copies of shards, part by part.

use simshard_topology::ShardId;
use simshard_topology::replication::{Epoch, Pin, Role};

use crate::disk::{Contents, EMPTY, Record};
use crate::faults::Fault;
use crate::message::{Message, Place};
use crate::node::end_of_copy;
use crate::scene::{CALM, ELEMENTS, MILLISECOND, SECOND, Time, node_of};
use crate::world::{Timer, World};

/// A copy without its end by then is begun anew.
const PATIENCE: Time = 2 * SECOND;

/// Elements of a part.
const PART: usize = 2;

/// What a learner has of a copy.
pub(crate) struct Copying {
    number: u64,
    begun: Time,
    contents: Contents,
    /// Elements that came.
    count: usize,
}

impl World {
    /// Begins to copy what is to be copied, from a store in sync that has answered lately.
    pub(crate) fn begin_copies(&mut self, node: usize) {
        let now = self.now;
        let (_, running) = self.parts(node);
        running.copies.retain(|_, copy| now - copy.begun < PATIENCE);
        let wanted =
            running
                .shards
                .iter()
                .filter_map(|(&id, shard)| match shard.replica.standing()? {
                    (record, Role::Copying { added }) if !running.copies.contains_key(&id) => {
                        let stores = record.in_sync.iter().map(|entry| entry.store);
                        let stores = stores.filter(|store| {
                            let peer = running.peers.get(store);
                            peer.is_some_and(|peer| peer.lives(now))
                        });
                        Some((id, added, stores.collect::<Vec<_>>()))
                    }
                    _ => None,
                });
        for (shard, added, stores) in wanted.collect::<Vec<_>>() {
            if stores.is_empty() {
                continue;
            }
            let source = stores[self.rng.usize(..stores.len())];
            let number = self.rng.u64(..);
            let (_, running) = self.parts(node);
            let copying = Copying {
                number,
                begun: now,
                contents: EMPTY,
                count: 0,
            };
            running.copies.insert(shard, copying);
            let ask = Message::CopyShard {
                shard,
                added,
                copy: number,
            };
            self.send(Place::Node(node), Place::Node(node_of(source)), ask);
            if now < CALM && self.rng.u64(..8) == 0 {
                self.suspect_by_all(source);
            }
        }
    }

    /// Pins a shard and sends its parts, slowly.
    pub(crate) fn send_copy(
        &mut self,
        node: usize,
        to: Place,
        shard: ShardId,
        added: Epoch,
        copy: u64,
    ) {
        let fault = self.fault;
        let (_, running) = self.parts(node);
        let Some(held) = running.shards.get(&shard) else {
            return;
        };
        let pin = match fault {
            Some(Fault::PinnedBeforeApplied) => held.replica.pin(Epoch::NONE).map(|pin| Pin {
                at: held.replica.confirms().max(added),
                ..pin
            }),
            _ => held.replica.pin(added),
        };
        let Some(pin) = pin else {
            return;
        };
        let contents = held.contents;
        let pace = [5, 50, 400][self.rng.usize(..3)];
        let mut after = 0;
        for from in (0..=ELEMENTS).step_by(PART) {
            after += self.rng.u64(..pace * MILLISECOND);
            let part = Message::Part {
                shard,
                copy,
                pin,
                from,
                states: contents[from..(from + PART).min(ELEMENTS)].to_vec(),
            };
            self.timer(Place::Node(node), after, Timer::Send(Box::new((to, part))));
        }
    }

    /// Takes a part, and ends the copy with the last one.
    pub(crate) fn take_part(
        &mut self,
        node: usize,
        shard: ShardId,
        copy: u64,
        pin: Pin,
        part: (usize, &[simshard_topology::replication::State]),
    ) {
        let fault = self.fault;
        let (_, running) = self.parts(node);
        let Some(copying) = running.copies.get_mut(&shard) else {
            return;
        };
        if copying.number != copy {
            return;
        }
        let (from, states) = part;
        copying.contents[from..from + states.len()].copy_from_slice(states);
        copying.count += states.len().max(1);
        // The parts may overtake each other here, so they are counted: the empty one as one.
        if copying.count <= ELEMENTS {
            return;
        }
        let contents = copying.contents;
        running.copies.remove(&shard);
        let held = &running.shards[&shard];
        if let Some(added) = end_of_copy(&held.replica, pin, fault) {
            let record = Record::Copied {
                shard,
                added,
                contents,
            };
            self.append(node, record);
        }
    }
}
