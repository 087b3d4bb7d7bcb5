//! Which instruction sets the processor has, found out once at run time.
//!
//! A level is a proof: code that holds one may call the functions compiled for it. So only this
//! file makes levels above scalar, after it has asked the processor.

use std::fmt;
use std::sync::OnceLock;

/// A set of instructions that a kernel is written for; a later one includes the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Whatever the program was compiled for.
    Scalar,
    /// AVX2, with BMI1, BMI2, LZCNT and POPCNT: x86-64 processors since about 2013.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// AVX-512 with F, BW, DQ and VL, besides all of [`Avx2`](Self::Avx2): Skylake-X, Cascade
    /// Lake and later.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    /// VPOPCNTDQ besides all of [`Avx512`](Self::Avx512): Ice Lake, Zen 4 and later.
    #[cfg(target_arch = "x86_64")]
    Vpopcnt(Vpopcnt),
    /// NEON: 64-bit ARM processors that Linux runs on.
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

/// The level of this process, once it was asked for or limited.
static CHOSEN: OnceLock<Level> = OnceLock::new();

impl Level {
    /// The best level of this processor, or the one that [`limit_level`] chose.
    #[inline]
    pub(crate) fn best() -> Self {
        *CHOSEN.get_or_init(Self::of_processor)
    }

    fn of_processor() -> Self {
        Self::available().last().unwrap_or(Self::Scalar)
    }

    /// Every level that this processor can run, ascending.
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let vectors = [
            Avx2::look().map(Self::Avx2),
            Avx512::look().map(Self::Avx512),
            Vpopcnt::look().map(Self::Vpopcnt),
        ];
        #[cfg(target_arch = "aarch64")]
        let vectors = [Neon::look().map(Self::Neon)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let vectors: [Option<Self>; 0] = [];
        std::iter::once(Self::Scalar).chain(vectors.into_iter().flatten())
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512bw",
            #[cfg(target_arch = "x86_64")]
            Self::Vpopcnt(_) => "avx512vpopcntdq",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "neon",
        }
    }
}

/// The name of the level whose instructions this process uses: `scalar`, `avx2`, `avx512bw` or `avx512vpopcntdq`, and
/// on 64-bit ARM `neon`.
#[must_use]
pub fn level() -> &'static str {
    Level::best().name()
}

/// The names of all levels that this processor can run, ascending.
pub fn levels() -> impl Iterator<Item = &'static str> {
    Level::available().map(Level::name)
}

/// Uses the instructions of the level with this name, and no later ones. Results stay the same; speed does not. Nothing
/// may have been searched or hashed before.
///
/// # Errors
/// If no level of this processor has this name, or if the process uses another level already.
pub fn limit_level(name: &str) -> Result<(), LevelError> {
    let named = |level: &Level| level.name() == name;
    let level = Level::available()
        .find(named)
        .ok_or(LevelError::Unavailable)?;
    if *CHOSEN.get_or_init(|| level) == level {
        Ok(())
    } else {
        Err(LevelError::InUse(Level::best().name()))
    }
}

/// Why a level cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelError {
    /// This processor has no level of that name: [`levels`] has the names.
    Unavailable,
    /// The process uses this one already.
    InUse(&'static str),
}

impl fmt::Display for LevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable => {
                let levels: Vec<&str> = levels().collect();
                write!(f, "this processor has {}", levels.join(", "))
            }
            Self::InUse(level) => write!(f, "this process uses {level} already"),
        }
    }
}

impl std::error::Error for LevelError {}

/// That the processor was seen to have what [`Level::Avx2`] names.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    #[inline]
    fn look() -> Option<Self> {
        let seen = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        seen.then_some(Self(()))
    }
}

/// That the processor was seen to have what [`Level::Avx512`] names.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Avx512(());

#[cfg(target_arch = "x86_64")]
impl Avx512 {
    #[inline]
    fn look() -> Option<Self> {
        let seen = Avx2::look().is_some()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        seen.then_some(Self(()))
    }
}

/// That the processor was seen to have what [`Level::Vpopcnt`] names.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Vpopcnt(());

#[cfg(target_arch = "x86_64")]
impl Vpopcnt {
    #[inline]
    fn look() -> Option<Self> {
        let seen = Avx512::look().is_some() && is_x86_feature_detected!("avx512vpopcntdq");
        seen.then_some(Self(()))
    }
}

/// That the processor was seen to have what [`Level::Neon`] names.
#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Neon(());

#[cfg(target_arch = "aarch64")]
impl Neon {
    #[inline]
    fn look() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_of_a_processor_begin_with_scalar_and_end_with_its_best() {
        let levels: Vec<Level> = Level::available().collect();
        assert_eq!(levels.first(), Some(&Level::Scalar));
        assert_eq!(levels.last(), Some(&Level::of_processor()));
        assert!(levels.is_sorted());
    }

    /// The tests of a process share its level, so none but the one that it has can be asked for.
    #[test]
    fn a_level_is_limited_by_name_and_once() {
        limit_level(level()).unwrap();
        assert_eq!(limit_level("avx1024"), Err(LevelError::Unavailable));
        let another = levels().find(|&name| name != level());
        if let Some(another) = another {
            assert_eq!(limit_level(another), Err(LevelError::InUse(level())));
        }
    }
}
