//! What a scrub makes of the states that the replicas in sync have of one element.
//!
//! A scrub reads the element on all replicas, and carries the newest state to those that lack it. A repair is a write like
//! any other: of what one replica has, with its version. A document has an element in each of its shards. Between shards,
//! a scrub reads one replica of each.
//!
//! # Invariants
//! - SB1: an element differs if its states do, and none of them is later than the version that a scrub compares. A later
//!   one may still be on its way. A settled tombstone is no different from nothing (FL4).
//! - SB2: a repair carries what a store in sync had applied, and other stores take it at that same epoch only. At a later
//!   one, a change may have been acknowledged without the store that was read, and the repair would undo it.
//! - SB3: what one shard has of a document is carried to its other shards only once all stores of that shard's record have
//!   it, learners too. Else a change that was given up might be shown by one shard, and be gone from the other.

use super::copy::is_later;
use super::floor::is_forgotten;
use super::write::State;
use crate::Version;

/// The state that all replicas are to have of an element, if theirs differ (SB1). One that has none of it counts as
/// [`State::NEVER`]. Of tombstones up to `settled`, some replicas may have dropped theirs.
pub fn repaired(states: &[State], until: Version, settled: Version) -> Option<State> {
    let newest = states.iter().copied().max()?;
    let is_same = |state: &State| {
        *state == newest || is_forgotten(*state, settled) && is_forgotten(newest, settled)
    };
    let differs = !states.iter().all(is_same);
    (differs && !is_later(newest, until)).then_some(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn state(version: u64, live: bool) -> State {
        State {
            version: Version(version),
            live,
        }
    }

    /// SB1, for all states of three replicas.
    #[test]
    fn the_newest_state_is_for_all_unless_it_is_later_than_what_is_compared() {
        let mut states = vec![State::NEVER];
        states.extend((1..4).flat_map(|version| [state(version, true), state(version, false)]));
        for &a in &states {
            for &b in &states {
                for &c in &states {
                    for (until, settled) in (0..5).zip([0, 2, 0, 3, 1]) {
                        let all = [a, b, c];
                        let is_gone = |one: &State| !one.live && one.version.0 <= settled;
                        let are_equal = a == b && b == c || all.iter().all(is_gone);
                        let are_settled = all.iter().all(|state| state.version.0 <= until);
                        let newest = all.iter().find(|one| all.iter().all(|other| other <= *one));
                        let expected = newest.filter(|_| !are_equal && are_settled);
                        assert_eq!(
                            repaired(&all, Version(until), Version(settled)).as_ref(),
                            expected
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn one_replica_agrees_with_itself() {
        assert_eq!(repaired(&[state(1, true)], Version(9), Version::NONE), None);
        assert_eq!(repaired(&[], Version(9), Version::NONE), None);
    }
}
