//! The arguments of a search among files.

use clap::Args;
use simshard_simhash::PairSearch;

use super::Blocks;
use crate::exit::UsageError;

/// How near-duplicates are searched for.
#[derive(Args, Debug)]
#[command(next_help_heading = "Search")]
pub struct SearchArgs {
    /// The largest distance of a pair, in bits; 0 finds equal fingerprints
    #[arg(
        short,
        long,
        visible_alias = "max-distance",
        value_name = "BITS",
        default_value_t = 3
    )]
    pub distance: u32,
    /// The number of blocks that fingerprints are cut into: `auto`, or a number above the distance
    ///
    /// It affects the time and the order of the pairs, not which pairs are found.
    #[arg(short, long, value_name = "N", default_value = "auto")]
    pub blocks: Blocks,
    /// Use this many threads, 1 to 256 [default: one a core]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=256)
    )]
    pub threads: Option<u16>,
}

impl SearchArgs {
    /// Refuses a distance and blocks that no search has.
    ///
    /// # Errors
    /// Why there is none.
    pub fn check(&self) -> Result<(), UsageError> {
        match PairSearch::new(self.distance, self.blocks.fixed(), 0) {
            Ok(_) => Ok(()),
            Err(error) => Err(UsageError(error.to_string())),
        }
    }

    /// The threads that work; 0 means one a core.
    #[must_use]
    pub fn thread_count(&self) -> usize {
        self.threads.map_or(0, usize::from)
    }
}
