//! Which start of a store this is, so that a copy of its directory is not taken for the store.
//!
//! Each start of a store is an incarnation, with a number and a nonce. The directory holds the newest one and the one
//! before. The metadata holds one, and the sequence up to which the store has synced its log. A start makes an
//! incarnation in two steps. First it puts the incarnation into the directory, then into the metadata, if that holds the
//! one before. So after a crash between the steps the metadata holds one of the two, and so it does at each start.
//!
//! ```text
//! directory (4, 5)   metadata 5   all is well: put 6 into the directory
//! directory (5, 6)   metadata 5   enter 6 into the metadata
//! directory (5, 6)   metadata 6   the start may go on
//! directory (4, 5)   metadata 6   a copy, or a restored backup: refuse
//! ```
//!
//! # Invariants
//! - IC1: a store whose directory was started elsewhere since, or is older than that, does not go on. No other store is
//!   refused, however often it crashes.
//! - IC2: a store goes on only if it recovers every change up to the sequence that the metadata holds.

/// A start of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation {
    /// One more with each start.
    pub number: u64,
    /// Random, so that it differs between the starts of two copies.
    pub nonce: u64,
}

/// The incarnations in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeldIncarnations {
    /// The one that the metadata held when the newest was made; `None` if it held none.
    pub before: Option<Incarnation>,
    /// The newest. It may not be in the metadata yet.
    pub newest: Incarnation,
}

/// What the metadata says of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublishedStore {
    /// Its last start.
    pub incarnation: Incarnation,
    /// All records of its log up to this sequence are on its disk.
    pub synced: u64,
}

/// The next step of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartStep {
    /// The directory is the one that ran last: put a new incarnation into it.
    Renew,
    /// The directory has this incarnation, and the metadata the one before it or none: put it into the metadata.
    Enter(Incarnation),
}

/// Why a directory is not the one that the metadata knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StaleStore {
    /// The metadata has an incarnation that the directory has never had.
    #[error("it is an older copy, or a copy of it was started since")]
    Copy,
    /// The metadata has an incarnation before those of the directory.
    #[error(
        "the metadata knows only an earlier start of it, so an older copy of the metadata was restored"
    )]
    OlderMetadata,
    /// The log ends before a change that was on disk.
    #[error("its log ends with record {recovered}, and had record {synced}")]
    ChangesMissing {
        /// The last record that is there.
        recovered: u64,
        /// The last record that was on disk.
        synced: u64,
    },
}

/// The next step of a store that starts. `recovered` is the last record of its log.
///
/// # Errors
/// If its directory is not the one that the metadata knows.
pub fn next_start_step(
    held: Option<&HeldIncarnations>,
    published: Option<&PublishedStore>,
    recovered: u64,
) -> Result<StartStep, StaleStore> {
    let (held, published) = match (held, published) {
        (None, None) => return Ok(StartStep::Renew),
        (Some(held), None) => return Ok(StartStep::Enter(held.newest)),
        (None, Some(_)) => return Err(StaleStore::Copy),
        (Some(held), Some(published)) => (held, published),
    };
    let known = published.incarnation;
    let step = if known == held.newest {
        StartStep::Renew
    } else if Some(known) == held.before {
        StartStep::Enter(held.newest)
    } else {
        let first = held.before.unwrap_or(held.newest);
        let is_older = known.number < first.number;
        return Err(if is_older {
            StaleStore::OlderMetadata
        } else {
            StaleStore::Copy
        });
    };
    let synced = published.synced;
    if recovered < synced {
        return Err(StaleStore::ChangesMissing { recovered, synced });
    }
    Ok(step)
}

