//! What a newcomer meets first: the two commands, the licences, and links and paths that lead somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::Result;

use crate::assert_none;
use crate::repository::{self, TextFile};

const DEMO: &str = "cargo run --release -- demo";
const VERIFY: &str = "cargo xtask test";

/// The commands that a text does not show on a line of their own.
fn commands_missing(text: &str, commands: &[&str]) -> Vec<String> {
    let shown = |command: &str| {
        text.lines().any(|line| {
            let rest = line.trim().trim_start_matches("$ ").strip_prefix(command);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    };
    let missing = commands.iter().filter(|command| !shown(command));
    missing
        .map(|command| format!("`{command}` is not shown on a line of its own"))
        .collect()
}

/// The links of a Markdown file that lead to no file of the repository.
fn broken_links(file: &TextFile, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
    let mut problems = Vec::new();
    for (line, target) in links(&file.text) {
        let path = target.split('#').next().unwrap_or_default();
        if is_relative(&target) && !exists(&folder.join(path)) {
            problems.push(format!("{}:{line}: `{target}` leads nowhere", file.path));
        }
    }
    problems
}

/// The links of Markdown files to sections of them that are not there.
fn missing_sections(files: &[TextFile]) -> Vec<String> {
    let sections = |file: &TextFile| (PathBuf::from(&file.path), sections(&file.text));
    let sections: BTreeMap<PathBuf, BTreeSet<String>> = files.iter().map(sections).collect();
    let mut problems = Vec::new();
    for file in files {
        for (line, target) in links(&file.text) {
            let Some((path, section)) = target.split_once('#') else {
                continue;
            };
            let page = match path {
                "" => PathBuf::from(&file.path),
                path => resolved(&file.path, path),
            };
            if sections
                .get(&page)
                .is_some_and(|all| !all.contains(section))
            {
                let place = format!("{}:{line}", file.path);
                problems.push(format!("{place}: `{target}` leads to no section"));
            }
        }
    }
    problems
}

/// The paths of source that a page names in code and that are not there.
fn missing_paths(file: &TextFile, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut problems = Vec::new();
    for (line, text) in prose(&file.text) {
        let code = text.split('`').skip(1).step_by(2);
        for path in code.filter(|code| is_source_path(code)).flat_map(each) {
            if !exists(&path) {
                let place = format!("{}:{line}", file.path);
                problems.push(format!("{place}: there is no `{path}`"));
            }
        }
    }
    problems
}

/// Whether a piece of code names a folder, or a source in a folder: `a/b/` or `a/{b,c}.rs`.
fn is_source_path(code: &str) -> bool {
    let is_named = |c: char| c.is_ascii_alphanumeric() || "_-./{,}".contains(c);
    let ends = ["/", ".rs", ".proto", ".py"];
    code.contains('/') && code.chars().all(is_named) && ends.iter().any(|end| code.ends_with(end))
}

/// The paths of `a/{b,c}.rs`.
fn each(code: &str) -> Vec<String> {
    let parts = code.split_once('{');
    let parts = parts.and_then(|(start, rest)| Some((start, rest.split_once('}')?)));
    let Some((start, (names, end))) = parts else {
        return vec![code.to_owned()];
    };
    let path = |name| format!("{start}{name}{end}");
    names.split(',').map(path).collect()
}

/// The lines of a Markdown text that are not code, each with its number from 1.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    let lines = text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    });
    lines.map(|(index, line)| (index + 1, line))
}

/// The targets of all links in a Markdown text, each with the number of its line.
fn links(text: &str) -> Vec<(usize, String)> {
    let of_line = |(number, line)| {
        targets(line)
            .into_iter()
            .map(move |target| (number, target))
    };
    prose(text).flat_map(of_line).collect()
}

/// The names of the sections of a Markdown text, as links have them.
fn sections(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    let name = |(_, line): (usize, &str)| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(name).collect()
}

/// The path from the root of what a link in a file leads to.
fn resolved(file: &str, target: &str) -> PathBuf {
    let mut path = PathBuf::from(file);
    path.pop();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Prefix(_)
            | Component::RootDir
            | Component::CurDir
            | Component::Normal(_) => path.push(part),
        }
    }
    path
}

