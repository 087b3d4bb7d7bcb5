//! I5: how a source is cut and compressed changes nothing.

use std::io::{self, Write};

use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;
use crate::chunk::Chunks;
use crate::source::Source;
use crate::{LineParser, Needs, Skipped};

pub(super) fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd(plain: &[u8]) -> Vec<u8> {
    zstd::encode_all(plain, 1).unwrap()
}

/// A reader that returns at most `sizes` bytes, one size after the other.
struct Dribble {
    bytes: Cursor<Vec<u8>>,
    sizes: Vec<usize>,
    turn: usize,
}

impl Read for Dribble {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes[self.turn % self.sizes.len()].min(buffer.len());
        self.turn += 1;
        self.bytes.read(&mut buffer[..size])
    }
}

/// All that comes of some bytes: documents, the count of bad lines, the error.
type Everything = (Vec<(String, Content)>, Skipped, Option<String>);

fn everything(parser: &LineParser, bytes: &[u8], read_bytes: usize, sizes: &[usize]) -> Everything {
    let stream = Dribble {
        bytes: Cursor::new(bytes.to_vec()),
        sizes: sizes.to_vec(),
        turn: 0,
    };
    let sources = vec![Source::stdin(Box::new(stream))];
    let mut chunks = Chunks::with_read_bytes(sources, parser.skips_bad_lines(), read_bytes);
    let (mut documents, mut skipped, mut error) = (Vec::new(), Skipped::default(), None);
    while let Some(chunk) = chunks.next() {
        let chunk = chunk.unwrap();
        let outcome = parser.parse_chunk(&chunk, |record| {
            let content = match record.content {
                crate::RecordContent::Text(text) => Content::Text(text.into_owned()),
                crate::RecordContent::Fingerprint(print) => Content::Fingerprint(print),
            };
            documents.push((record.id.to_string(), content));
        });
        skipped += &outcome.skipped;
        error = outcome.error.map(|error| error.to_string());
        if error.is_some() {
            break;
        }
        chunks.reuse(chunk);
    }
    (documents, skipped, error)
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<u64>().prop_map(|number| number.to_string()),
        (0..1000_u64).prop_map(|number| number.to_string()),
        any::<u64>().prop_map(|number| format!("id {number}\t{number}")),
        (any::<u64>(), "\\PC{0,8}")
            .prop_map(|(id, text)| serde_json::json!({"id": id, "text": text}).to_string()),
        "[a-z\\t {}\":0-9é\r\0\u{FEFF}]{0,12}",
    ]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let line_break = prop::sample::select(&["\n", "\r\n", "\n\n"][..]);
    let lines = prop::collection::vec((line(), line_break), 0..12);
    (
        lines,
        any::<bool>(),
        prop::option::of((any::<u8>(), any::<prop::sample::Index>())),
    )
        .prop_map(|(lines, ended, damage)| {
            let text: String = lines
                .into_iter()
                .flat_map(|(line, end)| [line, end.to_owned()])
                .collect();
            let text = if ended {
                &text[..]
            } else {
                text.trim_end_matches('\n')
            };
            let mut bytes = text.as_bytes().to_vec();
            if let (Some((byte, place)), false) = (damage, bytes.is_empty()) {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            bytes
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn reads_of_any_size_give_the_same(
        bytes in bytes(),
        format in prop::sample::select(&[Format::Hashes, Format::Lines, Format::Jsonl, Format::Tsv][..]),
        skip_bad_lines: bool,
        read_bytes in 1..40_usize,
        sizes in prop::collection::vec(1..30_usize, 1..4),
    ) {
        // What looks compressed is another matter.
        prop_assume!(!bytes.starts_with(&[0x1F, 0x8B]));
        let args = InputOptions { skip_bad_lines, ..args(format, &[]) };
        let parser = LineParser::new(&args, Needs::CLIENT, format, false).unwrap();
        let whole = everything(&parser, &bytes, 1 << 20, &[1 << 20]);
        prop_assert_eq!(&everything(&parser, &bytes, read_bytes, &sizes), &whole);
        let half = bytes.len() / 2;
        let compressed = [
            gzip(&bytes),
            [gzip(&bytes[..half]), gzip(&bytes[half..])].concat(),
            zstd(&bytes),
            [zstd(&bytes[..half]), zstd(b""), zstd(&bytes[half..])].concat(),
        ];
        for compressed in compressed {
            prop_assert_eq!(&everything(&parser, &compressed, read_bytes, &sizes), &whole);
        }
    }

    #[test]
    fn damaged_compressed_data_is_an_error_or_read_but_never_a_panic(
        bytes in bytes(),
        place: prop::sample::Index,
        byte: u8,
        with_zstd: bool,
    ) {
        let mut compressed = if with_zstd { zstd(&bytes) } else { gzip(&bytes) };
        let place = place.index(compressed.len());
        compressed[place] = byte;
        for format in [Format::Hashes, Format::Lines, Format::Jsonl, Format::Tsv] {
            let _ = crate::parse_bytes(&args(format, &[]), Needs::CLIENT, compressed.clone());
        }
    }
}

#[test]
fn a_long_line_is_too_long_however_it_arrives() {
    let line = vec![b'1'; 8 << 20];
    for (more, expected) in [(0, None), (1, Some(())), (300 << 10, Some(()))] {
        let bytes = [&line[..], &vec![b'1'; more], b"\r\n2\n"].concat();
        for bytes in [bytes.clone(), gzip(&bytes)] {
            let opened = open_bytes(&skipping(Format::Lines, &[]), &bytes).unwrap();
            let (read, documents) = drain(opened);
            assert_eq!(read.last(), Some(&text("2", "2")));
            assert_eq!(documents.skipped().bad_lines, expected.map_or(0, |()| 1));
        }
    }
}
