//! `--cpu`: every level of the processor gives the same answers.

use std::process::Command;

use simshard_simhash::levels;
use simshard_testkit::run;

use crate::BINARY;

fn at(level: &str, args: &[&str], input: &str) -> String {
    let output = run(BINARY, [&["--cpu", level], args].concat(), input);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{level} {args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_level_hashes_alike() {
    let words = "The quick brown fox – быстрая лиса – 敏捷的狐狸 – jumps over the lazy dog. ";
    let text = |id: usize| {
        let text: String = (0..id).map(|number| format!("{words}{number} ")).collect();
        format!("{{\"id\": {id}, \"text\": \"{text}\"}}\n")
    };
    let texts: String = (1..20).map(text).collect();
    for recipe in ["words-v2", "words-v1", "leonsim-3", "moz-shingle-4"] {
        let args = ["hash", "--recipe", recipe, "--format", "jsonl"];
        let mut all = levels().map(|level| at(level, &args, &texts));
        let first = all.next().unwrap();
        // A line names the columns.
        assert_eq!(first.lines().count(), 20, "{first}");
        assert!(all.all(|other| other == first), "{recipe}");
    }
}

#[test]
fn every_level_finds_what_a_linear_scan_finds() {
    for level in levels() {
        for (blocks, distance) in [("5", "3"), ("8", "6")] {
            let size = ["--n", "20000", "--queries", "1000", "--data", "skewed"];
            let layout = ["--blocks", blocks, "--distance", distance];
            let args = [&["bench", "engine", "--check"], &size[..], &layout].concat();
            let printed = at(level, &args, "");
            assert!(printed.contains(level), "{level}: {printed}");
        }
    }
}

#[test]
fn an_unknown_level_is_refused_with_those_that_there_are() {
    let output = run(BINARY, ["--cpu", "avx1024", "recipes"], "");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for level in levels() {
        assert!(said.contains(level), "{said}");
    }
}

/// What the environment asks for is taken, and what it asks for in vain is refused where the program starts.
#[test]
fn the_environment_names_a_level_too() {
    let run = |level: &str, args: &[&str]| {
        let output = Command::new(BINARY)
            .args(args)
            .env("SIMSHARD_CPU", level)
            .output();
        output.unwrap()
    };
    for level in levels() {
        let size = ["--n", "100", "--queries", "100", "--case", "insert_bulk"];
        let output = run(level, &[&["bench", "engine", "--json"], &size[..]].concat());
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            printed.contains(&format!("\"level\":\"{level}\"")),
            "{level}: {printed}"
        );
    }
    for (level, args) in [
        ("avx1024", &["recipes"][..]),
        ("", &["serve"][..]),
        ("AVX2", &["demo"][..]),
    ] {
        let output = run(level, args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{level:?}: {said}");
        assert!(
            said.contains("SIMSHARD_CPU") && said.contains("scalar"),
            "{level:?}: {said}"
        );
    }
}
