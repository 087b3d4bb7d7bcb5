//! WA3: broken records that are left out, and the good ones around them.

use super::*;

/// By record: the document, or the message of what is left out or ends the file.
fn leaving_out(warc: &[u8]) -> Vec<Result<Document, String>> {
    let documents = open(warc).leaving_out_broken(true);
    let results = documents.map(|result| match result {
        Ok((document, _)) => Ok(document),
        Err(error) => Err(error.to_string()),
    });
    results.collect()
}

/// The pieces of the second reading, put together by their record.
fn raw(warc: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, WarcError> {
    let from = Box::new(Cursor::new(warc.to_vec()));
    let mut raw = RawRecords::new("a.wet".to_owned(), from, true);
    let mut records: Vec<(u64, Vec<u8>)> = Vec::new();
    while let Some(piece) = raw.next()? {
        match records.last_mut() {
            Some((record, bytes)) if *record == piece.record => bytes.extend(piece.bytes),
            Some(_) | None => records.push((piece.record, piece.bytes)),
        }
    }
    assert_eq!(records.last().map_or(0, |(record, _)| *record), raw.count());
    Ok(records)
}

/// A record with another length than its own.
fn with_length(record: &[u8], length: &str) -> Vec<u8> {
    let record = String::from_utf8(record.to_vec()).unwrap();
    let (start, rest) = record.split_once("Content-Length: ").unwrap();
    let (_, rest) = rest.split_once('\r').unwrap();
    format!("{start}Content-Length: {length}\r{rest}").into_bytes()
}

/// A good record in ways that break it.
fn broken(record: &[u8]) -> Vec<Vec<u8>> {
    let whole = String::from_utf8(record.to_vec()).unwrap();
    let lengths = [
        "0", "1", "7", "9", "25", "40", "200", "300", "1000", "100000", "8000000", "x", "", "-1",
    ];
    let lengths = lengths.map(|length| with_length(record, length));
    let version = whole.replace("WARC/1.0", "WARC/2.0").into_bytes();
    let without = whole.replace("Content-Length", "Length").into_bytes();
    lengths.into_iter().chain([version, without]).collect()
}

#[test]
fn every_good_record_around_a_broken_one_is_read() {
    let long = "three\r\n\r\nfour\r\n".repeat(40_000);
    let bad = conversion("bad", "0123456\r\n\r\n89\r\nWARC/\r\n");
    let [a, b, c] = [("a", "one"), ("b", "two"), ("c", &long)]
        .map(|(id, content)| (conversion(id, content), text(id, content)));
    for broken in broken(&bad) {
        let warc = [&a.0[..], &broken, &b.0, &c.0];
        let results = leaving_out(&warc.concat());
        let shown = String::from_utf8_lossy(&broken);
        let documents: Vec<_> = results.iter().flatten().collect();
        assert_eq!(documents, [&a.1, &b.1, &c.1], "{shown}");
        let bad: Vec<_> = results
            .iter()
            .flat_map(|result| result.as_ref().err())
            .collect();
        let place = format!("a.wet: record 2 at byte {}: ", a.0.len());
        assert!(bad.len() == 1 && bad[0].starts_with(&place), "{bad:?}");
        assert!(!bad[0].contains("--skip-bad-lines"), "{bad:?}");
        // The second reading sees the same records.
        let expected: Vec<_> = (1..).zip(warc.map(<[u8]>::to_vec)).collect();
        let found = raw(&warc.concat()).unwrap();
        assert_eq!(found[1..], expected[..], "{shown}");
    }
    // A block that is longer than any text is passed over as it says.
    for length in ["90000000", "18446744073709551615"] {
        let warc = [&a.0[..], &with_length(&bad, length), &b.0].concat();
        let results = leaving_out(&warc);
        let message = results[1].clone().unwrap_err();
        assert!(message.ends_with("the file ends within it"), "{message}");
        assert_eq!(results, [Ok(a.1.clone()), Err(message)]);
    }
}

/// WA3: a member of gzip may be cut off, and end within a line. The next record is in the next one.
#[test]
fn the_record_after_one_that_is_cut_anywhere_is_read() {
    let long = "x".repeat(700);
    let [good, bad, next] = [("a", "one"), ("http://b/c/", &*long), ("c", "three")]
        .map(|(id, content)| conversion(id, content));
    let end = bad.len() - "\r\n\r\n".len();
    for cut in "WARC/".len()..end {
        // The length may happen to be that of both.
        if (next.len() - "\r\n\r\n".len()..=next.len()).contains(&(end - cut)) {
            continue;
        }
        let warc = [&good, &bad[..cut], &next].concat();
        let results = leaving_out(&warc);
        let place = format!("a.wet: record 2 at byte {}: ", good.len());
        let [first, left_out, last] = &results[..] else {
            panic!("cut at {cut}: {results:?}");
        };
        assert_eq!(first, &Ok(text("a", "one")), "cut at {cut}");
        assert!(
            left_out.as_ref().unwrap_err().starts_with(&place),
            "cut at {cut}: {left_out:?}"
        );
        assert_eq!(last, &Ok(text("c", "three")), "cut at {cut}");
        let expected = [(2, bad[..cut].to_vec()), (3, next.clone())];
        assert_eq!(raw(&warc).unwrap()[2..], expected, "cut at {cut}");
    }
    // A field may end so, too.
    for id in ["http://a/WARC/1.0", "http://a/?v=WARC/1.1"] {
        assert_eq!(read(&conversion(id, "t")), [text(id, "t")]);
    }
}

#[test]
fn the_last_record_may_be_broken_and_the_file_not_cut() {
    let good = conversion("a", "one");
    let bad = with_length(&conversion("b", "0123456789"), "5");
    let warc = [&good[..], &bad].concat();
    let results = leaving_out(&warc);
    assert_eq!(results[0], Ok(text("a", "one")));
    let message = results[1].clone().unwrap_err();
    assert!(
        results.len() == 2 && message.contains("its Content-Length is wrong"),
        "{message}"
    );
    assert_eq!(raw(&warc).unwrap()[1..], [(1, good.clone()), (2, bad)]);
    for (cut, expected) in [
        (&warc[..good.len() - 5], "the file ends within it"),
        (&b"{}\n"[..], "the file is no WARC file"),
        (
            &b"filedesc://a 1.2.3.4 20080430 a/b 1\nx\nno record\n"[..],
            "no beginning of an ARC",
        ),
    ] {
        let message = leaving_out(cut).pop().unwrap().unwrap_err();
        assert!(message.contains(expected), "{message}");
        assert!(raw(cut).is_err());
    }
}

/// I6: what the first reading calls a record is that of the second, and no byte is lost.
#[test]
fn both_readings_of_a_damaged_file_see_the_same_records() {
    let page = record(
        &[
            ("WARC-Type", "response"),
            ("WARC-Target-URI", "p"),
            ("Content-Type", "application/http"),
        ],
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\na page\r\n\r\n",
    );
    let warc = [
        info(),
        conversion("a", "one\r\n\r\n"),
        page,
        conversion("b", "two"),
    ]
    .concat();
    for at in 0..warc.len() {
        for bit in [0, 1, 2, 4, 6] {
            let mut damaged = warc.clone();
            damaged[at] ^= 1 << bit;
            let mut documents = open(&damaged).leaving_out_broken(true);
            let mut ends_early = false;
            for result in documents.by_ref() {
                ends_early = result.is_err_and(|error| !error.is_bad_record());
            }
            let again = raw(&damaged);
            assert_eq!(again.is_err(), ends_early, "byte {at}, bit {bit}");
            let Ok(again) = again else { continue };
            let last = again.last().map_or(0, |(record, _)| *record);
            assert_eq!(last, documents.record(), "byte {at}, bit {bit}");
            let bytes: Vec<u8> = again.into_iter().flat_map(|(_, bytes)| bytes).collect();
            assert_eq!(bytes, damaged, "byte {at}, bit {bit}");
        }
    }
}

/// What is said of the records that are left out.
fn errors(warc: &[u8]) -> Vec<String> {
    let results = leaving_out(warc).into_iter();
    results.filter_map(Result::err).collect()
}

#[test]
fn blocks_of_wrong_lengths_are_not_read_again_without_end() {
    // Blocks of 256 MiB may be read again. The next one is passed, and the other records with it.
    for (length, records, expected) in [("8000000", 60, 30..40), ("60000", 6000, 4400..5600)] {
        let good = conversion("a", &"word ".repeat(20_000)).repeat(100);
        let wrong = with_length(&conversion("a", "one"), length);
        let errors = errors(&[wrong.repeat(records), good].concat());
        assert!(expected.contains(&errors.len()), "{}", errors.len());
        let told = format!("records among the {length} bytes that it claims may be lost");
        let last = errors.last().unwrap();
        assert!(last.contains(&told), "{last}");
    }
}

/// Each line begins a header that does not end.
#[test]
fn headers_that_do_not_end_are_not_read_again_without_end() {
    let lines = (0..200_000).map(|number| format!("a{number}: WARC/1.0\r\n"));
    let warc = format!("WARC/1.0\r\n{}", lines.collect::<String>());
    let errors = errors(warc.as_bytes());
    assert!((4500..5500).contains(&errors.len()), "{}", errors.len());
    let told = "is the limit; records among the 65";
    assert!(errors.iter().any(|error| error.contains(told)));
}

/// HT1. To compare each line with all before it took 26 seconds for each such header.
#[test]
fn headers_of_many_lines_are_read_in_linear_time() {
    let info = String::from_utf8(conversion("a", "one")).unwrap();
    let lines = "a:\r\n".repeat(15_000);
    let record = info.replace("WARC-Type", &format!("{lines}WARC-Type"));
    assert_eq!(errors(record.repeat(200).as_bytes()), [""; 0]);
}

/// Where the next record begins is not known.
#[test]
fn an_arc_ends_at_a_wrong_length_whatever_the_line_behind_it() {
    let about = "filedesc://a.arc 0.0.0.0 20080430 text/plain 9\n1 0 cdx\n\n\n";
    let page = format!(
        "dns:a 1.2.3.4 20080430 text/dns 4\none\n{}\n",
        "x".repeat(70_000)
    );
    let next = "dns:b 1.2.3.4 20080430 text/dns 4\ntwo\n\n";
    let long = "dns:a 1.2.3.4 20080430 text/dns 99999999999999999999\none\n";
    for wrong in [&page, long] {
        let arc = [about, wrong, next].concat();
        let results = leaving_out(arc.as_bytes());
        let last = results.last().unwrap().as_ref().unwrap_err();
        assert!(last.contains("is no beginning of an ARC record"), "{last}");
        assert!(!last.contains("--skip-bad-lines"), "{last}");
        let plain = open(arc.as_bytes()).last().unwrap().unwrap_err();
        assert_eq!(plain.to_string(), *last);
    }
}
