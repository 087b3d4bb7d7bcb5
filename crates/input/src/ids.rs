//! Which ids will do.

use crate::document::MAX_ID_BYTES;
use crate::problem::{LineProblem, excerpt};

/// Which ids will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    /// All that a corpus takes.
    Any,
    /// Those that a column of TSV can hold: without tabs, line breaks and NUL bytes,
    /// which TSV is refused for when it is read.
    Tsv,
}

impl Ids {
    /// Takes an id, or says why it will not do.
    pub(crate) fn check(self, id: &str) -> Result<(), LineProblem> {
        if id.len() > MAX_ID_BYTES {
            return Err(LineProblem::IdTooLong {
                value: excerpt(id),
                bytes: id.len(),
            });
        }
        if self.hold(id) {
            return Ok(());
        }
        Err(LineProblem::IdNotTsv { value: excerpt(id) })
    }

    /// Whether an id of a corpus is one of these.
    #[must_use]
    pub fn hold(self, id: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Tsv => !id.contains(['\t', '\n', '\r', '\0']),
        }
    }
}
