//! Pairs and clusters against the quadratic scan.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use super::delivery::Delivery;
use super::*;
use crate::synthetic::Data;

const CONTINUE: ControlFlow<()> = ControlFlow::Continue(());

/// The layouts of the promise.
fn layouts() -> Vec<(u32, u32)> {
    let mut layouts = Vec::new();
    for distance in 0..=7 {
        layouts.extend((distance + 1..=10).map(|blocks| (blocks, distance)));
        let many = [16, 32, 64].into_iter();
        layouts.extend(
            many.filter(|&blocks| Layout::new(blocks, distance).is_ok())
                .map(|blocks| (blocks, distance)),
        );
    }
    layouts
}

/// Kinds of sets of about `count`, by name.
fn sets(count: usize, seed: u64) -> Vec<(&'static str, FingerprintSet)> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut random = Vec::new();
    let base = rng.u64(..);
    let bits = (count as f64).log2() as u32;
    let cube = (0..count as u64).map(|low| Fingerprint(base >> bits << bits ^ low));
    random.push(("cube", cube.collect()));
    let low = (0..count).map(|_| Fingerprint(base >> 20 << 20 | rng.u64(..1 << 20)));
    random.push(("low bits", low.collect()));
    // The same few bits, far apart: blocks have gaps, and some do not vary.
    let spread = |low: u64| low & 0x1f | (low & 0x3e0) << 20 | (low & 0x1_fc00) << 47;
    let spread: Vec<Fingerprint> = (0..count)
        .map(|_| Fingerprint(spread(rng.u64(..1 << 17))))
        .collect();
    random.push(("spread bits", spread.clone()));
    let mixed = Data::Skewed
        .fingerprints(count / 2, seed)
        .into_iter()
        .chain(spread);
    random.push(("mixed", mixed.take(count).collect()));
    random.extend(Data::ALL.map(|data| (data.name(), data.fingerprints(count, seed))));
    let with_extremes = |(name, mut set): (&'static str, Vec<Fingerprint>)| {
        set.extend([0, 1, u64::MAX, u64::MAX - 1].map(Fingerprint));
        (name, FingerprintSet::from_unsorted(set))
    };
    random.into_iter().map(with_extremes).collect()
}

fn quadratic(set: &FingerprintSet, distance: u32) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (place, &a) in set.as_slice().iter().enumerate() {
        let others = set.as_slice()[place + 1..].iter();
        let near = others.filter(|&&b| a.distance(b) <= distance);
        pairs.extend(near.map(|&b| Pair { a, b }));
    }
    pairs
}

/// All pairs, in the order of the visits.
fn visited(search: &PairSearch, set: &FingerprintSet) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mut visit = |batch: &[Pair]| {
        pairs.extend_from_slice(batch);
        CONTINUE
    };
    assert!(
        search
            .pairs(set, &|_, _| CONTINUE, &mut visit)
            .is_continue()
    );
    pairs
}

fn groups(set: &FingerprintSet, pairs: &[Pair]) -> Vec<Vec<usize>> {
    let mut clusters = Clusters::new(set.len());
    for pair in pairs {
        clusters.union(set.place(pair.a).unwrap(), set.place(pair.b).unwrap());
    }
    clusters.groups()
}

/// Compares pairs and clusters with those of the quadratic scan.
fn check(search: &PairSearch, set: &FingerprintSet, expected: &[Pair], what: &str) {
    let mut pairs = visited(search, set);
    pairs.sort_unstable();
    assert!(
        pairs == expected,
        "{what}: {} pairs, not {}, with {search:?}",
        pairs.len(),
        expected.len()
    );
    let mut here = Vec::new();
    let mut visit = |batch: &[Pair]| {
        here.extend_from_slice(batch);
        CONTINUE
    };
    let flow = search.pairs_here(set.as_slice(), PairsWanted::All, &mut visit);
    assert!(flow.is_continue());
    here.sort_unstable();
    assert!(here == expected, "{what}: on one thread, with {search:?}");
    let clusters = search.clusters(set, &|_, _| CONTINUE);
    assert_eq!(
        clusters.groups(),
        groups(set, expected),
        "{what}: {search:?}"
    );
}

fn in_pool<T: Send>(threads: usize, run: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    pool.install(run)
}

#[test]
fn every_layout_and_kind_of_set_equals_the_quadratic_scan() {
    for (name, set) in sets(700, 1) {
        for distance in 0..=7 {
            let expected = quadratic(&set, distance);
            let blocks = layouts().into_iter().filter(|layout| layout.1 == distance);
            for blocks in blocks.map(|layout| Some(layout.0)).chain([None]) {
                let mut search = PairSearch::new(distance, blocks, set.len()).unwrap();
                search.level = if blocks.is_some_and(|blocks| blocks % 2 == 0) {
                    Level::Scalar
                } else {
                    Level::best()
                };
                check(&search, &set, &expected, name);
            }
        }
    }
}

