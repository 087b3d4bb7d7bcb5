//! The `files` format.

use std::path::Path;

use super::*;
use crate::MAX_RECORD_BYTES;

fn walk(paths: &[PathBuf]) -> (Vec<Document>, Documents) {
    drain(open_bytes(&args(Format::Files, paths), b"").unwrap())
}

/// The ids below a folder, without its own path.
fn names(documents: &[Document], root: &Path) -> Vec<String> {
    let relative = |document: &Document| {
        let path = Path::new(&document.id).strip_prefix(root).unwrap();
        path.to_str().unwrap().to_owned()
    };
    documents.iter().map(relative).collect()
}

#[test]
fn every_file_is_a_document_and_its_path_the_id() {
    let folder = Folder::new();
    let path = folder.write("a.txt", "one\r\ntwo\n");
    let (read, documents) = walk(&[folder.path()]);
    assert_eq!(read, [text(path.to_str().unwrap(), "one\r\ntwo\n")]);
    assert!(documents.skipped().is_empty());
}

#[test]
fn folders_are_walked_in_a_fixed_order() {
    let folder = Folder::new();
    for name in ["b/2", "a", "c", "b/10", "b/1/x", "B"] {
        folder.write(name, "x");
    }
    let (read, _) = walk(&[folder.path()]);
    assert_eq!(
        names(&read, &folder.path()),
        ["B", "a", "b/1/x", "b/10", "b/2", "c"]
    );
}

#[test]
fn several_roots_keep_their_order_and_may_be_files() {
    let folder = Folder::new();
    let z = folder.write("z", "z");
    folder.write("y/a", "a");
    let (read, _) = walk(&[z, folder.path().join("y")]);
    assert_eq!(names(&read, &folder.path()), ["z", "y/a"]);
}

#[test]
fn hidden_files_are_passed_over_unless_named_and_ignore_files_have_no_say() {
    let folder = Folder::new();
    folder.write(".git/config", "x");
    folder.write(".gitignore", "seen");
    folder.write(".ignore", "seen");
    folder.write("seen", "x");
    let hidden = folder.write(".hidden/a", "x");
    let (read, documents) = walk(&[folder.path()]);
    assert_eq!(names(&read, &folder.path()), ["seen"]);
    assert!(documents.skipped().is_empty());
    let (read, _) = walk(&[hidden, folder.path().join(".git")]);
    assert_eq!(names(&read, &folder.path()), [".hidden/a", ".git/config"]);
}

#[test]
fn empty_files_are_documents_and_a_byte_order_mark_is_stripped() {
    let folder = Folder::new();
    folder.write("a", "");
    folder.write("b", "\u{FEFF}x");
    let (read, _) = walk(&[folder.path()]);
    let texts: Vec<Content> = read.into_iter().map(|document| document.content).collect();
    assert_eq!(texts, ["", "x"].map(|text| Content::Text(text.to_owned())));
}

/// I3.
#[test]
fn what_is_no_text_is_skipped_and_counted() {
    let folder = Folder::new();
    folder.write("binary", b"text\0\xFF");
    folder.write("late-nul", [vec![b'x'; 1 << 20], vec![0]].concat());
    folder.write("latin-1", b"caf\xE9");
    folder.write("large", vec![b'x'; MAX_RECORD_BYTES + 1]);
    folder.write("limit", vec![b'x'; MAX_RECORD_BYTES]);
    let (read, documents) = walk(&[folder.path()]);
    assert_eq!(names(&read, &folder.path()), ["limit"]);
    assert_eq!(
        documents.skipped().to_string(),
        "skipped 2 binary files, 1 invalid UTF-8 file, 1 too large file"
    );
}

#[test]
fn the_count_is_of_the_files_that_may_be_documents() {
    let folder = Folder::new();
    folder.write("a", "12345");
    folder.write("b", "1\0");
    folder.write("large", vec![b'x'; MAX_RECORD_BYTES + 1]);
    let input = open_bytes(&args(Format::Files, &[folder.path()]), b"").unwrap();
    assert_eq!(input.document_count(), Some(2));
    let (read, _) = drain(input);
    assert_eq!(names(&read, &folder.path()), ["a"]);
}

#[test]
fn a_file_that_cannot_be_opened_is_skipped_and_counted() {
    let folder = Folder::new();
    folder.write("a", "x");
    let lost = folder.write("b", "x");
    folder.write("c", "x");
    let input = open_bytes(&args(Format::Files, &[folder.path()]), b"").unwrap();
    let mut documents = input.documents();
    assert!(documents.next().unwrap().is_ok());
    fs::remove_file(lost).unwrap();
    let rest: Vec<Document> = documents.by_ref().map(Result::unwrap).collect();
    assert_eq!(names(&rest, &folder.path()), ["c"]);
    assert_eq!(documents.skipped().to_string(), "skipped 1 unreadable file");
}

