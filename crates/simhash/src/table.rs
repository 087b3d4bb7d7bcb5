//! One table: which blocks lead, and the permutation that brings them there.
//!
//! ```text
//! original       | A | B | C | D | E | F |      m = 6, k = 3
//! table ACF BDE  | A | C | F | B | D | E |      prefix = A C F
//! ```
//!
//! # Invariants
//! - T1: `unpermute` undoes `permute`, for every value.
//! - T2: permuting is linear over exclusive or, so the difference of two
//!   permuted fingerprints is their permuted difference.

use std::fmt;
use std::ops::RangeInclusive;

use crate::Fingerprint;
use crate::layout::{Layout, low_bits};

/// A run of bits that moves as a whole: keep `mask`, rotate left by `rotation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    mask: u64,
    rotation: u32,
}

/// One choice of `m - k` blocks to lead, and the permutation that belongs to it.
#[derive(Clone, Debug)]
pub struct Table {
    /// The chosen blocks: bit `i` for the block with letter `i`.
    chosen: u64,
    /// The bits of the chosen blocks, where they are in a fingerprint.
    prefix_mask: u64,
    prefix_bits: u32,
    first_bits: u64,
    lead_group: u32,
    segments: Box<[Segment]>,
    /// The unchosen blocks before the last chosen one, permuted.
    skipped: Box<[u64]>,
    blocks: u32,
}

impl Table {
    /// The table whose chosen blocks are the set bits of `chosen`.
    pub(crate) fn new(layout: Layout, chosen: u64) -> Self {
        let letters = 0..layout.blocks();
        let is_chosen = |letter: &u32| chosen >> letter & 1 == 1;
        let leading = letters.clone().filter(is_chosen);
        let trailing = letters.filter(|letter| !is_chosen(letter));
        let prefix_mask = leading
            .clone()
            .fold(0, |mask, letter| mask | layout.block_mask(letter));
        let segments = segments(layout, leading.chain(trailing));
        let first = layout.block_mask(chosen.trailing_zeros());
        let last = 63 - chosen.leading_zeros();
        let skipped = (0..last).filter(|letter| !is_chosen(letter));
        let permuted = |letter| permute(&segments, layout.block_mask(letter));
        let skipped = skipped.map(permuted).collect();
        Self {
            chosen,
            prefix_mask,
            prefix_bits: prefix_mask.count_ones(),
            first_bits: first & !(first >> 8),
            lead_group: chosen.trailing_zeros(),
            segments,
            skipped,
            blocks: layout.blocks(),
        }
    }

    /// The fingerprint with the chosen blocks first.
    #[must_use]
    pub fn permute(&self, fingerprint: Fingerprint) -> u64 {
        permute(&self.segments, fingerprint.0)
    }

    /// Permutes each fingerprint into the place of `permuted` that belongs to it.
    #[inline(always)]
    pub(crate) fn permute_into(&self, fingerprints: &[Fingerprint], permuted: &mut [u64]) {
        permuted.fill(0);
        // Segment by segment, so that the inner loop has no branch.
        for &Segment { mask, rotation } in &self.segments {
            for (permuted, fingerprint) in permuted.iter_mut().zip(fingerprints) {
                *permuted |= (fingerprint.0 & mask).rotate_left(rotation);
            }
        }
    }

    /// The fingerprint that [`permute`](Self::permute) turns into `permuted`.
    #[must_use]
    pub fn unpermute(&self, permuted: u64) -> Fingerprint {
        let mut fingerprint = 0;
        for segment in &self.segments {
            fingerprint |= permuted.rotate_right(segment.rotation) & segment.mask;
        }
        Fingerprint(fingerprint)
    }

    /// Number of bits in the chosen blocks, 1 to 64.
    #[must_use]
    pub const fn prefix_bits(&self) -> u32 {
        self.prefix_bits
    }

    /// The permuted values that share their prefix with `permuted`.
    #[must_use]
    pub const fn prefix_range(&self, permuted: u64) -> RangeInclusive<u64> {
        let suffix = self.suffix_mask();
        permuted & !suffix..=permuted | suffix
    }

