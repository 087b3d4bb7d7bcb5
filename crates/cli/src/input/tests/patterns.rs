//! Patterns in place of paths.

use super::*;

#[test]
fn a_pattern_stands_for_the_files_it_matches_in_order() {
    let folder = Folder::new();
    for name in ["b.tsv", "a.tsv", "c/d.tsv", ".hidden.tsv", "a.txt"] {
        folder.write(name, format!("{name}\t1\n"));
    }
    let ids = |pattern: &str| -> Vec<String> {
        let args = InputArgs {
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
