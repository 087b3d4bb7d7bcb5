//! `find` and `find-first` as crawlers ask: what is new, and what others are near.

use std::fs;

use serde_json::Value;
use simshard_testkit::{Process, run};

use crate::{BINARY, embedded, log, simshard};

/// The same page crawled six times, two others near it, and one alone.
const STORED: &str = "page\t0\npage\t1\npage\t2\npage\t3\npage\t4\npage\t5\nnear\t7\nnear too\t7\n\
                      alone\t18446744073709551615\n";

fn serve(documents: &str) -> Process {
    let router = embedded();
    simshard(&router, &["insert", "--format", "tsv"], documents);
    router
}

/// The ids of each query's matches, and whether they were cut.
fn found(lines: &str) -> Vec<(Vec<String>, bool)> {
    let ids = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let matches = line["matches"].as_array().unwrap().clone();
        let ids = matches
            .iter()
            .flat_map(|found| found["ids"].as_array().unwrap());
        let ids = ids.map(|id| id.as_str().unwrap().to_owned()).collect();
        (ids, line["truncated"] == true)
    };
    lines.lines().map(ids).collect()
}

#[test]
fn a_document_is_not_found_by_itself_however_often_it_is_stored() {
    let router = serve(STORED);
    let queries = "page\t0\nnear\t7\nalone\t18446744073709551615\nother\t0\n";
    let search = |args: &[&str]| {
        let tsv = ["--format", "tsv"];
        found(&simshard(&router, &[args, &tsv].concat(), queries))
    };
    let ids = |all: &[(Vec<String>, bool)]| -> Vec<Vec<String>> {
        all.iter().map(|(ids, _)| ids.clone()).collect()
    };
    let all = search(&["find", "--exclude-self"]);
    assert_eq!(all[0].0, ["near", "near too"]);
    assert_eq!(all[1].0[0], "near too");
    assert!(all[1].0[1..].iter().all(|id| id == "page"), "{all:?}");
    assert!(all[2].0.is_empty());
    assert_eq!(
        all[3].0.len(),
        8,
        "an id that is not stored excludes nothing"
    );
    // What a limit leaves is the beginning of all.
    for limit in ["1", "2", "3", "9"] {
        let few = search(&["find", "--exclude-self", "--limit", limit]);
        for (few, all) in few.iter().zip(&all) {
            assert!(all.0.starts_with(&few.0), "{limit}: {few:?}");
            assert!(few.1 || few.0 == all.0, "{limit}: {few:?}");
        }
    }
    let first = search(&["find-first", "--exclude-self"]);
    let expected: [&[&str]; 4] = [&["near", "near too"], &["near too"], &[], &["page"]];
    assert_eq!(ids(&first), expected);
    let one = search(&["find-first", "--exclude-self", "--max-ids", "1"]);
    let expected: [&[&str]; 4] = [&["near"], &["near too"], &[], &["page"]];
    assert_eq!(ids(&one), expected);
    assert!(first.iter().chain(&one).all(|(_, truncated)| !truncated));
}

#[test]
fn documents_without_a_match_are_printed_byte_for_byte() {
    let router = serve(STORED);
    let folder = tempfile::tempdir().unwrap();
    let one = folder.path().join("one.tsv");
    let two = folder.path().join("two.tsv");
    fs::write(&one, "id\thash\r\nknown\t6\r\nnew\t65535\r\nnew too\t65535").unwrap();
    fs::write(&two, "id\thash\nalone\t18446744073709551615\nlast\t99999\n").unwrap();
    let [one, two] = [one, two].map(|path| path.to_str().unwrap().to_owned());
    for command in ["find", "find-first"] {
        let printed = simshard(&router, &[command, "--only-new", &one, &two], "");
        let expected = "id\thash\r\nnew\t65535\r\nnew too\t65535\nlast\t99999\n";
        assert_eq!(printed, expected);
        let excluding = [command, "--only-new", "--exclude-self", &two];
        let printed = simshard(&router, &excluding, "");
        assert_eq!(
            printed,
            "id\thash\nalone\t18446744073709551615\nlast\t99999\n"
        );
    }
    // What is printed can be inserted, and then nothing is new.
    let new = simshard(&router, &["find", "--only-new", &one, &two], "");
    simshard(&router, &["insert", "--format", "tsv"], &new);
    let printed = simshard(&router, &["find", "--only-new", &one, &two], "");
    assert_eq!(printed, "id\thash\r\n");
}

