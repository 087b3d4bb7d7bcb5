//! The demo says what it found, also where that is nothing.

use std::fs;

use simshard_testkit::run;

use crate::BINARY;

#[test]
fn a_demo_that_finds_no_near_duplicates_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("a", "one text of a few words"), ("b", "something else")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let demo = ["demo", "--verify", folder.path().to_str().unwrap()];
    let output = run(BINARY, demo, "");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shown}");
    assert!(
        shown.contains("No two of them are near-duplicates"),
        "{shown}"
    );
    assert!(!shown.contains("Clusters"), "{shown}");
}
