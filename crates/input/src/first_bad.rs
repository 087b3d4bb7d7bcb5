//! The first lines, rows and records that were left out, for messages.

use std::fmt::Display;
use std::ops::AddAssign;

use crate::problem::SKIP_REMEDY;

/// Most that are named: an input of another format may have nothing but bad lines.
const MOST: usize = 5;

/// What is wrong with the first of them, each with its file and place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstBad(Vec<Bad>);

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bad {
    /// Its line, where it is one.
    line: u64,
    told: String,
}

impl FirstBad {
    /// A row or record.
    pub(crate) fn one(error: &impl Display) -> Self {
        let mut one = Self::default();
        one.add(0, error);
        one
    }

    /// Adds the next one, which is on this line.
    pub(crate) fn add(&mut self, line: u64, error: &impl Display) {
        if self.0.len() < MOST {
            let mut told = error.to_string();
            // It was followed.
            if told.ends_with(SKIP_REMEDY) {
                told.truncate(told.len() - SKIP_REMEDY.len());
            }
            self.0.push(Bad { line, told });
        }
    }

    /// Adds those of the same lines that are bad for another reason.
    pub(crate) fn merge(&mut self, others: &Self) {
        self.0.extend(others.0.iter().cloned());
        self.0.sort_by_key(|bad| bad.line);
        self.0.truncate(MOST);
    }

    /// The first `count` of them.
    pub(crate) fn first(&self, count: usize) -> Self {
        Self(self.0.iter().take(count).cloned().collect())
    }

    /// The messages, and how many more of `all` there are, such as `and 3 more`.
    pub(crate) fn told(&self, all: u64) -> Vec<String> {
        let mut told: Vec<String> = self.0.iter().map(|bad| bad.told.clone()).collect();
        let more = all.saturating_sub(told.len() as u64);
        if more > 0 && !told.is_empty() {
            told.push(format!("and {more} more"));
        }
        told
    }
}

impl AddAssign<&Self> for FirstBad {
    fn add_assign(&mut self, more: &Self) {
        self.0.extend(more.0.iter().cloned());
        self.0.truncate(MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_named_and_the_others_counted() {
        let mut bad = FirstBad::default();
        assert!(bad.told(0).is_empty());
        bad.add(1, &"a:1: x");
        bad += &FirstBad::one(&"a:2: y");
        assert_eq!(bad.told(2), ["a:1: x", "a:2: y"]);
        for line in 3..9 {
            bad.add(line, &format!("a:{line}: z"));
            bad += &bad.clone();
        }
        let told = bad.told(20);
        assert_eq!(told.len(), MOST + 1);
        assert_eq!(told[MOST], "and 15 more");
        assert_eq!(bad.first(1).told(1), ["a:1: x"]);
        let mut others = FirstBad::default();
        others.add(2, &format!("a:2: w{SKIP_REMEDY}"));
        bad = bad.first(1);
        others.merge(&bad);
        assert_eq!(others.told(3), ["a:1: x", "a:2: w", "and 1 more"]);
    }
}
