//! The join of one bucket, by one thread, in its cache.

use std::ops::ControlFlow;

use super::Pair;
use super::delivery::Delivery;
use super::partition::{Buckets, Digit, varying};
use super::path::Path;
use crate::Fingerprint;
use crate::scan::{self, Level, Rule, SMALL_BUCKET};

/// Pairs that are gathered before they are delivered.
pub(super) const BATCH: usize = 1 << 12;

/// Fingerprints that parting aims to leave in a bucket: fewer cost more to part than to compare.
pub(super) const BUCKET: usize = 10;

/// So few values are compared with all others of a large bucket at once.
const SMALL_SIDE: usize = 32;

/// Which pairs a join reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairsWanted {
    /// Every pair, once.
    All,
    /// Pairs that link all that is linked, directly or through others: few, where there are many. Some come more
    /// than once.
    Links,
}

/// Joins buckets, and keeps its memory from one to the next.
pub(super) struct Worker<'a> {
    level: Level,
    wanted: PairsWanted,
    delivery: &'a dyn Delivery,
    task: usize,
    pairs: Vec<Pair>,
    /// Memory for buckets of buckets.
    free: Vec<Buckets>,
    close: Vec<usize>,
    /// What a search through components has not reached yet, and what it has.
    rest: Vec<u64>,
    reached: Vec<u64>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(level: Level, wanted: PairsWanted, delivery: &'a dyn Delivery) -> Self {
        Self {
            level,
            wanted,
            delivery,
            task: 0,
            pairs: Vec::new(),
            free: Vec::new(),
            close: Vec::new(),
            rest: Vec::new(),
            reached: Vec::new(),
        }
    }

    /// Joins a bucket as task number `task`: the pairs of `path`, for which the values have not
    /// been parted by the bits of `block` yet.
    pub(super) fn run(
        &mut self,
        task: usize,
        values: &[u64],
        path: &Path,
        block: u64,
    ) -> ControlFlow<()> {
        self.task = task;
        self.join(values, path, block)?;
        self.delivery.deliver(task, &mut self.pairs, true)
    }

    fn join(&mut self, values: &[u64], path: &Path, block: u64) -> ControlFlow<()> {
        if values.len() <= SMALL_BUCKET {
            return self.compare_small(values, 0, &[values.len()], &path.rule);
        }
        if values.len() >= SMALL_SIDE * SMALL_SIDE {
            self.delivery.goes_on()?;
        }
        if values.len() >= SMALL_SIDE * SMALL_SIDE
            && let Some(reordered) = few_others_first(values, &path.rule.differ)
        {
            return self.compare_rows(&reordered.values, reordered.others, &path.rule);
        }
        if block != 0 {
            let digit = Digit::leading(block, values.len() / BUCKET);
            let mut buckets = self.free.pop().unwrap_or_default();
            buckets.partition(values, digit);
            let flow = self.join_buckets(&buckets, path, block & !digit.mask());
            self.free.push(buckets);
            return flow;
        }
        let Some(steps) = path.steps(varying(values), values.len()) else {
            return self.compare_large(values, &path.rule);
        };
        for step in &steps {
            self.join(values, &step.path, step.block)?;
        }
        ControlFlow::Continue(())
    }

    /// Joins each bucket; stretches of small ones are compared together.
    fn join_buckets(&mut self, buckets: &Buckets, path: &Path, block: u64) -> ControlFlow<()> {
        let Buckets { values, ends } = buckets;
        let mut start = 0;
        let (mut small, mut small_start) = (0, 0);
        for (number, &end) in ends.iter().enumerate() {
            if end - start > SMALL_BUCKET {
                self.compare_small(values, small_start, &ends[small..number], &path.rule)?;
                self.join(&values[start..end], path, block)?;
                (small, small_start) = (number + 1, end);
            }
            start = end;
        }
        self.compare_small(values, small_start, &ends[small..], &path.rule)
    }

    /// Compares all with all in each of the small buckets.
    fn compare_small(
        &mut self,
        values: &[u64],
        start: usize,
        ends: &[usize],
        rule: &Rule,
    ) -> ControlFlow<()> {
        let mut close = std::mem::take(&mut self.close);
        close.clear();
        scan::close_buckets(self.level, values, start, ends, rule.distance, &mut close);
        for &number in &close {
            let start = number.checked_sub(1).map_or(start, |before| ends[before]);
            self.compare_large(&values[start..ends[number]], rule)?;
        }
        self.close = close;
        ControlFlow::Continue(())
    }

    /// Compares all with all in one bucket.
    fn compare_large(&mut self, bucket: &[u64], rule: &Rule) -> ControlFlow<()> {
        if self.wanted == PairsWanted::Links {
            return self.link(bucket, rule.distance);
        }
        self.compare_rows(bucket, bucket.len(), rule)
    }

    /// Compares each of the first `rows` with all after it.
    fn compare_rows(&mut self, bucket: &[u64], rows: usize, rule: &Rule) -> ControlFlow<()> {
        let mut row = 0;
        while row < rows {
            let next = row..rows;
            row = scan::join_rows(self.level, bucket, next, rule, BATCH, &mut self.pairs);
            self.deliver_if_full()?;
        }
        ControlFlow::Continue(())
    }

    /// Links each component of a bucket, going from one member to all near it that have not been
    /// reached. So no more is compared than all with all, and much less where much is linked.
    fn link(&mut self, bucket: &[u64], distance: u32) -> ControlFlow<()> {
        self.rest.clear();
        self.rest.extend_from_slice(bucket);
        while let Some(first) = self.rest.pop() {
            self.reached.clear();
            self.reached.push(first);
            let mut at = 0;
            while at < self.reached.len() && !self.rest.is_empty() {
                let value = self.reached[at];
                let known = self.reached.len();
                let (rest, reached) = (&mut self.rest, &mut self.reached);
                scan::take_near(self.level, value, distance, rest, reached);
                let links = self.reached[known..].iter();
                let pair = |&other| Pair::new(Fingerprint(value), Fingerprint(other));
                self.pairs.extend(links.map(pair));
                self.deliver_if_full()?;
                at += 1;
            }
        }
        ControlFlow::Continue(())
    }

    fn deliver_if_full(&mut self) -> ControlFlow<()> {
        if self.pairs.len() < BATCH {
            return ControlFlow::Continue(());
        }
        self.delivery.deliver(self.task, &mut self.pairs, false)
    }
}

