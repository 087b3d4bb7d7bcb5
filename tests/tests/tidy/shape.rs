//! Every Rust file says what it is for, and none of them, nor any function, grows too long to read.

use anyhow::Result;

use crate::assert_none;
use crate::repository::{self, TextFile};
use crate::rust_source::{code_only, length_of_block, lines_in_test_modules};

/// Lines of a file, not counting its inline test modules.
const FILE_LINES: usize = 400;
/// Lines of a file that holds nothing but tests.
const TEST_FILE_LINES: usize = 700;
/// Lines of a function, from its name to its last brace.
const FUNCTION_LINES: usize = 60;

fn without_header(file: &TextFile) -> Option<String> {
    (!file.text.starts_with("//!")).then(|| {
        format!(
            "{}: starts with no `//!` that says what the file is for",
            file.path
        )
    })
}

fn too_long(file: &TextFile) -> Option<String> {
    let inside = lines_in_test_modules(&code_only(&file.text));
    let (lines, limit) = if file.is_test() {
        (inside.len(), TEST_FILE_LINES)
    } else {
        let product = inside.iter().filter(|in_test_module| !**in_test_module);
        (product.count(), FILE_LINES)
    };
    (lines > limit).then(|| format!("{}: {lines} lines, at most {limit} are allowed", file.path))
}

fn long_functions(file: &TextFile) -> Vec<String> {
    let code = code_only(&file.text);
    let lines: Vec<&str> = code.lines().collect();
    let mut problems = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if !starts_function(line) || is_declaration(&lines[index..]) {
            continue;
        }
        let length = length_of_block(&lines[index..]);
        if length > FUNCTION_LINES {
            let place = format!("{}:{}", file.path, index + 1);
            problems.push(format!(
                "{place}: a function of {length} lines, at most {FUNCTION_LINES} are allowed"
            ));
        }
    }
    problems
}

/// Whether a function's own line is this one, by the words that may stand before `fn`.
fn starts_function(line: &str) -> bool {
    let Some((before, name)) = line.split_once("fn ") else {
        return false;
    };
    let mut words = before.split_whitespace();
    let qualifies = |word: &str| {
        word.starts_with("pub") || ["const", "async", "unsafe", "extern", "default"].contains(&word)
    };
    name.starts_with(|first: char| first.is_alphabetic() || first == '_') && words.all(qualifies)
}

/// Whether the function that starts here ends without a body.
fn is_declaration(lines: &[&str]) -> bool {
    let end = lines.iter().find_map(|line| {
        let line = line.trim_end();
        (line.contains('{') || line.ends_with(';')).then_some(line)
    });
    end.is_some_and(|line| !line.contains('{'))
}

#[test]
fn every_rust_file_says_what_it_is_for() -> Result<()> {
    let problems: Vec<_> = repository::rust_files()?
        .iter()
        .filter_map(without_header)
        .collect();
    assert_none(&problems);
    Ok(())
}

#[test]
fn no_rust_file_is_too_long() -> Result<()> {
    let problems: Vec<_> = repository::rust_files()?
        .iter()
        .filter_map(too_long)
        .collect();
    assert_none(&problems);
    Ok(())
}

#[test]
fn no_function_is_too_long() -> Result<()> {
    let problems: Vec<_> = repository::rust_files()?
        .iter()
        .flat_map(long_functions)
        .collect();
    assert_none(&problems);
    Ok(())
}

#[test]
fn a_file_without_a_header_is_reported() {
    assert!(without_header(&TextFile::sample("a.rs", "// no\n")).is_some());
    assert!(without_header(&TextFile::sample("a.rs", "")).is_some());
    assert!(without_header(&TextFile::sample("a.rs", "//! yes\n")).is_none());
}

#[test]
fn a_long_file_is_reported_whatever_its_test_module_is() {
    let body = |lines: usize| "\n".repeat(lines);
    let module = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", body(500));
    let file = |path: &str, text: String| TextFile::sample(path, &text);
    assert!(too_long(&file("src/a.rs", body(401))).is_some());
    assert!(too_long(&file("src/a.rs", body(401) + &module)).is_some());
    assert!(too_long(&file("src/a.rs", body(400) + &module)).is_none());
    assert!(too_long(&file("src/a/tests.rs", body(700))).is_none());
    assert!(too_long(&file("src/a/tests.rs", body(701))).is_some());
}

#[test]
fn a_long_function_is_reported_at_any_depth() {
    let function = |head: &str, lines: usize| {
        let text = format!("{head} {{\n{}}}\n", "    x;\n".repeat(lines - 2));
        TextFile::sample("a.rs", &text)
    };
    for head in [
        "fn f()",
        "pub(crate) async fn f<T>(t: T) -> u8",
        "const unsafe fn f()",
    ] {
        assert_eq!(long_functions(&function(head, 61)).len(), 1, "{head}");
        assert_none(&long_functions(&function(head, 60)));
    }
    let method = format!(
        "impl A {{\n    fn f(\n    ) {{\n{}    }}\n}}\n",
        "\n".repeat(60)
    );
    assert_eq!(long_functions(&TextFile::sample("a.rs", &method)).len(), 1);
}

#[test]
fn what_only_looks_like_a_function_is_not_measured() {
    let rest = "\n".repeat(70);
    for head in [
        "    fn f(&self) -> u8;",
        "    fn f(\n        &self,\n    ) -> u8;",
        "type F = fn (u8);",
    ] {
        let text = format!("trait T {{\n{head}\n{rest}}}\n");
        assert_none(&long_functions(&TextFile::sample("a.rs", &text)));
    }
}
