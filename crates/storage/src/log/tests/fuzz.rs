//! Hostile bytes: what reads records and frames takes any of them without a panic, and believes only what
//! it could have written itself. Twenty thousand cases each, or a million with `SIMSHARD_LONG`.

use bolero::{Driver, ValueGenerator, check};

use super::{STORE, insert};
use crate::log::Record;
use crate::log::frame::{Body, FILE_HEADER_BYTES, FileHeader, Frames, put_frame};
use crate::tests::{below, fuzz_cases};

const HEADER: FileHeader = FileHeader {
    store: STORE,
    first: 1,
};

/// Makes bytes: those of something sound, some of them then replaced.
struct Damaged(fn(u64) -> Vec<u8>);

impl ValueGenerator for Damaged {
    type Output = Vec<u8>;

    fn generate<D: Driver>(&self, driver: &mut D) -> Option<Vec<u8>> {
        let mut bytes = (self.0)(below(driver, 40)? as u64);
        for _ in 0..below(driver, 6)? {
            let start = below(driver, bytes.len() + 1)?;
            let end = (start + below(driver, 9)?).min(bytes.len());
            let length = below(driver, 9)?;
            let new: Vec<u8> = match below(driver, 4)? {
                0 => vec![0; length],
                1 => bytes[start..].iter().take(length).copied().collect(),
                _ => (0..length)
                    .map(|_| Some(below(driver, 256)? as u8))
                    .collect::<Option<_>>()?,
            };
            bytes.splice(start..end, new);
        }
        Some(bytes)
    }
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
        let body = Body::new(body(sequence));
        put_frame(&mut file, HEADER.seed(), sequence, synced, &body);
    }
    file.resize(file.len() + number as usize, 0);
    file
}

/// L2.
#[test]
fn a_record_is_read_only_from_its_own_bytes() {
    check!()
        .with_iterations(fuzz_cases())
        .with_generator(Damaged(body))
        .for_each(|bytes| {
            if let Ok(record) = Record::decode(bytes) {
                assert_eq!(&record.encode().unwrap(), bytes);
            }
        });
}

/// L2.
#[test]
fn frames_are_read_only_from_their_own_bytes() {
    check!()
        .with_iterations(fuzz_cases())
        .with_generator(Damaged(file))
        .for_each(|bytes| {
            let Ok(header) = FileHeader::decode(bytes) else {
                return;
            };
            assert_eq!(bytes[..FILE_HEADER_BYTES], header.encode());
            let mut frames = Frames::new(bytes, &header);
            for (place, frame) in frames.by_ref().enumerate() {
                assert_eq!(frame.sequence, header.first + place as u64);
                assert_eq!(frame.body, body(frame.sequence));
            }
            frames.rest();
        });
}
