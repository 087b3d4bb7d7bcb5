//! A log that was cut anywhere, or of which any bit is wrong: a prefix of its records, or a refusal.

use super::{LogOptions, Numbered, commit, insert, open, recover};
use crate::log::LogError;
use crate::log::error::Damage;
use crate::log::file;
use crate::log::frame::{AfterFrames, FILE_HEADER_BYTES, FileHeader, Frames};
use crate::tests::ForgetfulDirectory;
use crate::tests::is_long;

const FIXTURE_BYTES: usize = 1 << 16;
/// Zeros behind the last frame.
const ZEROS: usize = 64;

/// A log file of about 64 KiB, with a mark at its end, and where its frames stand.
struct Fixture {
    bytes: Vec<u8>,
    header: FileHeader,
    /// Start of each frame, and the end of the last.
    bounds: Vec<usize>,
    /// For each frame, the first one that was written with it.
    batches: Vec<usize>,
}

impl Fixture {
    /// A log of batches of `batch` records.
    fn new(batch: u64) -> Self {
        let memory = ForgetfulDirectory::default();
        memory.forbid_allocation();
        let mut appender = open(&memory, LogOptions::default());
        let mut batches = Vec::new();
        let mut number = 0;
        while memory.bytes(&file::name(1)).len() < FIXTURE_BYTES {
            let sizes = (number..number + batch).map(|number| (number, number * 7 % 24));
            let records: Vec<_> = sizes.map(|(number, count)| insert(number, count)).collect();
            commit(&mut appender, &records).unwrap();
            batches.extend(records.iter().map(|_| number as usize));
            number += batch;
        }
        appender.finish().unwrap();
        batches.push(number as usize);
        let mut bytes = memory.bytes(&file::name(1));
        let header = FileHeader::decode(&bytes).unwrap();
        let mut bounds: Vec<usize> = Frames::new(&bytes, &header).map(|f| f.offset).collect();
        bounds.push(bytes.len());
        bytes.resize(bytes.len() + ZEROS, 0);
        assert_eq!(bounds.len(), batches.len() + 1);
        Self {
            bytes,
            header,
            bounds,
            batches,
        }
    }

    fn frames(&self) -> usize {
        self.batches.len()
    }

    /// The frame that a byte belongs to; `frames()` for the zeros.
    fn frame_at(&self, byte: usize) -> usize {
        self.bounds.partition_point(|start| *start <= byte) - 1
    }

    fn records(&self) -> Numbered {
        recover(&self.memory(&self.bytes), 1).unwrap().1
    }

    fn memory(&self, bytes: &[u8]) -> ForgetfulDirectory {
        ForgetfulDirectory::with([(file::name(1), bytes.to_vec())])
    }
}

/// L2, L3. Frames before the one with the wrong bit are read as ever, so the check starts there.
fn assert_flips_are_seen(fixture: &Fixture) {
    let mut bytes = fixture.bytes.clone();
    let last_batch = fixture.batches[fixture.frames() - 1];
    for bit in 0..8 * bytes.len() {
        let byte = bit / 8;
        bytes[byte] ^= 1 << (bit % 8);
        if byte < FILE_HEADER_BYTES {
            assert!(FileHeader::decode(&bytes).is_err(), "bit {bit}");
        } else {
            let frame = fixture.frame_at(byte);
            let (start, sequence) = (fixture.bounds[frame], 1 + frame as u64);
            let mut frames = Frames::from(&bytes, &fixture.header, start, sequence);
            assert_eq!(frames.next(), None, "bit {bit}");
            let expected = if frame < last_batch {
                let batch = fixture.batches[frame];
                let next = fixture.batches.iter().position(|first| *first > batch);
                let witness = fixture.bounds[next.unwrap()];
                AfterFrames::Damage { witness }
            } else {
                let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
                let bytes = last + 1 - start;
                AfterFrames::TornTail { bytes }
            };
            assert_eq!(frames.rest(), expected, "bit {bit}");
        }
        bytes[byte] ^= 1 << (bit % 8);
    }
}

/// L3: only the mark at the end can be lost.
#[test]
fn every_wrong_bit_before_the_last_frame_is_refused() {
    assert_flips_are_seen(&Fixture::new(1));
}

/// L3.
#[test]
fn every_wrong_bit_before_the_last_batch_is_refused() {
    assert_flips_are_seen(&Fixture::new(5));
}

