//! Inputs that are nearly right: pieces of real ones in any order, with some bytes put wrong.

use std::fmt;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Bytes that print as a literal.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// Rows of at most `most` pieces; most rows are damaged.
pub(super) fn spliced(pieces: Vec<Vec<u8>>, most: usize) -> impl Strategy<Value = Bytes> {
    let piece = prop_oneof![
        1 => number().prop_map(|number| number.to_string().into_bytes()),
        11 => select(pieces.clone()),
    ];
    let row = vec(piece, 0..=most).prop_map(|row| row.concat());
    damaged(row, pieces)
}

/// Text of at most `most` pieces and other characters.
pub(super) fn spliced_text(
    pieces: &'static [&'static str],
    most: usize,
) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        5 => select(pieces).prop_map(|piece| Some(piece.to_owned())),
        1 => number().prop_map(|number| Some(number.to_string())),
        1 => character().prop_map(|character| Some(character.to_string())),
        // The last character goes.
        1 => Just(None),
    ];
    vec(piece, 0..=most).prop_map(|row| {
        let mut text = String::new();
        for piece in row {
            match piece {
                Some(piece) => text.push_str(&piece),
                None => drop(text.pop()),
            }
        }
        text
    })
}

/// A number of any length, or one at a limit of the usual types.
fn number() -> impl Strategy<Value = i128> {
    let limit = || (0..70_u32).prop_map(|bits| 1_i128 << bits);
    prop_oneof![
        2 => (any::<u64>(), limit()).prop_map(|(any, limit)| i128::from(any) & (limit - 1)),
        1 => (limit(), -2..=2_i128).prop_map(|(limit, beside)| limit + beside),
        1 => limit().prop_map(|limit| -limit),
    ]
}

/// Any character, the first of them often.
fn character() -> impl Strategy<Value = char> {
    (any::<u32>(), 0..22_u32).prop_map(|(any, bits)| {
        let code = any & ((1 << bits) - 1);
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    })
}

/// Something put wrong in some bytes.
#[derive(Clone, Debug)]
enum Damage {
    Flip(u8),
    Put(u8),
    Insert(Vec<u8>),
    Replace(Vec<u8>),
    Remove,
    Repeat(usize),
    CutOff,
}

impl Damage {
    fn apply(self, bytes: &mut Vec<u8>, at: usize, end: usize) {
        /// A file does not grow beyond this by being repeated.
        const MOST: usize = 16 << 10;
        match self {
            Self::Flip(bits) if at < end => bytes[at] ^= bits,
            Self::Put(byte) if at < end => bytes[at] = byte,
            Self::Flip(_) | Self::Put(_) => {}
            Self::Insert(piece) => drop(bytes.splice(at..at, piece)),
            Self::Replace(piece) => drop(bytes.splice(at..end, piece)),
            Self::Remove => drop(bytes.drain(at..end)),
            Self::Repeat(times) => {
                let again = bytes[at..end].repeat(times);
                if bytes.len() + again.len() <= MOST {
                    bytes.splice(at..at, again);
                }
            }
            Self::CutOff => bytes.truncate(at),
        }
    }
}

/// What limits and flags are made of.
const TELLING: [u8; 10] = [0, 1, 0x7F, 0x80, 0xFF, b'\n', b'\r', b'"', b'\\', b'\t'];

/// Bytes with a few places put wrong, or none. Pieces and random bytes come into them.
pub(super) fn damaged(
    bytes: impl Strategy<Value = Vec<u8>>,
    pieces: Vec<Vec<u8>>,
) -> impl Strategy<Value = Bytes> {
    let damage = prop_oneof![
        4 => (0..8_u8).prop_map(|bit| Damage::Flip(1 << bit)),
        4 => select(&TELLING[..]).prop_map(Damage::Put),
        4 => any::<u8>().prop_map(Damage::Put),
        4 => select(pieces.clone()).prop_map(Damage::Insert),
        4 => select(pieces).prop_map(Damage::Replace),
        4 => Just(Damage::Remove),
        4 => (0..7_u32).prop_map(|doublings| Damage::Repeat(1 << doublings)),
        1 => Just(Damage::CutOff),
    ];
    let place = (any::<Index>(), 0..32_usize);
    (bytes, vec((place, damage), 0..5)).prop_map(|(mut bytes, damages)| {
        for ((at, length), damage) in damages {
            let at = at.index(bytes.len() + 1);
            let end = bytes.len().min(at + length);
            damage.apply(&mut bytes, at, end);
        }
        Bytes(bytes)
    })
}

/// How many cases each target runs.
pub(super) fn cases() -> ProptestConfig {
    ProptestConfig::with_cases(match std::env::var_os("SIMSHARD_LONG") {
        Some(_) => 1_000_000,
        None => 10_000,
    })
}

/// Checks that a message can be printed: one line, and short whatever the input was.
pub(super) fn assert_printable(message: &str) {
    assert!(!message.chars().any(char::is_control), "{message:?}");
    assert!(message.len() < 4_000, "{} bytes", message.len());
}
