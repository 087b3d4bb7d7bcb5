//! The `lines` format, and what all line formats share.

use super::*;
use crate::batches::Batch;
use crate::chunk::Chunks;
use crate::source::Source;
use crate::{Check, MAX_ID_BYTES, MAX_RECORD_BYTES};

#[test]
fn empty_input_has_no_documents() {
    for format in [Format::Lines, Format::Jsonl, Format::Tsv] {
        assert_eq!(read(format, ""), []);
    }
}

#[test]
fn ids_are_line_numbers_and_blank_lines_count() {
    assert_eq!(
        read(Format::Lines, "one\n\n \t\nfour\n"),
        [text("1", "one"), text("4", "four")]
    );
}

#[test]
fn one_line_break_is_stripped_and_nothing_else() {
    assert_eq!(
        read(Format::Lines, " a \r\nb\r\r\nc\rd\ne"),
        [
            text("1", " a "),
            text("2", "b\r"),
            text("3", "c\rd"),
            text("4", "e")
        ]
    );
}

#[test]
fn a_nul_byte_is_a_bad_line() {
    for (format, good, bad) in [
        (Format::Lines, "good", "a\0b"),
        (Format::Tsv, "good\t1", "a\0b\t2"),
        (Format::Tsv, "good\t1", "a\t\x002"),
    ] {
        let lines = format!("{good}\n{bad}\r\n{good}\n");
        let message = refusal(format, &lines);
        assert!(message.starts_with("<stdin>:2: \"a"), "{message}");
        assert!(message.contains("is no text: its byte "), "{message}");
        assert!(message.ends_with(" is NUL"), "{message}");
        let (read, documents) =
            drain(open_bytes(&skipping(format, &[]), lines.as_bytes()).unwrap());
        assert_eq!((read.len(), documents.skipped().bad_lines), (2, 1));
    }
    let message = refusal(Format::Tsv, "id\0\thash\n");
    assert_eq!(
        message,
        "<stdin>:1: \"id\\0\\thash\" is no text: its byte 3 is NUL"
    );
}

#[test]
fn a_byte_order_mark_is_tolerated_at_the_start_of_each_file_only() {
    let folder = Folder::new();
    let a = folder.write("a", "\u{FEFF}x\n\u{FEFF}y\n");
    let b = folder.write("b", "\u{FEFF}z");
    let read = all(open_bytes(&args(Format::Lines, &[a, b]), b"").unwrap());
    let texts: Vec<&Content> = read.iter().map(|document| &document.content).collect();
    let expected = ["x", "\u{FEFF}y", "z"].map(|text| Content::Text(text.to_owned()));
    assert_eq!(texts, expected.iter().collect::<Vec<_>>());
}

#[test]
fn several_paths_put_the_path_into_the_id() {
    let folder = Folder::new();
    let a = folder.write("a.txt", "x\ny\n");
    let paths = [a.clone(), PathBuf::from("-")];
    let input = open_bytes(&args(Format::Lines, &paths), b"z\n").unwrap();
    let a = a.display();
    assert_eq!(
        all(input),
        [
            text(&format!("{a}:1"), "x"),
            text(&format!("{a}:2"), "y"),
            text("<stdin>:1", "z")
        ]
    );
}

#[test]
fn invalid_utf8_is_a_bad_line() {
    assert_eq!(
        refusal(Format::Lines, b"good\nab\xFFc\n"),
        "<stdin>:2: \"ab\u{FFFD}c\" is no text: its byte 3 is not valid UTF-8"
    );
}

#[test]
fn an_id_over_the_limit_is_a_bad_line() {
    let longest = "i".repeat(MAX_ID_BYTES);
    let line = format!("{longest}\t7\n");
    assert_eq!(read(Format::Tsv, &line), [print(&longest, 7)]);
    let message = refusal(Format::Tsv, format!("i{line}"));
    assert!(message.contains("takes 1025 bytes"), "{message}");
}

#[test]
fn a_line_at_the_limit_is_read_and_one_byte_more_is_a_bad_line() {
    for line_break in ["", "\n", "\r\n"] {
        let longest = "x".repeat(MAX_RECORD_BYTES);
        let read = read(Format::Lines, format!("{longest}{line_break}"));
        assert_eq!(read, [text("1", &longest)]);
        let message = refusal(Format::Lines, format!("a\nx{longest}{line_break}b"));
        assert!(
            message.starts_with("<stdin>:2: the line takes more than 8388608"),
            "{message}"
        );
    }
}

