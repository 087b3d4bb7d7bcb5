//! A set of shards in 256 bits, shown as ranges of leading bytes such as `00-3f,80,c0-ff`.

use std::fmt;
use std::str::FromStr;

use crate::ids::ShardId;

const WORD_BITS: usize = u64::BITS as usize;
const WORDS: usize = ShardId::COUNT / WORD_BITS;

/// The text of a set without shards.
const NONE: &str = "none";

/// A set of shards.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ShardSet {
    words: [u64; WORDS],
}

impl ShardSet {
    /// The set without shards.
    pub const EMPTY: ShardSet = ShardSet { words: [0; WORDS] };

    /// The set of all shards.
    pub const ALL: ShardSet = ShardSet {
        words: [u64::MAX; WORDS],
    };

    /// Adds a shard; says whether it was absent.
    pub fn insert(&mut self, shard: ShardId) -> bool {
        let (word, bit) = place(shard);
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }

    /// Takes a shard out; says whether it was present.
    pub(crate) fn remove(&mut self, shard: ShardId) -> bool {
        let (word, bit) = place(shard);
        let was_present = self.words[word] & bit != 0;
        self.words[word] &= !bit;
        was_present
    }

    /// Whether `shard` is in the set.
    pub fn contains(&self, shard: ShardId) -> bool {
        let (word, bit) = place(shard);
        self.words[word] & bit != 0
    }

    /// How many shards the set has.
    pub fn len(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Whether the set has no shard.
    pub fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }

    /// The lowest shard, if any.
    pub(crate) fn first(&self) -> Option<ShardId> {
        self.next_at(0)
    }

    /// The shards, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = ShardId> + use<> {
        let set = *self;
        std::iter::successors(set.first(), move |shard| set.next_at(shard.index() + 1))
    }

    /// The maximal runs of neighbouring shards, lowest first.
    pub fn ranges(&self) -> impl Iterator<Item = ShardRange> + use<> {
        let set = *self;
        let mut at = 0;
        std::iter::from_fn(move || {
            let first = set.next_at(at)?;
            let mut last = first;
            while let Some(next) = last.after().filter(|&next| set.contains(next)) {
                last = next;
            }
            at = last.index() + 1;
            Some(ShardRange { first, last })
        })
    }

    /// The shards in either set.
    #[must_use]
    pub fn union(&self, other: &ShardSet) -> ShardSet {
        self.combine(other, |a, b| a | b)
    }

    /// The shards in both sets.
    #[must_use]
    pub fn intersection(&self, other: &ShardSet) -> ShardSet {
        self.combine(other, |a, b| a & b)
    }

    /// A bit for each shard, shard 0 in the lowest bit of the first byte.
    pub fn to_bytes(&self) -> [u8; ShardId::COUNT / 8] {
        let mut bytes = [0; ShardId::COUNT / 8];
        for shard in self.iter() {
            bytes[shard.index() / 8] |= 1 << (shard.index() % 8);
        }
        bytes
    }

    /// The inverse of [`to_bytes`](Self::to_bytes).
    pub fn from_bytes(bytes: [u8; ShardId::COUNT / 8]) -> Self {
        let set = |shard: &ShardId| bytes[shard.index() / 8] & (1 << (shard.index() % 8)) != 0;
        ShardId::all().filter(set).collect()
    }

    /// The shards in this set but not in `other`.
    #[must_use]
    pub fn difference(&self, other: &ShardSet) -> ShardSet {
        self.combine(other, |a, b| a & !b)
    }

    fn combine(&self, other: &ShardSet, op: impl Fn(u64, u64) -> u64) -> ShardSet {
        ShardSet {
            words: std::array::from_fn(|i| op(self.words[i], other.words[i])),
        }
    }

    /// The lowest shard of the set that is `from` or above.
    fn next_at(&self, from: usize) -> Option<ShardId> {
        let first_word = from / WORD_BITS;
        for word in first_word..WORDS {
            let mut bits = self.words[word];
            if word == first_word {
                bits &= u64::MAX << (from % WORD_BITS);
            }
            if bits != 0 {
                return Some(shard_at(word, bits));
            }
        }
        None
    }
}

/// The word that holds a shard's bit, and the bit.
fn place(shard: ShardId) -> (usize, u64) {
    (shard.index() / WORD_BITS, 1 << (shard.index() % WORD_BITS))
}

/// The shard of the lowest bit of `bits`, which is not 0.
fn shard_at(word: usize, bits: u64) -> ShardId {
    ShardId((word * WORD_BITS + bits.trailing_zeros() as usize) as u8)
}

impl FromIterator<ShardId> for ShardSet {
    fn from_iter<I: IntoIterator<Item = ShardId>>(shards: I) -> Self {
        let mut set = ShardSet::EMPTY;
        for shard in shards {
            set.insert(shard);
        }
        set
    }
}

/// Neighbouring shards `first` to `last`, both included; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardRange {
    first: ShardId,
    last: ShardId,
}

