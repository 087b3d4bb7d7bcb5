//! Distinct fingerprints in ascending order.

use rayon::prelude::*;

use super::directory::Directory;
use super::partition::{Buckets, Digit, varying, varying_in_parallel};
use crate::Fingerprint;
use crate::layout::low_bits;
use crate::scan::{Zeroed, of_bits};

/// Fewer than this are sorted at once.
const SMALL: usize = 1 << 12;

/// So few values with one digit are sorted as they stand among the others.
const FEW: usize = 16;

/// Distinct fingerprints, ascending. The place of one is its number in this order, from 0.
#[derive(Clone, Debug)]
pub struct FingerprintSet {
    /// The set is in front. What is behind it has no meaning.
    values: Zeroed<u64>,
    len: usize,
    directory: Directory,
}

impl Default for FingerprintSet {
    fn default() -> Self {
        Self::from_ascending(Zeroed::default())
    }
}

impl PartialEq for FingerprintSet {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for FingerprintSet {}

impl FingerprintSet {
    /// Drops what is there twice.
    fn from_ascending(mut values: Zeroed<u64>) -> Self {
        let len = dedup(&mut values);
        Self {
            directory: Directory::new(of_bits(&values[..len])),
            values,
            len,
        }
    }

    /// Sorts, with all threads of the rayon pool, and drops what is there twice. Takes memory for
    /// as many fingerprints again meanwhile.
    #[must_use]
    pub fn from_unsorted(fingerprints: Vec<Fingerprint>) -> Self {
        Unsorted::from(fingerprints).into_set()
    }

    /// As [`from_unsorted`](Self::from_unsorted), and says which fingerprints were there more than
    /// once: the place of each and how often it was there, by ascending place.
    #[must_use]
    pub fn counted(fingerprints: Vec<Fingerprint>) -> (Self, Vec<(usize, usize)>) {
        let mut values = Unsorted::from(fingerprints).0;
        sort(&mut values);
        let mut repeated: Vec<(usize, usize)> = Vec::new();
        let mut place = 0;
        for pair in values.windows(2) {
            match repeated.last_mut() {
                _ if pair[0] != pair[1] => place += 1,
                Some((last, count)) if *last == place => *count += 1,
                _ => repeated.push((place, 2)),
            }
        }
        (Self::from_ascending(values), repeated)
    }

    /// The fingerprints.
    #[must_use]
    pub fn as_slice(&self) -> &[Fingerprint] {
        of_bits(self.bits())
    }

    /// Number of fingerprints.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where a fingerprint stands, `None` if it is not in the set.
    #[must_use]
    pub fn place(&self, fingerprint: Fingerprint) -> Option<usize> {
        let places = self.directory.places(fingerprint);
        let start = places.start;
        let place = self.bits()[places].binary_search(&fingerprint.0).ok()?;
        Some(start + place)
    }

    /// The fingerprints as numbers.
    pub(super) fn bits(&self) -> &[u64] {
        &self.values[..self.len]
    }
}

/// Fingerprints that are yet to be sorted.
#[derive(Debug)]
pub struct Unsorted(Zeroed<u64>);

impl Unsorted {
    /// Copies numbers, on huge pages if they fill some. New pages of the usual size take several times as long as the copy.
    #[must_use]
    pub fn copy_of(numbers: &[u64]) -> Self {
        let mut values = Zeroed::new(numbers.len());
        values.copy_from_slice(numbers);
        Self(values)
    }

