//! The `jsonl` format.

use super::*;

fn print_args() -> InputOptions {
    InputOptions {
        fingerprint_field: Some("hash".to_owned()),
        ..args(Format::Jsonl, &[])
    }
}

#[test]
fn a_line_is_an_object_with_an_id_and_a_text() {
    assert_eq!(
        read(
            Format::Jsonl,
            "{\"id\":\"a\",\"text\":\"x\"}\r\n\n  \n { \"text\" : \"\" , \"id\" : \"\" } \n"
        ),
        [text("a", "x"), text("", "")]
    );
}

#[test]
fn a_number_as_id_is_kept_as_it_is_written() {
    for id in ["0", "-0", "1.50", "1e9", "123456789012345678901234567890"] {
        let line = format!("{{\"id\": {id}, \"text\": \"x\"}}");
        assert_eq!(read(Format::Jsonl, line), [text(id, "x")]);
    }
}

#[test]
fn escapes_are_decoded_in_names_and_values() {
    assert_eq!(
        read(
            Format::Jsonl,
            r#"{"i\u0064": "tab\t\"q\" \ud83d\ude00", "text": "line\nbreak \\ \u0000"}"#
        ),
        [text("tab\t\"q\" 😀", "line\nbreak \\ \0")]
    );
}

#[test]
fn other_fields_of_any_shape_are_ignored() {
    let line = r#"{"a":[{"id":"no","text":["}"]},"]}",null,1e999],"id":1,"b":{},"text":"x"}"#;
    assert_eq!(read(Format::Jsonl, line), [text("1", "x")]);
}

#[test]
fn deep_nesting_exhausts_no_stack() {
    let deep = 1_000_000;
    let nest = format!("{}{}", "[".repeat(deep), "]".repeat(deep));
    let line = format!(
        "{{\"a\":{nest},\"id\":1,\"text\":\"x\"}}\n{}",
        "[".repeat(deep)
    );
    let message = refusal(Format::Jsonl, line);
    assert!(message.starts_with("<stdin>:2: [[["), "{message}");
}

#[test]
fn the_fields_can_be_named() {
    let args = InputOptions {
        id_field: Some("url".to_owned()),
        text_fields: vec!["body".to_owned()],
        ..args(Format::Jsonl, &[])
    };
    let stdin = br#"{"url":"u","id":1,"text":"no","body":"yes"}"#;
    assert_eq!(all(open_bytes(&args, stdin).unwrap()), [text("u", "yes")]);
}

