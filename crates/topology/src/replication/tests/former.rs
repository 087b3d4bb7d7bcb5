//! Deleting what a store has of a shard that it left. Nodes do so later, and more seldom: only where the shard has all
//! its replicas without it, and the record that says so is sealed (FM1). What is safe in every state here is safe there.

use super::rules::Rule;
use super::world::{Config, Store, World, id};
use crate::replication::State;
use crate::replication::replica::Role;

/// The state after a store has deleted what it has. None if it has nothing, or may not.
pub(super) fn delete(config: &Config, world: &World, store: u8) -> Option<World> {
    let held = &world.stores[usize::from(store)];
    let is_former = match config.without {
        Some(Rule::DeletedByTheOwnLog) => !world.current().names(id(store)),
        Some(Rule::DeletedOnceApplied) => held.replica.appended.role == Role::None,
        _ => held.replica.applied.role == Role::None,
    };
    let has_nothing = held.data == State::NEVER && held.aside == State::NEVER;
    if !config.deletes || !held.runs() || !is_former || has_nothing {
        return None;
    }
    let mut next = world.clone();
    let held = &mut next.stores[usize::from(store)];
    *held = Store {
        data: State::NEVER,
        aside: State::NEVER,
        table: None,
        ..held.clone()
    };
    Some(next)
}
