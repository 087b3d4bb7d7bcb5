//! Elements that seem to be beside the main content by their class or id, and which of them are not.
//!
//! Authors name whole layouts by the sidebar that they have. So an element may be content after all. It is if it holds the
//! first heading of the page and a third of the prose. It also is if it holds nearly all prose and half of the text.

use std::ops::Range;

use super::main_text::prose;
use super::page::{Block, Page};
use super::sums::Sums;

/// Marks the blocks of these elements as aside, but for those that are content.
pub(super) fn mark(page: &mut Page) {
    let prose = prose(&page.blocks);
    let text = Sums::of(page.blocks.iter().map(weight_beside_asides));
    let title = page.blocks.iter().position(is_title);
    let is_content = |blocks: &Range<usize>| {
        let (of_prose, of_text) = (prose.within(blocks), text.within(blocks));
        let has_title = title.is_some_and(|title| blocks.contains(&title));
        let has_third = of_prose > 0 && of_prose * 3 >= prose.all();
        let has_nearly_all = of_prose * 10 >= prose.all() * 9 && of_text * 2 >= text.all();
        has_third && (has_title || has_nearly_all)
    };
    // How many of them begin at each block, less those that end there: they may be nested in great numbers.
    let mut changes = vec![0_i64; page.blocks.len() + 1];
    for blocks in page
        .guessed_asides
        .iter()
        .filter(|blocks| !is_content(blocks))
    {
        changes[blocks.start] += 1;
        changes[blocks.end] -= 1;
    }
    let mut open = 0;
    for (block, change) in page.blocks.iter_mut().zip(changes) {
        open += change;
        block.is_aside |= open > 0;
    }
}

fn weight_beside_asides(block: &Block) -> u64 {
    if block.is_aside {
        0
    } else {
        u64::from(block.weight)
    }
}

/// Whether a block may be the title: the name of a site is a link.
fn is_title(block: &Block) -> bool {
    block.is_heading && !block.is_aside && block.linked <= block.weight / 2
}
