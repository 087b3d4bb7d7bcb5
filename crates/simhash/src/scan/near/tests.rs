//! Every kernel against the definition: odd widths, empty and giant buckets, the
//! end of a run, and queries outside it.

use std::collections::BTreeSet;

use super::super::packed::LINE;
use super::*;

/// A run in the plainest way: values of a few buckets, one of them giant.
struct Run {
    values: Vec<u64>,
    heads: Vec<u8>,
    tails: Vec<u8>,
    directory: Vec<u32>,
    base: u64,
    shift: u32,
    width: usize,
}

const BUCKETS: u64 = 40;

/// The fewest bytes of an entry that tell values of one bucket apart.
fn narrowest(shift: u32) -> usize {
    HEAD.max(shift.div_ceil(8) as usize)
}

impl Run {
    fn new(width: usize, shift: u32, rng: &mut fastrand::Rng) -> Self {
        // The leading bits of the first bucket; the last may be the last there is.
        let buckets = BUCKETS.min(1 << (64 - shift).min(32));
        let first = (u64::MAX >> shift) - (buckets - 1);
        let base = first << shift;
        let mut values = BTreeSet::from([u64::MAX]);
        for bucket in (0..buckets).filter(|bucket| bucket % 3 != 1) {
            let count = if bucket == 3 { 900 } else { rng.usize(0..20) };
            let leading = base + (bucket << shift);
            let low = u64::MAX.unbounded_shr(64 - shift);
            values.extend((0..count).map(|_| leading | rng.u64(..) & rng.u64(..) & low));
        }
        let values: Vec<u64> = values.into_iter().collect();
        let tail = width - HEAD;
        let bytes = |value: &u64| value.to_le_bytes();
        let heads = values.iter().map(bytes);
        let mut heads: Vec<u8> = heads.flat_map(|b| b[tail..width].to_vec()).collect();
        let tails = values.iter().map(bytes);
        let mut tails: Vec<u8> = tails.flat_map(|b| b[..tail].to_vec()).collect();
        // What is behind the entries must not matter.
        heads.resize(heads.len().next_multiple_of(LINE), 0xa5);
        tails.resize(tails.len() + HEAD, 0xa5);
        let before = |bucket: &u64| {
            let earlier = values
                .iter()
                .filter(|&&value| (value - base) >> shift < *bucket);
            earlier.count() as u32
        };
        let mut directory: Vec<u32> = (0..=buckets).map(|bucket| before(&bucket)).collect();
        directory.push(values.len() as u32);
        Self {
            values,
            heads,
            tails,
            directory,
            base,
            shift,
            width,
        }
    }

    fn packed(&self, lines: usize) -> Packed<'_> {
        Packed {
            heads: &self.heads,
            tails: &self.tails,
            directory: &self.directory,
            base: self.base,
            shift: self.shift,
            width: self.width,
            lines,
        }
    }

    /// All values, and what differs from one in the last bit of its head, of its tail, or by one.
    fn neighbours(&self) -> Vec<u64> {
        let head = 1 << (8 * (self.width - HEAD));
        let of = |&value: &u64| [value, value ^ 1, value ^ head, value.wrapping_add(1)];
        self.values.iter().flat_map(of).collect()
    }

    /// Members with few flips, the ends, and values outside.
    fn queries(&self, rng: &mut fastrand::Rng) -> Vec<u64> {
        let member = |_| {
            self.values[rng.usize(..self.values.len())] ^ 1 << rng.u32(..64) ^ 1 << rng.u32(..8)
        };
        let mut queries: Vec<u64> = (0..BATCH + 77).map(member).collect();
        queries.extend([0, u64::MAX, self.base, self.base.wrapping_sub(1)]);
        queries.extend(&self.values[..self.values.len().min(40)]);
        queries
    }
}

fn sorted(mut values: Vec<u64>) -> Vec<u64> {
    values.sort_unstable();
    values
}

fn expected(probe: &Probe, values: &[u64], queries: &[u64]) -> Vec<(u32, u64)> {
    let mut expected = Vec::new();
    for (query, wanted) in (0..).zip(queries) {
        for difference in values.iter().map(|value| value ^ wanted) {
            let differs = probe.differ.iter().all(|mask| difference & mask != 0);
            let near = difference.count_ones() <= probe.max_distance;
            if near && differs && difference & probe.prefix == 0 {
                expected.push((query, difference));
            }
        }
    }
    expected.sort_unstable();
    expected
}

