//! `hash` as a whole process: what it writes in every format is input for the other commands.

use std::fs;

use serde_json::json;
use simshard_testkit::run;

use super::{FOX, Folder, succeed};
use crate::{BINARY, log};

/// The formats that this program writes, and the options with which they are read again.
fn formats() -> Vec<(&'static str, &'static [&'static str])> {
    let field: &[&str] = &["--fingerprint-field", "fingerprint"];
    let mut formats = vec![
        ("tsv", &[][..]),
        ("jsonl", field),
        ("ndjson", field),
        (
            "json",
            &["--format", "json", "--fingerprint-field", "fingerprint"],
        ),
    ];
    if cfg!(feature = "parquet") {
        formats.push(("parquet", field));
    }
    formats
}

fn documents(ids: &[&str]) -> String {
    let text = |id: &&str| format!("{FOX}{}", if id.len() > 1 { " and beyond" } else { "" });
    let line = |id: &&str| format!("{}\n", json!({"id": id, "text": text(id)}));
    ids.iter().map(line).collect()
}

#[test]
fn what_hash_writes_is_read_by_the_batch_commands_in_every_format() {
    let folder = Folder::new();
    for (format, options) in formats() {
        let awkward = if format == "tsv" { "å \"" } else { "å\t\n\"" };
        let ids = ["b", awkward, "a", "", "c d", "0"];
        let texts = folder.write("texts.jsonl", documents(&ids).as_bytes());
        let hashes = folder.path(&format!("hashes.{format}"));
        assert_eq!(succeed(&["hash", &texts, "-o", &hashes], b""), "");
        for verb in ["find-pairs", "find-clusters"] {
            let found = |input: &[&str]| {
                let jsonl = ["--output-format", "jsonl"];
                succeed(&[&[verb], input, &jsonl].concat(), b"")
            };
            let expected = found(&[&texts]);
            assert!(expected.lines().count() > 5, "{expected}");
            let again = found(&[&[hashes.as_str()], options].concat());
            assert_eq!(again, expected, "{format}");
        }
    }
}

#[test]
fn hash_prints_tsv_unless_told_otherwise() {
    let folder = Folder::new();
    let tsv = "id\thash\n1\t13548364882372308181\n";
    let objects = "{\"id\":\"1\",\"fingerprint\":\"13548364882372308181\"}\n";
    let hash = |args: &[&str]| {
        let args = [&["hash", "--recipe", "leonsim-3"], args].concat();
        succeed(&args, b"hello world\n")
    };
    assert_eq!(hash(&[]), tsv);
    assert_eq!(hash(&["-o", "-"]), tsv);
    for format in ["json", "jsonl"] {
        assert_eq!(hash(&["--output-format", format]), objects);
    }
    for (name, format, expected) in [
        ("plain", None, tsv),
        ("out.json", None, objects),
        ("out.jsonl", Some("tsv"), tsv),
    ] {
        let path = folder.path(name);
        let format = format.map(|format| ["--output-format", format]);
        let args = [&["-o", &path], format.as_slice().as_flattened()].concat();
        assert_eq!(hash(&args), "");
        assert_eq!(fs::read_to_string(path).unwrap(), expected, "{name}");
    }
}

#[test]
fn hash_reads_as_the_batch_commands_do() {
    let folder = Folder::new();
    let (one, two) = (
        folder.write("one", b"hello world\n"),
        folder.write("two", b"a text\n"),
    );
    let both = succeed(&["hash", "--format", "lines", &one, &two], b"");
    assert_eq!(
        succeed(&["hash", "--format", "lines", &one, "-i", &two], b""),
        both
    );
    assert_eq!(
        succeed(
            &["hash", "--format", "lines", "-i", &one, "--input", &two],
            b""
        ),
        both
    );
    let first = both.lines().take(2).map(|line| format!("{line}\n"));
    let first: String = first.collect();
    assert_eq!(
        succeed(
            &["hash", "--format", "lines", &one, &two, "--sample", "1"],
            b""
        ),
        first
    );
    for (window, recipe) in [
        (&["--window", "7"][..], "jenkins-window-7"),
        (&["--window", "0"], "jenkins-window-5"),
        (&["--window", "7", "--compat"], "jenkins-window-7-compat"),
    ] {
        let named = succeed(
            &["hash", "--format", "lines", &one, "--recipe", recipe],
            b"",
        );
        assert_eq!(
            succeed(
                &[&["hash", "--format", "lines", &one], window].concat(),
                b""
            ),
            named
        );
    }
    for bad in [
        &["--window", "5", "--recipe", "words-v1"][..],
        &["--window", "5", "--compat", "--recipe", "words-v1"],
        &["--compat"],
        &["--compat", "--recipe", "jenkins-window-5"],
        &["--compat", "--recipe", "words-v1"],
        &["--window", "4294967295"],
    ] {
        let output = run(BINARY, [&["hash"], bad].concat(), "a text\n");
        assert_eq!(output.status.code(), Some(2), "{bad:?}: {}", log(&output));
        assert!(output.stdout.is_empty());
    }
}

/// A file takes what a column of TSV cannot.
#[test]
fn ids_with_tabs_or_nul_bytes_are_bad_for_tsv_alone() {
    let folder = Folder::new();
    let cases = ["a\tb", "a\0b"].into_iter();
    for (id, (format, _)) in cases.flat_map(|id| formats().into_iter().map(move |f| (id, f))) {
        let texts = folder.write("texts.jsonl", documents(&[id]).as_bytes());
        let out = folder.path(&format!("out.{format}"));
        let output = run(BINARY, ["hash", &texts, "-o", &out], "");
        let good = format != "tsv";
        let code = if good { 0 } else { 2 };
        assert_eq!(output.status.code(), Some(code), "{}", log(&output));
        assert_eq!(fs::exists(&out).unwrap(), good, "{format} {id:?}");
        let _ = fs::remove_file(&out);
    }
}

/// A table gives what its rows give as JSON lines, whatever compresses it.
#[test]
fn csv_has_the_fingerprints_of_the_same_texts() {
    let folder = Folder::new();
    let jsonl = folder.write("a.jsonl", documents(&["a", "b c"]).as_bytes());
    let rows = format!("lang,id,text\r\nen,a,\"{FOX}\"\r\nen,\"b c\",\"{FOX} and beyond\"\r\n");
    let csv = folder.write("a.csv", rows.as_bytes());
    let expected = succeed(&["hash", &jsonl], b"");
    assert_eq!(succeed(&["hash", &csv], b""), expected);
    assert_eq!(
        succeed(&["hash", "--format", "csv"], rows.as_bytes()),
        expected
    );
    let found = succeed(&["find-clusters", &csv], b"");
    assert_eq!(found, succeed(&["find-clusters", &jsonl], b""));
}

/// In two's complement, as systems without unsigned integers have them.
#[test]
fn signed_fingerprints_are_written_and_read_in_every_format() {
    let folder = Folder::new();
    let texts = folder.write("texts.jsonl", documents(&["a", "b", "c d"]).as_bytes());
    let unsigned = succeed(&["hash", &texts], b"");
    for (format, options) in formats() {
        let hashes = folder.path(&format!("signed.{format}"));
        succeed(&["hash", &texts, "--signed", "-o", &hashes], b"");
        for verb in ["find-pairs", "find-clusters"] {
            let expected = succeed(&[verb, &texts, "--output-format", "jsonl"], b"");
            let args = [&[verb, &hashes, "--signed"], options].concat();
            let signed = succeed(&[&args[..], &["--output-format", "jsonl"]].concat(), b"");
            let mut back = String::new();
            for line in signed.lines() {
                let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
                for field in ["fingerprint", "fingerprint_a", "fingerprint_b", "cluster"] {
                    if let Some(number) = value.get(field).cloned() {
                        let number: i64 = number.as_str().unwrap().parse().unwrap();
                        value[field] = json!(number.cast_unsigned().to_string());
                    }
                }
                let before: serde_json::Value =
                    serde_json::from_str(expected.lines().nth(back.lines().count()).unwrap())
                        .unwrap();
                assert_eq!(value, before, "{format}, {verb}");
                back += "\n";
            }
            assert_eq!(back.lines().count(), expected.lines().count());
        }
    }
    let signed = fs::read_to_string(folder.path("signed.tsv")).unwrap();
    for (signed, unsigned) in signed.lines().zip(unsigned.lines()).skip(1) {
        let number = |line: &str| line.split('\t').nth(1).unwrap().to_owned();
        let signed: i64 = number(signed).parse().unwrap();
        assert_eq!(signed.cast_unsigned().to_string(), number(unsigned));
    }
    let refused = run(BINARY, ["find-pairs", "--format", "tsv"], "a\t-5\n");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        log(&refused).contains("unless --signed"),
        "{}",
        log(&refused)
    );
    let bare = succeed(&["find-pairs", "--signed"], b"-1\n-2\n");
    assert_eq!(bare, "[-2, -1]\n");
}
