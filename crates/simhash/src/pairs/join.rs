//! The join of a whole set, by all threads of the pool.
//!
//! It goes the same paths as a [`Worker`], and parts large buckets with all threads, until they
//! are small enough for one. These buckets are the tasks. They are numbered in an order that
//! depends on the set and the layout alone, and threads take them one by one.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::delivery::Delivery;
use super::partition::{Buckets, Digit, varying_in_parallel};
use super::path::Path;
use super::worker::{BUCKET, PairsWanted, Worker};
use super::{FingerprintSet, PairSearch};

/// A bucket with a larger share of its parent than one in this many is parted by all threads.
const SHARE: usize = 16;

/// A callback for progress: gets the work done, and all the work. Breaks if the search is to end early.
pub type PairProgress<'a> = dyn Fn(u64, u64) -> ControlFlow<()> + Sync + 'a;

/// A join in flight.
pub(super) struct Join<'a> {
    search: &'a PairSearch,
    wanted: PairsWanted,
    delivery: &'a dyn Delivery,
    progress: &'a PairProgress<'a>,
    total: u64,
    done: AtomicU64,
    /// The number of the next task.
    next_task: AtomicUsize,
}

/// Values, and the path to them.
#[derive(Clone, Copy)]
struct Bucket<'a> {
    values: &'a [u64],
    is_ascending: bool,
    path: &'a Path,
    /// Bits of the path's last block that the values have not been parted by yet.
    block: u64,
    /// How much of the whole work this is.
    share: u64,
}

impl<'a> Join<'a> {
    pub(super) fn new(
        search: &'a PairSearch,
        wanted: PairsWanted,
        delivery: &'a dyn Delivery,
        progress: &'a PairProgress<'a>,
    ) -> Self {
        Self {
            search,
            wanted,
            delivery,
            progress,
            total: 0,
            done: AtomicU64::new(0),
            next_task: AtomicUsize::new(0),
        }
    }

    /// Joins all of a set.
    pub(super) fn run(mut self, set: &FingerprintSet) -> ControlFlow<()> {
        let layout = self.search.layout;
        self.total = set.len() as u64 * u64::from(layout.lead_group_count());
        let all = Bucket {
            values: set.bits(),
            is_ascending: true,
            path: &Path::of_layout(layout),
            block: 0,
            share: self.total,
        };
        self.join(all, &mut Buckets::default())?;
        (self.progress)(self.total, self.total)
    }

    /// Joins a bucket. If it is parted, its parts go to `memory`.
    fn join(&self, bucket: Bucket<'_>, memory: &mut Buckets) -> ControlFlow<()> {
        let Bucket { values, path, .. } = bucket;
        if values.len() <= self.search.task {
            return self.run_tasks(bucket, 0, &[values.len()]);
        }
        if bucket.block != 0 {
            return self.part(bucket, memory);
        }
        let Some(steps) = path.steps(varying_in_parallel(values), values.len()) else {
            return self.run_tasks(bucket, 0, &[values.len()]);
        };
        let share = bucket.share / (steps.len() as u64).max(1);
        for step in &steps {
            let longer = Bucket {
                path: &step.path,
                block: step.block,
                share,
                ..bucket
            };
            self.join(longer, memory)?;
        }
        ControlFlow::Continue(())
    }

    /// Parts a bucket by its block, and joins the parts.
    fn part(&self, bucket: Bucket<'_>, memory: &mut Buckets) -> ControlFlow<()> {
        let digit = Digit::leading(bucket.block, bucket.values.len() / BUCKET);
        let block = bucket.block & !digit.mask();
        if bucket.is_ascending && ascends(bucket.values, digit) {
            let ends = Buckets::ends_of_ordered(bucket.values, digit);
            return self.join_buckets(Bucket { block, ..bucket }, &ends);
        }
        memory.partition_in_parallel(bucket.values, digit);
        let bucket = Bucket {
            values: &memory.values[..bucket.values.len()],
            is_ascending: false,
            block,
            ..bucket
        };
        self.join_buckets(bucket, &memory.ends)
    }

    /// Joins each bucket of `all`: stretches that are small enough as tasks, others by themselves.
    fn join_buckets(&self, all: Bucket<'_>, ends: &[usize]) -> ControlFlow<()> {
        let most = self.search.task.max(all.values.len() / SHARE);
        let mut start = 0;
        let (mut small, mut small_start) = (0, 0);
        for (number, &end) in ends.iter().enumerate() {
            if end - start > most {
                self.run_tasks(all, small_start, &ends[small..number])?;
                let large = Bucket {
                    values: &all.values[start..end],
                    share: part_of(all, end - start),
                    ..all
                };
                self.join(large, &mut Buckets::default())?;
                (small, small_start) = (number + 1, end);
            }
            start = end;
        }
        self.run_tasks(all, small_start, &ends[small..])
    }

    /// Joins the buckets of `all` that end there, the first of which begins at `start`: a task for
    /// each, for whichever thread comes first.
    fn run_tasks(&self, all: Bucket<'_>, start: usize, ends: &[usize]) -> ControlFlow<()> {
        let before = self.next_task.load(Ordering::Relaxed);
        let broken = AtomicBool::new(false);
        rayon::broadcast(|_| {
            let _guard = StopOnPanic(self.delivery);
            let mut worker = Worker::new(self.search.level, self.wanted, self.delivery);
            loop {
                let task = self.next_task.fetch_add(1, Ordering::Relaxed);
                let number = task - before;
                if number >= ends.len() || broken.load(Ordering::Relaxed) {
                    return;
                }
                let start = number.checked_sub(1).map_or(start, |before| ends[before]);
                let values = &all.values[start..ends[number]];
                let flow = worker.run(task, values, all.path, all.block);
                let share = part_of(all, values.len());
                if flow.is_break() || self.advance(share).is_break() {
                    broken.store(true, Ordering::Relaxed);
                    self.delivery.stop();
                    return;
                }
            }
        });
        self.next_task.store(before + ends.len(), Ordering::Relaxed);
        if broken.into_inner() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn advance(&self, work: u64) -> ControlFlow<()> {
        let done = self.done.fetch_add(work, Ordering::Relaxed) + work;
        (self.progress)(done.min(self.total), self.total)
    }
}

/// The part of a bucket's work that `count` of its values cause.
fn part_of(all: Bucket<'_>, count: usize) -> u64 {
    (u128::from(all.share) * count as u128 / all.values.len().max(1) as u128) as u64
}

/// Whether values that ascend have digits that never fall.
fn ascends(values: &[u64], digit: Digit) -> bool {
    let (Some(first), Some(last)) = (values.first(), values.last()) else {
        return true;
    };
    digit.keeps_order() && (first ^ last).leading_zeros() >= digit.mask().leading_zeros()
}

/// Lets the other threads go if this one panics, or they would wait for it.
struct StopOnPanic<'a>(&'a dyn Delivery);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}
