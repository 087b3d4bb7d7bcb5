//! Compressed input, and what is wrong with it.

use std::io::Write;

use super::cutting::{gzip, zstd};
use super::*;

const PLAIN: &str = "a\t1\nb\t2\n";

#[test]
fn compression_is_told_by_content_and_not_by_name() {
    let folder = Folder::new();
    for (name, content) in [
        ("plain.tsv.gz", PLAIN.as_bytes().to_vec()),
        ("gzip.tsv", gzip(PLAIN.as_bytes())),
        ("zstd.tsv.gz", zstd(PLAIN.as_bytes())),
        ("two.tsv", [gzip(b"a\t1\nb"), gzip(b"\t2\n")].concat()),
    ] {
        let path = folder.write(name, &content);
        let input = open_bytes(&args(Format::Tsv, &[path]), b"").unwrap();
        assert_eq!(input.document_count(), Some(2));
        assert_eq!(all(input), [print("a", 1), print("b", 2)], "{name}");
        assert_eq!(read(Format::Tsv, &content), [print("a", 1), print("b", 2)]);
    }
}

/// As programs for tapes leave a file, whose blocks are of one size.
#[test]
fn zeros_after_a_member_are_passed_over() {
    let two = [gzip(b"a\t1\nb"), vec![0; 3], gzip(b"\t2\n")].concat();
    for zeros in [0, 1, 512, 200_000] {
        let padded = [&two[..], &vec![0; zeros]].concat();
        assert_eq!(read(Format::Tsv, padded), [print("a", 1), print("b", 2)]);
    }
    assert_eq!(read(Format::Tsv, [gzip(b""), vec![0; 10]].concat()), []);
}

#[test]
fn what_follows_the_last_member_is_an_error_that_names_the_file() {
    let folder = Folder::new();
    for trailing in [&b"17\n"[..], b"\0\0c\t3\n", b"\xFF", b"\0\x8B"] {
        let path = folder.write("a.tsv.gz", [&gzip(PLAIN.as_bytes()), trailing].concat());
        let name = path.display().to_string();
        let message = message(open_bytes(&args(Format::Tsv, &[path]), b""));
        let problem = "the gzip data is damaged: trailing data after the gzip data";
        assert_eq!(message, format!("{name}:3: {problem}"), "{trailing:?}");
    }
    for (trailing, problem) in [
        (&b"\x1F"[..], "the gzip data ends too early: "),
        (b"\0\x1F\x8B\x08", "the gzip data ends too early: "),
        (b"\x1F\x8B\x08\xFF", "the gzip data ends too early: "),
        (b"\x1F\x1F________", "the gzip data is damaged: "),
    ] {
        let message = refusal(Format::Tsv, [&gzip(PLAIN.as_bytes()), trailing].concat());
        let expected = format!("<stdin>:3: {problem}");
        assert!(message.starts_with(&expected), "{trailing:?}: {message}");
    }
}

#[test]
fn a_frame_that_is_to_be_skipped_is_skipped() {
    let skippable = b"\x5A\x2A\x4D\x18\x03\0\0\0xyz";
    let content = [&skippable[..], &zstd(PLAIN.as_bytes())].concat();
    assert_eq!(read(Format::Tsv, content), [print("a", 1), print("b", 2)]);
    assert_eq!(read(Format::Lines, "P*"), [text("1", "P*")]);
}

#[test]
fn data_that_is_cut_off_names_file_and_line() {
    let lines: String = (0..50_000_u64)
        .map(|line| format!("{}\n", line * line))
        .collect();
    for (compressed, name) in [
        (gzip(lines.as_bytes()), "gzip"),
        (zstd(lines.as_bytes()), "zstd"),
    ] {
        let half = &compressed[..compressed.len() / 2];
        let refused = refusal(Format::Hashes, half);
        let (place, problem) = refused.split_once(": ").unwrap();
        let line: u64 = place.strip_prefix("<stdin>:").unwrap().parse().unwrap();
        assert!((2..50_000).contains(&line), "{refused}");
        let expected = format!(
            "the {name} data ends too early: the file is not complete: copy or download it again"
        );
        assert_eq!(problem, expected);
        // Skipping is for lines, not for files.
        let input = open_bytes(&skipping(Format::Hashes, &[]), half).unwrap();
        let last = input.documents().last().unwrap().unwrap_err();
        assert_eq!(last.to_string(), refused);
    }
}

