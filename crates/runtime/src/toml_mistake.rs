//! Where a TOML text is wrong, and why, for messages of one line.

use crate::terminal::escaped;

/// Line and column of the mistake, as in [`position`], and its explanation on one line.
#[must_use]
pub fn locate(text: &str, error: &toml::de::Error) -> (usize, usize, String) {
    let start = error.span().map_or(0, |span| span.start);
    let (line, column) = position(text, start);
    (line, column, one_line(error.message()))
}

/// Line and column, both from 1, of a byte offset. Columns count characters.
#[must_use]
pub fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[line_start..].chars().count() + 1)
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
        assert_eq!(position("", 0), (1, 1));
        assert_eq!(position("ab\ncd", 3), (2, 1));
        assert_eq!(position("é = 1", 3), (1, 3));
        assert_eq!(position("ab\n", 99), (2, 1));
    }
}
