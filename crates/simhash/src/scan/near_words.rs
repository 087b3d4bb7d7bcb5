//! Comparing a query with every one of a few fingerprints: plain code, compiled
//! for each level.

#![allow(unsafe_code, reason = "calls code for particular processors")]

use super::Level;
use crate::Fingerprint;

/// Fingerprints that are compared before one branch checks whether any was near.
const STRETCH: usize = 128;

/// Appends the fingerprints that are at most `max_distance` bits from the query.
pub(crate) fn near_words(
    level: Level,
    fingerprints: &[Fingerprint],
    query: Fingerprint,
    max_distance: u32,
    near: &mut Vec<Fingerprint>,
) {
    match level {
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Vpopcnt(_) => unsafe { near_words_vpopcnt(fingerprints, query, max_distance, near) },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512(_) => unsafe { near_words_avx512(fingerprints, query, max_distance, near) },
        // SAFETY: the level proves that the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => unsafe { near_words_avx2(fingerprints, query, max_distance, near) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon(_) => near_words_scalar(fingerprints, query, max_distance, near),
        Level::Scalar => near_words_scalar(fingerprints, query, max_distance, near),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,popcnt")]
fn near_words_vpopcnt(
    all: &[Fingerprint],
    query: Fingerprint,
    most: u32,
    near: &mut Vec<Fingerprint>,
) {
    near_words_scalar(all, query, most, near);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
fn near_words_avx512(
    all: &[Fingerprint],
    query: Fingerprint,
    most: u32,
    near: &mut Vec<Fingerprint>,
) {
    near_words_scalar(all, query, most, near);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn near_words_avx2(
    all: &[Fingerprint],
    query: Fingerprint,
    most: u32,
    near: &mut Vec<Fingerprint>,
) {
    near_words_scalar(all, query, most, near);
}

#[inline(always)]
fn near_words_scalar(
    all: &[Fingerprint],
    query: Fingerprint,
    most: u32,
    near: &mut Vec<Fingerprint>,
) {
    let is_near = |fingerprint: Fingerprint| fingerprint.distance(query) <= most;
    for stretch in all.chunks(STRETCH) {
        // Without a way out, so that the loop becomes vector code.
        let any = |any, &fingerprint: &Fingerprint| any | is_near(fingerprint);
        if stretch.iter().fold(false, any) {
            near.extend(stretch.iter().filter(|&&fingerprint| is_near(fingerprint)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{self, Data};

    #[test]
    fn every_level_finds_what_the_distance_says() {
        for count in [0, 1, 7, 128, 129, 1000] {
            let all = Data::Skewed.fingerprints(count, 3);
            for query in synthetic::queries(&all, 20, 6, 4) {
                for most in [0, 3, 30, 64] {
                    let near = all.iter().copied().filter(|f| f.distance(query) <= most);
                    let expected: Vec<Fingerprint> = near.collect();
                    for level in Level::available() {
                        let mut near = Vec::new();
                        near_words(level, &all, query, most, &mut near);
                        assert_eq!(near, expected, "{level:?} {count} within {most}");
                    }
                }
            }
        }
    }
}
