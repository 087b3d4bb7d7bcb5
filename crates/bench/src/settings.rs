//! Settings of more than one measurement, and why nothing can be measured as it is asked for.

use clap::ValueEnum;
use clap::builder::TypedValueParser;
use simshard_simhash::synthetic::Data;

/// Settings that contradict each other, or this machine: the same command fails again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadSettings(pub String);

/// How made-up fingerprints are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DataArg {
    /// Uniform and independent
    Random,
    /// Groups of 2 to 16 near a common centre
    Clustered,
    /// Each bit with a probability of its own, a tenth in clusters
    Skewed,
}

impl From<DataArg> for Data {
    fn from(data: DataArg) -> Self {
        match data {
            DataArg::Random => Self::Random,
            DataArg::Clustered => Self::Clustered,
            DataArg::Skewed => Self::Skewed,
        }
    }
}

/// Reads how many documents, fingerprints or requests.
#[must_use]
pub fn count() -> impl TypedValueParser<Value = usize> {
    let counts = clap::value_parser!(u64).range(1..=1 << 31);
    counts.map(|count| count as usize)
}
