//! What both comparisons need: how they are done, and how a state and a problem are told.

use std::num::NonZeroUsize;

use serde_json::{Value, json};
use simshard_cluster::RegisteredStore;
use simshard_node::{ScrubError, ScrubOptions};
use simshard_topology::replication::State;

use crate::args::JsonArgs;

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

/// Why shards are not compared, with the node that was to do it.
pub(super) fn problem_of(reader: &RegisteredStore, error: &ScrubError) -> String {
    format!("{} at {}: {error}", reader.node, reader.address)
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
