//! WA1, WA2: records that end early, lie about their length or never end.

use super::*;

/// What an error says of a record after which the next one can be looked for.
const REMEDY: &str = "; add --skip-bad-lines to leave it out and go on at the next record";

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
fn a_file_cut_within_the_first_bytes_of_a_record_is_an_error_that_names_it() {
    let arc = "http://a/ 192.0.2.1 20200101000000 text/plain 1\nt\n";
    let filedesc = "filedesc://a.arc 0.0.0.0 20200101000000 text/plain 16\n1 0 Crawler\nURL\n\n";
    let warc = String::from_utf8(conversion("a", "one")).unwrap();
    for (first, next) in [(warc.as_str(), warc.as_str()), (filedesc, arc)] {
        for bytes in 1..=next.len().min(20) {
            let cut = [first, &next[..bytes]].concat();
            let message = results(cut.as_bytes()).pop().unwrap().unwrap_err();
            let at = first.len();
            let expected = format!("a.wet: record 2 at byte {at}: the file ends within it");
            assert_eq!(message, expected, "{bytes} bytes");
            let message = refusal(&first.as_bytes()[..bytes]);
            let expected = "a.wet: record 1 at byte 0: ";
            assert!(message.starts_with(expected), "{bytes} bytes: {message}");
        }
    }
}

/// Any length but the right one is an error, or harmless: that which counts the line break behind the block.
#[test]
fn a_wrong_length_of_arc_is_an_error() {
    let filedesc = "filedesc://a.arc 0.0.0.0 20200101000000 text/plain 16\n1 0 Crawler\nURL\n\n";
    let record = |name: &str, text: &str, length: usize| {
        format!("ftp://{name} 192.0.2.1 20200101000000 text/plain {length}\n{text}\n")
    };
    let (first, second) = ("one two", "three\nfour");
    let next = record("b", second, second.len());
    let last = record("c", "five", 4);
    let most = first.len() + 1 + next.len() + last.len() + 4;
    for length in 0..most {
        let arc = [filedesc, &record("a", first, length), &next, &last].concat();
        let results = results(arc.as_bytes());
        let is_right = length == first.len() || length == first.len() + 1;
        let failed = results.iter().any(|result| result.is_err());
        assert_eq!(failed, !is_right, "{length}: {results:?}");
        if is_right {
            assert_eq!(results.len(), 3);
        }
    }
    // An archive may hold another one.
    let inner = [filedesc, &next].concat();
    let outer = [filedesc, &record("a", &inner, inner.len()), &last].concat();
    assert_eq!(read(outer.as_bytes()).len(), 2);
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
    let expected = format!("a.wet: record 1 at byte 0: it has no Content-Length{REMEDY}");
    assert_eq!(refusal(format!("{head}\r\n").as_bytes()), expected);
    for length in ["", "abc", "-1", "+1", "1 2", "0x10", "18446744073709551616"] {
        let warc = format!("{head}Content-Length: {length}\r\n\r\nt\r\n\r\n");
        let expected = format!(
            "a.wet: record 1 at byte 0: its Content-Length, \"{length}\", is no number of bytes{REMEDY}"
        );
        assert_eq!(refusal(warc.as_bytes()), expected);
    }
}

#[test]
fn a_wrong_length_leads_to_an_error_that_names_its_record() {
    let good = String::from_utf8(conversion("a", "012345\r\n89")).unwrap();
    let unix = good
        .replace('\r', "")
        .replace("Content-Length: 10", "Content-Length: 9");
    let wrong = |good: &str, length: &str| {
        let (start, rest) = good.split_once("Content-Length: ").unwrap();
        let (_, rest) = rest
            .split_once('\r')
            .unwrap_or_else(|| rest.split_once('\n').unwrap());
        let line_end = if good.contains('\r') { "\r" } else { "\n" };
        format!("{start}Content-Length: {length}{line_end}{rest}")
    };
    for (good, length, expected) in [
        (&good, "7", "\"\\n89\\r\\n\" instead"),
        (&good, "9", "\"9\\r\\n\" instead"),
        (&good, "11", "\"\\n\\r\\n\" instead"),
        (&good, "13", "\"\\nWARC/1.0\\r\\n\" instead"),
        (&good, "15", "\"ARC/1.0\\r\\n\" instead"),
        (&good, "10000", "the file ends within it"),
        (&good, "18446744073709551615", "the file ends within it"),
        (&unix, "8", "\"9\\n\" instead"),
    ] {
        assert_eq!(read(good.repeat(2).as_bytes()).len(), 2);
        let warc = [good.clone(), wrong(good, length), good.clone()].concat();
        let message = results(warc.as_bytes()).pop().unwrap().unwrap_err();
        let record = format!("a.wet: record 2 at byte {}: ", good.len());
        assert!(message.starts_with(&record), "{length}: {message}");
        assert!(message.contains(expected), "{length}: {message}");
    }
    // Line breaks may be missing after a block, so the text may have them.
    for (good, lengths) in [(&good, ["12", "14"]), (&unix, ["10", "11"])] {
        let breaks = if good.contains('\r') { "\r\n" } else { "\n" };
        let content = if good.contains('\r') {
            "012345\r\n89"
        } else {
            "012345\n89"
        };
        for (number, length) in lengths.into_iter().enumerate() {
            let warc = [good.clone(), wrong(good, length), good.clone()].concat();
            let longer = format!("{content}{}", breaks.repeat(number + 1));
            let expected = [text("a", content), text("a", &longer), text("a", content)];
            assert_eq!(read(warc.as_bytes()), expected, "{length}");
        }
    }
    // At the end of a file, too.
    let message = results(wrong(&good, "11").as_bytes()).pop().unwrap();
    let expected = "a.wet: record 1 at byte 0: after its block stands \"\\n\\r\\n\" instead of the \
                    two line breaks that end a record: its Content-Length is wrong";
    assert_eq!(message, Err(format!("{expected}{REMEDY}")));
}

