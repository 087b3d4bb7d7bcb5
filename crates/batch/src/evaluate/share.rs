//! Shares and how sure they are.

use serde::Serialize;

/// The quantile of the normal distribution for intervals of 95 %.
const Z: f64 = 1.959_964;

/// A share with its interval of 95 % (Wilson). It takes pairs for independent, which those of one
/// large cluster are not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The share itself, from 0 to 1.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Share {
    /// Of a whole; `None` if there is none.
    pub(super) fn new(part: u64, whole: u64) -> Option<Self> {
        if whole == 0 {
            return None;
        }
        let (value, n) = (part as f64 / whole as f64, whole as f64);
        let middle = value + Z * Z / (2.0 * n);
        let half = Z * (value * (1.0 - value) / n + Z * Z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + Z * Z / n;
        Some(Self {
            value,
            // Rounding must not part it from the share.
            low: ((middle - half) / scale).clamp(0.0, value),
            high: ((middle + half) / scale).clamp(value, 1.0),
        })
    }

    fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self {
            value: change(self.value),
            low: change(self.low),
            high: change(self.high),
        }
    }
}

/// How many pairs were found, and how many should have been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// Pairs within the distance.
    pub found: u64,
    /// True pairs among them.
    pub found_true: u64,
    /// All true pairs.
    pub true_pairs: u64,
    /// Whether no other pairs are known, so that precision and F1 are not measured.
    pub only_true: bool,
}

impl Quality {
    /// The share of found pairs that are true.
    #[must_use]
    pub fn precision(self) -> Option<Share> {
        Share::new(self.found_true, self.found).filter(|_| !self.only_true)
    }

    /// The share of true pairs that were found.
    #[must_use]
    pub fn recall(self) -> Option<Share> {
        Share::new(self.found_true, self.true_pairs)
    }

    /// The harmonic mean of both. Its interval is that of the share of pairs, found or true, that
    /// are both.
    #[must_use]
    pub fn f1(self) -> Option<Share> {
        let either = self.found + self.true_pairs - self.found_true;
        let both = Share::new(self.found_true, either).filter(|_| !self.only_true)?;
        Some(both.map(|share| 2.0 * share / (1.0 + share)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(share: Option<Share>, expected: [f64; 3]) {
        let share = share.unwrap();
        for (is, expected) in [share.value, share.low, share.high]
            .into_iter()
            .zip(expected)
        {
            assert!((is - expected).abs() < 5e-5, "{share:?}");
        }
    }

    /// Figures of the table in Newcombe, "Two-sided confidence intervals for the single proportion",
    /// 1998, method 3.
    #[test]
    fn intervals_are_those_of_wilson() {
        close(Share::new(81, 263), [0.3080, 0.2553, 0.3662]);
        close(Share::new(15, 148), [0.1014, 0.0624, 0.1605]);
        close(Share::new(0, 20), [0.0, 0.0, 0.1611]);
        close(Share::new(1, 29), [0.0345, 0.0061, 0.1718]);
        assert_eq!(Share::new(0, 0), None);
    }

    #[test]
    fn a_share_is_within_its_interval() {
        for n in 1..2000 {
            assert_eq!(Share::new(n, n).unwrap().high, 1.0);
            assert_eq!(Share::new(0, n).unwrap().low, 0.0);
        }
    }

    #[test]
    fn f1_is_the_harmonic_mean() {
        let quality = Quality {
            found: 50,
            found_true: 40,
            true_pairs: 100,
            only_true: false,
        };
        let [precision, recall] = [quality.precision(), quality.recall()].map(|one| one.unwrap());
        let mean = 2.0 / (1.0 / precision.value + 1.0 / recall.value);
        let f1 = quality.f1().unwrap();
        assert!((f1.value - mean).abs() < 1e-12);
        assert!(f1.low < mean && mean < f1.high);
    }
}
