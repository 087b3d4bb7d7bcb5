//! Which element holds the main content of a page that marks none.

use std::ops::Range;

use super::main_text::{goes_with_prose, is_prose};
use super::page::{Block, Page};
use super::sums::Sums;
use super::titles::Titles;

/// The elements with several blocks, and what is in them.
pub(super) struct Holders<'a> {
    page: &'a Page,
    prose: &'a Sums,
    text: Sums,
    titles: Titles<'a>,
}

impl<'a> Holders<'a> {
    pub(super) fn of(page: &'a Page, prose: &'a Sums) -> Self {
        let text = page.blocks.iter().map(|block| {
            let is_text = goes_with_prose(block);
            u64::from(block.weight) * u64::from(is_text)
        });
        Self {
            page,
            prose,
            text: Sums::of(text),
            titles: Titles::of(&page.blocks),
        }
    }

    /// On a page with few links: the smallest that has nearly all prose and a third of the text, from the title on.
    pub(super) fn among_few_links(&self) -> Option<Range<usize>> {
        let has_third = |part: &Range<usize>| self.text.within(part) * 3 >= self.text.all();
        let smallest = self.smallest(|part| self.has_nearly_all(part) && has_third(part));
        smallest.map(|part| self.titles.begun_at_title(part))
    }

    /// On a page with many links: the smallest that has nearly all prose, or all but a notice behind it.
    pub(super) fn among_many_links(&self) -> Option<Range<usize>> {
        let last = self.page.blocks.iter().rposition(is_prose)?;
        let section = section_of(&self.page.blocks, last);
        let has_all_but_notice = |part: &Range<usize>| {
            let ends_there = part.end > section && part.end <= last;
            ends_there && self.has_all_before(last, part)
        };
        self.smallest(|part| self.has_nearly_all(part) || has_all_but_notice(part))
    }

    /// The smallest of these. It is not the whole page, and a tenth of what would be taken of it is prose: a page of
    /// tables has little.
    fn smallest(&self, is_enough: impl Fn(&Range<usize>) -> bool) -> Option<Range<usize>> {
        let parts = self.page.holders.iter().filter(|part| is_enough(part));
        let smallest = parts.min_by_key(|part| part.len())?;
        let is_dense = self.prose.within(smallest) * 10 >= self.text.within(smallest);
        (is_dense && smallest.len() < self.page.blocks.len()).then(|| smallest.clone())
    }

    fn has_nearly_all(&self, part: &Range<usize>) -> bool {
        let within = self.prose.within(part);
        within > 0 && within * 10 >= self.prose.all() * 9
    }

    /// Whether a part begins with the title, and has all prose before the last block of it: two thirds of the prose, and
    /// half of the text. Then the last block is a notice, such as terms of use or a line about the author.
    fn has_all_before(&self, last: usize, part: &Range<usize>) -> bool {
        let within = self.prose.within(part);
        self.titles.begins(part)
            && within == self.prose.within(&(0..last))
            && within * 3 >= self.prose.all() * 2
            && self.text.within(part) * 2 >= self.text.all()
    }
}

/// Where the section begins that a block is in: at the last heading before it, else where the page does.
fn section_of(blocks: &[Block], block: usize) -> usize {
    let mut before = blocks[..block].iter();
    let heading = before.rposition(|block| block.heading.is_some() && !block.is_aside);
    heading.unwrap_or(0)
}
