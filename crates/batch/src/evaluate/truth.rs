//! Which pairs of texts are near-duplicates: by their similarity, or because a file says so.

use std::collections::{BTreeMap, HashSet};
use std::str::FromStr;

use simshard_simhash::Window;

/// True pairs are those whose sets of runs of words have at least a Jaccard similarity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    /// The words of a run.
    pub window: Window,
    /// The least similarity of a true pair.
    pub least: f64,
}

/// A truth or labels that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadTruth(String);

impl FromStr for Truth {
    type Err = BadTruth;

    fn from_str(text: &str) -> Result<Self, BadTruth> {
        let read = || {
            let (words, least) = text.strip_prefix("jaccard:")?.split_once(':')?;
            let window = Window::new(words.parse().ok()?)?;
            let least: f64 = least.parse().ok()?;
            (least > 0.0 && least <= 1.0).then_some(Self { window, least })
        };
        let message = "write jaccard:WORDS:LEAST, such as jaccard:5:0.8, with 1 to 255 words and a \
                       similarity above 0, at most 1";
        read().ok_or_else(|| BadTruth(message.to_owned()))
    }
}

/// Pairs of ids, and whether each is a pair of near-duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Each pair once, the smaller id first.
    pub(super) pairs: BTreeMap<(String, String), bool>,
}

impl Labels {
    /// How many pairs name one of these ids.
    pub(super) fn that_name(&self, ids: &HashSet<String>) -> u64 {
        let pairs = self.pairs.keys();
        let named = pairs.filter(|(a, b)| ids.contains(a) || ids.contains(b));
        named.count() as u64
    }

    /// Reads `id<TAB>id<TAB>0|1`, a pair a line. Blank lines are skipped.
    ///
    /// # Errors
    /// The first line that is none, or contradicts another.
    pub fn parse(text: &str) -> Result<Self, BadTruth> {
        let mut pairs = BTreeMap::new();
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let lines = (1..).zip(text.lines());
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let bad = |what: &str| Err(BadTruth(format!("line {number}: {what}")));
            let fields: Vec<&str> = line.split('\t').collect();
            let (a, b, is_true) = match fields[..] {
                [a, b, "1"] => (a, b, true),
                [a, b, "0"] => (a, b, false),
                _ => return bad("not two ids and 0 or 1, with tabs between"),
            };
            if a == b {
                return bad("a text is no pair with itself");
            }
            let pair = (a.min(b).to_owned(), a.max(b).to_owned());
            if pairs
                .insert(pair, is_true)
                .is_some_and(|before| before != is_true)
            {
                return bad("the pair has another label before");
            }
        }
        Ok(Self { pairs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truth_is_a_length_and_a_similarity() {
        let truth: Truth = "jaccard:5:0.8".parse().unwrap();
        assert_eq!((truth.window.size(), truth.least), (5, 0.8));
        for bad in [
            "",
            "jaccard:5",
            "jaccard:0:0.8",
            "jaccard:256:1",
            "jaccard:5:0",
            "jaccard:5:1.1",
            "jaccard:5:NaN",
            "cosine:5:0.8",
        ] {
            assert!(bad.parse::<Truth>().is_err(), "{bad}");
        }
    }

    #[test]
    fn labels_are_pairs_in_either_order() {
        let labels = Labels::parse("b\ta\t1\n\na\tb\t1\r\n \r\nb\tc\t0\n\n").unwrap();
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let expected = [(pair("a", "b"), true), (pair("b", "c"), false)];
        assert_eq!(labels.pairs, expected.into());
        for (bad, line) in [
            ("a\tb\n", "line 1:"),
            ("a\tb\t1\na\tb\t2\n", "line 2:"),
            ("a\tb\t1\n\n\t\t1 \n", "line 3:"),
            ("a\ta\t1\n", "line 1:"),
            ("a\tb\t1\nb\ta\t0\n", "line 2:"),
        ] {
            let error = Labels::parse(bad).unwrap_err().to_string();
            assert!(error.starts_with(line), "{error}");
        }
    }
}
