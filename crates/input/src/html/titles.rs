//! Which headings of a page may be its title.
//!
//! The name of the site may be a heading too. It often is a link, so a heading that is one counts only where no other
//! does. Of the others, those of a higher level count more.

use std::ops::Range;

use super::main_text::is_prose;
use super::page::Block;
use super::sums::Sums;

/// How little a heading seems to be the title: whether it is a link, and its level.
type Rank = (bool, u8);

/// The best headings around each block of a page.
pub(super) struct Titles<'a> {
    blocks: &'a [Block],
    /// Of the headings before each block, and before the end.
    before: Vec<Option<Rank>>,
    /// Of the headings from each block on, up to the next prose.
    ahead: Vec<Option<Rank>>,
}

impl<'a> Titles<'a> {
    pub(super) fn of(blocks: &'a [Block]) -> Self {
        let mut before = vec![None];
        before.extend(blocks.iter().scan(None, |best, block| {
            *best = better(*best, rank(block));
            Some(*best)
        }));
        let backwards = blocks.iter().rev().scan(None, |best, block| {
            *best = better(*best, rank(block)).filter(|_| !is_prose(block));
            Some(*best)
        });
        let mut ahead: Vec<_> = backwards.collect();
        ahead.reverse();
        Self {
            blocks,
            before,
            ahead,
        }
    }

    /// Whether a heading stands before the first prose of a part, and none before the part is better.
    pub(super) fn begins(&self, part: &Range<usize>) -> bool {
        let own = self.ahead.get(part.start).copied().flatten();
        let other = self.before[part.start];
        own.is_some_and(|own| other.is_none_or(|other| own <= other))
    }

    /// A part with what stands between the title and it: the last of the best headings before it, unless it begins with
    /// one.
    pub(super) fn begun_at_title(&self, part: Range<usize>) -> Range<usize> {
        if self.begins(&part) {
            return part;
        }
        let best = self.before[part.start];
        let mut before = self.blocks[..part.start].iter();
        let title = before.rposition(|block| best.is_some() && rank(block) == best);
        title.unwrap_or(part.start)..part.end
    }
}

fn better(one: Option<Rank>, other: Option<Rank>) -> Option<Rank> {
    one.into_iter().chain(other).min()
}

fn rank(block: &Block) -> Option<Rank> {
    let level = block.heading.filter(|_| !block.is_aside)?;
    Some((block.is_mostly_linked(), level))
}

/// The first heading before a block that is no link. If there is none, the first link.
pub(super) fn first_heading(blocks: &[Block], end: usize) -> Option<usize> {
    let headings = blocks[..end].iter().enumerate();
    let ranked = headings.filter_map(|(index, block)| Some((rank(block)?.0, index)));
    ranked.min().map(|(_, index)| index)
}

/// The block of the title: the first heading of the first level, else the first heading, if less than a third of the
/// prose stands before it. None is a link.
pub(super) fn title(blocks: &[Block], prose: &Sums) -> Option<usize> {
    let ranks = || blocks.iter().map(rank);
    let first = ranks().position(|rank| rank == Some((false, 1)));
    let other = || ranks().position(|rank| rank.is_some_and(|(is_linked, _)| !is_linked));
    let is_early = |title: &usize| prose.within(&(0..*title)) * 3 < prose.all().max(1);
    first.or_else(|| other().filter(is_early))
}
