//! From counts to lengths of bars: in proportion, or by the logarithm where small counts would vanish.

/// How lengths follow from counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// From 0 to this count.
    Linear(u128),
    /// From one half, so that a count of 1 has a length, to ten to this power.
    Logarithmic(u32),
}

/// Beyond this ratio the smaller count would be a sliver on a linear scale.
const SLIVER: u128 = 50;

impl Scale {
    /// The scale that shows all these counts.
    pub(super) fn fitting(counts: impl Iterator<Item = u128> + Clone) -> Self {
        let largest = counts.clone().max().unwrap_or(0);
        let smallest = counts.filter(|&count| count > 0).min().unwrap_or(0);
        if largest > smallest.saturating_mul(SLIVER) {
            return Self::logarithmic(largest);
        }
        Self::Linear(round_up(largest))
    }

    /// The logarithmic scale up to this count.
    pub(super) fn logarithmic(largest: u128) -> Self {
        Self::Logarithmic(largest.saturating_sub(1).checked_ilog10().unwrap_or(0) + 1)
    }

    /// What it is called in captions.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Linear(_) => "linear",
            Self::Logarithmic(_) => "logarithmic",
        }
    }

    /// The length for a count, in percent of the longest.
    pub(super) fn percent(self, count: u128) -> f64 {
        if count == 0 {
            return 0.0;
        }
        match self {
            Self::Linear(top) => count as f64 / top as f64 * 100.0,
            Self::Logarithmic(power) => {
                let half = 2_f64.log10();
                ((count as f64).log10() + half) / (f64::from(power) + half) * 100.0
            }
        }
    }

    /// The counts that an axis names: few enough for a narrow screen.
    pub(super) fn ticks(self) -> Vec<u128> {
        match self {
            Self::Linear(top) => vec![0, top / 2, top],
            Self::Logarithmic(power) => {
                let stride = power.div_ceil(3).max(1) as usize;
                let powers = (0..=power).rev().step_by(stride);
                let mut ticks: Vec<u128> = powers.map(|power| 10_u128.pow(power)).collect();
                ticks.reverse();
                ticks
            }
        }
    }
}

/// The next round count, whose half is round too.
fn round_up(count: u128) -> u128 {
    let unit = 10_u128.pow(count.max(1).ilog10());
    let steps = [1, 2, 4, 6, 8, 10].map(|step| step * unit);
    let fits = steps.into_iter().find(|&step| step >= count && step > 1);
    fits.unwrap_or(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitting(counts: &[u128]) -> Scale {
        Scale::fitting(counts.iter().copied())
    }

    #[test]
    fn counts_of_one_size_are_drawn_in_proportion() {
        assert_eq!(fitting(&[30, 0, 700]), Scale::Linear(800));
        assert_eq!(fitting(&[1]), Scale::Linear(2));
        assert_eq!(fitting(&[]), Scale::Linear(2));
        assert_eq!(Scale::Linear(800).percent(200), 25.0);
        assert_eq!(Scale::Linear(800).ticks(), [0, 400, 800]);
    }

    #[test]
    fn counts_of_very_different_size_are_drawn_by_logarithm() {
        assert_eq!(fitting(&[1, 52]), Scale::Logarithmic(2));
        let scale = fitting(&[3, 100_000]);
        assert_eq!(scale, Scale::Logarithmic(5));
        assert_eq!(scale.ticks(), [10, 1000, 100_000]);
        assert_eq!(scale.percent(100_000), 100.0);
        assert!(scale.percent(1) > 0.0);
    }

    #[test]
    fn every_count_fits_and_few_ticks_name_its_axis() {
        for power in 0..20 {
            for count in [1, 2, 5, 9].map(|digit| digit * 10_u128.pow(power)) {
                for scale in [
                    fitting(&[count]),
                    fitting(&[1, count]),
                    Scale::logarithmic(count),
                ] {
                    let percent = scale.percent(count);
                    assert!(
                        percent > 0.0 && percent <= 100.0 + 1e-9,
                        "{scale:?} {count}"
                    );
                    let ticks = scale.ticks();
                    assert!((2..=4).contains(&ticks.len()), "{scale:?} {ticks:?}");
                    assert!(
                        ticks.is_sorted() && ticks.iter().all(|&tick| scale.percent(tick) <= 100.0)
                    );
                }
            }
        }
    }
}
