//! Nothing is handed out before everything has been checked, whatever the source.

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::*;

pub(super) fn make_pipe(path: &Path) {
    let status = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(status.success());
}

/// Hands out one piece per read and counts what it has handed out.
struct Pieces {
    pieces: Vec<&'static [u8]>,
    taken: Arc<AtomicU64>,
}

impl Pieces {
    fn new(pieces: &[&'static [u8]]) -> (Self, Arc<AtomicU64>) {
        let taken = Arc::new(AtomicU64::new(0));
        let pieces = pieces.iter().rev().copied().collect();
        let reader = Self {
            pieces,
            taken: taken.clone(),
        };
        (reader, taken)
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(piece) = self.pieces.pop() else {
            return Ok(0);
        };
        self.taken.fetch_add(1, Ordering::Relaxed);
        if piece == b"broken" {
            return Err(io::Error::other("cable cut"));
        }
        buffer[..piece.len()].copy_from_slice(piece);
        Ok(piece.len())
    }
}

/// I1.
#[test]
fn a_bad_line_at_the_end_of_the_last_source_stops_before_the_first_document() {
    let folder = Folder::new();
    let good = folder.write("good.tsv", "a\t1\n");
    let bad = folder.write("bad.tsv", "b\t2\nc\t12abc\n");
    let paths = [good, PathBuf::from("-"), bad.clone()];
    assert_eq!(
        message(open_bytes(&args(Format::Tsv, &paths), b"s\t3\n")),
        format!(
            "{}:2: \"12abc\" is no fingerprint: a fingerprint is a decimal number of digits only",
            bad.display()
        )
    );
}

#[test]
fn standard_input_is_checked_first_and_then_read_from_its_copy() {
    let (reader, taken) = Pieces::new(&[b"a\t", b"1\nb\t2", b"\n"]);
    let input = open_reader(&args(Format::Tsv, &[]), reader).unwrap();
    assert_eq!(taken.load(Ordering::Relaxed), 3);
    assert_eq!(input.document_count(), Some(2));
    assert_eq!(all(input), [print("a", 1), print("b", 2)]);
}

#[test]
fn a_bad_line_stops_the_copying_of_standard_input() {
    let (reader, taken) = Pieces::new(&[b"a\t1\n", b"bad\n", b"b\t2\n", b"c\t3\n"]);
    message(open_reader(&args(Format::Tsv, &[]), reader));
    assert_eq!(taken.load(Ordering::Relaxed), 2);
}

#[test]
fn standard_input_is_used_as_it_arrives_when_bad_lines_are_skipped() {
    let (reader, taken) = Pieces::new(&[b"a\t1\n", b"bad\nb\t2\n"]);
    let input = open_reader(&skipping(Format::Tsv, &[]), reader).unwrap();
    let mut documents = input.documents();
    assert_eq!(taken.load(Ordering::Relaxed), 0);
    assert_eq!(documents.next().unwrap().unwrap(), print("a", 1));
    assert_eq!(taken.load(Ordering::Relaxed), 1);
    assert_eq!(documents.next().unwrap().unwrap(), print("b", 2));
    assert!(documents.next().is_none());
    assert_eq!(documents.skipped().bad_lines, 1);
}

#[test]
fn a_failed_read_is_an_error_even_when_bad_lines_are_skipped() {
    let expected = "cannot read <stdin>: cable cut";
    let (reader, _) = Pieces::new(&[b"a\t1\n", b"broken"]);
    let opened = open_reader(&args(Format::Tsv, &[]), reader);
    assert_eq!(message(opened), expected);

    let (reader, _) = Pieces::new(&[b"a\t1\n", b"broken", b"b\t2\n"]);
    let input = open_reader(&skipping(Format::Tsv, &[]), reader).unwrap();
    let mut documents = input.documents();
    assert!(documents.next().unwrap().is_ok());
    let error = documents.next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert!(documents.next().is_none(), "nothing follows an error");
}

#[test]
fn a_file_that_changes_after_the_check_is_still_reported() {
    let folder = Folder::new();
    let path = folder.write("a.tsv", "a\t1\n");
    let args = args(Format::Tsv, &[path]);
    let changed = open_bytes(&args, b"").unwrap();
    folder.write("a.tsv", "a\t1\nb\t-1\n");
    let results: Vec<_> = changed.documents().collect();
    assert_eq!(results.len(), 2);
    let error = results[1].as_ref().unwrap_err().to_string();
    assert!(error.contains("a.tsv:2: \"-1\""), "{error}");
}

#[test]
fn a_file_that_vanishes_after_the_check_is_still_reported() {
    let folder = Folder::new();
    let path = folder.write("a.tsv", "a\t1\n");
    let input = open_bytes(&args(Format::Tsv, std::slice::from_ref(&path)), b"").unwrap();
    fs::remove_file(path).unwrap();
    let results: Vec<_> = input.documents().collect();
    assert_eq!(results.len(), 1);
    assert!(results[0].is_err());
}

#[test]
fn missing_files_and_folders_are_refused_before_anything_is_read() {
    let folder = Folder::new();
    let good = folder.write("good", "x\n");
    let missing = folder.path().join("missing");
    for args in [args, skipping].map(|make| make(Format::Lines, &[good.clone(), missing.clone()])) {
        let message = message(open_bytes(&args, b""));
        let expected = format!("cannot read {}: ", missing.display());
        assert!(message.starts_with(&expected), "{message}");
    }
    let message = message(open_bytes(&args(Format::Lines, &[folder.path()]), b""));
    assert!(message.ends_with("is a folder: --format lines reads files, name those in it"));
}

#[cfg(unix)]
#[test]
fn a_named_pipe_is_copied_for_its_check() {
    for make in [args, skipping] {
        let folder = Folder::new();
        let path = folder.path().join("pipe");
        make_pipe(&path);
        let writer = thread::spawn({
            let path = path.clone();
            move || fs::write(path, "a\t1\nb\t2\n").unwrap()
        });
        let input = open_bytes(&make(Format::Tsv, &[path]), b"").unwrap();
        assert_eq!(all(input), [print("a", 1), print("b", 2)]);
        writer.join().unwrap();
    }
}
