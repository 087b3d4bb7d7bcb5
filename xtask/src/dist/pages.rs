//! The pages of an archive, in which links lead to files of the archive.
//!
//! Pages link to sources, which an archive has not. There, such a link becomes its text and the path in the sources.
//! An address would do as well, but a release has none.

use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, ensure};

/// Rewrites the links of packed pages that lead to no packed file. Fails if one is left.
pub(super) fn rewrite(folder: &Path, packed: &[String]) -> anyhow::Result<()> {
    let mut left = Vec::new();
    for page in pages(packed) {
        let file = folder.join(page);
        let text = fs::read_to_string(&file);
        let text = text.with_context(|| format!("cannot read {}", file.display()))?;
        let rewritten = rewritten(page, &text, packed);
        left.extend(links_to_sources(page, &rewritten, packed));
        fs::write(&file, rewritten).with_context(|| format!("cannot write {}", file.display()))?;
    }
    ensure!(
        left.is_empty(),
        "links of the archive:\n{}",
        left.join("\n")
    );
    Ok(())
}

fn pages(packed: &[String]) -> impl Iterator<Item = &String> {
    packed.iter().filter(|file| file.ends_with(".md"))
}

/// A page with `text (path in the sources)` for each `[text](target)` whose target is not packed.
fn rewritten(page: &str, text: &str, packed: &[String]) -> String {
    let mut out = String::with_capacity(text.len());
    for (line, is_prose) in lines(text) {
        let mut rest = line;
        while is_prose && let Some((before, target, after)) = next_link(rest) {
            let whole = rest.len() - after.len();
            let start = out.len();
            out.push_str(before);
            // The text of a link may begin in a line before.
            let opening = out.rfind('[');
            let path = source_path(page, target, packed);
            match (path, opening) {
                (Some(path), Some(at)) if !out[..at].ends_with('!') => {
                    let text = out.split_off(at);
                    out.push_str(&in_the_sources(&text[1..], &path));
                }
                (Some(_) | None, _) => {
                    out.truncate(start);
                    out.push_str(&rest[..whole]);
                }
            }
            rest = after;
        }
        out.push_str(rest);
    }
    out
}

/// The text of a link, and where its target is.
fn in_the_sources(text: &str, path: &str) -> String {
    if text.trim_matches('`').trim_end_matches('/') == path {
        format!("{text} (in the sources)")
    } else {
        format!("{text} (`{path}` in the sources)")
    }
}

/// The links of a page whose target is not packed, each with its line. It also knows `[name]: target`.
fn links_to_sources(page: &str, text: &str, packed: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, (line, is_prose)) in lines(text).enumerate() {
        let mut targets = Vec::new();
        let mut rest = line;
        while let Some((_, target, after)) = next_link(rest) {
            targets.push(target);
            rest = after;
        }
        if line.starts_with('[') {
            targets.extend(line.split_once("]: ").map(|(_, target)| target.trim()));
        }
        targets.retain(|target| is_prose && source_path(page, target, packed).is_some());
        let place = |target| format!("{page}:{}: `{target}` is not packed", number + 1);
        found.extend(targets.into_iter().map(place));
    }
    found
}

/// The lines of a page with their ends, and whether they are no code.
fn lines(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut in_code = false;
    text.split_inclusive('\n').map(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        (line, !in_code && !is_fence)
    })
}

/// The next `](target)` in a line: what is before it, the target, and what is after it.
fn next_link(line: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = line.split_once("](")?;
    let (target, after) = rest.split_once(')')?;
    Some((before, target, after))
}

/// The path in the sources of what a link leads to, if that is no packed file or folder.
fn source_path(page: &str, target: &str, packed: &[String]) -> Option<String> {
    let path = target.split(['#', ' ']).next().unwrap_or_default();
    if path.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let mut found = PathBuf::from(page);
    found.pop();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => {
                found.pop();
            }
            Component::CurDir => (),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => found.push(part),
        }
    }
    let is_packed = packed
        .iter()
        .any(|file| Path::new(file).starts_with(&found));
    (!is_packed).then(|| found.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    fn packed() -> Vec<String> {
        [
            "README.md",
            "docs/cli.md",
            "docs/demo.svg",
            "proto/v1/a.proto",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    #[test]
    fn links_to_sources_become_paths_and_others_stay() {
        let text = "[The `package`](../clients/README.md#use) and [cli](cli.md#top), [a\nrule](../tests/a.rs).\n\
                    [`CONTRIBUTING.md`](../CONTRIBUTING.md) [p](../proto/v1) [x](https://a.example/b) [s](#s)\n\
                    ```\n[code](../crates/a.rs)\n```\n![demo](demo.svg)\n";
        let expected = "The `package` (`clients/README.md` in the sources) and [cli](cli.md#top), \
                        a\nrule (`tests/a.rs` in the sources).\n\
                        `CONTRIBUTING.md` (in the sources) [p](../proto/v1) [x](https://a.example/b) [s](#s)\n\
                        ```\n[code](../crates/a.rs)\n```\n![demo](demo.svg)\n";
        assert_eq!(links_to_sources("docs/a.md", text, &packed()).len(), 3);
        assert_eq!(rewritten("docs/a.md", text, &packed()), expected);
        assert!(links_to_sources("docs/a.md", expected, &packed()).is_empty());
    }

    #[test]
    fn links_that_are_not_rewritten_are_reported() {
        let text = "![a](tests/a.png)\n[b]: crates/b.rs\n";
        assert_eq!(rewritten("README.md", text, &packed()), text);
        assert_eq!(
            links_to_sources("README.md", text, &packed()),
            [
                "README.md:1: `tests/a.png` is not packed",
                "README.md:2: `crates/b.rs` is not packed"
            ]
        );
    }

    #[test]
    fn all_links_of_the_real_archive_lead_to_its_files() -> anyhow::Result<()> {
        let workspace = Workspace::locate(false)?;
        let packed = super::super::beside(&workspace)?;
        let mut links = 0;
        for page in pages(&packed) {
            let text = fs::read_to_string(workspace.root().join(page))?;
            links += links_to_sources(page, &text, &packed).len();
            let left = links_to_sources(page, &rewritten(page, &text, &packed), &packed);
            assert!(left.is_empty(), "{}", left.join("\n"));
        }
        assert!(links > 0, "no page links to a source");
        Ok(())
    }
}
