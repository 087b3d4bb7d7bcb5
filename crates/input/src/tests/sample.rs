//! The first documents of an input: what is counted of them.

use super::hashes::parts_of;
use super::*;

/// A row of each kind, over and over: documents, long and short, and what is none.
fn texts() -> Vec<Option<&'static str>> {
    let prose = "the quick brown fox jumps over the lazy dog and runs home";
    let kinds = [
        Some(prose),
        None,
        Some("few words"),
        Some("?! ?! ?!"),
        Some("one"),
        Some("12 34 56 78 91 23 45 67 89 10 11 12"),
    ];
    kinds.into_iter().cycle().take(60).collect()
}

fn of_format(format: Format, text: Option<&str>) -> String {
    match (format, text) {
        (Format::Csv, Some(text)) => format!("{text},x\n"),
        (Format::Csv, None) => "no second field\n".to_owned(),
        (_, Some(text)) => format!("{{\"text\":\"{text}\"}}\n"),
        (_, None) => "no object\n".to_owned(),
    }
}

#[test]
fn a_sample_counts_nothing_beyond_its_last_document() {
    for (format, min_words) in [(Format::Jsonl, 0), (Format::Jsonl, 2), (Format::Csv, 2)] {
        let args = InputOptions {
            row_ids: true,
            min_words,
            ..skipping(format, &[])
        };
        let header = if format == Format::Csv {
            "text,y\n"
        } else {
            ""
        };
        let rows: Vec<String> = texts()
            .into_iter()
            .map(|text| of_format(format, text))
            .collect();
        let first = |rows: &[String], most| {
            parts_of(&args, most, (header.to_owned() + &rows.concat()).as_bytes()).unwrap()
        };
        let mut before = 0;
        for end in 1..=rows.len() {
            let expected = first(&rows[..end], None);
            let documents = expected.fingerprints.len();
            if documents == before {
                continue;
            }
            before = documents;
            let sample = first(&rows, Some(documents as u64));
            assert_eq!(sample.fingerprints, expected.fingerprints, "{end}");
            assert_eq!(sample.skipped, expected.skipped, "{format}, {end}");
            assert_eq!(sample.degenerate, expected.degenerate, "{format}, {end}");
            assert_eq!(sample.lengths, expected.lengths, "{format}, {end}");
        }
        let all = first(&rows, None).skipped;
        assert!(before > 20 && all.short_texts + all.unhashable_texts > 0 && all.has_bad());
    }
}
