//! A reader understands a sentence at the first reading: no phrase that hides its subject in any text file, and no long
//! sentence in the pages and in the comments of the product. To forbid another phrase, add it to `riddles`.

use anyhow::{Result, ensure};

use crate::assert_none;
use crate::documents::prose;
use crate::repository::{self, TextFile};
use crate::rust_source::continues_a_word;

/// Phrases that no text file may have, in small letters, and in pieces so that this file has none.
fn riddles() -> Vec<String> {
    [
        ["who", "ever"],
        ["who", "mever"],
        ["no", "body"],
        ["any", "body"],
        ["every", "body"],
        ["some", "body"],
        ["some", "one"],
        ["no ", "one"],
        ["so ", "many"],
        ["stands ", "against"],
        ["worth ", "a word"],
    ]
    .map(|pieces| pieces.concat())
    .to_vec()
}

/// The riddles in a text, also in names with underscores and across the end of a line.
fn riddles_in(file: &TextFile) -> Vec<String> {
    let lines: Vec<String> = file.text.lines().map(words_of).collect();
    let mut problems = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let next = lines.get(index + 1).map_or("", String::as_str);
        let both = format!("{line} {next}");
        for riddle in riddles() {
            let starts_here = both.match_indices(&riddle).any(|(at, _)| {
                let before = both[..at].chars().next_back();
                at < line.len() && !before.is_some_and(continues_a_word)
            });
            if starts_here {
                let place = format!("{}:{}", file.path, index + 1);
                problems.push(format!("{place}: `{riddle}`: name who or what does it"));
            }
        }
    }
    problems
}

/// A line in small letters, without the marks of a comment, and with names as words.
fn words_of(line: &str) -> String {
    let line = line.trim().trim_start_matches(['/', '!', '#', '*', '>']);
    line.trim().replace('_', " ").to_lowercase()
}

/// Most words of a sentence in a page before it is reported. Aim for 25.
const MOST_WORDS_IN_PAGE: usize = 30;

/// Most words of a sentence in a comment before it is reported. Aim for 25.
const MOST_WORDS_IN_COMMENT: usize = 27;

/// Pages that `cargo xtask` writes.
const GENERATED: [&str; 3] = [
    "docs/benchmarks.md",
    "docs/quality.md",
    "docs/real-files.md",
];

fn long_sentences(file: &TextFile) -> Vec<String> {
    sentences_over(MOST_WORDS_IN_PAGE, &file.path, prose(&file.text))
}

fn long_comments(file: &TextFile) -> Vec<String> {
    sentences_over(MOST_WORDS_IN_COMMENT, &file.path, comments(&file.text))
}

fn sentences_over<'a>(
    most_words: usize,
    path: &str,
    lines: impl Iterator<Item = (usize, &'a str)>,
) -> Vec<String> {
    let mut problems = Vec::new();
    for (line, sentence) in sentences(lines) {
        let is_word = |word: &&str| word.contains(char::is_alphanumeric);
        let words = sentence.split_whitespace().filter(is_word).count();
        if words > most_words {
            problems.push(format!(
                "{path}:{line}: a sentence of {words} words: {sentence}"
            ));
        }
    }
    problems
}

/// The text of the comments in a Rust file, each line with its number from 1, without examples of code. An empty line
/// comes before each change of the mark. A comment behind code is none.
fn comments(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut last_mark = None;
    let mut in_code = false;
    source.lines().enumerate().flat_map(move |(index, line)| {
        let line = line.trim_start();
        let marks = ["///", "//!", "//"];
        let mark = marks.into_iter().find(|mark| line.starts_with(mark));
        let text = mark.and_then(|mark| line.strip_prefix(mark));
        let starts = mark != last_mark;
        last_mark = mark;
        let is_fence = text.is_some_and(|text| text.trim_start().starts_with("```"));
        in_code = (in_code && !starts) ^ is_fence;
        let is_code = in_code || is_fence || text.is_some_and(|text| text.starts_with("     "));
        let gap = (starts || is_code).then_some((index + 1, ""));
        let text = text.filter(|_| !is_code).map(|text| (index + 1, text));
        gap.into_iter().chain(text)
    })
}

/// The sentences of the lines of a Markdown text, without headings and tables. Each has the line where its paragraph or
/// list item begins.
fn sentences<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<(usize, String)> {
    let mut sentences: Vec<(usize, String)> = Vec::new();
    let mut last = 0;
    // Whether the next word belongs to the last sentence.
    let mut is_open = false;
    let mut start = 0;
    for (number, line) in lines {
        let line = line.trim();
        let starts_item = line.starts_with("- ") || line.starts_with(|c: char| c.is_ascii_digit());
        if starts_item || number != last + 1 || !is_open {
            start = number;
            is_open &= !starts_item && number == last + 1;
        }
        last = number;
        if line.is_empty() || line.starts_with(['#', '|']) {
            is_open = false;
            continue;
        }
        for word in line.split_whitespace() {
            match sentences.last_mut() {
                Some((_, sentence)) if is_open => *sentence = format!("{sentence} {word}"),
                _ => sentences.push((start, word.to_owned())),
            }
            is_open = !word
                .trim_end_matches(['*', ')', '"'])
                .ends_with(['.', '!', '?']);
        }
    }
    sentences
}

