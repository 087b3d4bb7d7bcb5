//! MD5 compiled for AVX-512: one vector of 16 lanes.

#![allow(
    unsafe_code,
    reason = "a function compiled for more than every processor has"
)]

use super::Level;
use super::md5::{Digests, LANES, lane_by_lane};

/// As the scalar code, faster.
pub(super) fn digests(words: &[[u32; LANES]; 16]) -> Digests {
    assert!(Level::best() >= Level::Avx512);
    // SAFETY: the processor has what the level stands for.
    unsafe { compiled(words) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn compiled(words: &[[u32; LANES]; 16]) -> Digests {
    lane_by_lane(words)
}