    /// As [`FingerprintSet::from_unsorted`].
    #[must_use]
    pub fn into_set(self) -> FingerprintSet {
        let Self(mut values) = self;
        sort(&mut values);
        FingerprintSet::from_ascending(values)
    }
}

impl From<Vec<Fingerprint>> for Unsorted {
    fn from(fingerprints: Vec<Fingerprint>) -> Self {
        let values: Vec<u64> = fingerprints.into_iter().map(|one| one.0).collect();
        Self(values.into())
    }
}

/// Moves distinct values to the front of ascending ones, and tells how many there are.
fn dedup(values: &mut [u64]) -> usize {
    let Some(first) = values.windows(2).position(|pair| pair[0] == pair[1]) else {
        return values.len();
    };
    let mut len = first + 1;
    for place in first + 1..values.len() {
        if values[place] != values[len - 1] {
            values[len] = values[place];
            len += 1;
        }
    }
    len
}

/// Sorts: into buckets by the leading bits that differ, then each bucket in the cache.
fn sort(target: &mut [u64]) {
    if target.len() < SMALL {
        target.sort_unstable();
        return;
    }
    let Some(digit) = leading_digit(varying_in_parallel(target), target.len()) else {
        return;
    };
    let mut buckets = Buckets::default();
    buckets.partition_in_parallel(target, digit);
    let Buckets { values, ends } = buckets;
    let targets = split_mut(target, &ends);
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let sources = starts.zip(&ends).map(|(start, &end)| &values[start..end]);
    let moves: Vec<(&[u64], &mut [u64])> = sources.zip(targets).collect();
    moves
        .into_par_iter()
        .for_each_init(Vec::new, |ends, (source, target)| {
            sort_bucket(source, ends, target);
        });
}

/// Sorts values into `target`, which is as long. `ends` is memory that is used again.
fn sort_bucket(values: &[u64], ends: &mut Vec<usize>, target: &mut [u64]) {
    let Some(digit) = leading_digit(varying(values), values.len()) else {
        target.copy_from_slice(values);
        return;
    };
    digit.partition(values, ends, target);
    let mut start = 0;
    for &end in ends.iter() {
        if end - start > FEW {
            target[start..end].sort_unstable();
        }
        start = end;
    }
    insertion_sort(target);
}

/// Sorts values that are nearly in order: none is far from its place.
fn insertion_sort(values: &mut [u64]) {
    for place in 1..values.len() {
        let value = values[place];
        let mut hole = place;
        while hole > 0 && values[hole - 1] > value {
            values[hole] = values[hole - 1];
            hole -= 1;
        }
        values[hole] = value;
    }
}

/// A digit that keeps the order of values which vary in these bits; `None` if they are all equal.
fn leading_digit(varying: u64, count: usize) -> Option<Digit> {
    let span = low_bits(64 - varying.leading_zeros());
    (span != 0).then(|| Digit::leading(span, 2 * count))
}

/// The pieces that end there.
fn split_mut<'a>(mut values: &'a mut [u64], ends: &[usize]) -> Vec<&'a mut [u64]> {
    let mut start = 0;
    let mut pieces = Vec::with_capacity(ends.len());
    for &end in ends {
        let (piece, rest) = values.split_at_mut(end - start);
        pieces.push(piece);
        values = rest;
        start = end;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::scan::bits;
    use crate::synthetic::Data;

    fn check(fingerprints: Vec<Fingerprint>) {
        let mut expected = fingerprints.clone();
        expected.sort_unstable();
        expected.dedup();
        let set = FingerprintSet::from_unsorted(fingerprints.clone());
        assert_eq!(set.as_slice(), expected);

        let mut counts: BTreeMap<Fingerprint, usize> = BTreeMap::new();
        for &fingerprint in &fingerprints {
            *counts.entry(fingerprint).or_default() += 1;
        }
        let repeated = (0..).zip(counts.values().copied());
        let repeated: Vec<_> = repeated.filter(|&(_, count)| count > 1).collect();
        let copied = Unsorted::copy_of(bits(&fingerprints));
        assert_eq!(copied.into_set(), set);
        let counted = FingerprintSet::counted(fingerprints);
        assert_eq!(counted, (set.clone(), repeated));
        assert_eq!(set.bits().len(), set.len());
    }

    #[test]
    fn a_set_is_what_the_standard_sort_leaves_without_duplicates() {
        for count in [0, 1, 2, SMALL - 1, SMALL, 3 * SMALL, 100_000] {
            for data in Data::ALL {
                let mut fingerprints = data.fingerprints(count, 3);
                fingerprints.extend(fingerprints.clone().iter().take(count / 3));
                fingerprints.extend([0, u64::MAX, 0].map(Fingerprint));
                check(fingerprints);
            }
            check(vec![Fingerprint(7); count]);
            // Few bits that vary, far apart.
            let spread = |i: u64| Fingerprint(((i % 3) << 61) | (1 << 40) | (i * i % 64));
            check((0..count as u64).map(spread).collect());
        }
    }

    #[test]
    fn a_place_is_found_exactly_for_members() {
        let set = FingerprintSet::from_unsorted([9, 3, 5, 3].map(Fingerprint).to_vec());
        assert_eq!(set.len(), 3);
        assert!(!set.is_empty() && FingerprintSet::default().is_empty());
        let places = [3, 5, 9, 0, 4, 10].map(|value| set.place(Fingerprint(value)));
        assert_eq!(places, [Some(0), Some(1), Some(2), None, None, None]);
    }

    #[test]
    fn places_equal_those_of_a_search_among_all() {
        for count in [0, 1, 2, 7, 8, 100, 5000] {
            for data in Data::ALL {
                let mut fingerprints = data.fingerprints(count, 7);
                fingerprints.extend([0, 1, 1 << 63, u64::MAX].map(Fingerprint));
                let set = FingerprintSet::from_unsorted(fingerprints);
                let others = data.fingerprints(1000, 8);
                for &fingerprint in set.as_slice().iter().chain(&others) {
                    let expected = set.as_slice().binary_search(&fingerprint).ok();
                    assert_eq!(set.place(fingerprint), expected, "{count}");
                }
            }
        }
        let none = FingerprintSet::default();
        assert_eq!(none.place(Fingerprint(u64::MAX)), None);
    }
}
