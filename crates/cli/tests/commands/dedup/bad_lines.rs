//! Lines that `dedup` leaves out, and fields that it does not find.

use std::fs;

use simshard_testkit::run;

use super::{Folder, dedup, refuse};
use crate::BINARY;

#[test]
fn bad_lines_are_left_out_where_they_are_skipped() {
    let folder = Folder::new();
    let good = "{\"id\":2,\"text\":\"c d\",\"d\":\"2024-01-01T00:00:00Z\"}\n";
    let bad = "{\"id\":1,\"text\":\"a b\",\"d\":\"today\"}\n{\"id\":\n".to_owned() + good;
    let out = folder.path("out.jsonl");
    let args = ["-f", "jsonl", "-o", &out, "--keep", "newest:d"];
    let said = refuse(&args, &bad);
    assert!(
        said.contains("<stdin>:1: the field \"d\" is \"today\": expected a date"),
        "{said}"
    );
    assert_eq!(folder.names(), [""; 0]);
    let skipping = [&["dedup"], &args[..], &["--skip-bad-lines"]].concat();
    let told = crate::said(&run(BINARY, &skipping, &*bad));
    assert_eq!(folder.read("out.jsonl"), good);
    let [count, first, second, _] = told.lines().collect::<Vec<_>>()[..] else {
        panic!("{told}");
    };
    assert_eq!(count, "skipped 2 bad lines");
    assert!(
        first.starts_with("  <stdin>:1: the field \"d\" is \"today\""),
        "{told}"
    );
    assert!(
        second.starts_with("  <stdin>:2: {\"id\": is no JSON object"),
        "{told}"
    );

    let many = "{\n".repeat(1000) + &bad;
    let told = crate::said(&run(BINARY, &skipping, many));
    assert!(told.contains("\n  <stdin>:5: "), "{told}");
    assert!(told.contains("\n  and 997 more\n"), "{told}");
    assert_eq!(told.lines().count(), 8, "{told}");
}

#[test]
fn an_input_of_bad_lines_alone_is_refused() {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let args = ["-f", "jsonl", "-o", &out, "--skip-bad-lines"];
    let said = refuse(&args, "{\n[]\n");
    let expected =
        "nothing was read: skipped 2 bad lines; the first: <stdin>:1: { is no JSON object";
    assert!(said.contains(expected), "{said}");
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn a_field_that_no_document_has_is_refused() {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let lines = "{\"id\":1,\"text\":\"a b\",\"d\":\"2024-01-01T00:00:00Z\",\"n\":null}\n\
                 {\"id\":2,\"text\":\"a b\"}\n";
    let args = ["-f", "jsonl", "-o", &out, "--keep"];
    for keep in ["newest:typo", "highest:d.s", "newest:n"] {
        let said = refuse(&[&args[..], &[keep]].concat(), lines);
        let field = keep.split_once(':').unwrap().1;
        let expected =
            format!("no document has a value in the field \"{field}\", so --keep {keep}");
        assert!(said.contains(&expected), "{said}");
        assert_eq!(folder.names(), [""; 0]);
        // Of no document, nothing can be said.
        dedup(&[&args[..], &[keep]].concat(), "\n");
        fs::remove_file(&out).unwrap();
    }
    let said = dedup(&[&args[..], &["newest:d"]].concat(), lines);
    assert_eq!(said, "kept 1 of 2 documents, one of each cluster");
}