#[test]
fn new_documents_of_several_files_have_no_byte_order_mark_within() {
    let router = serve(STORED);
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("a.jsonl", "\u{FEFF}{\"id\":1,\"text\":\"one two\"}\n"),
        ("b.jsonl", "\u{FEFF}{\"id\":2,\"text\":\"x y z\"}\n"),
        ("a.tsv", "\u{FEFF}id\thash\nknown\t6\n"),
        ("b.tsv", "\u{FEFF}id\thash\nalone\t99999\n"),
    ];
    let [a, b, table, other] = files.map(|(name, content)| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let printed = simshard(&router, &["find", "--only-new", &a, &b], "");
    assert_eq!(
        printed,
        files[0].1.to_owned() + &files[1].1['\u{FEFF}'.len_utf8()..]
    );
    simshard(&router, &["insert", "--format", "jsonl"], &printed);
    let printed = simshard(&router, &["find", "--only-new", &table, &other], "");
    assert_eq!(printed, "\u{FEFF}id\thash\nalone\t99999\n");
}

#[test]
fn both_names_of_the_distance_are_taken() {
    let router = serve(STORED);
    for option in ["--max-distance", "--distance"] {
        let found = simshard(&router, &["find", "--fingerprint", "7", option, "0"], "");
        assert!(found.contains("near") && !found.contains("page"), "{found}");
        let pairs = run(BINARY, ["find-pairs", option, "0"], "4\n4\n5\n");
        assert_eq!(String::from_utf8_lossy(&pairs.stdout), "[4, 4]\n");
    }
}

#[test]
fn texts_are_compared_by_the_recipe_of_the_corpus() {
    let router = embedded();
    let create = ["corpus", "create", "old", "--recipe", "leonsim-4"];
    simshard(&router, &create, "");
    let known = "{\"id\":1, \"text\":\"the quick brown fox\"}\n";
    let corpus = ["--corpus", "old", "--format", "jsonl"];
    simshard(&router, &[&["insert"], &corpus[..]].concat(), known);
    let input = format!(
        "{known}\n {{\"text\":\"another\\u0020text\", \"id\":2}}\n{{\"id\":3,\"text\":\"\"}}"
    );
    let args = [
        &["find", "--only-new"],
        &corpus[..],
        &["--router", router.url()],
    ]
    .concat();
    let output = run(BINARY, &args, &input);
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(printed, input.replace(known, ""));
    assert!(
        log(&output).contains(" of 3 documents have no match"),
        "{}",
        log(&output)
    );
}

#[test]
fn new_records_of_one_archive_are_printed_with_those_without_text() {
    let router = embedded();
    let record = |kind: &str, uri: &str, block: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let known = record("conversion", "a", "one two three four five");
    let new = record("conversion", "b", "a wholly other text about nothing");
    let request = record("request", "a", "x");
    simshard(&router, &["insert", "--format", "warc"], &known);
    let archive = [&*request, &known, &new].concat();
    let args = ["find", "--only-new", "--format", "warc"];
    let printed = simshard(&router, &args, &archive);
    assert_eq!(printed, request + &new);
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("b.warc");
    fs::write(&other, &archive).unwrap();
    let several = ["-", other.to_str().unwrap(), "--router", router.url()];
    let output = run(BINARY, [&args[..], &several].concat(), &archive);
    let expected = "--only-new prints one file of warc at a time";
    assert!(log(&output).contains(expected), "{}", log(&output));
}

#[test]
fn new_documents_are_printed_from_lines_and_whole_answers_alone() {
    let router = embedded();
    for (args, expected) in [
        (vec!["--format", "arrow"], "not written again"),
        (vec!["--allow-partial"], "cannot be used with"),
        (vec!["--fingerprint", "1"], "cannot be used with"),
        (vec!["--limit", "1"], "cannot be used with"),
        (vec!["--format", "tsv"], "expected two columns"),
    ] {
        let args = [&["find", "--only-new", "--router", router.url()], &args[..]].concat();
        let output = run(BINARY, &args, "a\t1\nb\n");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(log(&output).contains(expected), "{}", log(&output));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}
