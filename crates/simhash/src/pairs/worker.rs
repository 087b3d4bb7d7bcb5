//! The join of one bucket, by one thread, in its cache.

use std::ops::ControlFlow;

use super::Pair;
use super::delivery::Delivery;
use super::partition::{Buckets, Digit, varying};
use super::path::Path;
use crate::Fingerprint;
use crate::scan::{self, Level, Rule, SMALL_BUCKET};

/// Pairs that are gathered before they are delivered.
pub(super) const BATCH: usize = 1 << 14;

/// What to find in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Every pair of the path.
    Pairs,
    /// Pairs within the distance, of the path or not, that link all that is linked in the bucket.
    Links,
}

/// Joins buckets, and keeps its memory from one to the next.
pub(super) struct Worker<'a> {
    level: Level,
    wanted: Wanted,
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
    pub(super) fn new(level: Level, wanted: Wanted, delivery: &'a dyn Delivery) -> Self {
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
        if block != 0 {
            let digit = Digit::leading(block, values.len());
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
        if self.wanted == Wanted::Links {
            return self.link(bucket, rule.distance);
        }
        let mut row = 0;
        while row < bucket.len() {
            row = scan::join_rows(self.level, bucket, row, rule, BATCH, &mut self.pairs);
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
