//! `dedup` of CSV: rows may take several lines.

use std::fs;

use super::{Folder, Made, dedup, made, reference, refuse};

/// Rows may take several lines, and end in any line break.
#[test]
fn rows_of_csv_are_written_again_with_their_line_breaks() {
    let folder = Folder::new();
    let out = folder.path("out.csv");
    let a = "one two three four five six seven eight";
    let b = "a wholly other text about nothing that was said before";
    let content = format!(
        "\u{feff}id,x,text\r\n\r\n1,\"p\nq\",{a}\r\n2,,\"{a}\"\n3,\"\"\"\n\n\",\"{b}\"\n\n4,z,\"{}\"\n5,,?",
        b.replace(' ', "\n")
    );
    let input = folder.write("in.csv", &content);
    let said = dedup(&[&input, "-o", &out], "");
    assert_eq!(said, "kept 3 of 5 documents, one of each cluster");
    let expected =
        format!("\u{feff}id,x,text\r\n\r\n1,\"p\nq\",{a}\r\n3,\"\"\"\n\n\",\"{b}\"\n\n5,,?");
    assert_eq!(folder.read("out.csv"), expected);
    // The row that is dropped takes several lines.
    let said = dedup(&[&input, "-o", &out, "--keep", "longest"], "");
    assert_eq!(said, "kept 3 of 5 documents, one of each cluster");
    assert_eq!(folder.read("out.csv"), expected);
    let bad = format!("id,text\n1,{a}\n2,\"x\ny\",z\n3,{b}\n");
    let said = refuse(&["-f", "csv", "-o", &out], &bad);
    assert!(said.contains("<stdin>:3: the row has 3 columns"), "{said}");
    dedup(&["-f", "csv", "-o", &out, "--skip-bad-lines"], &bad);
    assert_eq!(folder.read("out.csv"), format!("id,text\n1,{a}\n3,{b}\n"));
    let said = refuse(&["-f", "csv", "-o", &out], "id,text\r1,a\r2,b\r");
    assert!(said.contains("bare carriage returns"), "{said}");
    for nothing in ["", "\u{feff}", "id,text", "id,text\n\n"] {
        dedup(&["-f", "csv", "-o", &out], nothing);
        assert_eq!(folder.read("out.csv"), nothing);
    }
}

/// What is written has the separator of what is read.
#[test]
fn rows_with_other_separators_are_written_again_as_they_are() {
    let folder = Folder::new();
    let rows = "id;text;n\r\n1;\"a b; c\";1,5\r\n2;a b c;2,5\r\n3;\"d\ne\";3,5\r\n";
    let expected = "id;text;n\r\n1;\"a b; c\";1,5\r\n3;\"d\ne\";3,5\r\n";
    let input = folder.write("in.csv", rows);
    let out = folder.path("out.csv");
    dedup(&[&input, "-o", &out, "--separator", ";"], "");
    assert_eq!(folder.read("out.csv"), expected);
    let input = folder.write("in.tsv", rows.replace(';', "\t"));
    let out = folder.path("out.tsv");
    dedup(&[&input, "-o", &out, "--format", "csv"], "");
    assert_eq!(folder.read("out.tsv"), expected.replace(';', "\t"));
    let said = refuse(
        &[&*folder.path("in.csv"), "-o", &out, "--separator", ";"],
        "",
    );
    assert!(said.contains("looks like tsv"), "{said}");
    for said in ["t", "ab", "\"", ""] {
        let said = refuse(&[&input, "-o", &out, "--separator", said], "");
        assert!(said.contains("or the word tab"), "{said}");
    }
}

/// DD1, DD2.
#[test]
fn rows_are_preferred_by_a_column() {
    let folder = Folder::new();
    let out = folder.path("out.csv");
    for (seed, shape) in [(81, "random"), (82, "chained"), (83, "dense")] {
        let records = made(seed, 300, shape);
        let row = |one: &Made| {
            let date = one
                .date
                .map(|day| format!("2024-02-{day:02}T12:00:00+01:00"));
            let score = one.score.map(|score| format!("{score}.50"));
            let [date, score] = [date, score].map(Option::unwrap_or_default);
            format!("{},{score},{date},{}\n", one.id, one.fingerprint)
        };
        let rows: Vec<String> = records.iter().map(row).collect();
        let input = folder.write("in.csv", "id,s,at,f\n".to_owned() + &rows.concat());
        for (by, keep) in [
            ("pairs", "newest:at"),
            ("pairs", "highest:s"),
            ("cluster", "newest:at"),
            ("cluster", "highest:s"),
        ] {
            let causes = reference(&records, keep, by);
            let args = [
                "-o",
                &out,
                "--by",
                by,
                "--keep",
                keep,
                "--fingerprint-field",
                "f",
            ];
            dedup(&[&[&*input], &args[..]].concat(), "");
            let kept = (0..rows.len()).filter(|at| !causes.contains_key(at));
            let kept: String = kept.map(|at| &*rows[at]).collect();
            assert_eq!(
                folder.read("out.csv"),
                "id,s,at,f\n".to_owned() + &kept,
                "{seed}, {by}, {keep}"
            );
        }
    }
}

