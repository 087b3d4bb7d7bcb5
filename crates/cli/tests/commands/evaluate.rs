//! `evaluate` as a whole process: its tables, its JSON, its page and how it ends.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use serde_json::Value;
use simshard_testkit::{run, run_with_open_input};

use crate::{BINARY, log};

/// 120 texts of 60 words, each also with one word exchanged, as JSON lines.
fn pairs() -> String {
    let mut lines = String::new();
    for text in 0..120 {
        for copy in ["a", "b"] {
            let word = |word: usize| match word {
                30 => format!("{copy}{text} "),
                _ => format!("text{text}word{word} "),
            };
            let words: String = (0..60).map(word).collect();
            writeln!(lines, "{{\"id\": \"{text}{copy}\", \"text\": \"{words}\"}}").unwrap();
        }
    }
    lines
}

#[test]
fn figures_and_a_suggestion_are_printed() {
    let args = [
        "evaluate",
        "--format",
        "jsonl",
        "--want",
        "recall=0.9,precision=0.9",
    ];
    let output = run(BINARY, args, pairs());
    assert_eq!(output.status.code(), Some(0), "{}", log(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("240 texts, 120 true pairs\n"), "{text}");
    for recipe in [
        "words-v3",
        "words-v2",
        "words-v1",
        "leonsim-4",
        "textdedup-3",
        "words-v2-3",
    ] {
        assert!(
            text.contains(&format!("\n\n{recipe}\n")),
            "{recipe}: {text}"
        );
    }
    assert!(text.contains("\nsuggested: "), "{text}");
    assert!(
        text.contains(" pairs by chance among 1e8 documents\n"),
        "{text}"
    );
    let last = text.lines().last().unwrap();
    assert!(
        last.starts_with("simshard corpus create crawl --recipe ")
            && last.ends_with(" --documents 1e8"),
        "{text}"
    );
}

#[test]
fn json_holds_the_figures_by_recipe_distance_and_length() {
    let args = [
        "evaluate",
        "--format",
        "jsonl",
        "--json",
        "--recipes",
        "words-v2,words-v1",
    ];
    let output = run(BINARY, args, pairs());
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&all["texts"], &all["true_pairs"]),
        (&240.into(), &120.into())
    );
    let recipes = all["recipes"].as_array().unwrap();
    let names: Vec<&Value> = recipes.iter().map(|one| &one["recipe"]).collect();
    assert_eq!(names, ["words-v2", "words-v1"]);
    let rows = recipes[0]["distances"].as_array().unwrap();
    assert_eq!(rows.len(), 11);
    let near = &rows[6];
    assert!(near["recall"]["value"].as_f64().unwrap() > 0.9, "{near}");
    assert_eq!(near["by_length"][1]["found"], near["found"]);
    assert_eq!(all["suggestion"]["recipe"], "words-v2");
}

#[test]
fn degenerate_texts_are_named_and_short_ones_left_out_where_that_is_asked_for() {
    let with = |few: &[&str]| {
        let line = |words: &&str| format!("{{\"id\": \"few {words}\", \"text\": \"{words}\"}}\n");
        pairs() + &few.iter().map(line).collect::<String>()
    };
    let few = ["x y z", "x y", "x y z x y z x y z", ""];
    let args = ["evaluate", "--format", "jsonl", "--recipes", "words-v2"];
    let output = run(BINARY, args, with(&few));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let start = "243 texts, 120 true pairs, 1 without words, 3 degenerate: few distinct runs\n\
                 degenerate, few distinct runs: few x y\n\
                 degenerate, few distinct runs: few x y z\n\
                 degenerate, few distinct runs: few x y z x y z x y z\n\nwords-v2\n";
    assert!(text.starts_with(start), "{text}");
    assert_eq!(log(&output), "");

    let leaving_out = [&args[..], &["--min-words", "4"]].concat();
    let output = run(BINARY, &leaving_out, with(&few));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let start = "241 texts, 120 true pairs, 3 of too few words, 1 degenerate: few distinct runs\n\
                 degenerate, few distinct runs: few x y z x y z x y z\n\n";
    assert!(text.starts_with(start), "{text}");
    assert_eq!(log(&output), "skipped 3 short texts\n");

    let output = run(BINARY, [&leaving_out[..], &["--json"]].concat(), with(&few));
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&all["texts"], &all["short"]), (&241.into(), &3.into()));
    assert_eq!(all["degenerate"]["few distinct runs"], 1);
    let examples = &all["degenerate_examples"]["few distinct runs"];
    assert_eq!(examples, &serde_json::json!(["few x y z x y z x y z"]));
}

