//! WA1, WA2: records that end early, lie about their length or never end.

use super::*;

#[test]
fn a_file_cut_anywhere_within_a_record_is_an_error() {
    let (first, second) = (conversion("a", "one"), conversion("b", "two"));
    let warc = [first.clone(), second].concat();
    let blank = b"\r\n\r\n".len();
    for length in 0..warc.len() {
        let between = length == 0 || (first.len() - blank..=first.len()).contains(&length);
        let after_last = length >= warc.len() - blank;
        let last = open(&warc[..length]).last();
        let failed = last.is_some_and(|result| result.is_err());
        assert_eq!(failed, !between && !after_last, "cut at {length}");
    }
    let message = results(&warc[..warc.len() - blank - 1])
        .pop()
        .unwrap()
        .unwrap_err();
    let expected = format!(
        "a.wet: record 2 at byte {}: the file ends within it",
        first.len()
    );
    assert_eq!(message, expected);
}

#[test]
fn a_record_that_is_passed_over_is_not_cut_short_in_silence() {
    let warc = [conversion("a", "t"), info()].concat();
    let cut = &warc[..warc.len() - 6];
    let message = results(cut).pop().unwrap().unwrap_err();
    assert!(message.ends_with("the file ends within it"), "{message}");
}

#[test]
fn a_flipped_bit_anywhere_is_no_panic() {
    let warc = [info(), conversion("a", "one"), conversion("b", "two")].concat();
    for at in 0..warc.len() {
        for bit in 0..8 {
            let mut damaged = warc.clone();
            damaged[at] ^= 1 << bit;
            assert!(open(&damaged).count() <= 3, "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn a_length_that_is_none_is_an_error() {
    let head = "WARC/1.0\r\nWARC-Type: conversion\r\n";
    let expected = "a.wet: record 1 at byte 0: it has no Content-Length";
    assert_eq!(refusal(format!("{head}\r\n").as_bytes()), expected);
    for length in ["", "abc", "-1", "+1", "1 2", "0x10", "18446744073709551616"] {
        let warc = format!("{head}Content-Length: {length}\r\n\r\nt\r\n\r\n");
        let expected = format!(
            "a.wet: record 1 at byte 0: its Content-Length, \"{length}\", is no number of bytes"
        );
        assert_eq!(refusal(warc.as_bytes()), expected);
    }
}

#[test]
fn a_wrong_length_leads_to_an_error() {
    let good = String::from_utf8(conversion("a", "0123456789")).unwrap();
    for (length, expected) in [
        ("7", "\"789\" is no beginning of a WARC record"),
        ("11", "\"ARC/1.0\" is no beginning of a WARC record"),
        ("10000", "the file ends within it"),
        ("18446744073709551615", "the file ends within it"),
    ] {
        let blank = if length == "11" { "W" } else { "\r\n\r\nW" };
        let bad = good.replace("Content-Length: 10", &format!("Content-Length: {length}"));
        let warc = bad.trim_end().to_owned() + blank + &good[1..];
        let last = results(warc.as_bytes()).pop().unwrap();
        let message = last.unwrap_err();
        assert!(message.contains(expected), "{length}: {message}");
    }
}

#[test]
fn what_is_no_warc_is_an_error_that_shows_it() {
    for (bytes, shown) in [
        ("{\"id\": 1}\n", "{\"id\": 1}"),
        ("no line break", "no line break"),
        ("WARX/1.0\r\n", "WARX/1.0"),
        ("\u{FEFF}WARC/1.0\r\n", "\\u{feff}WARC/1.0"),
    ] {
        let message = refusal(bytes.as_bytes());
        let start = format!("a.wet: record 1 at byte 0: \"{shown}\" is no beginning");
        assert!(message.starts_with(&start), "{message}");
    }
}

#[test]
fn a_header_that_does_not_end_is_refused_at_its_limit() {
    let expected = format!("its header takes more than {MAX_HEADER_BYTES} bytes");
    for line in ["X: y\r\n", "x"] {
        let endless = Cursor::new(b"WARC/1.0\r\n".to_vec())
            .chain(Cursor::new(line.repeat(MAX_HEADER_BYTES / line.len() + 1)));
        let mut documents = open_reader(endless);
        let message = documents.next().unwrap().unwrap_err().to_string();
        assert!(message.contains(&expected), "{message}");
        assert!(documents.next().is_none());
    }
}

/// A record of zeros that are not held anywhere.
fn huge(kind: &str, bytes: u64) -> impl Read + Send + 'static {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: a\r\nContent-Type: text/plain\r\n\
         Content-Length: {bytes}\r\n\r\n"
    );
    let tail = [b"\r\n\r\n".to_vec(), conversion("b", "t")].concat();
    Cursor::new(head)
        .chain(io::repeat(b' ').take(bytes))
        .chain(Cursor::new(tail))
}

#[test]
fn a_record_of_a_gibibyte_is_refused_in_bounded_memory() {
    for kind in ["conversion", "metadata"] {
        let mut documents = open_reader(huge(kind, 1 << 30));
        if kind == "conversion" {
            let message = documents.next().unwrap().unwrap_err().to_string();
            let expected = "a.wet: record 1 at byte 0: its text takes more than 8388608 bytes, \
                            which is the limit";
            assert_eq!(message, expected);
        }
        assert_eq!(documents.next().unwrap().unwrap(), text("b", "t"));
        // Reading doubles a buffer that is full, so up to twice the limit may be taken.
        assert!(documents.records.held_bytes() <= 2 * MAX_BLOCK_BYTES + (64 << 10));
    }
}

#[test]
fn a_text_at_the_limit_is_read_and_one_over_it_is_not() {
    for (bytes, taken) in [(MAX_RECORD_BYTES, true), (MAX_RECORD_BYTES + 1, false)] {
        let mut documents = open_reader(huge("resource", bytes as u64));
        assert_eq!(documents.next().unwrap().is_ok(), taken);
        assert!(documents.next().unwrap().is_ok());
    }
}
