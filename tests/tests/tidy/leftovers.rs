//! Nothing unfinished stays behind: no placeholder, no debugging aid, no ignored test, and no test
//! that sleeps instead of waiting for a condition.

use anyhow::Result;

use crate::assert_none;
use crate::repository::{self, TextFile};
use crate::rust_source::{code_only, has_word, lines_in_test_modules};

/// Code that is not meant to stay.
const PLACEHOLDERS: [&str; 5] = ["todo!", "unimplemented!", "dbg!", "#[ignore]", "#[ignore ="];

/// Endings of files whose comments are read for notes.
const COMMENTED: [&str; 6] = [".rs", ".py", ".proto", ".toml", ".yaml", ".ci/run"];

/// Notes to come back to, in pieces so that this file has none.
fn notes() -> [String; 2] {
    [["FIX", "ME"].concat(), "X".repeat(3)]
}

fn placeholders(file: &TextFile) -> Vec<String> {
    let code = code_only(&file.text);
    problems(file, &code, |line| {
        PLACEHOLDERS
            .into_iter()
            .find(|word| has_word(line, word))
            .map(str::to_owned)
    })
}

fn notes_left(file: &TextFile) -> Vec<String> {
    let notes = notes();
    problems(file, &file.text, |line| {
        notes.iter().find(|note| has_word(line, note)).cloned()
    })
}

fn problems(file: &TextFile, text: &str, find: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(word) = find(line) {
            problems.push(format!("{}:{}: `{word}` left behind", file.path, index + 1));
        }
    }
    problems
}

/// Calls that wait by the clock alone.
const SLEEPS: [&str; 4] = ["sleep(", "sleep_ms(", "sleep_until(", "park_timeout("];

/// The crate that only tests use.
const TEST_SUPPORT: &str = "crates/testkit/";

/// Those that sleep: how long a fault lasts is not a condition to wait for, and one place looks at conditions again.
const SLEEPERS: [&str; 4] = [
    "crates/testkit/src/waiting.rs",
    "tests/tests/processes/killed_moves.rs",
    "tests/tests/processes/nemesis.rs",
    "tests/tests/processes/nemesis/",
];

/// Tests that sleep, except on tokio's paused clock, where no time passes.
fn sleeping_tests(file: &TextFile) -> Vec<String> {
    if SLEEPERS.iter().any(|path| file.path.starts_with(path)) {
        return Vec::new();
    }
    let code = code_only(&file.text);
    let in_test_module = lines_in_test_modules(&code);
    // Of the function that runs on a paused clock, the line that ends it.
    let mut paused_until: Option<String> = None;
    let mut problems = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let content = line.trim_start();
        if content.starts_with("#[") && line.contains("start_paused = true") {
            let indent = &line[..line.len() - content.len()];
            paused_until = Some(format!("{indent}}}"));
        }
        let paused = paused_until.is_some();
        if paused_until.as_deref() == Some(line) {
            paused_until = None;
        }
        let in_test =
            file.is_test() || file.path.starts_with(TEST_SUPPORT) || in_test_module[index];
        let mut calls = SLEEPS.iter();
        if in_test && !paused && calls.any(|call| has_word(line, call)) {
            let place = format!("{}:{}", file.path, index + 1);
            problems.push(format!(
                "{place}: a test that sleeps: wait for a condition instead"
            ));
        }
    }
    problems
}

/// Python tests, whose comments may talk about sleeping.
fn sleeping_script(file: &TextFile) -> Vec<String> {
    problems(file, &file.text, |line| {
        has_word(line, "sleep(").then(|| "sleep".to_owned())
    })
}

#[test]
fn no_placeholder_is_left_in_the_code() -> Result<()> {
    let found: Vec<_> = repository::rust_files()?
        .iter()
        .flat_map(placeholders)
        .collect();
    assert_none(&found);
    Ok(())
}

#[test]
fn no_note_to_come_back_to_is_left_in_a_file() -> Result<()> {
    let mut files = repository::text_files()?;
    files.retain(|file| COMMENTED.iter().any(|ending| file.path.ends_with(ending)));
    let found: Vec<_> = files.iter().flat_map(notes_left).collect();
    assert_none(&found);
    Ok(())
}

#[test]
fn no_test_sleeps() -> Result<()> {
    let mut found: Vec<_> = repository::rust_files()?
        .iter()
        .flat_map(sleeping_tests)
        .collect();
    let files = repository::text_files()?;
    let scripts = files
        .iter()
        .filter(|file| file.is_test() && file.path.ends_with(".py"));
    found.extend(scripts.flat_map(sleeping_script));
    assert_none(&found);
    Ok(())
}

#[test]
fn placeholders_are_reported() {
    for word in PLACEHOLDERS {
        let file = TextFile::sample("a.rs", &format!("{word}\nfn f() {{}}\n"));
        assert_eq!(placeholders(&file).len(), 1, "{word}");
    }
    let talk = "// todo! later\nlet a = \"dbg!\"; let mytodo = 1;\n";
    assert_none(&placeholders(&TextFile::sample("a.rs", talk)));
}

#[test]
fn notes_are_reported() {
    for note in notes() {
        let file = TextFile::sample("a.py", &format!("# {note}: later\n"));
        assert_eq!(notes_left(&file).len(), 1, "{note}");
        let longer = format!("mktemp /tmp/a.{note}{note}\n");
        assert_none(&notes_left(&TextFile::sample("a.py", &longer)));
    }
}

#[test]
fn a_sleeping_test_is_reported_and_sleeping_product_code_is_not() {
    let module = "fn wait() {\n    sleep(1);\n}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() {\n        sleep(1);\n    }\n}\n";
    let in_module = sleeping_tests(&TextFile::sample("src/a.rs", module));
    assert_eq!(in_module.len(), 1);
    assert!(in_module[0].starts_with("src/a.rs:8:"), "{}", in_module[0]);
    for call in SLEEPS {
        let whole = format!("fn wait() {{\n    {call}x);\n}}\n");
        for path in ["crates/a/tests/a.rs", "crates/testkit/src/a.rs"] {
            let found = sleeping_tests(&TextFile::sample(path, &whole));
            assert_eq!(found.len(), 1, "{path}: {call}");
        }
        assert_none(&sleeping_tests(&TextFile::sample("src/a.rs", &whole)));
    }
    assert_eq!(
        sleeping_script(&TextFile::sample("tests/a.py", "time.sleep(1)")).len(),
        1
    );
}

#[test]
fn sleeping_on_a_paused_clock_is_not_reported() {
    let test = |attribute: &str| {
        let text = format!("{attribute}\nasync fn a() {{\n    sleep(x).await;\n}}\n");
        sleeping_tests(&TextFile::sample("crates/a/tests/a.rs", &text))
    };
    assert_none(&test("#[tokio::test(start_paused = true)]"));
    assert_eq!(test("#[tokio::test]").len(), 1);
    let paused = "    #[tokio::test(start_paused = true)]\n    async fn a() {\n        if b {\n        }\n        \
                  sleep(x).await;\n    }\n";
    let after = format!("{paused}    async fn c() {{\n        sleep(x).await;\n    }}\n");
    let found = sleeping_tests(&TextFile::sample("crates/a/tests/a.rs", &after));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("crates/a/tests/a.rs:8:"), "{found:?}");
}
