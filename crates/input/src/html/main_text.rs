//! Which blocks of a page are its main content.
//!
//! 1. A block of prose is long, and most of it is no link. Elements of navigation hold none.
//! 2. The author may have marked a region as main, as `<main>` or `<article>`. If a third of the prose is in it, the
//!    smallest such region is taken, without its lists of links.
//! 3. Else prose whose blocks are near each other is one run. The runs that are at least a fifth as long as the longest
//!    are taken, with the short blocks between and the headings before them.
//! 4. A page without prose gives all its text.

use super::page::{Block, Page};

/// The least weight of a block of prose: about fourteen words of English, or 24 characters of Chinese.
const LEAST_PROSE: u32 = 70;
/// The most blocks without prose between two blocks of prose of one run.
const MOST_BETWEEN: usize = 6;

/// The main content of a page.
pub(super) fn of(page: Page) -> String {
    let kept = match smallest_region(&page) {
        Some(region) => region_without_links(&page, region),
        None => long_runs(&page.blocks),
    };
    let mut text = String::new();
    let mut start = 0;
    for (index, block) in page.blocks.iter().enumerate() {
        if kept.get(index) == Some(&true) {
            text.push_str(&page.text[start..block.end]);
        }
        start = block.end;
    }
    if text.is_empty() { page.text } else { text }
}

fn is_prose(block: &Block) -> bool {
    !block.is_aside && block.weight >= LEAST_PROSE && block.linked < block.weight / 3
}

/// Whether a block belongs to the prose around it.
fn goes_with_prose(block: &Block) -> bool {
    !block.is_aside && (block.is_heading || block.linked <= block.weight / 2)
}

/// The smallest region that the author marked as main and that holds a third of the prose.
fn smallest_region(page: &Page) -> Option<(usize, usize)> {
    let mut prose_before = vec![0];
    let mut total: u64 = 0;
    for block in &page.blocks {
        if is_prose(block) {
            total += u64::from(block.weight);
        }
        prose_before.push(total);
    }
    let holds_enough = |&&(start, end): &&(usize, usize)| {
        let prose = prose_before[end] - prose_before[start];
        prose > 0 && prose * 3 >= total
    };
    let regions = page.regions.iter().filter(holds_enough);
    regions.min_by_key(|(start, end)| end - start).copied()
}

fn region_without_links(page: &Page, (start, end): (usize, usize)) -> Vec<bool> {
    let mut kept = vec![false; page.blocks.len()];
    for (block, kept) in page.blocks[start..end].iter().zip(&mut kept[start..end]) {
        *kept = goes_with_prose(block);
    }
    kept
}

/// Blocks of prose that are near each other, from the first to the last.
struct Run {
    first: usize,
    last: usize,
    weight: u64,
}

fn long_runs(blocks: &[Block]) -> Vec<bool> {
    let mut runs: Vec<Run> = Vec::new();
    for (index, block) in blocks
        .iter()
        .enumerate()
        .filter(|(_, block)| is_prose(block))
    {
        let weight = u64::from(block.weight);
        match runs.last_mut() {
            Some(run) if index - run.last <= MOST_BETWEEN + 1 => {
                run.last = index;
                run.weight += weight;
            }
            _ => runs.push(Run {
                first: index,
                last: index,
                weight,
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
        let headings = before.take_while(|block| block.is_heading && !block.is_aside);
        for index in run.first - headings.count()..=run.last {
            kept[index] = goes_with_prose(&blocks[index]);
        }
    }
    kept
}
