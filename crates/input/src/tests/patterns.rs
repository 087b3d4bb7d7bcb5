//! Patterns in place of paths.

use super::*;
use crate::paths::expand;

#[test]
fn a_pattern_stands_for_the_files_it_matches_in_order() {
    let folder = Folder::new();
    for name in ["b.tsv", "a.tsv", "c/d.tsv", ".hidden.tsv", "a.txt"] {
        folder.write(name, format!("{name}\t1\n"));
    }
    let ids = |pattern: &str| -> Vec<String> {
        let args = InputOptions {
            format: None,
            ..args(Format::Tsv, &[folder.path().join(pattern)])
        };
        let input = open_bytes(&args, b"").unwrap();
        all(input).into_iter().map(|document| document.id).collect()
    };
    assert_eq!(ids("*.tsv"), ["a.tsv", "b.tsv"]);
    assert_eq!(ids("[ab].tsv"), ["a.tsv", "b.tsv"]);
    assert_eq!(ids("**/?.tsv"), ["a.tsv", "b.tsv", "c/d.tsv"]);
}

#[test]
fn what_exists_is_no_pattern() {
    let folder = Folder::new();
    folder.write("a", "no\t1\n");
    let odd = folder.write("[a]", "yes\t1\n");
    let input = open_bytes(&args(Format::Tsv, &[odd]), b"").unwrap();
    assert_eq!(all(input), [print("yes", 1)]);
}

#[test]
fn a_pattern_without_a_match_is_an_error_and_so_is_a_broken_one() {
    let folder = Folder::new();
    let pattern = folder.path().join("*.tsv");
    for make in [args, skipping] {
        assert_eq!(
            message(open_bytes(
                &make(Format::Tsv, std::slice::from_ref(&pattern)),
                b""
            )),
            format!("no file matches the pattern {}", pattern.display())
        );
        let broken = PathBuf::from("a[");
        let message = message(open_bytes(&make(Format::Tsv, &[broken]), b""));
        assert!(
            message.starts_with("a[ is neither a file nor a pattern: "),
            "{message}"
        );
    }
}

#[test]
fn several_matches_put_the_path_into_the_id() {
    let folder = Folder::new();
    let a = folder.write("a", "x\n");
    folder.write("b", "y\n");
    let input = open_bytes(&args(Format::Lines, &[folder.path().join("?")]), b"").unwrap();
    assert_eq!(all(input)[0], text(&format!("{}:1", a.display()), "x"));
}

#[cfg(unix)]
#[test]
fn a_name_that_is_no_utf8_is_passed_over_or_matched_as_any_other() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = Folder::new();
    folder.write("a.txt", "5\n");
    folder.write("sub/b.txt", "6\n");
    let odd = folder.path().join(OsStr::from_bytes(b"\xff"));
    fs::write(&odd, "7\n").unwrap();
    let odd_folder = folder.path().join(OsStr::from_bytes(b"sub\xff"));
    fs::create_dir(&odd_folder).unwrap();
    fs::write(odd_folder.join("c.txt"), "8\n").unwrap();
    let paths = |pattern: &str| expand(&[folder.path().join(pattern)]).unwrap();
    assert_eq!(paths("*.txt"), [folder.path().join("a.txt")]);
    assert_eq!(paths("?"), [odd]);
    assert_eq!(
        paths("s*/*.txt"),
        [folder.path().join("sub/b.txt"), odd_folder.join("c.txt")]
    );
    assert_eq!(paths("**/*.txt").len(), 3);
}

#[test]
fn hidden_names_match_only_where_the_pattern_has_the_dot() {
    let folder = Folder::new();
    for name in ["a", ".b", ".c/d", "e/.f", "e/é"] {
        folder.write(name, "x");
    }
    let names = |pattern: &str| -> Vec<String> {
        let Ok(paths) = expand(&[folder.path().join(pattern)]) else {
            return Vec::new();
        };
        let name = |path: PathBuf| path.strip_prefix(folder.path()).unwrap().to_owned();
        let names = paths.into_iter().map(name);
        names.map(|name| name.display().to_string()).collect()
    };
    assert_eq!(names("*"), ["a", "e"]);
    assert_eq!(names("*/"), ["e/"].map(|name| name.trim_end_matches('/')));
    assert_eq!(names(".?"), [".b", ".c"]);
    assert_eq!(names("[.]b"), [] as [&str; 0]);
    assert_eq!(names("*/d"), [] as [&str; 0]);
    assert_eq!(names(".c/*"), [".c/d"]);
    assert_eq!(names("**/*"), ["a", "e", "e/é"]);
    assert_eq!(names("**/**/?"), ["a", "e", "e/é"]);
    assert_eq!(names("**/.f"), ["e/.f"]);
    assert_eq!(names("{a,e}*"), [] as [&str; 0]);
}

#[cfg(unix)]
#[test]
fn links_to_folders_are_followed_by_name_but_not_by_two_stars() {
    let folder = Folder::new();
    folder.write("real/a", "x");
    std::os::unix::fs::symlink(folder.path(), folder.path().join("round")).unwrap();
    let count = |pattern: &str| expand(&[folder.path().join(pattern)]).unwrap().len();
    assert_eq!(count("r*/real/a"), 1);
    assert_eq!(count("**/a"), 1);
}
