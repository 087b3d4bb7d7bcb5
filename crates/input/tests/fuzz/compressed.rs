//! Whole inputs: cut into reads, compressed, and compressed and damaged.

use std::io::{Read, Write};

use flate2::bufread::GzDecoder;
use flate2::read::GzEncoder;
use proptest::prelude::*;
use proptest::sample::select;
use simshard_input::{
    Check, Document, InputError, InputOptions, MAX_RECORD_BYTES, Needs, parse_bytes,
};

use super::lines::parse;
use super::splice::{Bytes, damaged, spliced};
use super::{AS_READ, Kind, assert_printable, assert_within_limits, cases};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    let mut encoder = GzEncoder::new(bytes, flate2::Compression::fast());
    encoder.read_to_end(&mut compressed).unwrap();
    compressed
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(0);
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let level = bzip2::Compression::fast();
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let frame = lz4_flex::frame::FrameInfo::new().block_mode(lz4_flex::frame::BlockMode::Linked);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(frame, Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const LZ4: &[u8] = &[0x04, 0x22, 0x4D, 0x18];

type Way = fn(&[u8]) -> Vec<u8>;

/// The ways in which the same bytes can be compressed.
const WAYS: [Way; 10] = [
    gzip,
    |bytes| {
        let (start, end) = bytes.split_at(bytes.len() / 2);
        [xz(start), vec![0; 8], xz(end)].concat()
    },
    bzip2,
    |bytes| {
        let (start, end) = bytes.split_at(bytes.len() / 3);
        [bzip2(start), bzip2(end)].concat()
    },
    |bytes| {
        let (start, end) = bytes.split_at(bytes.len() / 2);
        [lz4(start), lz4(b""), lz4(end)].concat()
    },
    |bytes| {
        let (start, end) = bytes.split_at(bytes.len() / 2);
        [gzip(start), gzip(b""), gzip(end)].concat()
    },
    |bytes| {
        let (start, end) = bytes.split_at(bytes.len() / 3);
        [gzip(start), vec![0; 3], gzip(end), vec![0; 512]].concat()
    },
    zstd,
    |bytes| {
        let (start, end) = bytes.split_at(bytes.len() / 2);
        [zstd(start), zstd(end)].concat()
    },
    |bytes| [&b"\x5A\x2A\x4D\x18\x03\0\0\0xyz"[..], &zstd(bytes)].concat(),
];

/// I5: compression changes no record and no error.
#[test]
fn compressed_inputs() {
    let pieces = [
        "17\n",
        "18446744073709551615\n",
        "a\t17\n",
        "{\"id\":1,\"text\":\"t\",\"hash\":2}\n",
        "\n",
        "\r\n",
        "\u{FEFF}",
        "word ",
        "x",
        "\0",
    ];
    let pieces = pieces.map(|piece| piece.as_bytes().to_vec()).to_vec();
    proptest!(cases(), |(
        kind in select(&Kind::ALL[..]),
        way in 0..WAYS.len(),
        skip: bool,
        // Checking ahead takes a temporary file, and so more time than all the rest.
        check in prop_oneof![15 => Just(Check::AsRead), 1 => Just(Check::BeforeUse)],
        Bytes(bytes) in spliced(pieces, 12),
    )| {
        let read = parse_bytes(&kind.options(skip), Needs { check, ..AS_READ }, WAYS[way](&bytes));
        let (documents, outcome) = parse(kind, skip, &bytes);
        match (read, outcome.error) {
            (Err(InputError::AllBad { .. }), None) => {
                assert!(documents.is_empty() && outcome.skipped.bad_lines > 0);
            }
            (Ok(read), None) => {
                assert_eq!(read, documents);
                assert!(!read.is_empty() || outcome.skipped.bad_lines == 0);
            }
            (Err(found), Some(expected)) => {
                assert_eq!(found.to_string(), expected.to_string());
            }
            (read, expected) => panic!("{read:?} instead of {expected:?}"),
        }
    });
}

/// What a decoder makes of all the bytes at once; nothing where they are damaged.
fn decode(compressed: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = match compressed {
        [0x1F, 0x8B, ..] => return gunzip(compressed),
        [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => {
            let mut decoder = zstd::stream::read::Decoder::new(compressed).unwrap();
            decoder.read_to_end(&mut bytes)
        }
        [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => {
            lzma_rust2::XzReader::new(compressed, true).read_to_end(&mut bytes)
        }
        [
            b'B',
            b'Z',
            b'h',
            b'1'..=b'9',
            b'1',
            b'A',
            b'Y',
            b'&',
            b'S',
            b'Y',
            ..,
        ]
        | [
            b'B',
            b'Z',
            b'h',
            b'1'..=b'9',
            0x17,
            b'r',
            b'E',
            b'8',
            b'P',
            0x90,
            ..,
        ] => bzip2::bufread::MultiBzDecoder::new(compressed).read_to_end(&mut bytes),
        plain => return Some(plain.to_vec()),
    };
    read.ok().map(|_| bytes)
}

/// The content of gzip members, one by one; nothing where something else but zeros follows one.
fn gunzip(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while !rest.is_empty() {
        let mut member = GzDecoder::new(rest);
        member.read_to_end(&mut bytes).ok()?;
        let after = member.into_inner();
        let zeros = after.iter().take_while(|byte| **byte == 0).count();
        rest = &after[zeros..];
    }
    Some(bytes)
}

fn check_damaged(kind: Kind, skip: bool, compressed: &[u8]) {
    let read = parse_bytes(&kind.options(skip), AS_READ, compressed.to_vec());
    if let Ok(documents) = &read {
        assert_within_limits(documents);
    }
    // Its own decoder takes data that is cut off for whole, and so says nothing of others.
    if compressed.starts_with(LZ4) {
        if let Err(error) = read {
            assert_printable(&error.to_string());
        }
        return;
    }
    let Some(bytes) = decode(compressed) else {
        match read {
            Err(error @ (InputError::Damaged { .. } | InputError::BadLine { .. })) => {
                assert_printable(&error.to_string());
            }
            other => panic!("damaged, and yet {other:?}"),
        }
        return;
    };
    let (documents, outcome) = parse(kind, skip, &bytes);
    let is_all_bad = documents.is_empty() && outcome.skipped.bad_lines > 0;
    assert_eq!(read.is_err(), outcome.error.is_some() || is_all_bad);
    if let Ok(read) = read {
        assert_eq!(read, documents);
    }
}

#[test]
fn damaged_compression() {
    let input = "17\n18\n\n{\"id\":1,\"text\":\"a text and a text\"}\na\t19\n".repeat(4);
    let mut victims: Vec<_> = WAYS.iter().map(|way| way(input.as_bytes())).collect();
    victims.push(gzip(b""));
    victims.push(zstd(&[b'7'; 5_000]));
    let mut pieces: Vec<Vec<u8>> = victims.clone();
    for piece in [
        &b"\x1F\x8B"[..],
        b"\x1F\x8B\x08\xFF",
        b"\x28\xB5\x2F\xFD",
        b"\x50\x2A\x4D\x18\xFF\xFF\xFF\xFF",
        LZ4,
        b"\xFD7zXZ\0",
        b"BZh91AY&SY",
        b"\0\0\0\0",
        b"\xFF\xFF\xFF\xFF",
        b"17\n",
    ] {
        pieces.push(piece.to_vec());
    }
    proptest!(cases(), |(
        kind in select(&Kind::ALL[..]),
        skip: bool,
        Bytes(bytes) in damaged(select(victims), pieces),
    )| check_damaged(kind, skip, &bytes));
}

/// I2: a few bytes that decompress to a line without end are one bad line.
#[test]
fn a_line_over_the_limit_from_a_few_bytes_is_one_bad_line() {
    let one = |args: &InputOptions, bytes: &[u8]| -> Result<Vec<Document>, InputError> {
        parse_bytes(args, AS_READ, bytes.to_vec())
    };
    let long = [&vec![b'7'; MAX_RECORD_BYTES + 9][..], b"\n17\n"].concat();
    for way in WAYS {
        let compressed = way(&long);
        let read = one(&Kind::Hashes.options(true), &compressed).unwrap();
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].id, "2");
        assert!(one(&Kind::Hashes.options(false), &compressed).is_err());
    }
}
