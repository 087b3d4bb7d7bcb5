//! Text that is safe to print on a terminal.
//!
//! Ids, paths and the messages of other processes can hold characters that a terminal obeys. Such characters move the
//! cursor, reverse the reading order, or start a line that looks like one of ours. This module owns the rule which
//! these are.
//!
//! # Invariants
//! - TE1: what [`escaped`] and [`escaped_json`] return holds no character that a terminal obeys. JSON keeps its meaning,
//!   and the line breaks between its values.

use std::borrow::Cow;
use std::fmt::Display;

/// Whether a terminal obeys this character instead of showing it. It obeys the C0 controls with tab and line breaks,
/// DEL, and the C1 controls. It also obeys the line and paragraph separators, and the marks that change the direction
/// of text.
#[must_use]
pub fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// A text from outside on one line, for people: such as `\n` and `\u{1b}` for what a terminal would obey.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    replaced(text, is_obeyed, |character| {
        character.escape_default().to_string()
    })
}

/// JSON that a terminal shows as it is, and that parses to the same value. JSON itself demands that the C0 controls are
/// escaped within strings, so those that are left are white space between values, and stay.
#[must_use]
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    let is_within_string = |character| character >= '\u{7f}' && is_obeyed(character);
    // None of them is beyond U+FFFF, where JSON needs two escapes.
    replaced(json, is_within_string, |character| {
        format!("\\u{:04x}", u32::from(character))
    })
}

/// A number with what it counts, by the name of one: `1 pair`, `2 pairs`.
#[must_use]
pub fn counted(number: impl Display, name: &str) -> String {
    let number = number.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {name}{plural}")
}

fn replaced(
    text: &str,
    wanted: impl Fn(char) -> bool,
    by: impl Fn(char) -> String,
) -> Cow<'_, str> {
    let Some(first) = text.find(&wanted) else {
        return Cow::Borrowed(text);
    };
    let (before, rest) = text.split_at(first);
    let mut shown = before.to_owned();
    for character in rest.chars() {
        if wanted(character) {
            shown.push_str(&by(character));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every character that a terminal obeys, listed by range.
    fn obeyed() -> impl Iterator<Item = char> {
        let ranges = [
            ('\0', '\u{1f}'),
            ('\u{7f}', '\u{9f}'),
            ('\u{61c}', '\u{61c}'),
            ('\u{200e}', '\u{200f}'),
            ('\u{2028}', '\u{202e}'),
            ('\u{2066}', '\u{2069}'),
        ];
        ranges.into_iter().flat_map(|(first, last)| first..=last)
    }

    /// TE1.
    #[test]
    fn one_is_singular_and_all_other_numbers_are_plural() {
        let counted = [0, 1, 2, 11].map(|number| counted(number, "block"));
        assert_eq!(counted, ["0 blocks", "1 block", "2 blocks", "11 blocks"]);
    }

    #[test]
    fn everything_that_a_terminal_obeys_is_escaped_and_nothing_else() {
        let all: Vec<char> = obeyed().collect();
        for character in '\0'..=char::MAX {
            let text = format!("a{character}b");
            let shown = escaped(&text);
            assert_eq!(shown == text, !all.contains(&character), "{character:?}");
            assert!(!shown.contains(is_obeyed), "{shown:?}");
        }
        assert_eq!(escaped("\0\t\r\n\u{1b}[2K"), r"\u{0}\t\r\n\u{1b}[2K");
        assert_eq!(escaped("\u{9b}é\u{7f}\u{202e}"), r"\u{9b}é\u{7f}\u{202e}");
    }

    /// TE1.
    #[test]
    fn json_holds_nothing_that_a_terminal_obeys_and_means_the_same() {
        let text: String = obeyed().chain("é\"\\👩\u{200d}🔬".chars()).collect();
        let value = serde_json::json!({ &text: [&text, 1, null] });
        let json = serde_json::to_string(&value).unwrap();
        let shown = escaped_json(&json);
        assert!(!shown.contains(is_obeyed), "{shown}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            value
        );
        assert_eq!(
            escaped_json("\"\u{7f}\u{9b}\u{202e}\"\n"),
            "\"\\u007f\\u009b\\u202e\"\n"
        );
    }
}
