//! The way to a bucket: what all pairs that are looked for in it have in common.
//!
//! The blocks of a layout are decided on one after the other. A pair agrees in a block, or it does
//! not, and then the block is skipped. A table is a path on which `m - k` blocks agree. Paths with
//! the same beginning share the work of going there, so ten tables of five blocks need four first
//! steps, not ten.
//!
//! ```text
//! m = 4, k = 2      A ─┬─ B        ABxx: AB agree
//!                      ├─ C        AxCx: AC agree, B does not
//!                      └─ D
//!                   B ─┬─ C        xBCx: BC agree, A does not
//!                      └─ D
//!                   C ─── D
//! ```
//!
//! That skipped blocks differ is the canonical-table rule. Of all tables whose prefix a pair
//! shares, the first, in lexicographic order, takes every block that agrees as early as it can. It
//! holds on a path that has just begun as well. So a search may stop anywhere, and compare what is
//! left in the bucket, and no pair is reported twice. Where a path has come to its end and the
//! bucket is still large, the bits that are open are cut anew and another path begins there.
//!
//! # Invariants
//! - J1: the paths that begin at one path, each agreeing in another block, part its pairs: every
//!   pair within the distance is on exactly one of them.
//! - J2: a path is only gone along where pairs can be: skipped blocks vary in the bucket.

use super::cost;
use crate::layout::Layout;
use crate::scan::Rule;

/// A way to a bucket.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// Bits of each block of the cut that the path is on, in the order in which they are chosen.
    blocks: Vec<u64>,
    /// The block to decide on next.
    next: usize,
    /// Blocks of this cut that a pair must still agree in. With those that may be skipped they are
    /// as many as there are after `next`.
    to_agree: u32,
    /// Blocks of this cut that may still be skipped.
    to_skip: u32,
    /// The condition that all pairs of the path meet.
    pub(super) rule: Rule,
}

/// A path that is one step longer, and where the bucket is parted to get there.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) path: Path,
    /// The bits of the block that the pairs newly agree in, as far as they vary.
    pub(super) block: u64,
}

impl Path {
    /// The empty path of a layout: all pairs within its distance.
    pub(super) fn of_layout(layout: Layout) -> Self {
        let blocks = (0..layout.blocks()).map(|letter| layout.block_mask(letter));
        let rule = Rule {
            distance: layout.distance(),
            ..Rule::default()
        };
        Self::begin(blocks.collect(), rule)
    }

    /// A path at its end: all pairs that a rule accepts.
    pub(super) fn of_rule(rule: Rule) -> Self {
        Self {
            blocks: Vec::new(),
            next: 0,
            to_agree: 0,
            to_skip: 0,
            rule,
        }
    }

    /// The start of a path through these blocks, more than the distance.
    fn begin(blocks: Vec<u64>, rule: Rule) -> Self {
        debug_assert!(blocks.len() > rule.distance as usize);
        Self {
            next: 0,
            to_agree: blocks.len() as u32 - rule.distance,
            to_skip: rule.distance,
            blocks,
            rule,
        }
    }

    /// How to go on in a bucket of `count` values that vary in the bits of `varying`; `None` if
    /// comparing all of them is as quick.
    pub(super) fn steps(&self, varying: u64, count: usize) -> Option<Vec<Step>> {
        if self.to_agree > 0 {
            return Some(self.next_steps(varying));
        }
        let open = varying & !self.rule.agree;
        if open == 0 {
            return Some(Vec::new());
        }
        let blocks = cost::best_blocks(count, open.count_ones(), self.rule.distance)?;
        Some(Self::begin(cut(open, blocks), self.rule.clone()).next_steps(varying))
    }

    /// A step for each block that can be the next to agree in.
    fn next_steps(&self, varying: u64) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut rule = self.rule.clone();
        for skipped in 0..=self.to_skip {
            let place = self.next + skipped as usize;
            let block = self.blocks[place];
            let mut path = self.clone();
            path.next = place + 1;
            path.to_agree -= 1;
            path.to_skip -= skipped;
            path.rule = rule.clone();
            path.rule.agree |= block;
            steps.push(Step {
                path,
                block: block & varying,
            });
            if block & varying == 0 {
                break;
            }
            rule.differ.push(block);
        }
        steps
    }
}

/// Cuts the bits of a mask into `blocks` blocks of about equal size, the most significant first.
fn cut(mask: u64, blocks: u32) -> Vec<u64> {
    let bits = mask.count_ones();
    let mut rest = mask;
    let mut taken = 0;
    let mut cut = Vec::with_capacity(blocks as usize);
    for block in 1..=blocks {
        let mut bits_of_block = 0;
        while taken < bits * block / blocks {
            let highest = 1 << (63 - rest.leading_zeros());
            bits_of_block |= highest;
            rest &= !highest;
            taken += 1;
        }
        cut.push(bits_of_block);
    }
    debug_assert_eq!(rest, 0);
    cut
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How many whole paths a difference is on.
    fn paths_of(path: &Path, varying: u64, difference: u64) -> usize {
        if path.to_agree == 0 {
            return usize::from(path.rule.accepts(difference));
        }
        let steps = path.next_steps(varying);
        // J2.
        let differ = steps.iter().flat_map(|step| &step.path.rule.differ);
        assert!(differ.clone().all(|block| block & varying != 0));
        let on_way = steps
            .iter()
            .filter(|step| step.path.rule.accepts(difference));
        // J1, here on each step of the way.
        assert_eq!(on_way.count(), usize::from(path.rule.accepts(difference)));
        let paths = steps
            .iter()
            .map(|step| paths_of(&step.path, varying, difference));
        paths.sum()
    }

    proptest! {
        /// J1 and J2.
        #[test]
        fn a_near_pair_is_on_exactly_one_path(
            layout in (1..=8_u32).prop_flat_map(|blocks| (Just(blocks), 0..blocks)),
            bits in prop::collection::vec(0..64_u32, 0..8),
            varying: u64,
        ) {
            let path = Path::of_layout(Layout::new(layout.0, layout.1).unwrap());
            let bits = bits.into_iter().take(layout.1 as usize);
            let difference = bits.fold(0, |difference, bit| difference | 1 << bit) & varying;
            prop_assert_eq!(paths_of(&path, varying, difference), 1);
        }

        #[test]
        fn a_cut_parts_the_bits_evenly(mask in 1..u64::MAX, blocks in 1..64_u32) {
            let blocks = blocks.min(mask.count_ones());
            let cut = cut(mask, blocks);
            prop_assert_eq!(cut.len(), blocks as usize);
            prop_assert_eq!(cut.iter().fold(0, |all, block| all ^ block), mask);
            let sizes = cut.iter().map(|block| block.count_ones());
            prop_assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
        }
    }

    #[test]
    fn where_nothing_is_open_there_are_no_pairs() {
        let mut path = Path::of_layout(Layout::new(1, 0).unwrap());
        path.to_agree = 0;
        path.rule.agree = u64::MAX;
        assert_eq!(path.steps(u64::MAX, 1_000_000).unwrap().len(), 0);
    }
}