#[test]
fn labels_and_html_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let [labels, pages] = ["labels.tsv", "pages.jsonl"].map(|name| folder.path().join(name));
    let lines: String = (0..120)
        .map(|text| format!("{text}a\t{text}b\t1\n"))
        .collect();
    let others = "0a\t1a\t0\n0a\tempty\t1\nempty\tnone\t1\n0a\tnone\t0\n";
    fs::write(&labels, lines + others).unwrap();
    let hidden = |copy: &str| format!("{copy}\", \"text\": \"<script>{copy} {copy}</script> ");
    let marked = pairs().replace("a\", \"text\": \"", &hidden("a"));
    fs::write(&pages, marked + "{\"id\": \"empty\", \"text\": \"<p>\"}\n").unwrap();
    let [labels, pages] = [&labels, &pages].map(|path| path.to_str().unwrap());
    let args = [
        "evaluate",
        pages,
        "--pairs",
        labels,
        "--html",
        "all",
        "--recipes",
        "words-v2",
    ];
    let output = run(BINARY, args, "");
    assert_eq!(output.status.code(), Some(0), "{}", log(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let start = "240 texts, 120 true pairs, 1 without words, 2 labelled for texts without words, \
                 1 labelled for texts that are not there\n";
    assert!(text.starts_with(start), "{text}");

    fs::write(folder.path().join("bad.tsv"), "\n0a 0b 1\n").unwrap();
    let bad = folder.path().join("bad.tsv");
    let output = run(
        BINARY,
        ["evaluate", pages, "--pairs", bad.to_str().unwrap()],
        "",
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(
        log(&output).contains("bad.tsv: line 2: not two ids"),
        "{}",
        log(&output)
    );
}

#[test]
fn labels_of_one_kind_suggest_nothing_by_what_they_do_not_measure() {
    let folder = tempfile::tempdir().unwrap();
    let [labels, pages] = ["labels.tsv", "pages.jsonl"].map(|name| folder.path().join(name));
    fs::write(&pages, pairs()).unwrap();
    let label = |label: u8| {
        let lines = (0..120).map(|text| format!("{text}a\t{text}b\t{label}\n"));
        fs::write(&labels, lines.collect::<String>()).unwrap();
    };
    let evaluated = |more: &[&str]| {
        let paths = [&pages, &labels].map(|path| path.to_str().unwrap());
        let args = ["evaluate", paths[0], "--pairs", paths[1]];
        let output = run(BINARY, [&args[..], more].concat(), "");
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        (output.status.code(), text, log(&output))
    };
    label(1);
    let not_measured = "no compared pair is labelled 0, so precision is not measured: ";
    let (code, text, said) = evaluated(&[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with(not_measured), "{said}");
    assert!(!text.contains("suggested: "), "{text}");
    assert!(text.contains("\n       3                  - "), "{text}");
    let page = folder.path().join("page.html");
    let report = ["--want", "recall=0.9", "--report", page.to_str().unwrap()];
    let (code, text, said) = evaluated(&report);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with(not_measured), "{said}");
    assert!(text.contains(": precision -, recall "), "{text}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<p>No compared pair is labelled 0, so precision is not measured.</p>"));
    let (code, _, said) = evaluated(&["--want", "recall=0.9,precision=0.9"]);
    assert_eq!(code, Some(1));
    let error = "error: no recipe and distance meets --want with at most 128 tables\n";
    assert!(said.ends_with(error), "{said}");

    label(0);
    let (code, text, said) = evaluated(&[]);
    assert_eq!((code, &*text), (Some(2), ""));
    let few = "the texts have 0 true pairs, and at least 100 are needed to measure recall: ";
    assert!(said.contains(few), "{said}");
}

#[test]
fn the_report_is_a_page_and_not_for_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let args = ["evaluate", "--format", "jsonl", "--report"];
    let output = run(
        BINARY,
        [&args[..], &[page.to_str().unwrap()]].concat(),
        pairs(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", log(&output));
    let page = fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"));
    assert!(page.contains("<svg class=\"plot\"") && page.contains("words-v2-3"));
    let output = run(BINARY, [&args[..], &["-"]].concat(), pairs());
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}

#[test]
fn the_exit_code_says_whether_anything_will_do() {
    let text = "evaluate --format jsonl --recipes words-v1 --want recall=1";
    let args: Vec<&str> = text.split(' ').collect();
    let output = run(BINARY, args, pairs());
    assert_eq!(output.status.code(), Some(1), "{}", log(&output));
    assert!(!output.stdout.is_empty());
    assert!(log(&output).contains("error: no recipe and distance meets --want"));

    let few: String = pairs()
        .lines()
        .take(100)
        .map(|line| line.to_owned() + "\n")
        .collect();
    let output = run(BINARY, ["evaluate", "--format", "jsonl"], &few);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        log(&output).contains("the texts have 50 true pairs, and at least 100 are needed"),
        "{}",
        log(&output)
    );
    let left_out =
        "{\"id\": \"?\", \"text\": \"?!\"}\n{\"id\": \"x\", \"text\": \"x\"}\nno object\n";
    let args = "evaluate --format jsonl --skip-bad-lines --min-words 1 --quiet";
    let output = run(BINARY, args.split(' '), &(few + left_out));
    assert_eq!(output.status.code(), Some(2));
    let said = "skipped 1 bad line, 1 short text\n  <stdin>:103: no object is no JSON object: expected ident (column 2)\n\
                101 texts, 50 true pairs, 1 of too few words, 1 degenerate: few distinct runs\nerror: ";
    assert!(log(&output).starts_with(said), "{}", log(&output));

    // More than is read before it begins to work: it does not wait for the end.
    let output = run_with_open_input(
        BINARY,
        ["evaluate", "--format", "jsonl", "--sample", "100"],
        pairs().repeat(60),
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(
        log(&output).contains("the input is read twice"),
        "{}",
        log(&output)
    );
}

#[test]
fn what_is_no_number_of_documents_and_documents_without_texts_are_refused() {
    let features = r#"{"id":"a","features":["x"]}"#;
    let hashes = "0123456789abcdef\n";
    for (args, input, message) in [
        (
            "--documents 1.5",
            "",
            "write a whole number from 1 to 1e18, such as 1e8",
        ),
        (
            "--format jsonl --features-field features",
            features,
            "these documents carry features: evaluate needs texts",
        ),
        (
            "--format hashes",
            hashes,
            "these documents carry fingerprints already: evaluate needs texts",
        ),
    ] {
        let args = std::iter::once("evaluate").chain(args.split(' '));
        let output = run(BINARY, args, input);
        assert_eq!(output.status.code(), Some(2), "{}", log(&output));
        assert!(log(&output).contains(message), "{}", log(&output));
    }
}

#[test]
fn a_pipe_is_not_read_twice() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let script =
        "exec 3<&0; cat <&3 > \"$1\" & exec \"$0\" evaluate --format jsonl --sample 100 \"$1\"";
    let args = ["-c", script, BINARY, pipe.to_str().unwrap()];
    let output = run("sh", args, pairs());
    assert_eq!(output.status.code(), Some(2), "{}", log(&output));
    assert!(
        log(&output).contains("the input is read twice"),
        "{}",
        log(&output)
    );
}

#[test]
fn the_report_is_no_file_that_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let [labels, pages] = ["labels.tsv", "pages.jsonl"].map(|name| folder.path().join(name));
    let lines: String = (0..120)
        .map(|text| format!("{text}a\t{text}b\t1\n"))
        .collect();
    fs::write(&labels, &lines).unwrap();
    fs::write(&pages, pairs()).unwrap();
    for documents in [pages.to_str().unwrap(), "-"] {
        for report in ["labels.tsv", "pages.jsonl", "./labels.tsv"] {
            if documents == "-" && report == "pages.jsonl" {
                continue;
            }
            let report = folder.path().join(report);
            let [labels, report] = [&labels, &report].map(|path| path.to_str().unwrap());
            let args = [
                "evaluate", documents, "--format", "jsonl", "--pairs", labels, "--report", report,
            ];
            let output = run(BINARY, args, pairs());
            assert_eq!(output.status.code(), Some(2), "{report}: {}", log(&output));
            assert!(output.stdout.is_empty(), "{report}");
        }
    }
    assert_eq!(fs::read_to_string(&labels).unwrap(), lines);
    assert_eq!(fs::read_to_string(&pages).unwrap(), pairs());
}