impl ShardRange {
    /// The lowest shard.
    pub fn first(self) -> ShardId {
        self.first
    }

    /// The highest shard.
    pub(crate) fn last(self) -> ShardId {
        self.last
    }

    /// How many shards the range has: at least one.
    #[expect(clippy::len_without_is_empty, reason = "a range is never empty")]
    pub fn len(self) -> usize {
        self.last.index() - self.first.index() + 1
    }
}

impl fmt::Display for ShardRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            return self.first.fmt(f);
        }
        write!(f, "{}-{}", self.first, self.last)
    }
}

impl fmt::Display for ShardSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str(NONE);
        }
        for (i, range) in self.ranges().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{range}")?;
        }
        Ok(())
    }
}

/// Why a text names no shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("shards are two digits each, and ranges of them, the lower one first: 00-0f,2a")]
pub struct ParseShardsError;

impl FromStr for ShardSet {
    type Err = ParseShardsError;

    /// Reads what [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == NONE {
            return Ok(Self::EMPTY);
        }
        let mut shards = Self::EMPTY;
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let digits = |text: &str| match text.len() {
                2 => u8::from_str_radix(text, 16).map_err(|_| ParseShardsError),
                _ => Err(ParseShardsError),
            };
            let (first, last) = (digits(first)?, digits(last)?);
            if first > last {
                return Err(ParseShardsError);
            }
            shards = (first..=last).map(ShardId).chain(shards.iter()).collect();
        }
        Ok(shards)
    }
}

impl fmt::Debug for ShardSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardSet({self})")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set_of(bytes: &BTreeSet<u8>) -> ShardSet {
        bytes.iter().copied().map(ShardId).collect()
    }

    #[test]
    fn sets_are_shown_as_ranges_of_leading_bytes() {
        let bytes = (0..=0x3f).chain([0x80]).chain(0xc0..=0xff);
        let set: ShardSet = bytes.map(ShardId).collect();
        assert_eq!(set.to_string(), "00-3f,80,c0-ff");
        assert_eq!(ShardSet::EMPTY.to_string(), "none");
        let all: ShardSet = ShardId::all().collect();
        assert_eq!(all.to_string(), "00-ff");
    }

    #[test]
    fn a_range_that_is_no_range_is_refused() {
        for text in ["", "1", "03-00", "00-0g", "00-", "00,,01", "000"] {
            assert!(text.parse::<ShardSet>().is_err(), "{text}");
        }
        let set: ShardSet = "00-02,01,ff-ff".parse().unwrap();
        assert_eq!(set.to_string(), "00-02,ff");
    }

    proptest! {
        #[test]
        fn a_shard_set_behaves_like_a_set_of_bytes(
            a in prop::collection::btree_set(any::<u8>(), 0..256),
            b in prop::collection::btree_set(any::<u8>(), 0..256),
            byte: u8,
        ) {
            let (x, y) = (set_of(&a), set_of(&b));
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(x.is_empty(), a.is_empty());
            prop_assert_eq!(x.first().map(|s| s.0), a.first().copied());
            prop_assert!(x.iter().map(|s| s.0).eq(a.iter().copied()));
            prop_assert_eq!(x.union(&y), set_of(&(&a | &b)));
            prop_assert_eq!(x.intersection(&y), set_of(&(&a & &b)));
            prop_assert_eq!(x.difference(&y), set_of(&(&a - &b)));
            prop_assert_eq!(x.contains(ShardId(byte)), a.contains(&byte));

            let (mut changed, mut model) = (x, a);
            prop_assert_eq!(changed.insert(ShardId(byte)), model.insert(byte));
            prop_assert_eq!(changed, set_of(&model));
            prop_assert_eq!(changed.remove(ShardId(byte)), model.remove(&byte));
            prop_assert_eq!(changed, set_of(&model));
        }

        #[test]
        fn ranges_are_maximal_runs(bytes in prop::collection::btree_set(any::<u8>(), 0..256)) {
            let set = set_of(&bytes);
            let runs: Vec<ShardRange> = set.ranges().collect();
            let shards_of = |run: &ShardRange| (run.first.0..=run.last.0).map(ShardId);
            let shards: ShardSet = runs.iter().flat_map(shards_of).collect();
            prop_assert_eq!(shards, set);
            prop_assert_eq!(runs.iter().map(|run| run.len()).sum::<usize>(), set.len());
            for pair in runs.windows(2) {
                prop_assert!(pair[0].last.index() + 1 < pair[1].first.index());
            }
        }
    }

    #[test]
    fn bytes_have_a_bit_for_each_shard() {
        let set: ShardSet = [0, 9, 255].map(ShardId).into_iter().collect();
        let bytes = set.to_bytes();
        assert_eq!((bytes[0], bytes[1], bytes[31]), (1, 2, 128));
        assert_eq!(ShardSet::from_bytes(bytes), set);
        assert_eq!(ShardSet::from_bytes([255; 32]).len(), ShardId::COUNT);
    }
}
