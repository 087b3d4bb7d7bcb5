//! The instructions of particular processors: the only place for `unsafe`.
//!
//! A kernel is a function that exists for several [`Level`]s and gives the same result at each.
//! Where it stands says its name:
//!
//! ```text
//! x.rs           kernel(level, …)    looks at the level and calls one of those below
//!                kernel_scalar(…)    plain code, for any processor
//!                kernel_avx2(…)      the plain code, compiled for a level that gains by that alone
//!                kernel_avx512(…)
//!                kernel_vpopcnt(…)
//! x_avx2.rs      kernel(…)           code that is written for a level
//! x_avx512.rs    kernel(…)           or in modules `avx512` and `vpopcnt`, for both levels
//! x_neon.rs      kernel(…)
//! ```
//!
//! Where nothing is gained by VPOPCNTDQ, its level runs the code for AVX-512. The plain code has the instructions of NEON
//! too, which every 64-bit ARM processor has, so most kernels are plain at its level. Kernels of a level enable
//! none but instructions that it stands for, and only a level, which is a proof that the processor
//! has them, leads there.

pub(crate) mod ascii;
#[cfg(target_arch = "x86_64")]
mod ascii_avx2;
#[cfg(target_arch = "x86_64")]
mod ascii_avx512;
mod bits;
mod huge_pages;
mod join;
#[cfg(target_arch = "x86_64")]
mod join_avx2;
#[cfg(target_arch = "x86_64")]
mod join_avx512;
mod level;
pub(crate) mod md5;
mod mix;
mod near;
#[cfg(target_arch = "x86_64")]
mod near_avx2;
#[cfg(target_arch = "x86_64")]
mod near_avx512;
#[cfg(target_arch = "aarch64")]
mod near_neon;
mod near_words;
mod packed;
mod permute;
mod pipeline;
#[cfg(target_arch = "x86_64")]
mod popcount_avx512;
mod prefetch;

pub(crate) use bits::{bits, of_bits};
pub(crate) use huge_pages::{Lines, Zeroed};
pub(crate) use join::{Rule, SMALL_BUCKET, close_buckets, join_rows, take_near};
pub(crate) use level::Level;
pub use level::{LevelError, level, levels, limit_level};
pub(crate) use mix::{mix, mix_all, unmix};
pub(crate) use near::{BATCH, HitBuffer, One, Probe, Sink, probe, scan};
pub(crate) use near_words::near_words;
pub(crate) use packed::{HEAD, LINE, Packed};
pub(crate) use permute::permute;
pub(crate) use prefetch::prefetch;
