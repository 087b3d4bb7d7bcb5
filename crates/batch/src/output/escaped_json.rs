//! JSON that any terminal may show, see [`simshard_runtime::terminal`].

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use simshard_runtime::terminal::escaped_json;

/// Writes a value as compact JSON, without what a terminal would obey.
///
/// # Errors
/// If writing fails, or the value is none that JSON has.
pub fn write_json(out: impl Write, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    Ok(value.serialize(&mut Serializer::with_formatter(out, Escaped))?)
}

struct Escaped;

impl Formatter for Escaped {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        out.write_all(escaped_json(fragment).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use simshard_runtime::terminal::is_obeyed;

    use super::*;

    /// Texts with many of the characters that matter.
    fn text() -> impl Strategy<Value = String> {
        let character = prop_oneof![
            any::<char>(),
            prop::char::range('\0', '\u{a0}'),
            prop::char::range('\u{2000}', '\u{2070}'),
        ];
        prop::collection::vec(character, 0..20).prop_map(String::from_iter)
    }

    proptest! {
        /// TE1.
        #[test]
        fn what_is_written_parses_to_the_same_and_holds_nothing_that_a_terminal_obeys(
            value in prop::collection::btree_map(text(), prop::option::of(text()), 0..4),
        ) {
            let mut written = Vec::new();
            write_json(&mut written, &value).unwrap();
            let written = String::from_utf8(written).unwrap();
            prop_assert!(!written.contains(is_obeyed), "{}", written);
            let read: BTreeMap<String, Option<String>> = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(read, value);
        }
    }
}