/// The targets of `[text](target)` and `[name]: target` in a line.
fn targets(line: &str) -> Vec<String> {
    let first_word = |text: &str| {
        text.split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let mut targets = Vec::new();
    for rest in line.split("](").skip(1) {
        targets.push(first_word(rest.split(')').next().unwrap_or_default()));
    }
    if let Some((name, rest)) = line.split_once("]: ")
        && name.starts_with('[')
    {
        targets.push(first_word(rest));
    }
    targets
}

/// Whether a target is a path, neither an address nor a place in the same file.
fn is_relative(target: &str) -> bool {
    !target.contains("://") && !target.starts_with("mailto:") && !target.starts_with('#')
}

#[test]
fn the_readme_shows_the_demo_and_the_verification() -> Result<()> {
    assert_none(&commands_missing(
        &repository::read("README.md")?,
        &[DEMO, VERIFY],
    ));
    Ok(())
}

#[test]
fn continuous_integration_runs_the_verification() -> Result<()> {
    assert_none(&commands_missing(&repository::read(".ci/run")?, &[VERIFY]));
    Ok(())
}

#[test]
fn the_verification_is_a_command_of_cargo() -> Result<()> {
    let package = repository::read("xtask/Cargo.toml")?;
    let settings = repository::read(".cargo/config.toml")?;
    assert!(package.contains("name = \"simshard-xtask\""));
    assert!(settings.contains("--package simshard-xtask --"));
    Ok(())
}

#[test]
fn both_licences_are_there_and_named_by_the_manifest() -> Result<()> {
    assert!(repository::read("LICENSE-MIT")?.contains("The Simshard developers"));
    assert!(repository::read("LICENSE-APACHE")?.contains("Apache License"));
    let manifest = repository::read("Cargo.toml")?;
    assert!(manifest.contains("license = \"MIT OR Apache-2.0\""));
    Ok(())
}

#[test]
fn every_link_between_documents_leads_somewhere() -> Result<()> {
    let mut files = repository::text_files()?;
    files.retain(|file| file.path.ends_with(".md"));
    let root = repository::root();
    let exists = |path: &Path| root.join(path).exists();
    let problems: Vec<_> = files
        .iter()
        .flat_map(|file| broken_links(file, exists))
        .collect();
    assert_none(&problems);
    Ok(())
}

#[test]
fn every_link_to_a_section_leads_to_one() -> Result<()> {
    let mut files = repository::text_files()?;
    files.retain(|file| file.path.ends_with(".md"));
    assert_none(&missing_sections(&files));
    Ok(())
}

/// Pages name what is in crates from there, and the rest from the root.
#[test]
fn every_path_of_a_page_exists() -> Result<()> {
    let mut files = repository::text_files()?;
    files.retain(|file| file.path.starts_with("docs/") && file.path.ends_with(".md"));
    let root = repository::root();
    let exists = |path: &str| root.join("crates").join(path).exists() || root.join(path).exists();
    let missing = |file| missing_paths(file, exists);
    let problems: Vec<_> = files.iter().flat_map(missing).collect();
    assert_none(&problems);
    Ok(())
}

#[test]
fn a_path_that_does_not_exist_is_reported() {
    let text = "`a/src/b.rs`, `is_named` and `a/gone.rs`\n| x | `a/tests/` and `a/{b,gone}.proto` |\n\
                `DIR/gone.toml`, `<gone/>` and `text/gone`\n```\n`gone/c.rs`\n```\n";
    let file = TextFile::sample("docs/page.md", text);
    assert_eq!(
        missing_paths(&file, |path| !path.contains("gone")),
        [
            "docs/page.md:1: there is no `a/gone.rs`",
            "docs/page.md:2: there is no `a/gone.proto`"
        ]
    );
}

#[test]
fn a_missing_command_is_reported() {
    let text = "```sh\n$ cargo run --release -- demo --verify\ncargo xtask tests\n```\n";
    assert_none(&commands_missing(text, &[DEMO]));
    assert_eq!(commands_missing(text, &[DEMO, VERIFY]).len(), 1);
    assert_eq!(
        commands_missing("about cargo xtask test", &[VERIFY]).len(),
        1
    );
}

#[test]
fn a_broken_link_is_reported() {
    let text = "[a](gone.md) and [b](there.md#part)\n\n[c]: gone/too.md\n![d](no.png \"title\")\n";
    let file = TextFile::sample("docs/page.md", text);
    let problems = broken_links(&file, |path| path == Path::new("docs/there.md"));
    assert_eq!(problems.len(), 3, "{problems:?}");
}

#[test]
fn a_link_to_a_section_that_is_not_there_is_reported() {
    let there = "# A `b-c`, d\n```text\n# No heading\n```\n[e](#a-b-c-d)\n";
    let text = "[f](../there.md#a-b-c-d) [g](../there.md#no-heading) [h](#gone) [i](x.rs#l)\n";
    let files = [
        TextFile::sample("there.md", there),
        TextFile::sample("docs/page.md", text),
    ];
    let problems = missing_sections(&files);
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn addresses_places_and_code_are_no_paths() {
    let text = "[a](https://example.org/x) [b](#part)\n```\n[c](gone.md)\n```\n";
    assert_none(&broken_links(&TextFile::sample("page.md", text), |_| false));
}
