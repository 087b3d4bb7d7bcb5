//! The count of texts that say too little for a fingerprint.

use std::fmt;
use std::ops::AddAssign;

use simshard_simhash::Degenerate;

/// How many texts are degenerate, by the first reason that holds for each. Displays as
/// `degenerate texts: 2 of few distinct runs, 1 of mostly digits`, or as nothing where none is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DegenerateTexts([u64; Degenerate::ALL.len()]);

impl DegenerateTexts {
    /// Counts a text that is degenerate for this reason.
    pub(crate) fn count(&mut self, reason: Degenerate) {
        let counts = Degenerate::ALL.iter().zip(&mut self.0);
        for (_, count) in counts.filter(|(one, _)| **one == reason) {
            *count += 1;
        }
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The reasons that hold for some, with how many.
    pub fn reasons(self) -> impl Iterator<Item = (Degenerate, u64)> {
        let all = Degenerate::ALL.into_iter().zip(self.0);
        all.filter(|&(_, count)| count > 0)
    }
}

impl AddAssign for DegenerateTexts {
    fn add_assign(&mut self, more: Self) {
        for (count, more) in self.0.iter_mut().zip(more.0) {
            *count += more;
        }
    }
}

impl fmt::Display for DegenerateTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lead = "degenerate texts: ";
        for (reason, count) in self.reasons() {
            write!(f, "{lead}{count} of {}", reason.name())?;
            lead = ", ";
        }
        Ok(())
    }
}