    /// The prefix of a permuted value, its leading bits, as a mask.
    pub(crate) const fn leading_mask(&self) -> u64 {
        !self.suffix_mask()
    }

    /// The bits after the prefix of a permuted value.
    pub(crate) const fn suffix_mask(&self) -> u64 {
        low_bits(64 - self.prefix_bits)
    }

    /// Whether fingerprints with this exclusive or share their prefix.
    #[must_use]
    pub const fn shares_prefix(&self, difference: u64) -> bool {
        difference & self.prefix_mask == 0
    }

    /// The shard of a stored fingerprint: the first byte of the permuted value.
    #[must_use]
    pub fn leading_byte(&self, fingerprint: Fingerprint) -> u8 {
        (self.permute(fingerprint) >> 56) as u8
    }

    /// The first bits of the first chosen block, at most eight, where they are in a fingerprint.
    pub(crate) const fn first_bits(&self) -> u64 {
        self.first_bits
    }

    /// The shards that can hold a match of a query: one where the prefix has 8 bits or more. A
    /// shorter prefix has all bytes that it can continue into.
    #[must_use]
    pub fn query_leading_bytes(&self, query: Fingerprint) -> RangeInclusive<u8> {
        self.leading_bytes(self.permute(query))
    }

    /// The first bytes of the values that share their prefix with `permuted`.
    pub(crate) const fn leading_bytes(&self, permuted: u64) -> RangeInclusive<u8> {
        let range = self.prefix_range(permuted);
        (*range.start() >> 56) as u8..=(*range.end() >> 56) as u8
    }

    /// The lead group: the letter of the first chosen block, 0 to `k`.
    #[must_use]
    pub const fn lead_group(&self) -> u32 {
        self.lead_group
    }

    /// Masks of permuted bits. Where all tables are active, this one is canonical for a difference
    /// without a bit of its prefix if each mask has a bit of it. A block that agrees could take the
    /// place of the last chosen one, which would make an earlier table.
    pub(crate) const fn skipped(&self) -> &[u64] {
        &self.skipped
    }

    /// The chosen blocks as a bit set: bit 0 is `A`.
    pub(crate) const fn chosen(&self) -> u64 {
        self.chosen
    }
}

fn permute(segments: &[Segment], word: u64) -> u64 {
    let mut permuted = 0;
    for segment in segments {
        permuted |= (word & segment.mask).rotate_left(segment.rotation);
    }
    permuted
}

/// The permutation that puts the blocks in this order, in the fewest segments.
fn segments(layout: Layout, order: impl Iterator<Item = u32>) -> Box<[Segment]> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut placed = 0;
    for letter in order {
        let mask = layout.block_mask(letter);
        // The block's top bit, now `leading_zeros` from the top, goes to `placed`.
        let rotation = (mask.leading_zeros() + 64 - placed) % 64;
        placed += mask.count_ones();
        match segments.last_mut() {
            Some(last) if last.rotation == rotation => last.mask |= mask,
            _ => segments.push(Segment { mask, rotation }),
        }
    }
    segments.into_boxed_slice()
}

impl fmt::Display for Table {
    /// Letters, the chosen blocks first: `ACF BDE`; numbers for over 26 blocks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = 0..self.blocks;
        let (chosen, others): (Vec<u32>, Vec<u32>) =
            letters.partition(|letter| self.chosen >> letter & 1 == 1);
        f.write_str(&self.block_names(&chosen))?;
        if !others.is_empty() {
            write!(f, " {}", self.block_names(&others))?;
        }
        Ok(())
    }
}

impl Table {
    fn block_names(&self, letters: &[u32]) -> String {
        if self.blocks <= 26 {
            return letters
                .iter()
                .map(|&letter| char::from(b'A' + letter as u8))
                .collect();
        }
        let numbers: Vec<String> = letters.iter().map(u32::to_string).collect();
        numbers.join(",")
    }
}