#[test]
fn the_shortest_and_the_damaged_are_errors_too() {
    let ends = "<stdin>:1: the gzip data ends too early: the file is not complete: copy or download it again";
    assert_eq!(refusal(Format::Lines, b"\x1F\x8B"), ends);
    let ends = "<stdin>:1: the zstd data ends too early: the file is not complete: copy or download it again";
    assert_eq!(refusal(Format::Lines, b"\x28\xB5\x2F\xFD"), ends);
    let mut damaged = gzip(PLAIN.as_bytes());
    let checksum = damaged.len() - 8;
    damaged[checksum] ^= 1;
    let message = refusal(Format::Tsv, &damaged);
    assert!(
        message.contains(": the gzip data is damaged: "),
        "{message}"
    );
    for short in [&b"\x1F"[..], b"\x28", b"\x28\xB5\x2F", b"P"] {
        let error = crate::parse_bytes(&args(Format::Tsv, &[]), Needs::CLIENT, short.to_vec());
        assert!(
            matches!(error, Err(InputError::BadLine { .. })),
            "{short:?}"
        );
    }
}

#[test]
fn a_line_of_a_gibibyte_is_refused_when_it_is_compressed_too() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut line = std::io::repeat(b'x').take(1 << 30);
    std::io::copy(&mut line, &mut encoder).unwrap();
    let message = refusal(Format::Jsonl, encoder.finish().unwrap());
    assert!(
        message.starts_with("<stdin>:1: the line takes more than 8388608"),
        "{message}"
    );
}

#[test]
fn files_in_folders_may_be_compressed() {
    let folder = Folder::new();
    folder.write("a.txt.gz", gzip(b"one\n"));
    folder.write("b.txt", zstd(b"two\n"));
    folder.write("c.tar.gz", gzip(b"ustar\0\0"));
    folder.write("d.gz", &gzip(&[b'x'; 4000])[..20]);
    folder.write("e.gz", gzip(&vec![b'x'; (8 << 20) + 1]));
    let (read, documents) = drain(open_bytes(&args(Format::Files, &[folder.path()]), b"").unwrap());
    let texts: Vec<_> = read.into_iter().map(|document| document.content).collect();
    assert_eq!(
        texts,
        ["one\n", "two\n"].map(|text| Content::Text(text.to_owned()))
    );
    assert_eq!(
        documents.skipped().to_string(),
        "skipped 1 binary file, 1 unreadable file, 1 too large file"
    );
}

/// A frame with a window of 2^`log` bytes, which takes none to write.
fn with_window(log: u8, content: &[u8]) -> Vec<u8> {
    let header = [0x28, 0xB5, 0x2F, 0xFD, 0, (log - 10) << 3];
    let last_block = (content.len() as u32) << 3 | 1;
    [&header, &last_block.to_le_bytes()[..3], content].concat()
}

#[test]
fn a_window_over_the_limit_is_refused_with_the_way_around_it() {
    let folder = Folder::new();
    assert_eq!(
        read(Format::Tsv, with_window(27, PLAIN.as_bytes())),
        [print("a", 1), print("b", 2)]
    );
    let expected = "the zstd data needs a window of more than 128 MiB: decompress it first, as in \
                    `zstd -dc --long=31 FILE | simshard ...`";
    for log in [28, 31] {
        let frame = with_window(log, PLAIN.as_bytes());
        let path = folder.write("a.tsv.zst", &frame);
        let name = path.display().to_string();
        let found = message(open_bytes(&args(Format::Tsv, &[path]), b""));
        assert_eq!(found, format!("{name}:1: {expected}"));
        let warc = refusal(Format::Warc, frame);
        assert!(warc.contains(expected), "{warc}");
    }
}

