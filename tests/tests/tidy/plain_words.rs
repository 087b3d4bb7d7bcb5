//! A reader understands a sentence at the first reading: no phrase that hides its subject in any text file, and no long
//! sentence in the pages. To forbid another phrase, add it to `riddles`.

use anyhow::Result;

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

/// Most words of a sentence before it is reported. Aim for 25.
const MOST_WORDS: usize = 30;

/// Pages that `cargo xtask` writes.
const GENERATED: [&str; 2] = ["docs/benchmarks.md", "docs/quality.md"];

fn long_sentences(file: &TextFile) -> Vec<String> {
    let mut problems = Vec::new();
    for (line, sentence) in sentences(&file.text) {
        let is_word = |word: &&str| word.contains(char::is_alphanumeric);
        let words = sentence.split_whitespace().filter(is_word).count();
        if words > MOST_WORDS {
            let place = format!("{}:{line}", file.path);
            problems.push(format!("{place}: a sentence of {words} words: {sentence}"));
        }
    }
    problems
}

/// The sentences of a Markdown text, without code blocks, headings and tables. Each has the line where its paragraph or
/// list item begins.
fn sentences(text: &str) -> Vec<(usize, String)> {
    let mut sentences: Vec<(usize, String)> = Vec::new();
    let mut last = 0;
    // Whether the next word belongs to the last sentence.
    let mut is_open = false;
    let mut start = 0;
    for (number, line) in prose(text) {
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
    let most = words(MOST_WORDS);
    let half = words(MOST_WORDS / 2 + 1);
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
