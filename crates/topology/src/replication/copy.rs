//! What a copy sends of an element, and when what the learner had of it may stay.
//!
//! A copy has what its source had, whatever the learner had before. The two agree on a version. The source sends later
//! states, and both compare the other ones; where these differ, the source sends its own.

use super::write::State;
use crate::Version;

/// Whether a state is later than what is compared, so that a source sends it unasked, and a learner cannot tell whether
/// the source has it.
pub fn is_later(state: State, until: Version) -> bool {
    state.version > until
}

/// Whether a state that a learner had may stay below the one that it received: merging both gives what it received.
pub fn may_stay(had: State, received: Option<State>) -> bool {
    received.is_some_and(|received| received >= had)
}