#[test]
fn a_row_with_another_value_than_a_rank_is_bad() {
    let folder = Folder::new();
    let out = folder.path("out.csv");
    let rows = "id,text,s\n1,a b c,1\n2,\"a b\nc\",2e0\n3,a b c,high\n";
    let input = folder.write("in.csv", rows);
    let args = [&*input, "-o", &out, "--keep", "highest:s"];
    let said = refuse(&args, "");
    let expected = "in.csv:5: the field \"s\" is \"high\": expected a number, or an empty value";
    assert!(said.contains(expected), "{said}");
    assert_eq!(folder.names(), ["in.csv"]);
    dedup(&[&args[..], &["--skip-bad-lines"]].concat(), "");
    assert_eq!(folder.read("out.csv"), "id,text,s\n2,\"a b\nc\",2e0\n");
    let said = refuse(&[&input, "-o", &out, "--keep", "highest:score"], "");
    let expected = "in.csv:1: the header has no field \"score\": it has \"id\", \"text\", \"s\"; say with \
                    --keep which to read";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn what_is_no_csv_with_commas_is_named_as_what_it_is() {
    let folder = Folder::new();
    let out = folder.path("out.csv");
    let utf16: Vec<u8> = "\u{feff}id,text\n1,a b\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let input = folder.path("in.csv");
    for (content, expected) in [
        (
            b"id;text\n1;a b\n".to_vec(),
            "in.csv:1: the header is one column, and has ; in it: add --separator ';' if that separates its values",
        ),
        (
            b"id\ttext\n1\ta b\n".to_vec(),
            "the header is one column, and has tab in it: add --separator 'tab'",
        ),
        (utf16, "in.csv looks like UTF-16"),
        (
            b"PK\x03\x04\x14\0".to_vec(),
            "in.csv looks like a zip archive",
        ),
    ] {
        fs::write(&input, content).unwrap();
        let said = refuse(&[&input, "-o", &out], "");
        assert!(said.contains(expected), "{said}");
    }
    let utf16 = "\u{feff}id,text\n"
        .encode_utf16()
        .flat_map(u16::to_be_bytes);
    fs::write(&input, utf16.collect::<Vec<u8>>()).unwrap();
    let said = refuse(&[&input, "-f", "csv", "-o", &out], "");
    assert!(
        said.contains("in.csv:1: the text looks like UTF-16: write it as UTF-8"),
        "{said}"
    );
}

/// TB1. Rows are written again by their lines, of which a longer one would not be kept.
#[test]
fn a_row_that_is_too_long_is_refused_and_not_dropped() {
    let folder = Folder::new();
    let out = folder.path("out.csv");
    let long = "one two three ".repeat((9 << 20) / 14);
    for long in [&long[..], &long.replace(' ', "\n")] {
        let input = folder.write("in.csv", format!("id,text\n1,a b c\n2,\"{long}\"\n"));
        for skipping in [&[][..], &["--skip-bad-lines"]] {
            let said = refuse(&[&[&*input, "-o", &out], skipping].concat(), "");
            let expected =
                "in.csv:3: the row takes more than 8388608 bytes: a quote may be missing";
            assert!(said.contains(expected), "{said}");
            assert_eq!(folder.names(), ["in.csv"]);
        }
    }
}

/// DD1, DD2, with lines of all lengths.
#[test]
fn what_is_kept_of_csv_is_what_a_linear_scan_says() {
    let folder = Folder::new();
    let out = folder.path("out.csv");
    for (seed, shape, by) in [
        (21, "random", "pairs"),
        (22, "chained", "cluster"),
        (23, "dense", "pairs"),
    ] {
        let mut records = made(seed, 300, shape);
        for (place, record) in records.iter_mut().enumerate() {
            let filler = "x\n".repeat(place % 4);
            record.line = format!("{},\"{filler}\",{}\n", record.id, record.fingerprint);
        }
        let causes = reference(&records, "first", by);
        let lines: String = records.iter().map(|record| &*record.line).collect();
        let input = folder.write("in.csv", format!("id,x,f\n{lines}"));
        dedup(
            &[&input, "-o", &out, "--by", by, "--fingerprint-field", "f"],
            "",
        );
        let kept = (0..records.len()).filter(|at| !causes.contains_key(at));
        let kept: String = kept.map(|at| &*records[at].line).collect();
        assert_eq!(
            folder.read("out.csv"),
            format!("id,x,f\n{kept}"),
            "{shape}, {by}"
        );
    }
}
