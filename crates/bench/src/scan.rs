//! The slow search that answers are held against.

use simshard_simhash::{Fingerprint, Match};

/// The matches of a query, by looking at every fingerprint.
pub(crate) fn linear_scan(set: &[Fingerprint], query: Fingerprint, distance: u32) -> Vec<Match> {
    let near = set.iter().filter(|one| one.distance(query) <= distance);
    let mut matches: Vec<Match> = near
        .map(|&fingerprint| Match {
            distance: fingerprint.distance(query),
            fingerprint,
        })
        .collect();
    matches.sort_unstable();
    matches.dedup();
    matches
}
