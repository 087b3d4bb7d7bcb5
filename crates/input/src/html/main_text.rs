//! Which blocks of a page are its main content.
//!
//! 1. A block of prose is long, and most of it is no link. Elements of navigation hold none, nor do those that a class
//!    or an id gives away ([`guesses`]).
//! 2. The author may have marked a region as main, as `<main>` or `<article>`. If a third of the prose is in it, the
//!    smallest such region is taken, without its lists of links. Of several beside each other, all are taken. If it is the
//!    only one on a page of little prose, it is taken in any case.
//! 3. Else the smallest element with several blocks that holds nearly all prose is taken in the same way. It must be less
//!    than the whole page, and a tenth of what is taken of it must be prose. On a page with few links, it must hold a
//!    third of the text, and is taken from the title on. On a page with many, the last block of prose may be a notice
//!    behind it. This is in [`holders`](super::holders).
//! 4. Else prose without many blocks of links between is one run. The runs that are at least a fifth as long as the longest
//!    are taken, with the short blocks between and the headings before them. A page with few links gives all from its
//!    first heading on, but for links and a short line at its end.
//! 5. A page with few links and no region may give less than half of its text so. Then it gives all of it.
//! 6. What was taken may have little prose beside ten times as much of links. Then it gives these too. A page of short
//!    lines gives these in the same way. If nothing is taken, the whole page is.

use std::ops::Range;

use super::guesses;
use super::holders::Holders;
use super::page::{Block, Page};
use super::sums::{Sums, are_apart};
use super::titles::first_heading;

/// The least weight of a block of prose: about fourteen words of English, or 24 characters of Chinese.
const LEAST_PROSE: u32 = 70;
/// A page of links has less prose than this: about five blocks of it.
pub(super) const LITTLE_PROSE: u64 = 5 * LEAST_PROSE as u64;
/// The most blocks of links between two blocks of prose of one run.
const MOST_BETWEEN: usize = 6;

/// The main content of a page.
pub(super) fn of(mut page: Page) -> String {
    guesses::mark(&mut page);
    let prose = prose(&page.blocks);
    let region = smallest_regions(&page, &prose).or_else(|| only_region(&page, &prose));
    let all = 0..page.blocks.len();
    let whole = region.clone().unwrap_or(all.clone());
    let needs_no_layout = region.is_none() && has_few_links(&page.blocks);
    let holder = || {
        let holders = Holders::of(&page, &prose);
        if needs_no_layout {
            holders.among_few_links()
        } else {
            holders.among_many_links()
        }
    };
    let part = region.or_else(holder);
    let mut kept = match &part {
        Some(part) => without_links(&page.blocks, part),
        None if needs_no_layout => around_prose(&page.blocks),
        None => long_runs(&page.blocks),
    };
    if needs_no_layout {
        keep_if_most_is_lost(&page.blocks, &mut kept);
    }
    keep_if_most_is(&page.blocks, &mut kept, &part.unwrap_or(all), |_| true);
    keep_if_most_is(&page.blocks, &mut kept, &whole, goes_with_prose);
    let mut text = String::new();
    let mut start = 0;
    for (index, block) in page.blocks.iter().enumerate() {
        if kept[index] {
            text.push_str(&page.text[start..block.end]);
        }
        start = block.end;
    }
    if text.is_empty() { page.text } else { text }
}

pub(super) fn is_prose(block: &Block) -> bool {
    !block.is_aside && block.weight >= LEAST_PROSE && block.linked < block.weight / 3
}

/// Whether a block belongs to the prose around it.
pub(super) fn goes_with_prose(block: &Block) -> bool {
    !block.is_aside && (block.heading.is_some() || !block.is_mostly_linked())
}

/// The weight of the prose of each block.
pub(super) fn prose(blocks: &[Block]) -> Sums {
    let of_block = |block: &Block| {
        if is_prose(block) {
            block.weight.into()
        } else {
            0
        }
    };
    Sums::of(blocks.iter().map(of_block))
}

/// The smallest region that the author has marked and that holds a third of the prose. Others beside it may hold a third
/// as well, such as the posts of a thread. Then it is all of them, with what is between.
fn smallest_regions(page: &Page, prose: &Sums) -> Option<Range<usize>> {
    let is_enough = |part: &&Range<usize>| {
        let within = prose.within(part);
        within > 0 && within * 3 >= prose.all()
    };
    let regions = || page.regions.iter().filter(is_enough);
    let smallest = regions().min_by_key(|part| part.len())?;
    let beside = regions().filter(|part| are_apart(part, smallest));
    let both = beside.chain([smallest]);
    both.cloned()
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
}

/// The only region that the author has marked, where the page has little prose.
fn only_region(page: &Page, prose: &Sums) -> Option<Range<usize>> {
    match &page.regions[..] {
        [only] if prose.all() < LITTLE_PROSE => Some(only.clone()),
        _ => None,
    }
}

