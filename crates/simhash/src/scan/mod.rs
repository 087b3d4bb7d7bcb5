//! The instructions of particular processors: the only place for `unsafe`.

mod bits;
mod join;
#[cfg(target_arch = "x86_64")]
mod join_avx2;
#[cfg(target_arch = "x86_64")]
mod join_avx512;
mod level;
mod prefetch;

pub(crate) use bits::bits;
pub(crate) use join::{Rule, SMALL_BUCKET, close_buckets, join_rows, take_near};
pub(crate) use level::Level;
pub(crate) use prefetch::prefetch;
