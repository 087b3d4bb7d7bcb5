//! Elements that seem to be beside the main content by their class or id, and which of them are not.
//!
//! Authors name whole layouts by the sidebar that they have. So an element may be content after all. It is if it holds the
//! title of the page, and a third of the prose or half of the text. It also is if it holds nearly all prose and half of
//! the text. Then no other prose may be in a region, nor beside it with the title: comments may be longer than what they
//! are about. If the title is beside it, it must hold at least little prose: a line of law is on most pages.
//!
//! If all prose is in such elements, those with prose are content. They must hold half of the text and at least little
//! prose. Those beside the region that has the title stay aside.

use std::ops::Range;

use super::main_text::{LITTLE_PROSE, is_prose, prose};
use super::page::{Block, Page};
use super::sums::{Sums, are_apart};
use super::titles::title;

/// Marks the blocks of these elements as aside, but for those that are content.
pub(super) fn mark(page: &mut Page) {
    let evidence = Evidence::of(page);
    let (elements, count) = (page.guessed_asides.iter(), page.blocks.len());
    let others = elements
        .clone()
        .filter(|blocks| !evidence.is_content(blocks));
    let mut marks = are_within(others, count);
    let Evidence { prose, text, .. } = &evidence;
    let has_all_prose = prose.all() >= LITTLE_PROSE && prose.marked(&marks) == prose.all();
    if has_all_prose && text.marked(&marks) * 2 >= text.all() {
        let others =
            elements.filter(|blocks| prose.within(blocks) == 0 || evidence.is_beside_title(blocks));
        marks = are_within(others, count);
    }
    for (block, is_marked) in page.blocks.iter_mut().zip(marks) {
        block.is_aside |= is_marked;
    }
}

/// What tells which elements are content, though their class or id says otherwise.
struct Evidence {
    prose: Sums,
    text: Sums,
    without_links: Sums,
    /// How many blocks of prose are in regions.
    prose_blocks_in_regions: Sums,
    title: Option<usize>,
    /// The smallest region that holds the title.
    around_title: Option<Range<usize>>,
}

impl Evidence {
    fn of(page: &Page) -> Self {
        let prose = prose(&page.blocks);
        let is_in_region = are_within(page.regions.iter(), page.blocks.len());
        let in_regions = page.blocks.iter().zip(is_in_region);
        let in_regions = in_regions.map(|(block, is_in)| u64::from(is_in && is_prose(block)));
        let title = title(&page.blocks, &prose);
        let around = page.regions.iter();
        let around = around.filter(|region| title.is_some_and(|title| region.contains(&title)));
        Self {
            text: Sums::of(page.blocks.iter().map(|block| weight_without(block, 0))),
            without_links: Sums::of(
                page.blocks
                    .iter()
                    .map(|block| weight_without(block, block.linked)),
            ),
            prose_blocks_in_regions: Sums::of(in_regions),
            title,
            around_title: around.min_by_key(|region| region.len()).cloned(),
            prose,
        }
    }

    /// Whether an element is content.
    fn is_content(&self, blocks: &Range<usize>) -> bool {
        let of_prose = self.prose.within(blocks);
        let has_half = |of: &Sums| of.within(blocks) * 2 >= of.all();
        if self.title.is_some_and(|title| blocks.contains(&title)) {
            let has_third = of_prose > 0 && of_prose * 3 >= self.prose.all();
            return has_third || has_half(&self.without_links);
        }
        let has_nearly_all = of_prose > 0 && of_prose * 10 >= self.prose.all() * 9;
        let is_enough = self.title.is_none() || of_prose >= LITTLE_PROSE;
        has_nearly_all && is_enough && has_half(&self.text) && !self.has_rivals(blocks)
    }

    /// Whether other prose is in a region, or beside an element with the title.
    fn has_rivals(&self, blocks: &Range<usize>) -> bool {
        let has_prose_between =
            |title: usize| title < blocks.start && self.prose.within(&(title..blocks.start)) > 0;
        let in_regions = &self.prose_blocks_in_regions;
        in_regions.within(blocks) < in_regions.all()
            || self.is_beside_title(blocks)
            || self.title.is_some_and(has_prose_between)
    }

    /// Whether an article that has the title is beside an element.
    fn is_beside_title(&self, blocks: &Range<usize>) -> bool {
        let around = self.around_title.as_ref();
        around.is_some_and(|region| are_apart(region, blocks))
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
fn weight_without(block: &Block, without: u32) -> u64 {
    if block.is_aside {
        0
    } else {
        block.weight.saturating_sub(without).into()
    }
}