#[test]
fn no_text_has_a_riddle() -> Result<()> {
    let files = repository::text_files()?;
    let problems: Vec<_> = files.iter().flat_map(riddles_in).collect();
    assert_none(&problems);
    Ok(())
}

#[test]
fn no_page_has_a_long_sentence() -> Result<()> {
    let mut files = repository::text_files()?;
    files.retain(|file| {
        let is_page = file.path.starts_with("docs/") && file.path.ends_with(".md");
        let is_entrance = ["README.md", "CONTRIBUTING.md"].contains(&file.path.as_str());
        (is_page || is_entrance) && !GENERATED.contains(&file.path.as_str())
    });
    let problems: Vec<_> = files.iter().flat_map(long_sentences).collect();
    assert_none(&problems);
    Ok(())
}

/// Whether the file is Rust of the product or of the developer commands, and no test.
fn is_product(file: &TextFile) -> bool {
    let is_inside = file.path.starts_with("crates/") || file.path.starts_with("xtask/");
    let is_for_tests = file.path.starts_with("crates/testkit/") || file.is_test();
    is_inside && !is_for_tests
}

#[test]
fn no_comment_of_the_product_has_a_long_sentence() -> Result<()> {
    let mut files = repository::rust_files()?;
    files.retain(is_product);
    ensure!(files.len() > 100, "only {} files were found", files.len());
    let problems: Vec<_> = files.iter().flat_map(long_comments).collect();
    assert_none(&problems);
    Ok(())
}

#[test]
fn each_riddle_is_reported() {
    for riddle in riddles() {
        let across = riddle.replacen(' ', "\n    /// ", 1);
        let name = riddle.replace(' ', "_");
        for text in [
            format!("/// By {riddle} it is."),
            format!("    // By {across}."),
            format!("fn by_{name}() {{}}"),
            format!("a\n{}", riddle.to_uppercase()),
        ] {
            let file = TextFile::sample("src/a.rs", &text);
            assert_eq!(riddles_in(&file).len(), 1, "{text}");
        }
    }
    let other = ["Also m", "any words."].concat();
    assert_none(&riddles_in(&TextFile::sample("a.md", &other)));
}

#[test]
fn a_long_sentence_is_reported() {
    let words = |count: usize| vec!["word"; count].join(" ");
    let report = |text: &str| long_sentences(&TextFile::sample("docs/a.md", text));
    let most = words(MOST_WORDS_IN_PAGE);
    let half = words(MOST_WORDS_IN_PAGE / 2 + 1);
    for long in [
        format!("{most} word."),
        format!("A.\n{half}\n{half}."),
        format!("- {half}\n  {half} (`a.b`).\n"),
    ] {
        assert_eq!(report(&long).len(), 1, "{long}");
    }
    for short in [
        format!("{most}. {most} –.\n({most}.) **{most}.** {most}"),
        format!("{half}\n\n{half}\n- {half}\n- {half}\n1. {half}\n"),
        format!("# {half}\n{half}\n| {most} | {most} |\n{half}"),
        format!("{half}\n```text\n{most} {most}\n```\n{half}"),
    ] {
        assert_none(&report(&short));
    }
}

#[test]
fn a_long_sentence_in_a_comment_is_reported() {
    let words = |count: usize| vec!["word"; count].join(" ");
    let report = |text: &str| long_comments(&TextFile::sample("crates/a/src/b.rs", text));
    let most = words(MOST_WORDS_IN_COMMENT);
    let half = words(MOST_WORDS_IN_COMMENT / 2 + 1);
    for mark in ["//!", "///", "//"] {
        for long in [
            format!("{mark} {most} word."),
            format!("fn a() {{\n    {mark} A. {half}\n    {mark} {half}\n}}"),
            format!("{mark} - {half}\n{mark}   {half}"),
            format!("{mark} ```\n{mark} a\n{mark} ```\n{mark} {most} word"),
        ] {
            assert_eq!(report(&long).len(), 1, "{long}");
        }
        for short in [
            format!("{mark} {most}. {most}."),
            format!("{mark} {half}\n{mark}\n{mark} {half}"),
            format!("{mark} {half}\nfn a() {{}}\n{mark} {half}"),
            format!("{mark} {half}\n{mark} ```\n{mark} {most} {most}\n{mark} ```\n{mark} {half}"),
            format!("{mark} {half}\n{mark}     {most} word\n{mark} {half}"),
        ] {
            assert_none(&report(&short));
        }
    }
    assert_none(&report(&format!("/// {half}\n// {half}\n")));
    assert_none(&report(&format!("let a = \"{most} {most}\";\n")));
}
