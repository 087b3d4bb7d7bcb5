//! Made-up sets of fingerprints, from a seed: for benchmarks and tests.
//!
//! Uniform fingerprints flatter every figure: those of real documents are
//! skewed, bit by bit, and gather in clusters. So there is one of each.

use std::ops::RangeInclusive;

use fastrand::Rng;

use crate::Fingerprint;

/// How the fingerprints of a set are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Uniform and independent.
    Random,
    /// Groups of 2 to 16 that lie within 4 bits of a common centre.
    Clustered,
    /// Bit `i` is set with a probability of its own from [0.2, 0.8]. A tenth of the set lies in
    /// clusters of 2 to 1,000 within 6 bits of a centre.
    Skewed,
}

impl Data {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Random, Self::Clustered, Self::Skewed];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Clustered => "clustered",
            Self::Skewed => "skewed",
        }
    }

    /// `count` fingerprints; some may be equal.
    #[must_use]
    pub fn fingerprints(self, count: usize, seed: u64) -> Vec<Fingerprint> {
        let mut rng = Rng::with_seed(seed);
        match self {
            Self::Random => (0..count).map(|_| Fingerprint(rng.u64(..))).collect(),
            Self::Clustered => clusters(count, 2..=16, 4, &mut rng, |rng| rng.u64(..)),
            Self::Skewed => {
                let bits: Vec<f64> = (0..64).map(|_| 0.2 + 0.6 * rng.f64()).collect();
                let draw = |rng: &mut Rng| {
                    let set = |word, (i, &bit)| word | u64::from(rng.f64() < bit) << i;
                    bits.iter().enumerate().fold(0, set)
                };
                let mut set = clusters(count / 10, 2..=1000, 6, &mut rng, draw);
                set.extend((set.len()..count).map(|_| Fingerprint(draw(&mut rng))));
                rng.shuffle(&mut set);
                set
            }
        }
    }
}

/// Queries for a set: every other one a member with 1 to `distance` bits
/// flipped, the rest uniform. With distance 0, members themselves.
#[must_use]
pub fn queries(set: &[Fingerprint], count: usize, distance: u32, seed: u64) -> Vec<Fingerprint> {
    let mut rng = Rng::with_seed(seed);
    let query = |place: usize| {
        if place % 2 == 1 || set.is_empty() {
            return Fingerprint(rng.u64(..));
        }
        let member = set[rng.usize(..set.len())];
        let flips = if distance == 0 {
            0
        } else {
            rng.u32(1..=distance)
        };
        flip(member.0, flips, &mut rng)
    };
    (0..count).map(query).collect()
}

fn clusters(
    count: usize,
    size: RangeInclusive<usize>,
    radius: u32,
    rng: &mut Rng,
    mut centre: impl FnMut(&mut Rng) -> u64,
) -> Vec<Fingerprint> {
    let mut set = Vec::with_capacity(count);
    while set.len() < count {
        let centre = centre(rng);
        let size = rng.usize(size.clone()).min(count - set.len());
        for _ in 0..size {
            let flips = rng.u32(0..=radius);
            set.push(flip(centre, flips, rng));
        }
    }
    set
}

/// `word` with this many different bits flipped.
fn flip(word: u64, flips: u32, rng: &mut Rng) -> Fingerprint {
    let mut mask = 0_u64;
    while mask.count_ones() < flips {
        mask |= 1 << rng.u32(..64);
    }
    Fingerprint(word ^ mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_set_of_the_asked_size() {
        for data in Data::ALL {
            let set = data.fingerprints(5_000, 7);
            assert_eq!(set.len(), 5_000);
            assert_eq!(set, data.fingerprints(5_000, 7));
            assert_ne!(set, data.fingerprints(5_000, 8));
        }
    }

    #[test]
    fn half_the_queries_have_a_match() {
        let set = Data::Random.fingerprints(100, 1);
        let near = |query: &Fingerprint| set.iter().any(|f| (1..=3).contains(&f.distance(*query)));
        let queries = queries(&set, 200, 3, 2);
        assert_eq!(queries.iter().filter(|query| near(query)).count(), 100);
    }
}
