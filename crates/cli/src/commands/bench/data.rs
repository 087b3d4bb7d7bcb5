//! The kinds of made-up fingerprints as values of an argument.

use clap::ValueEnum;
use simshard_simhash::synthetic::Data;

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