#[test]
fn one_field_can_be_both_id_and_text() {
    let args = InputOptions {
        id_field: Some("text".to_owned()),
        ..args(Format::Jsonl, &[])
    };
    let input = open_bytes(&args, br#"{"text":"x"}"#).unwrap();
    assert_eq!(all(input), [text("x", "x")]);
}

#[test]
fn fingerprints_are_exact_as_numbers_and_as_strings() {
    for value in [0, 1, (1 << 53) + 1, u64::MAX] {
        for written in [value.to_string(), format!("\"{value}\"")] {
            let line = format!("{{\"id\":\"a\",\"hash\":{written}}}");
            let input = open_bytes(&print_args(), line.as_bytes()).unwrap();
            assert_eq!(all(input), [print("a", value)]);
        }
    }
}

#[test]
fn what_is_no_fingerprint_is_named() {
    let cases = [
        (
            "18446744073709551616",
            "\"18446744073709551616\" is no fingerprint",
        ),
        ("\"18446744073709551616\"", "at most 18446744073709551615"),
        ("-1", "\"-1\" is no fingerprint"),
        ("1.0", "\"1.0\" is no fingerprint"),
        ("1e3", "\"1e3\" is no fingerprint"),
        ("\"12abc\"", "\"12abc\" is no fingerprint"),
        ("\"\"", "\"\" is no fingerprint"),
        ("null", "the field \"hash\" is null: expected a number or"),
        ("[1]", "the field \"hash\" is [1]: expected a number or"),
    ];
    for (written, expected) in cases {
        let stdin = format!("{{\"id\":1,\"hash\":1}}\n{{\"id\":2,\"hash\":{written}}}\n");
        let message = message(open_bytes(&print_args(), stdin.as_bytes()));
        assert!(message.starts_with("<stdin>:2: "), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

/// However many and long they are, and whatever is in them.
#[test]
fn a_missing_field_is_told_with_some_that_there_are() {
    let many = (0..5000).map(|n| format!("\"name {n}\":{n}"));
    let many = format!("{{{}}}", many.collect::<Vec<_>>().join(","));
    let refused = refusal(Format::Jsonl, many);
    assert!(refused.contains("\"name 0\", \"name 1\", "), "{refused}");
    assert!(refused.ends_with(", …; say with --id-field or --id row which to read"));
    assert!(refused.len() < 400, "{refused}");

    let hostile = format!("{{\"\\u001b[2J\\n{}\":1}}", "\u{202e}".repeat(9000));
    let refused = refusal(Format::Jsonl, hostile);
    assert!(
        refused.contains("it has \"\\u{1b}[2J\\n\\u{202e}"),
        "{refused}"
    );
    assert!(refused.len() < 1500 && !refused.contains('\n'), "{refused}");

    for (args, flag) in [
        (print_args(), "--fingerprint-field"),
        (
            InputOptions {
                features_field: Some("f".to_owned()),
                ..args(Format::Jsonl, &[])
            },
            "--features-field",
        ),
    ] {
        let refused = message(open_bytes(&args, b"{\"id\":1}"));
        let expected = format!("it has \"id\"; say with {flag} which to read");
        assert!(refused.ends_with(&expected), "{refused}");
    }
}

#[test]
fn faults_say_what_is_expected() {
    let cases = [
        (
            r#"{"text":"x"}"#,
            r#"{"text":"x"} has no field "id": it has "text"; say with --id-field or --id row which to read"#,
        ),
        (
            r#"{"id":1,"b\u006fdy":""}"#,
            r#"{"id":1,"b\u006fdy":""} has no field "text": it has "id", "body"; say with --text-field or --fingerprint-field which to read"#,
        ),
        ("{}", r#"{} has no field "id""#),
        (
            r#"{"id":null,"text":"x"}"#,
            r#"the field "id" is null: expected a string or a number"#,
        ),
        (
            r#"{"id":1,"text":12}"#,
            r#"the field "text" is 12: expected a string or null"#,
        ),
        (
            r#"{"id":1,"text":"\ud800"}"#,
            r#"the field "text" is no text: its \ud800 is half of a surrogate pair, and the other half is missing"#,
        ),
        (
            r#"{"id":"\\\ud83d\ude00 \udE01 \ud83d\ude02","text":"x"}"#,
            r#"the field "id" is no text: its \udE01 is half of a surrogate pair, and the other half is missing"#,
        ),
        (
            r#"{"id":1,"text":"a\n\ud83d\u0041"}"#,
            r#"the field "text" is no text: its \ud83d is half of a surrogate pair, and the other half is missing"#,
        ),
        (
            r#"{"id":["\ud800"],"text":"x"}"#,
            r#"the field "id" is ["\ud800"]: expected a string or a number"#,
        ),
        (
            r#"{"id":1,"id":1,"text":"x"}"#,
            r#"{"id":1,"id":1,"text":"x"} has the field "id" more than once"#,
        ),
        (
            "[1]",
            r#"[1] is no JSON object: expected {"name": value, …}"#,
        ),
        (
            r#"{"id":1,"text":"x""#,
            r#"{"id":1,"text":"x" is no JSON object: EOF while parsing an object (column 18)"#,
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(
            refusal(Format::Jsonl, line),
            format!("<stdin>:1: {expected}")
        );
    }
}

#[test]
fn damaged_json_is_refused_wherever_the_damage_is() {
    let damaged = [
        r#"{"id":1,"text":"x"}}"#,
        r#"{"id":1,"text":"x"} {}"#,
        r#"{"id":1,"text":"x",}"#,
        r#"{,"id":1,"text":"x"}"#,
        r#"{"id":1 "text":"x"}"#,
        r#"{"id" 1,"text":"x"}"#,
        r#"{"id":1,"text":"x","a"}"#,
        r#"{"id":1,"text":"x",3:4}"#,
        r#"{"id":01,"text":"x"}"#,
        r#"{"id":1,"text":"x","a":nul}"#,
        r#"{"id":1,"text":"x","a":[1,]}"#,
        r#"{"id":1,"text":"\q"}"#,
        "{\"id\":1,\"text\":\"a\u{1}b\"}",
        "{\"id\":1,\u{A0}\"text\":\"x\"}",
        r#"{"id":1,"text":'x'}"#,
        "null",
        "{",
    ];
    for line in damaged {
        let message = refusal(Format::Jsonl, line);
        assert!(message.contains("is no JSON object: "), "{line}: {message}");
    }
}

#[test]
fn an_id_that_tsv_cannot_hold_is_a_bad_line_where_ids_must_fit() {
    for (id, shown) in [
        ("a\\tb", "a\\tb"),
        ("a\\nb", "a\\nb"),
        ("a\\r", "a\\r"),
        ("\\u0000", "\\0"),
    ] {
        let stdin = format!("{{\"id\":1,\"text\":\"x\"}}\n{{\"id\":\"{id}\",\"text\":\"y\"}}\n");
        let refused = open_for_tsv(&args(Format::Jsonl, &[]), stdin.as_bytes());
        assert_eq!(
            message(refused),
            format!(
                "<stdin>:2: the id \"{shown}\" has a tab, a line break or a NUL byte, which \
                 TSV cannot hold"
            )
        );
        let skipping = open_for_tsv(&skipping(Format::Jsonl, &[]), stdin.as_bytes());
        let (read, documents) = drain(skipping.unwrap());
        assert_eq!(read, [text("1", "x")]);
        assert_eq!(documents.skipped().bad_lines, 1);
        assert_eq!(read.len() + 1, self::read(Format::Jsonl, &stdin).len());
    }
}

fn named(id: &str, text: &str) -> InputOptions {
    InputOptions {
        id_field: Some(id.to_owned()),
        text_fields: vec![text.to_owned()],
        ..args(Format::Jsonl, &[])
    }
}

#[test]
fn a_path_names_a_field_inside_objects() {
    let lines = r#"
        {"meta": {"id": 7, "x": {"id": 8}}, "doc": {"body": {"text": "one\u0020two"}}}
        {"doc": {"body": {"text": "", "other": []}}, "meta": {"id": "b"}}
    "#;
    let input = open_bytes(&named("meta.id", "doc.body.text"), lines.as_bytes()).unwrap();
    assert_eq!(all(input), [text("7", "one two"), text("b", "")]);
    // A field that is called so comes first.
    let line = br#"{"doc.text": "called so", "doc": {"text": "inside"}, "id": 1}"#;
    let input = open_bytes(&named("id", "doc.text"), line).unwrap();
    assert_eq!(all(input), [text("1", "called so")]);
    let hashes = InputOptions {
        fingerprint_field: Some("a.b".to_owned()),
        ..args(Format::Jsonl, &[])
    };
    let input = open_bytes(&hashes, br#"{"id": 1, "a": {"b": "17"}}"#).unwrap();
    assert_eq!(all(input), [print("1", 17)]);
}

#[test]
fn a_path_that_leads_nowhere_is_a_missing_field() {
    for line in [
        r#"{"id": 1, "doc": "text"}"#,
        r#"{"id": 1, "doc": ["text"]}"#,
        r#"{"id": 1, "doc": {}}"#,
        r#"{"id": 1, "doc": {"text.": "x", "": "y"}}"#,
        r#"{"id": 1, "doc": null, "text": "x"}"#,
        r#"{"id": 1}"#,
    ] {
        let found = message(open_bytes(&named("id", "doc.text"), line.as_bytes()));
        assert!(
            found.contains("has no field \"doc.text\": it has"),
            "{found}"
        );
    }
    for path in [".", "doc.", ".text", "doc..text"] {
        let line = r#"{"id": 1, "doc": {"text": "x"}}"#;
        let found = message(open_bytes(&named("id", path), line.as_bytes()));
        assert!(found.contains("has no field"), "{path}: {found}");
    }
    let twice = r#"{"id": 1, "doc": {"text": "x", "text": "y"}}"#;
    let found = message(open_bytes(&named("id", "doc.text"), twice.as_bytes()));
    assert!(
        found.contains("has the field \"text\" more than once"),
        "{found}"
    );
}

#[test]
fn rows_without_ids_can_be_called_by_their_numbers() {
    let folder = Folder::new();
    let numbered = |format, paths: &[PathBuf]| InputOptions {
        row_ids: true,
        ..args(format, paths)
    };
    let lines = "{\"text\": \"x\"}\n\n{\"text\": \"y\", \"id\": \"b\"}\n";
    let input = open_bytes(&numbered(Format::Jsonl, &[]), lines.as_bytes()).unwrap();
    assert_eq!(all(input), [text("1", "x"), text("3", "y")]);
    let features = InputOptions {
        features_field: Some("f".to_owned()),
        ..numbered(Format::Jsonl, &[])
    };
    let input = open_bytes(&features, b"{\"f\": [17]}\n{\"f\": {\"17\": 2}}\n").unwrap();
    assert_eq!(all(input), [print("1", 17), print("2", 17)]);
    let rows = "text\n\"x\ny\"\n\nz\n";
    let input = open_bytes(&numbered(Format::Csv, &[]), rows.as_bytes()).unwrap();
    assert_eq!(all(input), [text("1", "x\ny"), text("2", "z")]);
    let [a, b] = ["a.csv", "b.csv"].map(|name| folder.write(name, rows));
    let input = open_bytes(&numbered(Format::Csv, &[a.clone(), b.clone()]), b"").unwrap();
    let ids: Vec<String> = all(input).into_iter().map(|document| document.id).collect();
    let expected = [&a, &b].map(|path| [1, 2].map(|row| format!("{}:{row}", path.display())));
    assert_eq!(ids, expected.concat());
    let message = message(open_bytes(&numbered(Format::Tsv, &[]), b""));
    assert_eq!(
        message,
        "--id belongs to --format jsonl, csv, parquet or arrow, but the format is tsv; a table with a header and tabs \
         is read with --format csv --separator tab"
    );
}

#[test]
fn the_texts_of_several_fields_are_joined() {
    let options = InputOptions {
        text_fields: vec!["title".to_owned(), "doc.body".to_owned()],
        ..args(Format::Jsonl, &[])
    };
    let read = |line: &str| {
        let read = crate::parse_bytes(&options, Needs::CLIENT, line.as_bytes().to_vec());
        read.map_err(|error| error.to_string())
    };
    for (line, joined) in [
        (
            r#"{"id":"1","title":"A","doc":{"body":"b\u00e9"}}"#,
            "A\nbé",
        ),
        (r#"{"id":"1","doc":{"body":"b"},"title":null}"#, "b"),
        (r#"{"id":"1","doc":{"body":""},"title":"A"}"#, "A"),
        (r#"{"id":"1","doc":{"body":null},"title":""}"#, ""),
        (r#"{"id":"1","title":null,"doc":{"body":null}}"#, ""),
    ] {
        assert_eq!(read(line), Ok(vec![text("1", joined)]), "{line}");
    }
    for (line, expected) in [
        (r#"{"id":"1","title":"A"}"#, "has no field \"doc.body\""),
        (
            r#"{"id":"1","title":7,"doc":{"body":"b"}}"#,
            "expected a string or null",
        ),
    ] {
        let error = read(line).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