/// What a level finds, in little room, by batch or bucket by bucket.
fn found(level: Level, target: &Probe, queries: &[u64], batch: bool) -> Vec<(u32, u64)> {
    let mut all = Vec::new();
    let mut found = HitBuffer::with_room(3);
    let mut full = |found: &mut HitBuffer| {
        all.extend(found.drain());
        ControlFlow::Continue(())
    };
    let mut sink = Sink {
        found: &mut found,
        full: &mut full,
    };
    if batch {
        assert!(probe(level, target, queries, &mut sink).is_continue());
    } else {
        for (query, &value) in (0..).zip(queries) {
            let places = target.run.places(target.run.bucket(value));
            let one = One {
                query,
                value,
                places,
            };
            assert!(scan(level, target, one, &mut sink).is_continue());
        }
    }
    all.extend(found.drain());
    all.sort_unstable();
    all
}

#[test]
fn a_run_of_any_width_contains_its_values_and_no_others() {
    let mut rng = fastrand::Rng::with_seed(11);
    for shift in 1..=63 {
        for width in narrowest(shift)..=8 {
            let run = Run::new(width, shift, &mut rng);
            for value in [run.neighbours(), run.queries(&mut rng)].concat() {
                let is_in = run.values.binary_search(&value).is_ok();
                let found = run.packed(2).contains(value);
                assert_eq!(found, is_in, "{value:x}, shift {shift}, width {width}");
            }
        }
    }
}

#[test]
fn every_level_finds_what_is_near_in_runs_of_any_width() {
    for seed in 0..4 {
        let mut rng = fastrand::Rng::with_seed(seed);
        for shift in 1..=63_u32 {
            for width in [narrowest(shift), 8] {
                let run = Run::new(width, shift, &mut rng);
                let queries = run.queries(&mut rng);
                // Kernels take large buckets of one prefix in a way of their own, which pays for sorted queries.
                let lines = rng.usize(2..=3);
                let queries = if lines == 3 { sorted(queries) } else { queries };
                let further_bits = if lines == 3 {
                    0
                } else {
                    rng.u32(0..=shift.min(9))
                };
                let prefix_bits = 64 - shift + further_bits;
                let suffix = u64::MAX.unbounded_shr(prefix_bits);
                // The last lies in the head.
                let masks = [suffix & 0xff, suffix & !0x3, suffix & !(suffix >> 8)];
                let probe = Probe {
                    run: run.packed(lines),
                    prefix: !suffix,
                    max_distance: rng.u32(0..9),
                    differ: &masks[rng.usize(0..=3)..],
                };
                let expected = expected(&probe, &run.values, &queries);
                for (level, batch) in
                    Level::available().flat_map(|level| [(level, true), (level, false)])
                {
                    let found = found(level, &probe, &queries, batch);
                    assert_eq!(
                        found, expected,
                        "{level:?} shift {shift} width {width} seed {seed} batch {batch}"
                    );
                }
            }
        }
    }
}

/// Tails of others would be loaded in vain, which no result shows.
#[test]
fn no_level_takes_a_head_for_near_that_is_not() {
    let mut rng = fastrand::Rng::with_seed(5);
    let run = Run::new(6, 45, &mut rng);
    let probe = Probe {
        run: run.packed(2),
        prefix: u64::MAX << 45,
        max_distance: 5,
        differ: &[],
    };
    let mut all = 0;
    for value in run.queries(&mut rng) {
        let one = One {
            query: 0,
            value,
            places: probe.run.places(probe.run.bucket(value)),
        };
        let near = |level| {
            let mut found = HitBuffer::with_room(1000);
            let mut sink = Sink {
                found: &mut found,
                full: &mut |_| ControlFlow::Break(()),
            };
            assert!(look(level, &probe, one, &mut sink).is_continue());
            // Others waited before and were compared.
            let waiting = found.near.iter().map(|entry| entry.place);
            (found.found.len(), waiting.collect::<Vec<u32>>())
        };
        let expected = near(Level::Scalar);
        all += expected.1.len();
        for level in Level::available() {
            assert_eq!(near(level), expected, "{level:?}");
        }
    }
    assert!(all > 100, "{all}");
}

#[test]
fn a_kernel_stops_where_it_is_told_to() {
    let mut rng = fastrand::Rng::with_seed(9);
    let run = Run::new(6, 45, &mut rng);
    let target = Probe {
        run: run.packed(2),
        prefix: 0xff << 56,
        max_distance: 64,
        differ: &[],
    };
    for level in Level::available() {
        let mut calls = 0;
        let mut full = |found: &mut HitBuffer| {
            calls += 1;
            assert!(found.drain().count() > 0);
            ControlFlow::Break(())
        };
        let mut found = HitBuffer::with_room(16);
        let mut sink = Sink {
            found: &mut found,
            full: &mut full,
        };
        let queries = run.queries(&mut rng);
        assert!(probe(level, &target, &queries, &mut sink).is_break());
        assert_eq!(calls, 1, "{level:?}");

        // What the broken search had not compared yet is not found by the next one.
        let mut sink = Sink {
            found: &mut found,
            full: &mut |_| ControlFlow::Break(()),
        };
        assert!(probe(level, &target, &[], &mut sink).is_continue());
        assert_eq!(found.drain().count(), 0, "{level:?}");
    }
}
