//! Numbers that are measured with.

/// How many documents, fingerprints or requests.
pub(super) fn count() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=1 << 31)
}