/// With tasks that are small, so that all threads part large buckets too.
#[test]
fn every_level_and_size_of_task_equals_the_quadratic_scan() {
    for (name, set) in sets(1_000, 2) {
        for (distance, blocks) in [
            (1, Some(2)),
            (3, Some(4)),
            (3, None),
            (5, Some(7)),
            (7, None),
        ] {
            let expected = quadratic(&set, distance);
            for level in Level::available() {
                for task in [40, 300, TASK] {
                    let search = PairSearch {
                        level,
                        task,
                        ..PairSearch::new(distance, blocks, 1_000_000_000).unwrap()
                    };
                    check(&search, &set, &expected, name);
                }
            }
        }
    }
}

/// The strays make every block vary, so only their small number tells the other paths apart. Some
/// are near the dense part, and pairs with it are found on these paths.
#[test]
fn a_dense_part_with_strays_equals_the_quadratic_scan() {
    let mut fingerprints = Data::Random.fingerprints(200, 8);
    let dense = |low: u64| Fingerprint(0x0123_4567_89ab_c000 | low);
    fingerprints.extend((0..2_500).map(dense));
    fingerprints.extend((0..9).map(|i| Fingerprint(dense(i * 250).0 ^ 1 << (20 + 4 * i))));
    let set = FingerprintSet::from_unsorted(fingerprints);
    for distance in [2, 3, 5] {
        let expected = quadratic(&set, distance);
        for blocks in [distance + 1, distance + 2, 10] {
            for task in [300, TASK] {
                let search = PairSearch {
                    task,
                    ..PairSearch::new(distance, Some(blocks), set.len()).unwrap()
                };
                check(&search, &set, &expected, "strays");
            }
        }
    }
}

/// J3 from end to end.
#[test]
fn the_order_of_pairs_is_the_same_with_any_number_of_threads_and_at_any_level() {
    for (name, set) in sets(6_000, 3) {
        let search = PairSearch {
            task: 200,
            ..PairSearch::new(3, Some(4), set.len()).unwrap()
        };
        let expected = in_pool(1, || visited(&search, &set));
        for threads in [2, 3] {
            let pairs = in_pool(threads, || visited(&search, &set));
            assert!(pairs == expected, "{name} with {threads} threads");
        }
        for level in Level::available() {
            let pairs = visited(&PairSearch { level, ..search }, &set);
            assert!(pairs == expected, "{name} with {level:?}");
        }
    }
}

#[test]
fn nothing_is_visited_after_a_break() {
    for threads in [1, 2, 3] {
        for (name, set) in sets(5_000, 4) {
            let search = PairSearch {
                task: 100,
                ..PairSearch::new(6, None, set.len()).unwrap()
            };
            let all = visited(&search, &set);
            for wanted in [1, all.len() / 2] {
                let (mut seen, mut broken) = (Vec::new(), false);
                let mut visit = |pairs: &[Pair]| {
                    assert!(!broken, "{name}: visited after a break");
                    seen.extend_from_slice(pairs);
                    broken = seen.len() >= wanted;
                    if broken {
                        ControlFlow::Break(())
                    } else {
                        CONTINUE
                    }
                };
                let flow = in_pool(threads, || search.pairs(&set, &|_, _| CONTINUE, &mut visit));
                assert_eq!(flow.is_break(), !all.is_empty(), "{name}");
                assert!(
                    all.starts_with(&seen) && seen.len() >= wanted.min(all.len()),
                    "{name}"
                );
            }
        }
    }
}

/// Millions of pairs from few fingerprints arrive in batches that are no longer than the bound.
#[test]
fn a_dense_set_is_visited_in_batches_of_bounded_size() {
    let set = FingerprintSet::from_unsorted((0..1 << 12).map(Fingerprint).collect());
    let search = PairSearch::new(12, None, set.len()).unwrap();
    let (mut count, mut largest) = (0, 0);
    let mut visit = |pairs: &[Pair]| {
        count += pairs.len();
        largest = largest.max(pairs.len());
        CONTINUE
    };
    assert!(
        search
            .pairs(&set, &|_, _| CONTINUE, &mut visit)
            .is_continue()
    );
    assert_eq!(count, (1 << 12) * ((1 << 12) - 1) / 2);
    assert!(largest <= worker::BATCH + set.len());
}

#[test]
fn progress_rises_to_the_end() {
    for (name, set) in sets(5_000, 5) {
        let search = PairSearch {
            task: 100,
            ..PairSearch::new(3, None, set.len()).unwrap()
        };
        let (highest, total) = (AtomicU64::new(0), AtomicU64::new(0));
        let progress = |done, of| {
            highest.fetch_max(done, Ordering::Relaxed);
            let before = total.swap(of, Ordering::Relaxed);
            assert!(done <= of && (before == 0 || before == of), "{name}");
            CONTINUE
        };
        assert!(
            search
                .pairs(&set, &progress, &mut |_| CONTINUE)
                .is_continue()
        );
        let (highest, total) = (highest.into_inner(), total.into_inner());
        assert_eq!(
            (highest, total),
            (4 * set.len() as u64, 4 * set.len() as u64)
        );
    }
}

