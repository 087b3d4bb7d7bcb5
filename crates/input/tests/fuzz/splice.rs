//! Inputs that are nearly right: pieces of real ones in any order, with some bytes put wrong.

use std::fmt;
use std::ops::Bound;

use bolero::{Driver, ValueGenerator};

/// Bytes that print as a literal.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// Makes rows of pieces, most of them damaged.
pub(super) struct Spliced {
    pub(super) pieces: Vec<Vec<u8>>,
    /// The most pieces of a row.
    pub(super) most: usize,
}

/// Makes text of pieces and of any characters.
pub(super) struct SplicedText {
    pub(super) pieces: &'static [&'static str],
    /// The most pieces of a text.
    pub(super) most: usize,
}

impl Spliced {
    pub(super) fn of(pieces: &[&str], most: usize) -> Self {
        let pieces = pieces.iter().map(|piece| piece.as_bytes().to_vec());
        Self {
            pieces: pieces.collect(),
            most,
        }
    }
}

impl ValueGenerator for Spliced {
    type Output = Bytes;

    fn generate<D: Driver>(&self, driver: &mut D) -> Option<Bytes> {
        let mut bytes = Vec::new();
        for _ in 0..below(driver, self.most + 1)? {
            match below(driver, 12)? {
                0 => bytes.extend_from_slice(number(driver)?.to_string().as_bytes()),
                _ => bytes.extend_from_slice(pick(driver, &self.pieces)?),
            }
        }
        damage(driver, &mut bytes, &self.pieces)?;
        Some(Bytes(bytes))
    }
}

impl ValueGenerator for SplicedText {
    type Output = String;

    fn generate<D: Driver>(&self, driver: &mut D) -> Option<String> {
        let mut text = String::new();
        for _ in 0..below(driver, self.most + 1)? {
            match below(driver, 8)? {
                0 => text.push_str(&number(driver)?.to_string()),
                1 => text.push(character(driver)?),
                2 => drop(text.pop()),
                _ => text.push_str(pick(driver, self.pieces)?),
            }
        }
        Some(text)
    }
}

/// A number below `end`, which is above 0.
fn below<D: Driver>(driver: &mut D, end: usize) -> Option<usize> {
    driver.gen_usize(Bound::Included(&0), Bound::Excluded(&end))
}

fn byte<D: Driver>(driver: &mut D) -> Option<u8> {
    driver.gen_u8(Bound::Unbounded, Bound::Unbounded)
}

/// One of several.
pub(super) fn pick<'a, D: Driver, T>(driver: &mut D, from: &'a [T]) -> Option<&'a T> {
    from.get(below(driver, from.len())?)
}

/// A number of any length, or one at a limit of the usual types.
fn number<D: Driver>(driver: &mut D) -> Option<i128> {
    let bits = below(driver, 70)?;
    let near = 1_i128 << bits;
    match below(driver, 4)? {
        0 => Some(near + below(driver, 5)? as i128 - 2),
        1 => Some(-near),
        _ => {
            let any = driver.gen_u64(Bound::Unbounded, Bound::Unbounded)?;
            Some(i128::from(any) & (near - 1))
        }
    }
}

/// Any character, the first of them often.
fn character<D: Driver>(driver: &mut D) -> Option<char> {
    let bits = below(driver, 22)?;
    let code = driver.gen_u32(Bound::Included(&0), Bound::Excluded(&(1 << bits)))?;
    Some(char::from_u32(code).unwrap_or('\u{FFFD}'))
}

/// Puts some bytes wrong, or none.
pub(super) fn damage<D: Driver>(
    driver: &mut D,
    bytes: &mut Vec<u8>,
    pieces: &[Vec<u8>],
) -> Option<()> {
    /// What limits and flags are made of.
    const TELLING: [u8; 10] = [0, 1, 0x7F, 0x80, 0xFF, b'\n', b'\r', b'"', b'\\', b'\t'];
    /// A file does not grow beyond this by being repeated.
    const MOST: usize = 16 << 10;
    for _ in 0..below(driver, 5)? {
        let at = below(driver, bytes.len() + 1)?;
        let end = bytes.len().min(at + below(driver, 32)?);
        match below(driver, 8)? {
            0 if at < end => bytes[at] ^= 1 << below(driver, 8)?,
            1 if at < end => bytes[at] = *pick(driver, &TELLING)?,
            2 if at < end => bytes[at] = byte(driver)?,
            3 => drop(bytes.splice(at..at, pick(driver, pieces)?.iter().copied())),
            4 => drop(bytes.splice(at..end, pick(driver, pieces)?.iter().copied())),
            5 => drop(bytes.drain(at..end)),
            6 => {
                let times = 1 << below(driver, 7)?;
                let again = bytes[at..end].repeat(times);
                if bytes.len() + again.len() <= MOST {
                    bytes.splice(at..at, again);
                }
            }
            // The end is cut off in one case of eight that are damaged.
            7 if below(driver, 4)? == 0 => bytes.truncate(at),
            _ => {}
        }
    }
    Some(())
}

/// How many cases each target runs.
pub(super) fn cases() -> usize {
    match std::env::var_os("SIMSHARD_LONG") {
        Some(_) => 1_000_000,
        None => 10_000,
    }
}

/// Checks that a message can be printed: one line, and short whatever the input was.
pub(super) fn assert_printable(message: &str) {
    assert!(!message.chars().any(char::is_control), "{message:?}");
    assert!(message.len() < 4_000, "{} bytes", message.len());
}