#[test]
fn a_path_over_the_id_limit_is_skipped_and_counted() {
    let folder = Folder::new();
    let deep = vec!["d".repeat(200); 6].join("/");
    folder.write(&format!("{deep}/a"), "x");
    folder.write("e", "x");
    let (read, documents) = walk(&[folder.path()]);
    assert_eq!(names(&read, &folder.path()), ["e"]);
    assert_eq!(documents.skipped().unnameable_files, 1);
}

#[test]
fn a_root_that_does_not_exist_is_an_error_even_when_skipping() {
    let folder = Folder::new();
    let missing = folder.path().join("missing");
    for args in [
        args(Format::Files, &[folder.path(), missing.clone()]),
        skipping(Format::Files, std::slice::from_ref(&missing)),
    ] {
        let message = message(open_bytes(&args, b""));
        let expected = format!("cannot read {}: ", missing.display());
        assert!(message.starts_with(&expected), "{message}");
    }
}

/// I3.
#[test]
fn files_none_of_which_is_a_document_are_an_error() {
    let folder = Folder::new();
    let large = folder.write("b.jsonl", vec![b'x'; MAX_RECORD_BYTES + 1]);
    folder.write("c", b"\0");
    for (path, skipped) in [
        (folder.path(), "skipped 1 binary file, 1 too large file"),
        (large, "skipped 1 too large file"),
    ] {
        for args in [
            args(Format::Files, std::slice::from_ref(&path)),
            skipping(Format::Files, &[path]),
        ] {
            let mut documents = open_bytes(&args, b"").unwrap().documents();
            let error = documents.next().unwrap().unwrap_err().to_string();
            let expected = "none of the files is a document, a text of at most 8388608 bytes: ";
            assert_eq!(error, format!("{expected}{skipped}"));
            assert!(documents.next().is_none());
        }
    }
    folder.write("d", "a text");
    let (read, documents) = walk(&[folder.path()]);
    assert_eq!(names(&read, &folder.path()), ["d"]);
    assert!(!documents.skipped().is_empty());
}

#[test]
fn a_folder_without_files_is_an_error_once() {
    let folder = Folder::new();
    let options = args(Format::Files, &[folder.path()]);
    let mut documents = open_bytes(&options, b"").unwrap().documents();
    assert!(documents.next().unwrap().is_err());
    assert!(documents.next().is_none());
}

#[test]
fn standard_input_has_no_files() {
    for paths in [vec![], vec![PathBuf::from("-")]] {
        let message = message(open_bytes(&args(Format::Files, &paths), b""));
        assert!(message.starts_with("--format files reads files and folders"));
    }
}

#[cfg(unix)]
mod unix {
    //! Links, and names that only Unix allows.

    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_not_followed_unless_named() {
        let folder = Folder::new();
        let file = folder.write("a/file", "x");
        symlink(&file, folder.path().join("a/link")).unwrap();
        symlink(folder.path(), folder.path().join("a/loop")).unwrap();
        symlink(folder.path().join("a"), folder.path().join("root")).unwrap();
        let (read, documents) = walk(&[folder.path()]);
        assert_eq!(names(&read, &folder.path()), ["a/file"]);
        assert!(documents.skipped().is_empty());
        let roots = [folder.path().join("root"), folder.path().join("a/link")];
        let (read, _) = walk(&roots);
        assert_eq!(names(&read, &folder.path()), ["root/file", "a/link"]);
    }

    #[test]
    fn a_path_that_is_not_utf8_is_skipped_and_counted() {
        let folder = Folder::new();
        fs::write(folder.path().join(OsStr::from_bytes(b"a\xFF")), "x").unwrap();
        folder.write("b", "x");
        let (read, documents) = walk(&[folder.path()]);
        assert_eq!(names(&read, &folder.path()), ["b"]);
        assert_eq!(documents.skipped().to_string(), "skipped 1 unnameable file");
    }

    #[test]
    fn a_path_that_tsv_cannot_hold_is_skipped_and_counted_where_ids_must_fit() {
        let folder = Folder::new();
        for name in ["a\tb", "c\nd", "e\rf", "good"] {
            folder.write(name, "x");
        }
        let args = args(Format::Files, &[folder.path()]);
        let (read, documents) = drain(open_for_tsv(&args, b"").unwrap());
        assert_eq!(names(&read, &folder.path()), ["good"]);
        assert_eq!(documents.skipped().unnameable_files, 3);
        let (read, documents) = walk(&[folder.path()]);
        assert_eq!(read.len(), 4);
        assert!(documents.skipped().is_empty());
    }

    #[test]
    fn named_pipes_in_a_folder_are_passed_over() {
        let folder = Folder::new();
        super::super::checking::make_pipe(&folder.path().join("pipe"));
        folder.write("z", "x");
        let (read, _) = walk(&[folder.path()]);
        assert_eq!(names(&read, &folder.path()), ["z"]);
    }
}