/// As a full disk leaves it: not an input without documents.
#[test]
fn an_empty_file_that_is_called_compressed_is_cut_off() {
    let folder = Folder::new();
    for (name, compression) in [
        ("a.gz", "gzip"),
        ("a.tsv.GZ", "gzip"),
        ("a.zst", "zstd"),
        ("a.jsonl.zst", "zstd"),
        ("a.tsv.zstd", "zstd"),
        ("a.xz", "xz"),
        ("a.bz2", "bzip2"),
        ("a.tsv.lz4", "lz4"),
    ] {
        for content in [&b""[..], b"\x1F", b"\x28\xB5\x2F"] {
            for format in [Format::Hashes, Format::Lines, Format::Jsonl, Format::Tsv] {
                let path = folder.write(name, content);
                let shown = path.display().to_string();
                let found = message(open_bytes(&args(format, &[path]), b""));
                let problem =
                    "data ends too early: the file is not complete: copy or download it again";
                assert_eq!(found, format!("{shown}:1: the {compression} {problem}"));
            }
            let path = folder.write(name, content);
            let found = message(open_bytes(&args(Format::Warc, &[path]), b""));
            assert!(found.contains("ends too early"), "{found}");
        }
    }
    for name in ["empty", "empty.txt", "gz"] {
        let path = folder.write(name, b"");
        let input = open_bytes(&args(Format::Tsv, &[path]), b"").unwrap();
        assert_eq!(all(input), [], "{name}");
    }
    assert_eq!(read(Format::Tsv, b""), []);
}

/// `PLAIN` and nothing, as these programs compress them.
const XZ: [&[u8]; 2] = [
    b"\xFD7zXZ\0\0\x04\xE6\xD6\xB4F\x02\0!\x01\x16\0\0\0t/\xE5\xA3\x01\0\x07a\t1\nb\t2\n\0\
      4\xF3\xEE5\x18\x1E\xAF\xEA\0\x01 \x08\xBB\x19\xD9\xBB\x1F\xB6\xF3}\x01\0\0\0\0\x04YZ",
    b"\xFD7zXZ\0\0\x04\xE6\xD6\xB4F\0\0\0\0\x1C\xDFD!\x1F\xB6\xF3}\x01\0\0\0\0\x04YZ",
];
const BZIP2: [&[u8]; 2] = [
    b"BZh91AY&SY1\x0B(\\\0\0\x03I\0\x0000\x000\0 \0!\xA6\x99\xA0\xC0(\x15\x0B\x0B\xB9\"\
      \x9C(H\x18\x85\x94.\0",
    b"BZh9\x17rE8P\x90\0\0\0\0",
];

#[test]
fn other_compressions_are_read_whatever_they_are_called() {
    let folder = Folder::new();
    for (compressed, name) in [(XZ, "xz"), (BZIP2, "bzip2")] {
        let two = [compressed[0], compressed[1], compressed[0]].concat();
        for name in ["a.tsv", "a.tsv.gz", "a.tsv.xz"] {
            let path = folder.write(name, &two);
            let read = all(open_bytes(&args(Format::Tsv, &[path]), b"").unwrap());
            let once = [print("a", 1), print("b", 2)];
            assert_eq!(read, [once.clone(), once].concat());
        }
        assert_eq!(super::read(Format::Tsv, compressed[1]), [], "{name}");
        // Half of what tells it may be text.
        let short = &compressed[0][..5];
        let error = crate::parse_bytes(&args(Format::Tsv, &[]), Needs::CLIENT, short.to_vec());
        assert!(matches!(error, Err(InputError::BadLine { .. })), "{name}");
    }
    for line in ["BZh91AY is a text", "BZh0", "B", "BZh9\u{17}rE8P"] {
        assert_eq!(super::read(Format::Lines, line), [text("1", line)]);
    }
}

