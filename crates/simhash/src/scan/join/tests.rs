//! The steps of a join at every level against the definitions.

use proptest::prelude::*;

use super::*;

/// Values that are near each other now and then: few bits of `centre` are changed.
fn bucket(seed: u64, count: usize) -> Vec<u64> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let centre = rng.u64(..);
    let value = |rng: &mut fastrand::Rng| match rng.u8(..4) {
        0 => rng.u64(..),
        1 => centre ^ (1 << rng.u32(..64)),
        _ => centre ^ rng.u64(..) & rng.u64(..) & rng.u64(..) & rng.u64(..),
    };
    let mut values: Vec<u64> = (0..count).map(|_| value(&mut rng)).collect();
    values.sort_unstable();
    values.dedup();
    rng.shuffle(&mut values);
    values
}

/// The pairs of the first rows with all after them, row by row.
fn pairs_slowly(bucket: &[u64], rows: usize, rule: &Rule) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (row, &value) in bucket[..rows].iter().enumerate() {
        let others = bucket[row + 1..].iter();
        let near = others.filter(|&&other| rule.accepts(value ^ other));
        pairs.extend(near.map(|&other| Pair::new(Fingerprint(value), Fingerprint(other))));
    }
    pairs
}

fn within(distance: u32) -> Rule {
    Rule {
        distance,
        ..Rule::default()
    }
}

proptest! {
    #[test]
    fn rows_are_joined_as_slowly_at_every_level(
        seed: u64, count in 0..150_usize, distance in 0..12_u32, masks: [u64; 6],
        limit in 1..300_usize, share in 1..=3_usize,
    ) {
        let bucket = bucket(seed, count);
        let few = |at: usize| masks[at] & masks[at + 1].rotate_left(9);
        let rules = [
            within(distance),
            Rule { agree: few(0) & few(4), ..within(distance) },
            Rule { differ: vec![masks[0], masks[1]], agree: few(2) & few(4), distance },
        ];
        let rows = bucket.len() * share / 3;
        for rule in rules {
            let expected = pairs_slowly(&bucket, rows, &rule);
            for level in Level::available() {
                let (mut pairs, mut row, mut most) = (Vec::new(), 0, 0);
                while row < rows {
                    let mut batch = Vec::new();
                    row = join_rows(level, &bucket, row..rows, &rule, limit, &mut batch);
                    most = most.max(batch.len());
                    pairs.append(&mut batch);
                }
                prop_assert_eq!(&pairs, &expected, "{:?}", level);
                prop_assert!(most < limit + bucket.len().max(1), "{:?}", level);
            }
        }
    }

    #[test]
    fn every_bucket_with_a_close_pair_is_named_at_every_level(
        seeds in prop::collection::vec((any::<u64>(), 0..=SMALL_BUCKET), 0..12), distance in 0..6_u32,
    ) {
        let mut values = vec![0; 5];
        let mut ends = Vec::new();
        let mut expected = Vec::new();
        for (number, &(seed, count)) in seeds.iter().enumerate() {
            let bucket = bucket(seed, count);
            if !pairs_slowly(&bucket, bucket.len(), &within(distance)).is_empty() {
                expected.push(number);
            }
            values.extend(bucket);
            ends.push(values.len());
        }
        for level in Level::available() {
            let mut close = vec![99];
            close_buckets(level, &values, 5, &ends, distance, &mut close);
            prop_assert_eq!(close.remove(0), 99);
            for number in &expected {
                prop_assert!(close.contains(number), "{:?} misses {}", level, number);
            }
            prop_assert!(close.is_sorted_by(|a, b| a < b));
            if level == Level::Scalar {
                prop_assert_eq!(&close, &expected);
            }
        }
    }

    #[test]
    fn what_is_near_is_taken_at_every_level(seed: u64, count in 0..100_usize, distance in 0..20_u32) {
        let bucket = bucket(seed, count);
        let value = bucket.first().copied().unwrap_or(1) ^ 5;
        let is_near = |other: &u64| (value ^ other).count_ones() <= distance;
        let (taken, left): (Vec<u64>, Vec<u64>) = bucket.iter().partition(|&other| is_near(other));
        for level in Level::available() {
            let (mut rest, mut near) = (bucket.clone(), vec![42]);
            take_near(level, value, distance, &mut rest, &mut near);
            prop_assert_eq!(&rest, &left, "{:?}", level);
            prop_assert_eq!(&near[1..], &taken, "{:?}", level);
        }
    }
}

/// In lanes of one vector or of two, with values of the next bucket behind them.
#[test]
fn one_close_pair_is_found_wherever_it_stands() {
    let mut rng = fastrand::Rng::with_seed(2);
    for count in [2, 7, 8, 9, 16, 31, SMALL_BUCKET] {
        let far: Vec<u64> = (0..count + 8).map(|_| rng.u64(..)).collect();
        for (first, second) in (0..count).flat_map(|second| (0..second).map(move |f| (f, second))) {
            let mut values = far.clone();
            values[second] = values[first] ^ (1 << 63 | 1 << 30 | 1);
            for level in Level::available() {
                let mut close = Vec::new();
                close_buckets(level, &values, 0, &[count], 3, &mut close);
                assert_eq!(close, [0], "{level:?} {first} {second} of {count}");
            }
        }
    }
}

#[test]
fn few_buckets_of_random_values_look_close() {
    for level in Level::available() {
        let mut rng = fastrand::Rng::with_seed(1);
        let values: Vec<u64> = (0..20_000).map(|_| rng.u64(..)).collect();
        let ends: Vec<usize> = (0..20_000).step_by(13).skip(1).collect();
        let mut close = Vec::new();
        close_buckets(level, &values, 0, &ends, 3, &mut close);
        assert_eq!(close, [0; 0], "{level:?}");
    }
}
