//! Texts that say too little for a fingerprint: they match each other whatever they are about.

use crate::{Window, word_runs};

/// Fewer distinct runs of 2 words than this are few.
const FEW_RUNS: usize = 8;

/// The largest part of all runs of 2 words that one of them may be, in percent.
const MOST_OF_ONE: usize = 30;

/// A text is judged by this many bytes, from its first letter or digit on. To judge all of a long one would take as long
/// as its fingerprint.
const JUDGED: usize = 1024;

/// Why a text is degenerate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Degenerate {
    /// It has fewer than 8 distinct runs of 2 words.
    Few,
    /// One run of 2 words is over 30 % of all its runs.
    Repetitive,
    /// Over half of its letters and digits are digits.
    Digits,
}

impl Degenerate {
    /// All reasons.
    pub const ALL: [Self; 3] = [Self::Few, Self::Repetitive, Self::Digits];

    /// The first reason that holds for 1024 bytes of a text, from its first letter or digit on, if any.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        // Blanks and rules.
        let text = text.trim_start_matches(|one: char| !one.is_alphanumeric());
        let text = &text[..text.floor_char_boundary(JUDGED)];
        let mut runs = word_runs(text, Window::TWO);
        let all = runs.len();
        runs.sort_unstable();
        let counts = || runs.chunk_by(|a, b| a == b).map(<[u64]>::len);
        if counts().count() < FEW_RUNS {
            return Some(Self::Few);
        }
        if counts().any(|count| count * 100 > all * MOST_OF_ONE) {
            return Some(Self::Repetitive);
        }
        let [digits, letters] = digits_and_letters(text);
        (digits > letters).then_some(Self::Digits)
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Few => "few distinct runs",
            Self::Repetitive => "one run over and over",
            Self::Digits => "mostly digits",
        }
    }
}

/// How many characters of a text are digits, and how many letters. Those of ASCII are counted byte by byte, many at a
/// time.
fn digits_and_letters(text: &str) -> [usize; 2] {
    let bytes = text.as_bytes();
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = bytes.iter().filter(|byte| byte.is_ascii_alphabetic());
    let mut counts = [digits, letters.count()];
    if !text.is_ascii() {
        for one in text.chars().filter(|one| !one.is_ascii()) {
            counts[0] += usize::from(one.is_numeric());
            counts[1] += usize::from(one.is_alphabetic());
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_that_holds_is_given() {
        let prose = "the quick brown fox jumps over the lazy dog and runs home";
        let digits = (100..140).map(|n| format!("{n} ")).collect::<String>();
        for (text, reason) in [
            ("", Some(Degenerate::Few)),
            ("a b c d e f g h", Some(Degenerate::Few)),
            ("a b c d e f g h i", None),
            (&"page not found ".repeat(50), Some(Degenerate::Few)),
            (prose, None),
            (
                &format!("{prose} {}", "tick ".repeat(9)),
                Some(Degenerate::Repetitive),
            ),
            (&digits, Some(Degenerate::Digits)),
            (&format!("{prose} {}", &digits[..40]), None),
        ] {
            assert_eq!(Degenerate::of(text), reason, "{text}");
        }
    }

    #[test]
    fn digits_and_letters_of_all_scripts_are_counted() {
        let text = "a1é٣中Ⅷ½_ -";
        let counted = |is: fn(char) -> bool| text.chars().filter(|one| is(*one)).count();
        let expected = [char::is_numeric, char::is_alphabetic].map(counted);
        assert_eq!(digits_and_letters(text), expected);
        assert_eq!(digits_and_letters("a1b22 -"), [3, 2]);
    }

    #[test]
    fn a_text_is_judged_by_its_first_1024_bytes() {
        for (bytes, reason) in [(1024, None), (1025, Some(Degenerate::Few))] {
            let blanks = bytes - "a b c d e f g h".len();
            let text = format!("a b c d e f g h{:>blanks$}", "i");
            assert_eq!(text.len(), bytes);
            assert_eq!(Degenerate::of(&text), reason, "{bytes}");
        }
        let late = format!(
            "{}\n{}a b c d e f g h i",
            "-".repeat(2000),
            " ".repeat(2000)
        );
        assert_eq!(Degenerate::of(&late), None);
        // A character that the end cuts is left out.
        let across = format!("a b c d e f g h{:>1007} é", "");
        assert_eq!(Degenerate::of(&across), Some(Degenerate::Few));
    }
}
