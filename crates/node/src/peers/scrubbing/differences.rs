//! Where replicas differ. Pure.

use std::fmt;

use simshard_simhash::Fingerprint;
use simshard_storage::{CopyRange, State};
use simshard_topology::replication::{may_settle, repaired};
use simshard_topology::{CorpusUid, Version};

/// A document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) corpus: CorpusUid,
    pub(super) fingerprint: Fingerprint,
    pub(super) id: String,
}

/// A document of which replicas have different states.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Difference {
    pub(super) key: Key,
    /// The state that each replica is to have.
    pub(super) newest: State,
    /// The state of each replica; [`State::NEVER`] where it has none.
    pub(super) states: Vec<State>,
}

impl Difference {
    /// Whether a replica lacks the newest state.
    pub(super) fn is_lacking(&self, replica: usize) -> bool {
        self.states[replica] != self.newest
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, state) in self.states.iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            match state {
                _ if *state == State::NEVER => write!(f, "{comma}absent")?,
                State {
                    version,
                    live: true,
                } => write!(f, "{comma}live at {version}")?,
                State {
                    version,
                    live: false,
                } => write!(f, "{comma}removed at {version}")?,
            }
        }
        Ok(())
    }
}

/// The documents that differ, ascending.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) differences: Vec<Difference>,
    /// Whether there are more of them than could be taken note of.
    pub(super) has_more: bool,
}

impl Found {
    /// Whether a document is among those that differ.
    pub(super) fn has(&self, key: &Key) -> bool {
        let place = self
            .differences
            .binary_search_by(|other| other.key.cmp(key));
        place.is_ok()
    }
}

/// Which documents differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compared {
    /// Later versions are not compared.
    pub(super) until: Version,
    /// Replicas may have dropped tombstones up to this one.
    pub(super) settled: Version,
    /// Whether those count that replicas may not settle, instead of those that they should repair.
    pub(super) to_settle: bool,
}

impl Compared {
    /// The newest of the states of a document that differs.
    fn newest(self, states: &[State]) -> Option<State> {
        if !self.to_settle {
            return repaired(states, self.until, self.settled);
        }
        let newest = states.iter().copied().max();
        newest.filter(|_| !may_settle(states, self.until))
    }
}

/// Finds the documents that differ, at most `most`, in what replicas have of the same ranges. Each stream ascends.
pub(super) fn differences<E>(
    mut streams: Vec<impl Iterator<Item = Result<(Key, State), E>>>,
    compared: Compared,
    most: usize,
) -> Result<Found, E> {
    let mut heads = Vec::with_capacity(streams.len());
    for stream in &mut streams {
        heads.push(stream.next().transpose()?);
    }
    let mut found = Found::default();
    while let Some(key) = heads.iter().flatten().map(|(key, _)| key).min().cloned() {
        let mut states = vec![State::NEVER; heads.len()];
        for ((state, head), stream) in states.iter_mut().zip(&mut heads).zip(&mut streams) {
            if let Some((_, own)) = head.take_if(|(other, _)| *other == key) {
                *state = own;
                *head = stream.next().transpose()?;
            }
        }
        let Some(newest) = compared.newest(&states) else {
            continue;
        };
        if found.differences.len() == most {
            found.has_more = true;
            break;
        }
        found.differences.push(Difference {
            key,
            newest,
            states,
        });
    }
    Ok(found)
}

/// The differences that two readings found, with the same states. What was on its way at the first reading has come by
/// the second.
pub(super) fn confirmed(first: Vec<Difference>, second: &[Difference]) -> Vec<Difference> {
    let is_there = |difference: &Difference| second.binary_search(difference).is_ok();
    first.into_iter().filter(is_there).collect()
}

