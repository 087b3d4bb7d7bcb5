//! What is to be known of JSON before it is read: how much memory that takes, and whether numbers are what was meant.
//! JavaScript and others round whole numbers from 2^53 on.

/// The largest number that each program reads and writes as it is.
const LARGEST: u64 = (1 << 53) - 1;

/// Digits of a number that are shown.
const SHOWN: usize = 40;

/// Bytes that a value takes once it is read, beside its own.
const BYTES_OF_A_VALUE: usize = 64;

/// Bytes that an object takes then.
const BYTES_OF_AN_OBJECT: usize = 1024;

/// About how many bytes a message takes once it is read.
pub(super) fn bytes_once_read(json: &[u8]) -> usize {
    let cost = |(_, byte)| match byte {
        b',' | b'[' => BYTES_OF_A_VALUE,
        b'{' => BYTES_OF_AN_OBJECT,
        _ => 0,
    };
    json.len() + outside_of_texts(json).map(cost).sum::<usize>()
}

/// The first number that may have been rounded, or is not whole. JSON that is malformed may have others.
pub(super) fn first_inexact(json: &[u8]) -> Option<String> {
    let starts = outside_of_texts(json).filter(|&(at, byte)| {
        let begins = byte == b'-' || byte.is_ascii_digit();
        begins && !(at > 0 && is_of_number(json[at - 1]))
    });
    let numbers = starts.map(|(at, _)| {
        let rest = &json[at..];
        let bytes = rest.iter().take_while(|byte| is_of_number(**byte));
        &rest[..bytes.count()]
    });
    let inexact = numbers.into_iter().find(|number| !is_exact(number))?;
    let shown = &inexact[..inexact.len().min(SHOWN)];
    Some(String::from_utf8_lossy(shown).into_owned())
}

/// The bytes that are in no text, and their places.
fn outside_of_texts(json: &[u8]) -> impl Iterator<Item = (usize, u8)> + '_ {
    let (mut is_inside, mut is_escaped) = (false, false);
    let bytes = json.iter().copied().enumerate();
    bytes.filter(move |&(_, byte)| {
        if is_escaped {
            is_escaped = false;
        } else if byte == b'"' {
            is_inside = !is_inside;
        } else if byte == b'\\' {
            is_escaped = is_inside;
        } else {
            return !is_inside;
        }
        false
    })
}

const fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

fn is_exact(number: &[u8]) -> bool {
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    let text = std::str::from_utf8(digits).unwrap_or_default();
    text.parse::<u64>().is_ok_and(|number| number <= LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_programs_round_are_found_outside_of_texts() {
        for json in [
            "",
            "[0, 1, -1, true, false, 9007199254740991, -9007199254740991]",
            r#"{"a": "9007199254740992", "b\"1.5": ["\\", "1e9"]}"#,
            r#"{"a": "#,
            r#""\"#,
        ] {
            assert_eq!(first_inexact(json.as_bytes()), None, "{json}");
        }
        for number in [
            "9007199254740992",
            "-9007199254740992",
            "18446744073709551615",
            "1.0",
            "1e3",
            "-",
        ] {
            let json = format!(r#"{{"a\\": "1", "b": [1, {number}]}}"#);
            let found = first_inexact(json.as_bytes());
            assert_eq!(found.as_deref(), Some(number), "{json}");
        }
        let long = first_inexact(&[b'7'; 1 << 20]).unwrap();
        assert_eq!(long.len(), SHOWN);
    }

    #[test]
    fn values_take_memory_and_what_texts_have_does_not() {
        let text = format!(r#""{}\"{}""#, "{,".repeat(100), "[,".repeat(100));
        assert_eq!(bytes_once_read(text.as_bytes()), text.len());
        let values = "[1,".repeat(10);
        assert_eq!(
            bytes_once_read(values.as_bytes()),
            30 + 20 * BYTES_OF_A_VALUE
        );
        assert_eq!(bytes_once_read(b"{}"), 2 + BYTES_OF_AN_OBJECT);
    }
}
