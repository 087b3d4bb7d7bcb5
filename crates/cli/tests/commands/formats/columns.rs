//! The names of columns and keys, as `docs/formats.md` lists them.

use std::fs;
use std::path::Path;

use super::{FOX, Folder, succeed};

/// The page's columns of a command's `jsonl` and `parquet`, and of its `tsv`.
fn documented(command: &str) -> [Vec<String>; 2] {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
    let page = fs::read_to_string(path).unwrap();
    let mut lines = page.lines();
    let head = "| command | `json` | `jsonl`, `parquet` | `tsv` |";
    assert!(lines.any(|line| line == head), "the page has no {head}");
    let start = format!("| `{command}` |");
    let row = lines.find(|line| line.starts_with(&start)).unwrap();
    let cells: Vec<&str> = row.split(" | ").collect();
    [cells[2], cells[3]].map(first_code)
}

/// The words of the first thing in backquotes.
fn first_code(text: &str) -> Vec<String> {
    let code = text.split('`').nth(1).unwrap();
    code.split(' ').map(str::to_owned).collect()
}

/// The keys of an object whose strings hold no commas and no colons.
fn keys(object: &str) -> Vec<String> {
    let members = object.trim_matches(['{', '}', '\n']).split(',');
    let key = |member: &str| {
        member
            .split(':')
            .next()
            .unwrap()
            .trim_matches('"')
            .to_owned()
    };
    members.map(key).collect()
}

#[test]
fn the_columns_of_every_format_are_those_of_the_page() {
    let folder = Folder::new();
    let texts = folder.write("texts.txt", format!("{FOX}\n{FOX}\n").as_bytes());
    for command in ["find-pairs", "find-clusters", "hash"] {
        let [fields, columns] = documented(command);
        let print = |format: &str| {
            let args = ["--format", "lines", "--output-format", format];
            succeed(&[&[command, &texts], &args[..]].concat(), b"")
        };
        let objects = print("jsonl");
        assert_eq!(keys(objects.lines().next().unwrap()), fields, "{command}");
        let tsv = print("tsv");
        let header: Vec<&str> = tsv.lines().next().unwrap().split('\t').collect();
        assert_eq!(header, columns, "{command}");
        if command == "hash" {
            assert_eq!(print("json"), objects);
        }
        #[cfg(feature = "parquet")]
        {
            let table = folder.path(&format!("{command}.parquet"));
            succeed(&[command, &texts, "--format", "lines", "-o", &table], b"");
            assert_eq!(super::parquet::columns(&table), fields, "{command}");
        }
    }
}
