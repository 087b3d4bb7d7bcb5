//! The project stands alone: nothing in it points to another folder, to the machine it was written
//! on, or to a place that packages come from. The forbidden words stand here in pieces only.

use anyhow::{Context, Result};

use crate::assert_none;
use crate::repository::{self, TextFile};

/// Words that may stand nowhere.
fn forbidden_anywhere() -> Vec<String> {
    [
        ["../", "shared"],
        ["crates", ".io"],
        ["pypi", ".org"],
        ["python", "hosted.org"],
        ["npm", "js.org"],
        ["npm", "js.com"],
        ["proxy.golang", ".org"],
        ["arti", "factory"],
        ["jfrog", ".io"],
    ]
    .map(|pieces| pieces.concat())
    .to_vec()
}

/// Folders of one particular machine: forbidden where a path can start.
fn forbidden_folders() -> Vec<String> {
    ["work", "root", "workspace", "Users"]
        .map(|folder| ["/", folder, "/"].concat())
        .to_vec()
}

fn pointers_outside(file: &TextFile) -> Vec<String> {
    let anywhere = forbidden_anywhere();
    let folders = forbidden_folders();
    let mut problems = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let anywhere = anywhere.iter().filter(|word| line.contains(*word));
        let folders = folders.iter().filter(|folder| starts_path(line, folder));
        for word in anywhere.chain(folders) {
            problems.push(format!(
                "{}:{}: `{word}` must not stand here",
                file.path,
                index + 1
            ));
        }
    }
    problems
}

/// Whether a path that starts with this folder stands in the line.
fn starts_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|before| before.is_alphanumeric() || "_-./~}".contains(before))
    })
}

/// The lock file names its source in every entry; it is written by cargo and has its own rule.
const LOCK: &str = "Cargo.lock";

fn strange_sources(lock: &str) -> Vec<String> {
    let usual = [
        "\"registry+https://github.com/rust-lang/crates",
        ".io-index\"",
    ]
    .concat();
    let sources = lock
        .lines()
        .filter_map(|line| line.strip_prefix("source = "));
    sources
        .filter(|source| **source != usual)
        .map(str::to_owned)
        .collect()
}

#[test]
fn nothing_points_outside_the_repository() -> Result<()> {
    let mut files = repository::text_files()?;
    files.retain(|file| file.path != LOCK);
    let problems: Vec<_> = files.iter().flat_map(pointers_outside).collect();
    assert_none(&problems);
    Ok(())
}

#[test]
fn every_locked_package_comes_from_the_usual_index() -> Result<()> {
    let lock = repository::read(LOCK).context("commit the lock file: the product is a program")?;
    assert_none(&strange_sources(&lock));
    Ok(())
}

#[test]
fn each_forbidden_word_is_reported() {
    let mut words = forbidden_anywhere();
    words.extend(forbidden_folders());
    for word in words {
        for text in [
            format!("see {word}x"),
            format!("a(\"{word}x\")"),
            format!("{word}x"),
        ] {
            let file = TextFile::sample("README.md", &text);
            assert_eq!(pointers_outside(&file).len(), 1, "{text}");
        }
    }
}

#[test]
fn a_folder_inside_a_path_of_the_project_is_not_reported() {
    for folder in forbidden_folders() {
        let file = TextFile::sample(
            "README.md",
            &format!("tests{folder}a, $HOME{folder}, ./{folder}"),
        );
        assert_none(&pointers_outside(&file));
    }
}

#[test]
fn a_package_from_elsewhere_is_reported() {
    let usual = [
        "source = \"registry+https://github.com/rust-lang/crates",
        ".io-index\"\n",
    ]
    .concat();
    assert_none(&strange_sources(&usual));
    let lock = format!("{usual}source = \"git+https://example.org/fork\"\n");
    assert_eq!(strange_sources(&lock).len(), 1);
}