/// Whether a page has text, and less than a fifth of it is links, but for what is aside. A line without a heading is no
/// text, nor is one with a heading beside a text that is aside: reviews, or the dishes of a menu.
fn has_few_links(blocks: &[Block]) -> bool {
    let (asides, beside): (Vec<_>, Vec<_>) = blocks.iter().partition(|block| block.is_aside);
    let linked = beside.iter().map(|block| u64::from(block.linked));
    let weight = total_weight(beside.iter().copied());
    let unlinked = asides.iter().filter(|block| !block.is_mostly_linked());
    let is_headed = || beside.iter().any(|block| block.heading.is_some());
    let has_text = weight >= LEAST_PROSE.into()
        || is_headed() && total_weight(unlinked.copied()) < LITTLE_PROSE;
    has_text && linked.sum::<u64>() * 5 < weight
}

fn total_weight<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> u64 {
    let weights = blocks.into_iter().map(|block| u64::from(block.weight));
    weights.sum()
}

fn without_links(blocks: &[Block], part: &Range<usize>) -> Vec<bool> {
    let blocks = blocks.iter().enumerate();
    let kept = blocks.map(|(index, block)| part.contains(&index) && goes_with_prose(block));
    kept.collect()
}

/// What goes with prose, from the first heading on. What is before and behind the prose otherwise is about the site,
/// unless it is as much as prose is.
fn around_prose(blocks: &[Block]) -> Vec<bool> {
    let first = blocks.iter().position(is_prose).unwrap_or(0);
    let behind = blocks.iter().rposition(is_prose).map_or(0, |last| last + 1);
    let is_much = |part: Range<usize>| {
        let text = blocks[part].iter().filter(|block| goes_with_prose(block));
        total_weight(text) >= LEAST_PROSE.into()
    };
    let start = match first_heading(blocks, first) {
        Some(heading) => heading,
        None if is_much(0..first) => 0,
        None => first,
    };
    let end = if is_much(behind..blocks.len()) {
        blocks.len()
    } else {
        behind
    };
    without_links(blocks, &(start..end))
}

/// A page with few links needs no layout. It keeps all its text, but for links, if most would be lost.
fn keep_if_most_is_lost(blocks: &[Block], kept: &mut [bool]) {
    let text = without_links(blocks, &(0..blocks.len()));
    let of = |marks: &[bool]| {
        let marked = blocks.iter().zip(marks);
        total_weight(
            marked
                .filter(|(_, is_marked)| **is_marked)
                .map(|(block, _)| block),
        )
    };
    if of(kept) * 2 < of(&text) {
        kept.copy_from_slice(&text);
    }
}

/// Some pages are lists of links, or short lines, with a sentence or two beside them. Such a page keeps these, but for
/// what is aside.
fn keep_if_most_is(
    blocks: &[Block],
    kept: &mut [bool],
    part: &Range<usize>,
    is_it: impl Fn(&Block) -> bool,
) {
    let in_part = || {
        let blocks = blocks.iter().enumerate();
        blocks.filter(|(index, block)| part.contains(index) && !block.is_aside && is_it(block))
    };
    let of_part = total_weight(in_part().map(|(_, block)| block));
    let of_kept = total_weight(
        in_part()
            .filter(|(index, _)| kept[*index])
            .map(|(_, block)| block),
    );
    if of_kept < LITTLE_PROSE && of_kept * 10 < of_part && of_part >= u64::from(LEAST_PROSE) {
        in_part().for_each(|(index, _)| kept[index] = true);
    }
}

/// Blocks of prose that are near each other, from the first to the last.
struct Run {
    first: usize,
    last: usize,
    weight: u64,
    /// Blocks of links behind the last one.
    links: usize,
}

/// The long runs of prose. More than [`MOST_BETWEEN`] blocks of links part two runs.
fn long_runs(blocks: &[Block]) -> Vec<bool> {
    let mut runs: Vec<Run> = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        if !is_prose(block) {
            if let Some(run) = runs.last_mut() {
                run.links += usize::from(!goes_with_prose(block));
            }
            continue;
        }
        let weight = u64::from(block.weight);
        match runs.last_mut() {
            Some(run) if run.links <= MOST_BETWEEN => {
                run.last = index;
                run.weight += weight;
                run.links = 0;
            }
            _ => runs.push(Run {
                first: index,
                last: index,
                weight,
                links: 0,
            }),
        }
    }
    let most = runs.iter().map(|run| run.weight).max().unwrap_or(0);
    let mut kept = vec![false; blocks.len()];
    // Where the last run that was taken ends: headings before it were looked at with it.
    let mut done = 0;
    for run in runs.iter().filter(|run| run.weight * 5 >= most) {
        let before = blocks[done..run.first].iter().rev();
        done = run.last + 1;
        let headings = before.take_while(|block| block.heading.is_some() && !block.is_aside);
        for index in run.first - headings.count()..=run.last {
            kept[index] = goes_with_prose(&blocks[index]);
        }
    }
    kept
}