/// Ranges that have these documents, and others with their fingerprints only.
pub(super) fn ranges(differences: &[Difference]) -> Vec<CopyRange> {
    let range = |difference: &Difference| CopyRange {
        corpus: difference.key.corpus,
        first: difference.key.fingerprint,
        last: difference.key.fingerprint,
    };
    CopyRange::union(differences.iter().map(range).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::convert::Infallible;

    use fastrand::Rng;

    use super::*;

    type Replica = BTreeMap<Key, State>;

    fn key(random: &mut Rng) -> Key {
        Key {
            corpus: CorpusUid([random.u8(..2); 16]),
            fingerprint: Fingerprint(random.u64(..5)),
            id: ["", "a", "b"][random.usize(..3)].to_owned(),
        }
    }

    fn state(random: &mut Rng) -> State {
        State {
            version: Version(random.u64(1..8)),
            live: random.bool(),
        }
    }

    /// Replicas with much in common.
    fn replicas(random: &mut Rng) -> Vec<Replica> {
        let common: Replica = (0..random.usize(..20))
            .map(|_| (key(random), state(random)))
            .collect();
        let replica = |_| {
            let mut replica = common.clone();
            for _ in 0..random.usize(..4) {
                if random.bool() {
                    replica.remove(&key(random));
                } else {
                    replica.insert(key(random), state(random));
                }
            }
            replica
        };
        (0..3).map(replica).collect()
    }

    fn find(replicas: &[Replica], until: u64, most: usize) -> Found {
        let streams = replicas.iter().map(|replica| {
            let elements = replica.iter();
            elements.map(|(key, state)| Ok::<_, Infallible>((key.clone(), *state)))
        });
        let compared = Compared {
            until: Version(until),
            settled: Version::NONE,
            to_settle: false,
        };
        let Ok(found) = differences(streams.collect(), compared, most);
        found
    }

    /// Key by key.
    fn slowly(replicas: &[Replica], until: u64) -> Vec<Difference> {
        let keys: BTreeSet<&Key> = replicas.iter().flat_map(BTreeMap::keys).collect();
        let difference = |key: &Key| {
            let states = replicas.iter();
            let states: Vec<State> = states
                .map(|replica| replica.get(key).copied().unwrap_or(State::NEVER))
                .collect();
            let newest = *states.iter().max()?;
            let counts = newest.version.0 <= until && states.iter().any(|one| *one != newest);
            counts.then(|| Difference {
                key: key.clone(),
                newest,
                states,
            })
        };
        keys.into_iter().filter_map(difference).collect()
    }

    /// SB1.
    #[test]
    fn the_documents_that_differ_are_those_that_a_look_at_each_finds() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let mut differing = 0;
        for _ in 0..5000 {
            let replicas = replicas(&mut random);
            let (until, most) = (random.u64(..9), random.usize(1..6));
            let expected = slowly(&replicas, until);
            let found = find(&replicas, until, most);
            assert_eq!(found.has_more, expected.len() > most);
            assert_eq!(found.differences[..], expected[..expected.len().min(most)]);
            differing += usize::from(!expected.is_empty());
        }
        assert!(differing > 1000, "{differing}");
    }

    /// SB1: replicas that get what they lack agree, and have the newest state of each document.
    #[test]
    fn repaired_replicas_agree_and_have_lost_nothing() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        for _ in 0..2000 {
            let mut replicas = replicas(&mut random);
            let before = replicas.clone();
            for difference in find(&replicas, 9, usize::MAX).differences {
                for (place, replica) in replicas.iter_mut().enumerate() {
                    if difference.is_lacking(place) {
                        replica.insert(difference.key.clone(), difference.newest);
                    }
                }
            }
            assert_eq!(find(&replicas, 9, usize::MAX), Found::default());
            assert!(replicas.iter().all(|replica| *replica == replicas[0]));
            let newest = before
                .iter()
                .flatten()
                .fold(Replica::new(), |mut all, (key, state)| {
                    let there = all.entry(key.clone()).or_insert(*state);
                    *there = state.max(there).to_owned();
                    all
                });
            assert_eq!(replicas[0], newest);
        }
    }

    #[test]
    fn a_difference_counts_if_both_readings_have_the_same_states() {
        let mut random = Rng::with_seed(7);
        let replicas = replicas(&mut random);
        let first = find(&replicas, 9, usize::MAX).differences;
        assert!(first.len() > 1);
        assert_eq!(confirmed(first.clone(), &first), first);
        let mut second = first.clone();
        second[0].states[0].version = Version(99);
        assert_eq!(confirmed(first.clone(), &second), first[1..]);
        assert_eq!(confirmed(first.clone(), &[]), []);
    }

    #[test]
    fn states_are_told_as_a_user_speaks_of_them() {
        let state = |version, live| State {
            version: Version::at(version),
            live,
        };
        let difference = Difference {
            key: key(&mut Rng::with_seed(1)),
            newest: state(6, false),
            states: vec![State::NEVER, state(5, true), state(6, false)],
        };
        let told = "absent, live at 5.0, removed at 6.0";
        assert_eq!(difference.to_string(), told);
    }
}
