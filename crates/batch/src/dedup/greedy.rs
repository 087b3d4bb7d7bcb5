//! The greedy set: in a given order, each fingerprint that is near none taken before.
//!
//! Pairs can be far more than documents, so they are never all held. A round holds those within the
//! longest beginning of the order that has room, and decides that. What is near a fingerprint taken
//! in one round is dropped as the next round looks at the pairs. Most sets take one round.
//!
//! ```text
//!     order      | decided in round 1 | in round 2         | not yet     |
//!     pairs held |                    | both ends in here  |
//! ```

use std::ops::ControlFlow;

use simshard_simhash::{FingerprintSet, Pair, PairProgress, PairSearch};

/// Pairs held for each fingerprint, of 8 bytes each.
const PAIRS_EACH: usize = 3;

/// Pairs held at least.
const PAIRS_LEAST: usize = 1 << 16;

/// Stands for what is not decided yet. No rank: a set holds at most 2^32-1.
const OPEN: u32 = u32::MAX;

/// What was taken.
pub(super) struct Kept {
    /// By place, the place of the first fingerprint in the order that was taken and is near; for what
    /// was taken, its own.
    pub(super) causes: Vec<u32>,
}

/// Takes fingerprints in this order of their places.
pub(super) fn greedy(
    set: &FingerprintSet,
    search: &PairSearch,
    order: &[u32],
    progress: &PairProgress<'_>,
) -> Kept {
    let room = PAIRS_LEAST.max(PAIRS_EACH * order.len());
    greedy_in(room, set, search, order, progress)
}

/// As [`greedy`], with room for this number of pairs.
fn greedy_in(
    room: usize,
    set: &FingerprintSet,
    search: &PairSearch,
    order: &[u32],
    progress: &PairProgress<'_>,
) -> Kept {
    let mut rank_of = vec![0; order.len()];
    for (rank, &place) in (0..).zip(order) {
        rank_of[place as usize] = rank;
    }
    let rank_of = |fingerprint| set.place(fingerprint).map_or(OPEN, |place| rank_of[place]);
    let mut round = Round {
        causes: vec![OPEN; order.len()],
        decided: 0,
        end: order.len() as u32,
        pairs: Vec::new(),
        room,
    };
    while (round.decided as usize) < order.len() {
        round.end = order.len() as u32;
        // Never broken off: the visitor does not ask for it.
        let _ = search.pairs(set, progress, &mut |pairs: &[Pair]| {
            for pair in pairs {
                let (a, b) = (rank_of(pair.a), rank_of(pair.b));
                round.see(a.min(b), a.max(b));
            }
            ControlFlow::Continue(())
        });
        round.decide();
    }
    // From ranks to places, in place: what they are called by is in the order itself.
    let mut causes = vec![0; order.len()];
    for (&place, &cause) in order.iter().zip(&round.causes) {
        causes[place as usize] = order[cause as usize];
    }
    Kept { causes }
}

/// A look at all pairs, and what follows from it.
struct Round {
    /// By rank, that of the first taken one that is near; its own where it was taken itself.
    causes: Vec<u32>,
    /// All before this rank are decided.
    decided: u32,
    /// Pairs are held where both are before this rank.
    end: u32,
    /// The later of both, then the earlier.
    pairs: Vec<(u32, u32)>,
    room: usize,
}

impl Round {
    /// Looks at a pair of ranks.
    fn see(&mut self, earlier: u32, later: u32) {
        if later < self.decided {
            return;
        }
        if earlier < self.decided {
            if self.causes[earlier as usize] == earlier {
                let cause = &mut self.causes[later as usize];
                *cause = earlier.min(*cause);
            }
        } else if later < self.end {
            self.pairs.push((later, earlier));
            if self.pairs.len() > self.room {
                self.give_way();
            }
        }
    }

    /// Keeps the pairs of the earlier half.
    fn give_way(&mut self) {
        let middle = self.pairs.len() / 2;
        let (_, &mut (end, _), _) = self.pairs.select_nth_unstable(middle);
        // At least one more is decided: what is first of all is in no pair as the later one.
        self.end = end;
        self.pairs.retain(|&(later, _)| later < end);
    }

    /// Decides all before the end.
    fn decide(&mut self) {
        self.pairs.sort_unstable();
        let mut pairs = self.pairs.iter().peekable();
        for rank in self.decided..self.end {
            let is_open = self.causes[rank as usize] == OPEN;
            let mut cause = rank;
            while let Some(&(_, earlier)) = pairs.next_if(|(later, _)| *later == rank) {
                if cause == rank && self.causes[earlier as usize] == earlier {
                    cause = earlier;
                }
            }
            if is_open {
                self.causes[rank as usize] = cause;
            }
        }
        self.decided = self.end;
        self.pairs.clear();
    }
}

#[cfg(test)]
mod tests {
    use simshard_simhash::Fingerprint;

    use super::*;

    /// The slow, obvious way.
    fn reference(set: &[Fingerprint], order: &[u32], distance: u32) -> Vec<u32> {
        let mut taken: Vec<u32> = Vec::new();
        let mut causes = vec![0; set.len()];
        for &place in order {
            let near =
                |other: &&u32| set[**other as usize].distance(set[place as usize]) <= distance;
            let cause = taken.iter().find(near).copied();
            causes[place as usize] = cause.unwrap_or(place);
            if cause.is_none() {
                taken.push(place);
            }
        }
        causes
    }

    #[test]
    fn any_room_leads_to_the_same_set() {
        let mut random = fastrand::Rng::with_seed(1);
        for case in 0..60 {
            let bits = [4, 7, 12, 64][case % 4];
            let mask = u64::MAX >> (64 - bits);
            let fingerprints = (0..150).map(|_| Fingerprint(random.u64(..) & mask));
            let set = FingerprintSet::from_unsorted(fingerprints.collect());
            let mut order: Vec<u32> = (0..).take(set.as_slice().len()).collect();
            random.shuffle(&mut order);
            let search = PairSearch::new(3, None, order.len()).unwrap();
            let expected = reference(set.as_slice(), &order, 3);
            for room in [0, 1, 7, 100, 1 << 20] {
                let found = greedy_in(room, &set, &search, &order, &|_, _| {
                    ControlFlow::Continue(())
                });
                assert_eq!(found.causes, expected, "case {case}, room {room}");
            }
        }
    }
}
