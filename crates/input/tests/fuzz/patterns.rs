//! Paths with wildcards in them.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use simshard_input::{Format, Input, InputError, InputOptions};

use super::splice::spliced_text;
use super::{AS_READ, cases};

const PIECES: &[&str] = &[
    "*", "**", "?", "[", "]", "[!", "[a-z]", "[z-a]", "[]]", "[^a]", "{a,b}", "a", "b.txt", ".",
    "/", "sub", "*.txt", "**/", "\\", "-", "!", "é", "\0", "\n",
];

/// Whatever a pattern is, what it matches are the files below the folder that it begins with.
#[test]
fn patterns() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    for name in [
        "a",
        "b.txt",
        "aaaaaaaaaaaa.txt",
        ".hidden",
        "sub/[a].txt",
        "sub/é",
    ] {
        fs::write(folder.path().join(name), "17\n").unwrap();
    }
    let root: PathBuf = folder.path().to_owned();
    proptest!(cases(), |(pattern in spliced_text(PIECES, 7))| {
        // Elsewhere there is more to walk than a test has time for.
        if pattern.contains("..") {
            return Ok(());
        }
        let args = InputOptions {
            format: Some(Format::Hashes),
            ..InputOptions::walking(vec![root.join(pattern.trim_start_matches('/'))])
        };
        match Input::open(&args, AS_READ) {
            Ok(input) => assert!((1..=6).contains(&input.documents().count())),
            Err(error) => assert!(
                matches!(
                    error,
                    InputError::NoMatch { .. }
                        | InputError::BadPattern { .. }
                        | InputError::Folder { .. }
                        | InputError::Unreadable { .. }
                ),
                "{error}"
            ),
        }
    });
}
