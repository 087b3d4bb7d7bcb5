//! A number of blocks, or the choice left to the program.

use std::str::FromStr;

use simshard_runtime::terminal::counted;
use simshard_simhash::Layout;

use crate::exit::UsageError;
use crate::say::note;

/// A number of blocks, or the choice left to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Chosen from the number of fingerprints and the distance.
    Auto,
    /// As many as the caller says.
    Fixed(u32),
}

impl Blocks {
    /// The number, where the caller says it.
    #[must_use]
    pub fn fixed(self) -> Option<u32> {
        match self {
            Self::Auto => None,
            Self::Fixed(blocks) => Some(blocks),
        }
    }

    /// The number for a corpus of this size. Says why, where it chooses.
    ///
    /// # Errors
    /// If no corpus has this distance.
    pub fn for_corpus(self, distance: u32, documents: f64) -> Result<u32, UsageError> {
        if let Self::Fixed(blocks) = self {
            return Ok(blocks);
        }
        let layout = Layout::for_documents(documents, distance);
        let layout = layout.map_err(|error| UsageError(error.to_string()))?;
        note(format!(
            "{}: for distance {distance} and {documents} documents, of which a search compares about {:.0}",
            counted(layout.blocks(), "block"),
            layout.candidates(documents).ceil(),
        ));
        Ok(layout.blocks())
    }
}

impl FromStr for Blocks {
    type Err = UsageError;

    fn from_str(text: &str) -> Result<Self, UsageError> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let message = || UsageError("write auto or a number".to_owned());
        text.parse().map(Self::Fixed).map_err(|_| message())
    }
}

/// Reads a number of documents, such as `1e8`.
pub(crate) fn document_count(text: &str) -> Result<f64, UsageError> {
    let number = text.parse::<f64>().ok();
    let is_count = |number: &f64| (1.0..=1e18).contains(number) && number.fract() == 0.0;
    let message = || UsageError("write a whole number from 1 to 1e18, such as 1e8".to_owned());
    number.filter(is_count).ok_or_else(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_auto_or_a_number() {
        assert_eq!("auto".parse::<Blocks>().unwrap(), Blocks::Auto);
        assert_eq!("6".parse::<Blocks>().unwrap(), Blocks::Fixed(6));
        for text in ["", "Auto", "-1", "6x", "4294967296"] {
            assert!(text.parse::<Blocks>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn only_a_whole_number_of_documents_counts_them() {
        assert_eq!(document_count("1e8").unwrap().to_string(), "100000000");
        for text in ["0", "-1", "1.5", "1e19", "NaN", "inf", ""] {
            let message = document_count(text).unwrap_err().to_string();
            assert!(message.contains("from 1 to 1e18"), "{text:?}: {message}");
        }
        assert!(document_count("1e18").is_ok());
    }

    #[test]
    fn a_corpus_gets_the_blocks_that_are_said_or_chosen() {
        assert_eq!(Blocks::Fixed(70).for_corpus(3, 1e7).unwrap(), 70);
        assert_eq!(Blocks::Auto.for_corpus(6, 1e7).unwrap(), 8);
        assert!(Blocks::Auto.for_corpus(64, 1e7).is_err());
    }
}