#[test]
fn a_long_line_names_file_line_and_limit() {
    let folder = Folder::new();
    let path = folder.write("long.txt", "x".repeat(MAX_RECORD_BYTES + 5));
    assert_eq!(
        message(open_bytes(
            &args(Format::Lines, std::slice::from_ref(&path)),
            b""
        )),
        format!(
            "{}:1: the line takes more than 8388608 bytes, which is the limit: add \
             --skip-bad-lines to leave such lines out",
            path.display()
        )
    );
}

#[test]
fn a_line_without_end_is_refused_all_the_same() {
    let endless = std::io::repeat(b'x');
    let opened = open_reader(&args(Format::Lines, &[]), endless);
    let message = message(opened);
    assert!(message.starts_with("<stdin>:1: "), "{message}");
}

#[test]
fn a_line_without_end_ends_the_reading_where_nothing_is_checked_ahead_too() {
    let needs = Needs {
        check: Check::AsRead,
        ..Needs::CLIENT
    };
    let open = || {
        let endless = (&b"a\n"[..]).chain(std::io::repeat(0));
        Input::open_with_stdin(&args(Format::Lines, &[]), needs, Box::new(endless)).unwrap()
    };
    let read: Vec<_> = open().documents().collect();
    assert_eq!(read.len(), 2);
    let mut errors = Vec::new();
    let take = |results: Vec<Result<Option<InputError>, InputError>>| {
        errors.extend(results.into_iter().flatten().flatten());
        Ok::<bool, ()>(true)
    };
    let work = |batch: &Batch| batch.parse(|_| {}).error;
    open().for_each_batch(work, take).unwrap();
    assert_eq!(errors.len(), 1);
    for message in [
        read[1].as_ref().unwrap_err().to_string(),
        errors[0].to_string(),
    ] {
        assert!(
            message.starts_with("<stdin>:2: the line takes more"),
            "{message}"
        );
    }
}

/// I2.
#[test]
fn memory_stays_bounded_while_a_line_of_a_gibibyte_passes() {
    let endless = std::io::repeat(b'x').take(1 << 30);
    let stream = endless.chain(&b"\nshort\n"[..]);
    let mut chunks = Chunks::new(vec![Source::stdin(Box::new(stream))], true);
    let long = chunks.next().unwrap().unwrap();
    assert!(long.then_too_long && long.bytes().is_empty());
    assert!(long.held_bytes() < 2 * MAX_RECORD_BYTES);
    chunks.reuse(long);
    let short = chunks.next().unwrap().unwrap();
    assert_eq!((short.bytes(), short.first_line), (&b"short\n"[..], 2));
    assert!(short.held_bytes() + chunks.held_bytes() < 2 * MAX_RECORD_BYTES);
    assert!(chunks.next().is_none());
}

#[test]
fn skipped_lines_are_counted_and_keep_their_numbers() {
    let long = "x".repeat(MAX_RECORD_BYTES + 1);
    let stdin = [b"a\n\xFF\n", long.as_bytes(), b"\nb\n"].concat();
    let input = open_bytes(&skipping(Format::Lines, &[]), &stdin).unwrap();
    assert_eq!(input.document_count(), None);
    let (read, documents) = drain(input);
    assert_eq!(read, [text("1", "a"), text("4", "b")]);
    assert_eq!(documents.skipped().to_string(), "skipped 2 bad lines");
}

#[test]
fn the_count_is_of_documents_not_of_lines() {
    let folder = Folder::new();
    let a = folder.write("a", "one\n\ntwo\n");
    let b = folder.write("b", "three");
    let input = open_bytes(&args(Format::Lines, &[a, b]), b"").unwrap();
    assert_eq!(input.document_count(), Some(3));
    let (read, documents) = drain(input);
    assert_eq!(read.len(), 3);
    assert!(documents.skipped().is_empty());
    assert_eq!(documents.skipped().to_string(), "");
}

#[test]
fn long_values_are_shortened_and_control_characters_escaped() {
    let line = format!("a\t12\u{1b}[2J{}\n", "9".repeat(100));
    let message = refusal(Format::Tsv, line);
    assert!(message.contains("\"12\\u{1b}[2J999"), "{message}");
    assert!(message.contains("9…\" is no fingerprint"), "{message}");
    assert!(message.chars().count() < 160, "{message}");
}
