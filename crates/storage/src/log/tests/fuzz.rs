//! Hostile bytes: what reads records and frames takes any of them without a panic, and believes only what
//! it could have written itself. Twenty thousand cases each, or a million with `SIMSHARD_LONG`.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::{STORE, insert};
use crate::log::Record;
use crate::log::frame::{Body, FILE_HEADER_BYTES, FileHeader, Frames, put_frame};
use crate::tests::fuzz_cases;
use crate::{FIRST_FORMAT, FORMAT_VERSION};

const HEADER: FileHeader = FileHeader {
    format: FIRST_FORMAT,
    store: STORE,
    first: 1,
};

/// What comes in the place of some bytes.
#[derive(Clone, Debug)]
enum New {
    Zeros(usize),
    /// A copy of this many of the bytes that follow.
    Again(usize),
    Bytes(Vec<u8>),
}

/// The bytes of something sound, some of them then replaced.
fn damaged(sound: fn(u64) -> Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let new = prop_oneof![
        1 => (0..9_usize).prop_map(New::Zeros),
        1 => (0..9_usize).prop_map(New::Again),
        2 => vec(any::<u8>(), 0..9).prop_map(New::Bytes),
    ];
    let damages = vec((any::<Index>(), 0..9_usize, new), 0..6);
    (0..40_u64, damages).prop_map(move |(number, damages)| {
        let mut bytes = sound(number);
        for (start, length, new) in damages {
            let start = start.index(bytes.len() + 1);
            let end = (start + length).min(bytes.len());
            let new = match new {
                New::Zeros(count) => vec![0; count],
                New::Again(count) => bytes[start..].iter().take(count).copied().collect(),
                New::Bytes(bytes) => bytes,
            };
            bytes.splice(start..end, new);
        }
        bytes
    })
}

fn body(number: u64) -> Vec<u8> {
    let record = match number {
        0 => Record::Mark,
        number => insert(number, number % 7),
    };
    record.encode().unwrap()
}

fn file(number: u64) -> Vec<u8> {
    let mut file = HEADER.encode().to_vec();
    for sequence in 1..number % 8 {
        let synced = file.len() as u64;
        let body = Body::new(body(sequence), FIRST_FORMAT);
        put_frame(&mut file, HEADER.seed(), sequence, synced, &body);
    }
    file.resize(file.len() + number as usize, 0);
    file
}

proptest! {
    #![proptest_config(fuzz_cases())]

    /// L2.
    #[test]
    fn a_record_is_read_only_from_its_own_bytes(bytes in damaged(body)) {
        if let Ok(record) = Record::decode(&bytes, FORMAT_VERSION) {
            prop_assert_eq!(record.encode().unwrap(), bytes);
        }
    }

    /// L2.
    #[test]
    fn frames_are_read_only_from_their_own_bytes(bytes in damaged(file)) {
        let Ok(header) = FileHeader::decode(&bytes) else {
            return Ok(());
        };
        prop_assert_eq!(&bytes[..FILE_HEADER_BYTES], header.encode());
        let mut frames = Frames::new(&bytes, &header);
        for (place, frame) in frames.by_ref().enumerate() {
            prop_assert_eq!(frame.sequence, header.first + place as u64);
            prop_assert_eq!(frame.body, body(frame.sequence));
        }
        frames.rest();
    }
}
