//! Where a TOML text is wrong, and why, for messages of one line.

use crate::terminal::escaped;

/// Where a TOML text is wrong, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} column {column}: {message}")]
pub struct TomlMistake {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What is wrong there, on one line.
    pub message: String,
}

impl TomlMistake {
    /// The mistake that the TOML reader found in a text.
    #[must_use]
    pub fn of(text: &str, error: &toml::de::Error) -> Self {
        let start = error.span().map_or(0, |span| span.start);
        Self::at(text, start, one_line(error.message()))
    }

    /// A mistake at a byte offset of a text.
    #[must_use]
    pub fn at(text: &str, offset: usize, message: String) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message,
        }
    }
}

/// An explanation of the TOML reader as one line: it may quote what the file holds.
fn one_line(message: &str) -> String {
    escaped(&message.trim().replace('\n', ", ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_and_clamp_to_the_end() {
        let position = |text, offset| {
            let mistake = TomlMistake::at(text, offset, String::new());
            (mistake.line, mistake.column)
        };
        assert_eq!(position("", 0), (1, 1));
        assert_eq!(position("ab\ncd", 3), (2, 1));
        assert_eq!(position("é = 1", 3), (1, 3));
        assert_eq!(position("ab\n", 99), (2, 1));
    }
}
