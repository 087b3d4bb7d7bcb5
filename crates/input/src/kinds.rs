//! Counts by kind, of what was left out: the kinds come from the input.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use crate::problem::beginning;

/// Most kinds that are told apart: the names come from outside, and may be many.
const MOST_KINDS: usize = 200;

/// Characters of a name.
const NAME_CHARS: usize = 60;

/// Kinds that a message names.
const NAMED: usize = 12;

/// What is counted once there are too many kinds.
const MORE: &str = "more kinds";

/// How many there are of each kind. Displays as `image/png: 12, request: 3`, the most first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds(BTreeMap<String, u64>);

impl Kinds {
    /// This number of one kind.
    pub(crate) fn of(kind: &str, count: u64) -> Self {
        let mut kinds = Self::default();
        kinds.add(kind, count);
        kinds
    }

    /// Counts more of a kind.
    pub(crate) fn add(&mut self, kind: &str, more: u64) {
        if let Some(count) = self.0.get_mut(kind) {
            *count += more;
            return;
        }
        let name = if self.0.len() < MOST_KINDS {
            beginning(kind, NAME_CHARS)
        } else {
            MORE.to_owned()
        };
        *self.0.entry(name).or_default() += more;
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The kinds with their counts, the most first.
    #[must_use]
    pub fn counts(&self) -> Vec<(&str, u64)> {
        let counts = self.0.iter().map(|(kind, count)| (kind.as_str(), *count));
        let mut counts: Vec<_> = counts.collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    }
}

impl AddAssign<&Self> for Kinds {
    fn add_assign(&mut self, more: &Self) {
        for (kind, count) in &more.0 {
            self.add(kind, *count);
        }
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts();
        for (place, (kind, count)) in counts.iter().take(NAMED).enumerate() {
            let lead = if place == 0 { "" } else { ", " };
            write!(f, "{lead}{kind}: {count}")?;
        }
        let more: u64 = counts.iter().skip(NAMED).map(|(_, count)| count).sum();
        if more > 0 {
            write!(f, ", others: {more}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_from_outside_are_bounded_and_the_most_come_first() {
        let mut kinds = Kinds::of("b", 2);
        kinds.add("a", 1);
        kinds.add("b", 1);
        assert_eq!(kinds.to_string(), "b: 3, a: 1");
        for kind in 0..10_000 {
            kinds.add(&format!("{kind}\n{}", "x".repeat(1000)), 1);
        }
        assert_eq!(kinds.total(), 10_004);
        assert!(kinds.counts().len() <= MOST_KINDS + 1);
        let shown = kinds.to_string();
        assert!(shown.len() < 2000 && !shown.contains('\n'), "{shown}");
        assert!(shown.starts_with("more kinds: 9802, b: 3, "), "{shown}");
        let mut twice = kinds.clone();
        twice += &kinds;
        assert_eq!(twice.total(), 2 * kinds.total());
    }
}
