//! Which instruction sets the processor has, found out once at run time.

/// A set of instructions that a kernel is written for; a later one includes the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Whatever the program was compiled for.
    Scalar,
    /// AVX2, with BMI1, BMI2, LZCNT and POPCNT: x86-64 processors since about 2013.
    Avx2,
    /// AVX-512 with F, BW, CD, DQ, VL, VBMI and VPOPCNTDQ, besides all of [`Avx2`](Self::Avx2):
    /// Ice Lake, Zen 4 and later.
    Avx512,
}

impl Level {
    /// The best level of this processor. Costs a load or two: the answer is kept.
    #[inline]
    pub(crate) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx512() {
                return Self::Avx512;
            }
            if has_avx2() {
                return Self::Avx2;
            }
        }
        Self::Scalar
    }

    /// Every level that this processor can run, so that tests hold each against the first.
    #[cfg(test)]
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        let all = [Self::Scalar, Self::Avx2, Self::Avx512];
        all.into_iter().filter(|&level| level <= Self::best())
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vpopcntdq")
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