/// Values of which only the first few can make pairs, with each other or with the rest.
struct FewOthers {
    values: Vec<u64>,
    others: usize,
}

/// If all values but a few agree in a block in which pairs must differ, these few come first.
/// So a dense part of a set is joined on the path where its pairs are, and on no other, though
/// stray fingerprints come along.
fn few_others_first(values: &[u64], differ: &[u64]) -> Option<FewOthers> {
    differ.iter().find_map(|block| {
        let common = values[values.len() / 2] & block;
        let is_other = |value: &&u64| *value & block != common;
        if values.iter().filter(is_other).take(SMALL_SIDE + 1).count() > SMALL_SIDE {
            return None;
        }
        let (mut reordered, common): (Vec<u64>, Vec<u64>) = values.iter().partition(is_other);
        let others = reordered.len();
        if others > 0 {
            reordered.extend(common);
        }
        Some(FewOthers {
            values: reordered,
            others,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_few_that_do_not_agree_in_a_block_come_first() {
        let mut values: Vec<u64> = (0..100).collect();
        assert!(few_others_first(&values, &[0xff, 0x7f]).is_none());
        assert!(few_others_first(&values, &[]).is_none());
        // All agree in the second block: none can make a pair.
        let none = few_others_first(&values, &[0xff, 0xff00]).unwrap();
        assert_eq!(none.others, 0);

        values[3] |= 0x100;
        values[98] |= 0x200;
        let few = few_others_first(&values, &[0xff, 0xff00]).unwrap();
        assert_eq!(few.others, 2);
        assert_eq!(few.values[..4], [3 | 0x100, 98 | 0x200, 0, 1]);
        assert_eq!(few.values.len(), 100);
    }
}