#[test]
fn a_wrong_length_beyond_what_is_looked_through_says_that_records_are_lost() {
    let claimed = MAX_BLOCK_BYTES + 1000;
    let wrong = String::from_utf8(conversion("a", "one")).unwrap();
    let wrong = wrong.replace("WARC-Type: conversion", "WARC-Type: request");
    let wrong = wrong.replace("Content-Length: 3", &format!("Content-Length: {claimed}"));
    let good = conversion("a", &"word ".repeat(20_000));
    let warc = [wrong.as_bytes(), &good.repeat(100)].concat();
    let error = open(&warc).next().unwrap().unwrap_err();
    let lost = format!("records among the {claimed} bytes that it claims may be lost");
    assert!(error.to_string().contains(&lost), "{error}");
}

/// Two of the sample archives of pywb are such: one line break after an empty block, none between members of gzip.
#[test]
fn a_record_may_begin_where_the_line_breaks_before_it_should_be() {
    for line_break in ["\r\n", "\n"] {
        let record = String::from_utf8(conversion("a", "one")).unwrap();
        let record = record.replace("\r\n", line_break);
        let bare = record.trim_end();
        for kept in 0..=2 {
            let warc = [bare, &line_break.repeat(kept), &record].concat();
            let expected = [text("a", "one"), text("a", "one")];
            assert_eq!(read(warc.as_bytes()), expected, "{kept} of {line_break:?}");
            let end = bare.len() + kept * line_break.len();
            let damaged = warc.replace("Content-Length: 3", "Content-Length: x");
            let damaged = [&warc[..end], &damaged[end..]].concat();
            let message = results(damaged.as_bytes()).pop().unwrap().unwrap_err();
            let place = format!("a.wet: record 2 at byte {end}: its Content-Length");
            assert!(message.starts_with(&place), "{message}");
        }
    }
}

/// A length that is too small by line breaks shortens a text, too.
#[test]
fn more_than_two_line_breaks_after_a_block_are_an_error() {
    let good = conversion("a", "one");
    for more in ["\r\n", "\n", "\r"] {
        let warc = [&good[..], more.as_bytes(), &good].concat();
        let message = refusal(&warc);
        let expected = format!("its Content-Length is wrong{REMEDY}");
        assert!(message.ends_with(&expected), "{message}");
    }
}

#[test]
fn lengths_that_contradict_each_other_are_an_error() {
    let with = |length: &str| {
        let warc = String::from_utf8(conversion("a", "0123456789")).unwrap();
        warc.replace(
            "WARC-Type",
            &format!("content-length: {length}\r\nWARC-Type"),
        )
    };
    for other in ["9", "010", "", "10\r\n\t0"] {
        let shown = other.replace("\r\n\t", " ");
        let expected = format!(
            "a.wet: record 1 at byte 0: it has two Content-Lengths, \"{shown}\" and \"10\"{REMEDY}"
        );
        assert_eq!(refusal(with(other).as_bytes()), expected);
    }
    assert_eq!(read(with("10").as_bytes()), [text("a", "0123456789")]);
}

#[test]
fn a_version_that_is_not_known_is_an_error_that_names_it() {
    let with = |version: &str| {
        let warc = String::from_utf8(conversion("a", "t")).unwrap();
        warc.replace("WARC/1.0", version)
    };
    for version in [
        "WARC/2.0",
        "WARC/1.00",
        "WARC/1.1.1",
        "WARC/",
        "WARC/1.0 x",
        "WARC/\u{1b}",
    ] {
        let shown = version.replace('\u{1b}', "\\u{1b}");
        let expected = format!(
            "a.wet: record 1 at byte 0: its version, {shown}, is not known here: known are \
             WARC/0.17, WARC/0.18, WARC/1.0, WARC/1.1{REMEDY}"
        );
        assert_eq!(refusal(with(version).as_bytes()), expected);
    }
    for version in [
        "WARC/0.17",
        "WARC/0.18",
        "WARC/1.0",
        "WARC/1.1",
        "WARC/1.1 ",
    ] {
        assert_eq!(read(with(version).as_bytes()), [text("a", "t")]);
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
            let expected = "a.wet: record 1 at byte 0: its text or markup takes more than 8388608 \
                            bytes, which is the limit: add --skip-bad-lines to leave such \
                            records out";
            assert_eq!(message, expected);
        }
        assert_eq!(documents.next().unwrap().unwrap().0, text("b", "t"));
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
