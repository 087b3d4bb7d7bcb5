//! Which instruction sets the processor has, found out once at run time.
//!
//! A level is a proof: code that holds one may call the functions compiled for it. So only this
//! file makes levels above scalar, after it has asked the processor.

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
}

impl Level {
    /// The best level of this processor. Costs a load or two: the answer is kept.
    #[inline]
    pub(crate) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(seen) = Vpopcnt::look() {
                return Self::Vpopcnt(seen);
            }
            if let Some(seen) = Avx512::look() {
                return Self::Avx512(seen);
            }
            if let Some(seen) = Avx2::look() {
                return Self::Avx2(seen);
            }
        }
        Self::Scalar
    }

    /// Every level that this processor can run, so that tests hold each against the first.
    #[cfg(test)]
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let vectors = [
            Avx2::look().map(Self::Avx2),
            Avx512::look().map(Self::Avx512),
            Vpopcnt::look().map(Self::Vpopcnt),
        ];
        #[cfg(not(target_arch = "x86_64"))]
        let vectors: [Option<Self>; 0] = [];
        std::iter::once(Self::Scalar).chain(vectors.into_iter().flatten())
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_of_a_processor_begin_with_scalar_and_end_with_its_best() {
        let levels: Vec<Level> = Level::available().collect();
        assert_eq!(levels.first(), Some(&Level::Scalar));
        assert_eq!(levels.last(), Some(&Level::best()));
        assert!(levels.is_sorted());
    }
}