/// L2: frames that were written together reach the disk in any order, so one alone tells nothing of
/// another, and a prefix of them is read.
#[test]
fn a_batch_that_is_torn_in_its_midst_is_cut_off_from_there() {
    let fixture = Fixture::new(5);
    let batch = fixture.batches[fixture.frames() - 2];
    let torn = batch + 2;
    // With the mark, this would be damage.
    let mut bytes = fixture.bytes[..fixture.bounds[fixture.frames() - 1]].to_vec();
    bytes[fixture.bounds[torn]..fixture.bounds[torn + 1]].fill(0);
    let memory = fixture.memory(&bytes);
    let (tail, records) = recover(&memory, 1).unwrap();
    assert_eq!(records, fixture.records()[..torn]);
    let cut = tail.cut().unwrap();
    assert_eq!(cut.path.to_str(), Some("disk/00000000000000000001.log"));
    assert_eq!(cut.offset, fixture.bounds[torn]);
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    assert_eq!(cut.bytes, bytes.len() - zeros - fixture.bounds[torn]);
    assert_eq!(memory.bytes(&file::name(1)).len(), fixture.bounds[torn]);
}

/// L3: a later frame that was torn itself still tells that what is before it had been on disk.
#[test]
fn a_torn_frame_shows_damage_before_it() {
    let fixture = Fixture::new(1);
    let last = fixture.frames() - 2;
    let mut bytes = fixture.bytes[..fixture.bounds[last + 1]].to_vec();
    bytes[fixture.bounds[last - 1] + 40] ^= 1;
    bytes[fixture.bounds[last] + 40] ^= 1;
    let error = recover(&fixture.memory(&bytes), 1).unwrap_err();
    let at = format!("log at byte {}: damaged, as", fixture.bounds[last - 1]);
    assert!(error.to_string().contains(&at), "{error}");
}

/// L2.
#[test]
fn a_log_that_is_cut_anywhere_is_read_up_to_there() {
    let fixture = Fixture::new(1);
    let records = fixture.records();
    let step = if is_long() { 1 } else { 61 };
    for length in 0..=fixture.bytes.len() {
        let bytes = &fixture.bytes[..length];
        let Ok(header) = FileHeader::decode(bytes) else {
            assert!(length < FILE_HEADER_BYTES);
            continue;
        };
        let whole = fixture.frame_at(length);
        let (start, sequence) = match whole.checked_sub(1) {
            None => (FILE_HEADER_BYTES, 1),
            Some(last) => (fixture.bounds[last], 1 + last as u64),
        };
        let mut frames = Frames::from(bytes, &header, start, sequence);
        assert_eq!(frames.by_ref().count(), whole.min(1), "{length}");
        let torn = length - fixture.bounds[whole];
        match frames.rest() {
            AfterFrames::End => assert!(torn == 0 || whole == fixture.frames(), "{length}"),
            // The last bytes may be zeros.
            AfterFrames::TornTail { bytes } => assert!(0 < bytes && bytes <= torn, "{length}"),
            AfterFrames::Damage { .. } => panic!("{length}"),
        }
        if length % step == 0 {
            let read = recover(&fixture.memory(bytes), 1).unwrap().1;
            assert_eq!(read, records[..whole], "{length}");
        }
    }
}

/// L2, L3: the same for the whole of a recovery.
#[test]
fn recovery_with_a_wrong_bit_refuses_or_yields_a_prefix() {
    let fixture = Fixture::new(1);
    let records = fixture.records();
    let mut bytes = fixture.bytes.clone();
    let step = if is_long() { 1 } else { 397 };
    for bit in (0..8 * bytes.len()).step_by(step) {
        let byte = bit / 8;
        bytes[byte] ^= 1 << (bit % 8);
        match recover(&fixture.memory(&bytes), 1) {
            Ok((tail, read)) => {
                let frame = fixture.frame_at(byte);
                assert!(frame + 1 >= fixture.frames(), "bit {bit}");
                assert_eq!(read, records[..frame], "bit {bit}");
                assert_eq!(tail.cut().unwrap().offset, fixture.bounds[frame]);
            }
            Err(LogError::Damaged { offset, what, .. }) => {
                let frame = fixture.frame_at(byte);
                assert_eq!(offset, fixture.bounds[frame], "bit {bit}");
                let witness = fixture.bounds[frame + 1];
                assert_eq!(what, Damage::Witnessed { witness }, "bit {bit}");
            }
            Err(error) => assert!(byte < FILE_HEADER_BYTES, "bit {bit}: {error}"),
        }
        bytes[byte] ^= 1 << (bit % 8);
    }
}
