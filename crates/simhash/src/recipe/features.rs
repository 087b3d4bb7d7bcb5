//! The recipe `features`: fingerprints of features that another program hashed and weighted.
//!
//! A feature is a 64-bit hash and a weight, a whole number. A bit of the fingerprint is 1 if the
//! features that have it weigh strictly more than those that lack it. So a tie gives 0, and so does
//! a list without features, or without weight.

use crate::{BitCounter, Fingerprint};

/// The weights of one document are more than can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the weights of one document add up to 2^64 or more: scale them down")]
pub struct TooHeavy;

/// The fingerprint of a list of features, each a hash and its weight. Features may be listed in
/// any order, and more than once.
///
/// # Errors
/// If the weights add up to 2^64 or more.
///
/// ```
/// use simshard_simhash::{Fingerprint, features};
/// let features = [(0b0011, 2), (0b0101, 1)];
/// assert_eq!(features::fingerprint(&features), Ok(Fingerprint(0b0011)));
/// ```
pub fn fingerprint(features: &[(u64, u64)]) -> Result<Fingerprint, TooHeavy> {
    let mut total = 0_u64;
    let mut counter = BitCounter::new();
    for &(hash, weight) in features {
        total = total.checked_add(weight).ok_or(TooHeavy)?;
        counter.add_weighted(hash, weight);
    }
    Ok(counter.fingerprint())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_counts_like_repetitions() {
        let apart = [(0b01, 1), (0b11, 1), (0b01, 1), (0b10, 0)];
        assert_eq!(fingerprint(&apart), fingerprint(&[(0b11, 1), (0b01, 2)]));
        assert_eq!(fingerprint(&apart), Ok(Fingerprint(0b01)));
    }

    #[test]
    fn a_tie_and_nothing_give_zero() {
        for features in [&[][..], &[(7, 0)], &[(7, 5), (!7, 5)]] {
            assert_eq!(fingerprint(features), Ok(Fingerprint(0)), "{features:?}");
        }
    }

    #[test]
    fn weights_that_cannot_be_counted_are_refused() {
        assert_eq!(fingerprint(&[(1, u64::MAX), (2, 1)]), Err(TooHeavy));
        assert_eq!(fingerprint(&[(1, u64::MAX)]), Ok(Fingerprint(1)));
    }
}