fn xz(content: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(0);
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(content: &[u8]) -> Vec<u8> {
    let level = ::bzip2::Compression::fast();
    let mut encoder = ::bzip2::write::BzEncoder::new(Vec::new(), level);
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn lz4(content: &[u8], sum: bool) -> Vec<u8> {
    let frame = lz4_flex::frame::FrameInfo::new().content_checksum(sum);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(frame, Vec::new());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// I3: data that is cut off anywhere, or changed, is an error, not fewer documents.
#[test]
fn no_part_of_compressed_data_is_taken_for_the_whole() {
    let lines: String = (0..3000_u64)
        .map(|line| format!("{}\n", line * line))
        .collect();
    let lines = lines.as_bytes();
    let mut kinds = vec![
        ("gzip", gzip(lines)),
        ("zstd", zstd(lines)),
        ("xz", xz(lines)),
        ("bzip2", bzip2(lines)),
        ("lz4", lz4(lines, false)),
        ("lz4", lz4(lines, true)),
    ];
    for (name, compressed) in &mut kinds {
        assert_eq!(
            super::read(Format::Hashes, &*compressed).len(),
            3000,
            "{name}"
        );
        let twice = [&compressed[..], &compressed[..]].concat();
        assert_eq!(super::read(Format::Hashes, &twice).len(), 6000, "{name}");
        let ends = (14..compressed.len()).step_by(61);
        for end in ends.chain(compressed.len() - 20..compressed.len()) {
            let found = refusal(Format::Hashes, &compressed[..end]);
            let expected = format!(
                ": the {name} data ends too early: the file is not complete: copy or download it again"
            );
            assert!(found.ends_with(&expected), "{name}, {end} bytes: {found}");
            let second = [&compressed[..], &compressed[..end]].concat();
            let found = refusal(Format::Hashes, second);
            assert!(
                found.ends_with(&expected),
                "{name}, {end} bytes more: {found}"
            );
        }
        let trailing = [&compressed[..], b"17\n"].concat();
        let found = refusal(Format::Hashes, trailing);
        assert!(found.contains(&format!("the {name} data ")), "{found}");
    }
}

/// A stream whose only block says that it needs a dictionary of 2^32-1 bytes, made of one that does not.
#[test]
fn an_xz_dictionary_over_the_limit_is_refused_in_any_block() {
    let mut hostile = xz(PLAIN.as_bytes());
    let header = 12..12 + (usize::from(hostile[12]) + 1) * 4;
    let place = hostile[header.clone()]
        .windows(2)
        .position(|bytes| bytes == [0x21, 1]);
    hostile[header.start + place.unwrap() + 2] = 40;
    let mut crc = flate2::Crc::new();
    crc.update(&hostile[header.start..header.end - 4]);
    hostile[header.end - 4..header.end].copy_from_slice(&crc.sum().to_le_bytes());
    let expected = "the xz data needs a dictionary of more than 128 MiB: decompress it first, as in \
                    `xz -dc FILE | simshard ...`";
    assert_eq!(
        refusal(Format::Tsv, &hostile),
        format!("<stdin>:1: {expected}")
    );
    let second = [&xz(PLAIN.as_bytes()), &hostile[..]].concat();
    assert_eq!(
        refusal(Format::Tsv, second),
        format!("<stdin>:3: {expected}")
    );
}

#[test]
fn files_in_folders_may_be_compressed_in_any_way() {
    let folder = Folder::new();
    folder.write("a.txt", "a\t1\nb\t2\n");
    folder.write("b.txt.xz", XZ[0]);
    folder.write("c.txt.bz2", BZIP2[0]);
    folder.write("d.txt.lz4", lz4(PLAIN.as_bytes(), true));
    folder.write("e.xz", &XZ[0][..40]);
    let (read, documents) = drain(open_bytes(&args(Format::Files, &[folder.path()]), b"").unwrap());
    assert_eq!(read.len(), 4);
    assert!(
        read.iter()
            .all(|document| document.content == read[0].content)
    );
    assert_eq!(documents.skipped().to_string(), "skipped 1 unreadable file");
}
