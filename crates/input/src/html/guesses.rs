//! Elements that seem to be beside the main content by their class or id, and which of them are not.
//!
//! Authors name whole layouts by the sidebar that they have. So an element may be content after all. It is if it holds the
//! title of the page, and a third of the prose or half of the text. It also is if it holds nearly all prose and half of
//! the text, unless the title or an article is beside it: comments may be longer than what they are about.

use std::ops::Range;

use super::main_text::{is_prose, prose};
use super::page::{Block, Page};
use super::sums::Sums;

/// Marks the blocks of these elements as aside, but for those that are content.
pub(super) fn mark(page: &mut Page) {
    let is_content = contents(page);
    let others = page.guessed_asides.iter();
    let others = others.filter(|blocks| !is_content(blocks));
    let is_beside = are_within(others, page.blocks.len());
    for (block, is_beside) in page.blocks.iter_mut().zip(is_beside) {
        block.is_aside |= is_beside;
    }
}

/// Tells which elements are content, though their class or id says otherwise.
fn contents(page: &Page) -> impl Fn(&Range<usize>) -> bool + use<> {
    let prose = prose(&page.blocks);
    let text = Sums::of(page.blocks.iter().map(weight_beside_asides));
    let is_in_region = are_within(page.regions.iter(), page.blocks.len());
    let in_regions = page.blocks.iter().zip(is_in_region);
    let in_regions = in_regions.map(|(block, is_in)| u64::from(is_in && is_prose(block)));
    let of_regions = Sums::of(in_regions);
    let title = title(&page.blocks);
    move |blocks| {
        let (of_prose, of_text) = (prose.within(blocks), text.within(blocks));
        let has_half = of_text * 2 >= text.all();
        if title.is_some_and(|title| blocks.contains(&title)) {
            return has_half || of_prose > 0 && of_prose * 3 >= prose.all();
        }
        let has_all = of_prose == prose.all();
        let has_nearly_all = of_prose * 10 >= prose.all() * 9;
        let is_beside_article = of_regions.within(blocks) < of_regions.all();
        let has_enough = has_all || has_nearly_all && title.is_none() && !is_beside_article;
        of_prose > 0 && has_half && has_enough
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

fn weight_beside_asides(block: &Block) -> u64 {
    if block.is_aside {
        0
    } else {
        u64::from(block.weight)
    }
}

/// The block of the title: the first heading of the first level, else the first heading. The name of a site is a link.
fn title(blocks: &[Block]) -> Option<usize> {
    let may_be = |block: &Block| !block.is_aside && block.linked <= block.weight / 2;
    let first = blocks
        .iter()
        .position(|block| block.is_title && may_be(block));
    first.or_else(|| {
        blocks
            .iter()
            .position(|block| block.is_heading && may_be(block))
    })
}
