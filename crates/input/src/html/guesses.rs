//! Elements that seem to be beside the main content by their class or id, and which of them are not.
//!
//! Authors name whole layouts by the sidebar that they have. So an element may be content after all. It is if it holds the
//! title of the page, and a third of the prose or half of the text. It also is if it holds nearly all prose and half of
//! the text, unless an article is beside it, or the title with prose. Comments may be longer than what they are about. If
//! the title is beside it, it must hold more than little prose: a line of law is on most pages.
//! All such elements are content if no prose is elsewhere, no article has the title, they hold half of the text, and more
//! than little prose.

use std::ops::Range;

use super::main_text::{LITTLE_PROSE, is_prose, prose};
use super::page::{Block, Page};
use super::sums::Sums;

/// Marks the blocks of these elements as aside, but for those that are content.
pub(super) fn mark(page: &mut Page) {
    let contents = Contents::of(page);
    let (elements, count) = (page.guessed_asides.iter(), page.blocks.len());
    let others = elements.clone().filter(|blocks| !contents.contains(blocks));
    let mut marks = are_within(others, count);
    let Contents { prose, text, .. } = &contents;
    let has_all_prose =
        prose.all() >= LITTLE_PROSE && Contents::marked(prose, &marks) == prose.all();
    if has_all_prose && Contents::marked(text, &marks) * 2 >= text.all() {
        let others =
            elements.filter(|blocks| prose.within(blocks) == 0 || contents.is_beside_title(blocks));
        marks = are_within(others, count);
    }
    for (block, is_marked) in page.blocks.iter_mut().zip(marks) {
        block.is_aside |= is_marked;
    }
}

/// What tells which elements are content, though their class or id says otherwise.
struct Contents {
    prose: Sums,
    text: Sums,
    without_links: Sums,
    of_regions: Sums,
    title: Option<usize>,
    /// The smallest region that holds the title.
    around_title: Option<Range<usize>>,
}

impl Contents {
    fn of(page: &Page) -> Self {
        let prose = prose(&page.blocks);
        let is_in_region = are_within(page.regions.iter(), page.blocks.len());
        let in_regions = page.blocks.iter().zip(is_in_region);
        let in_regions = in_regions.map(|(block, is_in)| u64::from(is_in && is_prose(block)));
        let title = title(&page.blocks, &prose);
        let around = page.regions.iter();
        let around = around.filter(|region| title.is_some_and(|title| region.contains(&title)));
        Self {
            text: Sums::of(page.blocks.iter().map(|block| weight(block, 0))),
            without_links: Sums::of(page.blocks.iter().map(|block| weight(block, block.linked))),
            of_regions: Sums::of(in_regions),
            title,
            around_title: around.min_by_key(|region| region.len()).cloned(),
            prose,
        }
    }

    /// Whether an element is content.
    fn contains(&self, blocks: &Range<usize>) -> bool {
        let of_prose = self.prose.within(blocks);
        let has_half = |of: &Sums| of.within(blocks) * 2 >= of.all();
        if self.title.is_some_and(|title| blocks.contains(&title)) {
            let has_third = of_prose > 0 && of_prose * 3 >= self.prose.all();
            return has_third || has_half(&self.without_links);
        }
        let has_nearly_all = of_prose > 0 && of_prose * 10 >= self.prose.all() * 9;
        let is_enough = self.title.is_none() || of_prose >= LITTLE_PROSE;
        has_nearly_all && is_enough && has_half(&self.text) && !self.is_beside_article(blocks)
    }

    /// Whether an article, or the title with prose, is beside an element.
    fn is_beside_article(&self, blocks: &Range<usize>) -> bool {
        let has_prose_between =
            |title: usize| title < blocks.start && self.prose.within(&(title..blocks.start)) > 0;
        self.of_regions.within(blocks) < self.of_regions.all()
            || self.is_beside_title(blocks)
            || self.title.is_some_and(has_prose_between)
    }

    /// Whether an article that has the title is beside an element.
    fn is_beside_title(&self, blocks: &Range<usize>) -> bool {
        let around = self.around_title.as_ref();
        around.is_some_and(|region| region.end <= blocks.start || region.start >= blocks.end)
    }

    /// How much of these sums is in blocks that are marked.
    fn marked(sums: &Sums, marks: &[bool]) -> u64 {
        let marked = marks
            .iter()
            .enumerate()
            .filter(|(_, is_marked)| **is_marked);
        marked
            .map(|(block, _)| sums.within(&(block..block + 1)))
            .sum()
    }
}

/// Which blocks are in any of these elements, which may be nested in great numbers.
fn are_within<'a>(elements: impl Iterator<Item = &'a Range<usize>>, blocks: usize) -> Vec<bool> {
    // How many elements begin at each block, less those that end there.
    let mut changes = vec![0_i64; blocks];
    for element in elements.filter(|element| !element.is_empty()) {
        changes[element.start] += 1;
        if let Some(change) = changes.get_mut(element.end) {
            *change -= 1;
        }
    }
    let open = changes.into_iter().scan(0, |open, change| {
        *open += change;
        Some(*open > 0)
    });
    open.collect()
}

/// The weight of a block without this much of it, if it is not aside by the author's word.
fn weight(block: &Block, without: u32) -> u64 {
    if block.is_aside {
        0
    } else {
        block.weight.saturating_sub(without).into()
    }
}

/// The block of the title: the first heading of the first level, else the first heading, if less than a third of the
/// prose stands before it. The name of a site is a link.
fn title(blocks: &[Block], prose: &Sums) -> Option<usize> {
    let may_be = |block: &Block| !block.is_aside && block.linked <= block.weight / 2;
    let first = blocks
        .iter()
        .position(|block| block.is_title && may_be(block));
    let other = || {
        blocks
            .iter()
            .position(|block| block.is_heading && may_be(block))
    };
    let is_early = |title: &usize| prose.within(&(0..*title)) * 3 < prose.all().max(1);
    first.or_else(|| other().filter(is_early))
}
