//! The commands that look through all of a corpus.

use std::fs;
use std::process::Output;

use simshard_testkit::{Process, run};

use crate::{BINARY, embedded, simshard};

/// Two bare fingerprints, three documents of one fingerprint, a far one.
const DOCUMENTS: &str = "\t4\na\t5\nb\t5\nc\t5\n\t7\nfar\t18446744073709551615\n";

/// A server whose default corpus holds these documents.
fn serve(documents: &str) -> Process {
    let router = embedded();
    simshard(&router, &["insert", "--format", "tsv"], documents);
    router
}

fn try_simshard(router: &Process, args: &[&str], input: &str) -> Output {
    run(BINARY, [args, &["--router", router.url()]].concat(), input)
}

#[test]
fn a_scan_is_what_was_inserted_and_input_for_a_copy() {
    let router = serve(DOCUMENTS);
    let scanned = simshard(&router, &["corpus", "scan", "default"], "");
    assert_eq!(scanned, format!("id\thash\n{DOCUMENTS}"));
    simshard(&router, &["corpus", "create", "copy"], "");
    let copy = ["insert", "--corpus", "copy", "--format", "tsv"];
    simshard(&router, &copy, &scanned);
    assert_eq!(simshard(&router, &["corpus", "scan", "copy"], ""), scanned);

    let lines = ["corpus", "scan", "default", "--output-format", "jsonl"];
    let lines = simshard(&router, &lines, "");
    assert_eq!(
        lines.lines().next().unwrap(),
        r#"{"id":"","fingerprint":"4"}"#
    );
}

fn sorted(lines: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = lines.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn pairs_are_those_that_the_batch_command_finds() {
    let router = serve(DOCUMENTS);
    let found = simshard(&router, &["corpus", "find-pairs", "default"], "");
    let expected = [
        r#"["a", "b"]"#,
        r#"["a", "c"]"#,
        r#"["a", 7]"#,
        r#"["b", "c"]"#,
        r#"["b", 7]"#,
        r#"["c", 7]"#,
        r#"[4, "a"]"#,
        r#"[4, "b"]"#,
        r#"[4, "c"]"#,
        r#"[4, 7]"#,
    ];
    assert_eq!(sorted(&found), expected);

    let near = ["--max-distance", "1", "--output-format", "tsv"];
    let near = [&["corpus", "find-pairs", "default"][..], &near].concat();
    let found = simshard(&router, &near, "");
    assert!(found.starts_with("id_a\tid_b\tdistance\n"), "{found}");
    assert!(found.contains("\n4\ta\t1\n") && found.contains("\na\t7\t1\n"));
    assert_eq!(found.lines().count(), 1 + 9);

    // With ids for all, to the letter.
    let scanned = simshard(&router, &["corpus", "scan", "default"], "");
    let named = scanned.replace("\n\t", "\nbare-\t");
    simshard(&router, &["corpus", "create", "named"], "");
    let insert = ["insert", "--corpus", "named", "--format", "tsv"];
    simshard(&router, &insert, &named);
    let live = ["corpus", "find-pairs", "named", "--output-format", "jsonl"];
    let live = simshard(&router, &live, "");
    let batch = ["find-pairs", "--format", "tsv", "--output-format", "jsonl"];
    let batch = String::from_utf8(run(BINARY, batch, &named).stdout).unwrap();
    assert_eq!(sorted(&live), sorted(&batch));
}

#[test]
fn clusters_are_those_that_the_batch_command_finds() {
    let documents = "id\thash\nfar\t18446744073709551615\nx\t4\na\t5\nb\t5\ny\t1023\nz\t511\n";
    let router = serve(documents);
    let find = ["corpus", "find-clusters", "default"];
    let found = simshard(&router, &find, "");
    assert_eq!(found, "[\"x\", \"a\", \"b\"]\n[\"z\", \"y\"]\n");
    for format in ["json", "jsonl", "tsv"] {
        let format = ["--output-format", format];
        let live = simshard(&router, &[&find[..], &format].concat(), "");
        let batch = [&["find-clusters", "--format", "tsv"][..], &format].concat();
        let batch = String::from_utf8(run(BINARY, batch, documents).stdout).unwrap();
        assert_eq!(live, batch);
    }
    let near = [&find[..], &["--max-distance", "0"]].concat();
    assert_eq!(simshard(&router, &near, ""), "[\"a\", \"b\"]\n");
    let bare = serve("\t4\n\t5\n");
    assert_eq!(simshard(&bare, &find, ""), "[4, 5]\n");
    assert_eq!(simshard(&serve(""), &find, ""), "");
}

#[test]
fn a_file_is_whole_or_as_it_was() {
    let router = serve("a\t1\n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.tsv");
    let scan = ["corpus", "scan", "default", "-o", file.to_str().unwrap()];
    simshard(&router, &scan, "");
    assert_eq!(fs::read_to_string(&file).unwrap(), "id\thash\na\t1\n");

    let line = "{\"id\": \"b\\tc\", \"n\": \"2\"}\n";
    let fields = ["--id-field", "id", "--fingerprint-field", "n"];
    let insert = [&["insert", "--format", "jsonl"][..], &fields].concat();
    simshard(&router, &insert, line);
    let refused = try_simshard(&router, &scan, "");
    assert_eq!(refused.status.code(), Some(2));
    let log = String::from_utf8_lossy(&refused.stderr);
    assert!(log.contains("choose another --output-format"), "{log}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "id\thash\na\t1\n");
}

#[test]
fn a_corpus_that_is_not_there_is_refused() {
    let router = serve("");
    for verb in ["scan", "find-pairs", "find-clusters"] {
        let output = try_simshard(&router, &["corpus", verb, "none"], "");
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(output.stdout, b"");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(log.contains("there is no corpus none"), "{log}");
    }
}

#[test]
fn a_corpus_of_another_recipe_is_refused_where_one_is_named() {
    let router = serve("");
    for verb in ["scan", "find-pairs", "find-clusters"] {
        for (recipe, code) in [("leonsim-3", 2), ("words-v3", 0)] {
            let args = ["corpus", verb, "default", "--recipe", recipe];
            let output = try_simshard(&router, &args, "");
            let log = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{verb}: {log}");
            let is_said = log.contains("made with recipe words-v3, not leonsim-3");
            assert_eq!(is_said, code == 2, "{verb}: {log}");
        }
    }
}

#[test]
fn a_distance_beyond_the_corpus_is_a_bad_argument() {
    let router = serve("");
    for verb in ["find-pairs", "find-clusters"] {
        let find = ["corpus", verb, "default", "--max-distance", "4"];
        let output = try_simshard(&router, &find, "");
        assert_eq!(output.status.code(), Some(2));
    }
}
