//! From counts to lengths of bars, in proportion.

/// The least length of a bar in percent: less than a pixel on most screens, but no bar means none.
const LEAST_PERCENT: f64 = 0.1;

/// The lengths of bars, from 0 to a round count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    /// The count of the longest bar that fits.
    top: u128,
}

impl Scale {
    /// The scale that shows all these counts.
    pub(super) fn fitting(counts: impl Iterator<Item = u128>) -> Self {
        Self {
            top: round_up(counts.max().unwrap_or(0)),
        }
    }

    /// The length for a count, in percent of the longest.
    pub(super) fn percent(self, count: u128) -> f64 {
        if count == 0 {
            return 0.0;
        }
        (count as f64 / self.top as f64 * 100.0).max(LEAST_PERCENT)
    }

    /// The counts that an axis names: few enough for a narrow screen.
    pub(super) fn ticks(self) -> [u128; 3] {
        [0, self.top / 2, self.top]
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
    fn counts_are_drawn_in_proportion() {
        assert_eq!(fitting(&[30, 0, 700]), Scale { top: 800 });
        assert_eq!(fitting(&[1]), Scale { top: 2 });
        assert_eq!(fitting(&[]), Scale { top: 2 });
        let scale = fitting(&[700]);
        assert_eq!(
            [0, 200, 800].map(|count| scale.percent(count)),
            [0.0, 25.0, 100.0]
        );
        assert_eq!(scale.ticks(), [0, 400, 800]);
    }

    #[test]
    fn every_count_fits_its_axis() {
        for power in 0..20 {
            for count in [1, 2, 5, 9].map(|digit| digit * 10_u128.pow(power)) {
                for scale in [fitting(&[count]), fitting(&[1, count])] {
                    let percent = scale.percent(count);
                    assert!(percent > 0.0 && percent <= 100.0, "{scale:?} {count}");
                    assert!(scale.percent(1) >= LEAST_PERCENT, "{scale:?}");
                    assert!(scale.ticks().is_sorted());
                }
            }
        }
    }
}
