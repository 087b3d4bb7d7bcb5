//! What two states that may go on alike have in common: a hash that does not depend on the names of stores.

use xxhash_rust::xxh3::xxh3_64;

use super::world::{Logged, Store, World, number};
use crate::replication::replica::{Role, View};
use crate::replication::{Entry, State};

const MOST_STORES: usize = 6;

/// The hash of a state. All about one store is hashed apart, and then the stores in the order of their hashes.
pub(super) fn key(world: &World) -> u64 {
    let mut bytes = Vec::with_capacity(256);
    let mut places = [0; MOST_STORES];
    for (place, hash) in places.iter_mut().enumerate().take(world.stores.len()) {
        bytes.clear();
        of_store(&mut bytes, world, place);
        *hash = xxh3_64(&bytes);
    }
    // Stores name each other in one way only: a learner names its source.
    let mut stores = places;
    for (place, store) in world.stores.iter().enumerate() {
        if let Some((pin, _)) = &store.copy {
            let source = usize::from(pin.source.0[0]);
            stores[place] = stores[place].wrapping_add(places[source].rotate_left(17));
            stores[source] = stores[source].wrapping_add(0x9e37_79b9_7f4a_7c15);
        }
    }
    stores.sort_unstable();
    bytes.clear();
    of_all(&mut bytes, world);
    for store in stores {
        bytes.extend(store.to_le_bytes());
    }
    xxh3_64(&bytes)
}

/// All that names no store.
fn of_all(bytes: &mut Vec<u8>, world: &World) {
    bytes.extend([
        world.history.len() as u8,
        world.crashes,
        world.wipes,
        world.forces,
        world.scrubs,
    ]);
    if let Some((epoch, state)) = world.repair {
        bytes.push(epoch);
        bytes.extend(of_state(state));
    }
    bytes.extend(of_state(world.dropped));
    for record in world.history.iter() {
        let frozen = u8::from(record.is_frozen);
        bytes.extend([record.floor.0 as u8, record.settled.0 as u8, frozen]);
    }
    for writer in &world.writers {
        let write = &writer.write;
        bytes.extend([writer.phase as u8, writer.restamps, u8::from(write.told)]);
        bytes.extend(of_state(write.state()));
        bytes.extend([write.newer.0 as u8, writer.acknowledged_before]);
        bytes.push(writer.ended_before);
    }
    if let Some(reader) = &world.reader {
        let read = &reader.read;
        bytes.extend([number(read.epoch()), reader.acknowledged]);
        bytes.extend(of_state(reader.answer));
        bytes.push(u8::from(read.is_current));
    }
}

/// All about one store, without its name.
fn of_store(bytes: &mut Vec<u8>, world: &World, place: usize) {
    let id = super::world::id(place as u8);
    of_store_itself(bytes, &world.stores[place]);
    for record in world.history.iter() {
        let in_sync = u8::from(record.in_sync(id).is_some());
        let fences = record.is_forced() && record.previous.contains(&id);
        let learns = record.learner(id).is_some();
        let is_hot = record.in_sync(id).is_some_and(|entry| entry.hot);
        let roles = [learns, fences, is_hot].map(u8::from);
        bytes.push(in_sync + 2 * roles[0] + 4 * roles[1] + 8 * roles[2]);
    }
    for writer in &world.writers {
        let done = writer.write.done.iter().filter(|(_, from)| *from == id);
        bytes.push(done.map(|(epoch, _)| 1 << number(*epoch)).sum());
    }
    if let Some(reader) = &world.reader {
        let read = &reader.read;
        // With the metadata's word no other matters.
        let confirmed = !read.is_current && read.confirmed.contains(&id);
        bytes.push(u8::from(read.answered == Some(id)) + 2 * u8::from(confirmed));
    }
}

/// The state of a store itself.
fn of_store_itself(bytes: &mut Vec<u8>, store: &Store) {
    let gone = u8::from(store.is_lost) + 2 * u8::from(store.is_stopped);
    bytes.extend([gone, store.synced as u8]);
    bytes.extend(of_view(&store.replica.applied));
    bytes.extend(of_view(&store.replica.synced));
    bytes.extend(of_state(store.data));
    bytes.extend(of_state(store.aside));
    if let Some(table) = store.table {
        bytes.push(0xfc);
        bytes.extend(of_state(table));
    }
    if let Some((epoch, state)) = store.compared {
        bytes.extend([0xfa, epoch]);
        bytes.extend(of_state(state));
    }
    if let Some((pin, copy)) = &store.copy {
        bytes.push(number(pin.at));
        bytes.extend(of_state(*copy));
    }
    bytes.push(0xff);
    for logged in &store.log {
        match logged {
            Logged::Install(entry) => bytes.extend([0xfe, of_entry(entry)]),
            Logged::Copied(entry, copy) => {
                bytes.extend([0xfd, of_entry(entry)]);
                bytes.extend(of_state(*copy));
            }
            Logged::Write {
                writer,
                epoch,
                state,
            } => {
                bytes.extend([*writer, number(*epoch)]);
                bytes.extend(of_state(*state));
            }
            Logged::Repair { epoch, state } => {
                bytes.extend([0xfb, number(*epoch)]);
                bytes.extend(of_state(*state));
            }
        }
    }
    bytes.push(0xff);
}

fn of_entry(entry: &Entry) -> u8 {
    match entry {
        Entry::Install(record) => number(record.epoch),
        Entry::Copied { added } => number(*added),
    }
}

fn of_state(state: State) -> [u8; 2] {
    [state.version.0 as u8, u8::from(state.live)]
}

fn of_view(view: &View) -> [u8; 2] {
    let role = match view.role {
        Role::None => 0,
        Role::InSync => 1,
        Role::Copying { added } => 2 + 2 * number(added),
        Role::Copied { added } => 3 + 2 * number(added),
    };
    [number(view.epoch()), role]
}
