//! MD5 compiled for AVX2: two vectors of 8 lanes.

#![allow(
    unsafe_code,
    reason = "a function compiled for more than every processor has"
)]

use super::Level;
use super::md5::{Digests, LANES, lane_by_lane};

/// As the scalar code, faster.
pub(super) fn digests(words: &[[u32; LANES]; 16]) -> Digests {
    assert!(Level::best() >= Level::Avx2);
    // SAFETY: the processor has what the level stands for.
    unsafe { compiled(words) }
}

#[target_feature(enable = "avx2")]
fn compiled(words: &[[u32; LANES]; 16]) -> Digests {
    lane_by_lane(words)
}