#[test]
fn a_search_ends_early_if_its_progress_breaks() {
    for (name, set) in sets(5_000, 5) {
        let search = PairSearch {
            task: 100,
            ..PairSearch::new(3, None, set.len()).unwrap()
        };
        let calls = AtomicU64::new(0);
        let progress = |_, _| {
            calls.fetch_add(1, Ordering::Relaxed);
            ControlFlow::Break(())
        };
        let threads = 3;
        let flow = in_pool(threads, || search.pairs(&set, &progress, &mut |_| CONTINUE));
        assert!(flow.is_break(), "{name}");
        let clusters = in_pool(threads, || search.clusters(&set, &progress));
        assert_eq!(clusters.roots().len(), set.len());
        assert!(calls.into_inner() <= 2 * threads as u64, "{name}");
    }
}

/// Each of eight tasks has more pairs than may wait, so without a turn all would wait for ever.
#[test]
fn a_visitor_that_panics_leaves_no_task_waiting() {
    let fingerprint = |i: u64| Fingerprint(((i % 8) << 61) | (i / 8));
    let set = FingerprintSet::from_unsorted((0..8 * 1_500).map(fingerprint).collect());
    let search = PairSearch {
        task: 2_000,
        ..PairSearch::new(7, Some(8), set.len()).unwrap()
    };
    let search_in_pool = || {
        let mut visit = |_: &[Pair]| panic!("as the test wants");
        in_pool(3, || search.pairs(&set, &|_, _| CONTINUE, &mut visit))
    };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(search_in_pool));
    assert!(outcome.is_err());
}

/// Delivers to another, but panics at the first task, and holds the others until that has stopped
/// the search.
struct Panicking<'a> {
    to: &'a dyn Delivery,
    stopped: Mutex<bool>,
    changed: Condvar,
    delivered: AtomicUsize,
}

impl Delivery for Panicking<'_> {
    fn deliver(&self, task: usize, pairs: &mut Vec<Pair>, finished: bool) -> ControlFlow<()> {
        assert_ne!(task, 0, "as the test wants");
        let stopped = self.stopped.lock().unwrap();
        drop(self.changed.wait_while(stopped, |stopped| !*stopped));
        self.delivered.fetch_add(1, Ordering::Relaxed);
        self.to.deliver(task, pairs, finished)
    }

    fn stop(&self) {
        self.to.stop();
        *self.stopped.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

/// J5.
#[test]
fn a_worker_that_panics_stops_the_others_and_the_panic_goes_on() {
    const THREADS: usize = 3;
    let set = FingerprintSet::from_unsorted(Data::Clustered.fingerprints(20_000, 9));
    let search = PairSearch {
        task: 100,
        ..PairSearch::new(3, Some(4), set.len()).unwrap()
    };
    let mut visit = |_: &[Pair]| CONTINUE;
    let (in_order, linking) = (InOrder::new(&mut visit), Linking::new(&set));
    let deliveries: [(&dyn Delivery, PairsWanted); 2] = [
        (&in_order, PairsWanted::All),
        (&linking, PairsWanted::Links),
    ];
    for (to, wanted) in deliveries {
        let delivery = Panicking {
            to,
            stopped: Mutex::new(false),
            changed: Condvar::new(),
            delivered: AtomicUsize::new(0),
        };
        let run = || Join::new(&search, wanted, &delivery, &|_, _| CONTINUE).run(&set);
        let run = || in_pool(THREADS, run);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        assert!(outcome.is_err(), "{wanted:?}");
        let delivered = delivery.delivered.into_inner();
        assert!(delivered < THREADS, "{wanted:?}: {delivered} more tasks");
    }
}

#[test]
fn empty_and_tiny_sets_have_no_pairs_or_one() {
    for distance in [0, 1, 63] {
        let search = PairSearch::new(distance, None, 0).unwrap();
        assert!(visited(&search, &FingerprintSet::default()).is_empty());
        assert!(
            search
                .clusters(&FingerprintSet::default(), &|_, _| CONTINUE)
                .groups()
                .is_empty()
        );
        let set = FingerprintSet::from_unsorted([5, 4].map(Fingerprint).to_vec());
        assert_eq!(visited(&search, &set).len(), usize::from(distance > 0));
    }
}

#[test]
fn layouts_that_make_no_tables_are_refused() {
    assert!(PairSearch::new(3, Some(3), 9).is_err());
    assert!(PairSearch::new(64, None, 9).is_err());
    assert_eq!(PairSearch::new(3, Some(6), 9).unwrap().layout().blocks(), 6);
}