/// What the directory of a store is to hold next. `published` is what the metadata holds now.
#[must_use]
pub fn renewed(
    held: Option<&HeldIncarnations>,
    published: Option<&PublishedStore>,
    nonce: u64,
) -> HeldIncarnations {
    let before = published.map(|published| published.incarnation);
    let numbers = [before, held.map(|held| held.newest)];
    let numbers = numbers.into_iter().flatten().map(|known| known.number);
    HeldIncarnations {
        before,
        newest: Incarnation {
            number: numbers.max().map_or(1, |last| last.saturating_add(1)),
            nonce,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const fn start(number: u64, nonce: u64) -> Incarnation {
        Incarnation { number, nonce }
    }

    const fn held(before: Option<Incarnation>, newest: Incarnation) -> HeldIncarnations {
        HeldIncarnations { before, newest }
    }

    /// IC1 and IC2.
    #[test]
    fn a_start_goes_on_with_what_the_directory_has_and_with_nothing_else() {
        let (first, second, third) = (start(1, 7), start(2, 8), start(3, 9));
        let all = Some(held(Some(first), second));
        let at = |incarnation| {
            Some(PublishedStore {
                incarnation,
                synced: 10,
            })
        };
        let missing = StaleStore::ChangesMissing {
            recovered: 9,
            synced: 10,
        };
        let cases = [
            (None, None, 0, Ok(StartStep::Renew)),
            (all, None, 0, Ok(StartStep::Enter(second))),
            (all, at(second), 10, Ok(StartStep::Renew)),
            (all, at(first), 11, Ok(StartStep::Enter(second))),
            (all, at(second), 9, Err(missing)),
            (all, at(first), 9, Err(missing)),
            (None, at(first), 10, Err(StaleStore::Copy)),
            (all, at(third), 10, Err(StaleStore::Copy)),
            (all, at(start(2, 0)), 10, Err(StaleStore::Copy)),
            (all, at(start(1, 0)), 10, Err(StaleStore::Copy)),
            (all, at(start(0, 0)), 10, Err(StaleStore::OlderMetadata)),
        ];
        for (held, published, recovered, expected) in cases {
            let step = next_start_step(held.as_ref(), published.as_ref(), recovered);
            assert_eq!(step, expected, "{held:?} {published:?} {recovered}");
        }
    }

    #[test]
    fn a_new_start_has_a_number_after_all_others_and_follows_the_metadata() {
        let (second, ninth) = (start(2, 8), start(9, 1));
        let published = PublishedStore {
            incarnation: second,
            synced: 0,
        };
        assert_eq!(renewed(None, None, 5), held(None, start(1, 5)));
        let next = renewed(None, Some(&published), 5);
        assert_eq!(next, held(Some(second), start(3, 5)));
        let next = renewed(Some(&held(None, ninth)), Some(&published), 5);
        assert_eq!(next, held(Some(second), start(10, 5)));
    }

    /// A directory and the process that starts or runs on it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    struct Place {
        held: Option<HeldIncarnations>,
        /// What the process has read of the metadata and not acted on yet.
        read: Option<Option<PublishedStore>>,
        /// The incarnation that the process has made.
        made: Option<Incarnation>,
        is_refused: bool,
        runs: bool,
        /// A transaction that was sent and may be made at any later time: what it compares, and what it puts.
        sent: Option<(Option<PublishedStore>, PublishedStore)>,
        starts: u8,
    }

    /// All that there is: the metadata, and a directory with a copy of it.
    #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    struct World {
        metadata: Option<PublishedStore>,
        places: Vec<Place>,
        nonces: u64,
    }

    const MOST_STARTS: u8 = 3;

    impl World {
        fn new() -> Self {
            Self {
                places: vec![Place::default()],
                ..Self::default()
            }
        }

        /// Every state that one step leads to.
        fn next(&self, may_copy: bool) -> Vec<Self> {
            let mut all = Vec::new();
            for number in 0..self.places.len() {
                let place = self.places[number];
                let mut step = |change: &dyn Fn(&mut Self)| {
                    let mut next = self.clone();
                    change(&mut next);
                    all.push(next);
                };
                step(&|next| next.crash(number));
                if place.sent.is_some() {
                    step(&|next| next.commit(number));
                }
                match place.read {
                    None if !place.is_refused && !place.runs && place.starts < MOST_STARTS => {
                        step(&|next| next.places[number].read = Some(next.metadata));
                    }
                    Some(read) => step(&|next| next.act(number, read)),
                    None => {}
                }
            }
            if may_copy && self.places.len() == 1 {
                let mut next = self.clone();
                next.places.push(Place {
                    held: self.places[0].held,
                    ..Place::default()
                });
                all.push(next);
            }
            all
        }

        /// The process ends. What it has sent may still arrive.
        fn crash(&mut self, number: usize) {
            let place = &mut self.places[number];
            place.starts += 1;
            (place.read, place.made) = (None, None);
            (place.is_refused, place.runs) = (false, false);
        }

        fn commit(&mut self, number: usize) {
            let Some((compared, put)) = self.places[number].sent.take() else {
                return;
            };
            if self.metadata == compared {
                self.metadata = Some(put);
            }
        }

        fn act(&mut self, number: usize, read: Option<PublishedStore>) {
            let nonce = self.nonces;
            let place = &mut self.places[number];
            place.read = None;
            let known = read.map(|read| read.incarnation);
            if place.made.is_some() && known == place.made {
                place.runs = true;
                return;
            }
            match next_start_step(place.held.as_ref(), read.as_ref(), 0) {
                Err(_) => place.is_refused = true,
                Ok(StartStep::Renew) => {
                    let new = renewed(place.held.as_ref(), read.as_ref(), nonce);
                    (place.held, place.made) = (Some(new), Some(new.newest));
                    self.nonces += 1;
                }
                Ok(StartStep::Enter(incarnation)) => {
                    let put = PublishedStore {
                        incarnation,
                        synced: 0,
                    };
                    place.sent = Some((read, put));
                }
            }
        }
    }

    /// Visits all states, however processes crash and transactions are late.
    fn explore(may_copy: bool, check: impl Fn(&World)) -> usize {
        let mut seen = BTreeSet::from([World::new()]);
        let mut waiting = vec![World::new()];
        while let Some(world) = waiting.pop() {
            check(&world);
            for next in world.next(may_copy) {
                let is_short = next.places.iter().all(|place| place.starts <= MOST_STARTS);
                if is_short && seen.insert(next.clone()) {
                    waiting.push(next);
                }
            }
        }
        seen.len()
    }

    /// IC1.
    #[test]
    fn a_store_that_crashes_at_any_step_is_never_refused() {
        let states = explore(false, |world| {
            assert!(!world.places[0].is_refused, "{world:?}");
        });
        assert!(states > 100, "{states}");
    }

    /// IC1: of two copies, at most one has the incarnation that the metadata holds.
    #[test]
    fn of_two_copies_at_most_one_is_known() {
        let states = explore(true, |world| {
            let is_known = |place: &&Place| {
                let known = world.metadata.map(|metadata| metadata.incarnation);
                place.runs && place.made == known
            };
            assert!(
                world.places.iter().filter(is_known).count() < 2,
                "{world:?}"
            );
        });
        assert!(states > 1_000, "{states}");
    }
}
