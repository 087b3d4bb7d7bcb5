//! What the formats promise, rule by rule.

mod checking;
mod compressed;
mod csv;
mod cutting;
mod features;
mod files;
mod folders;
mod hashes;
mod html;
mod identity;
mod in_order;
mod jsonl;
mod lines;
mod looks;
mod options;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
mod patterns;
mod ranks;
mod round_trip;
mod sample;
mod tsv;
mod warc;

use std::fs;
use std::io::{Cursor, Read};
use std::path::PathBuf;

use simshard_simhash::Fingerprint;
use tempfile::TempDir;

use crate::{Content, Document, Documents, Format, Ids, Input, InputError, InputOptions, Needs};

/// A folder that holds one test's files.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Writes a file, with the folders above it.
    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }
}

/// Options as if only `--format` and paths had been given.
fn args(format: Format, paths: &[PathBuf]) -> InputOptions {
    InputOptions {
        format: Some(format),
        skip_bad_lines: false,
        ..InputOptions::walking(paths.to_vec())
    }
}

fn skipping(format: Format, paths: &[PathBuf]) -> InputOptions {
    InputOptions {
        skip_bad_lines: true,
        ..args(format, paths)
    }
}

fn open_bytes(args: &InputOptions, stdin: &[u8]) -> Result<Input, InputError> {
    open_reader(args, Cursor::new(stdin.to_vec()))
}

/// As for a command that prints the ids as TSV.
fn open_for_tsv(args: &InputOptions, stdin: &[u8]) -> Result<Input, InputError> {
    let needs = Needs {
        ids: Ids::Tsv,
        ..Needs::CLIENT
    };
    Input::open_with_stdin(args, needs, Box::new(Cursor::new(stdin.to_vec())))
}

fn open_reader(
    args: &InputOptions,
    stdin: impl Read + Send + 'static,
) -> Result<Input, InputError> {
    Input::open_with_stdin(args, Needs::CLIENT, Box::new(stdin))
}

/// Everything on standard input, in one format.
fn read(format: Format, stdin: impl AsRef<[u8]>) -> Vec<Document> {
    let input = open_bytes(&args(format, &[]), stdin.as_ref()).unwrap();
    all(input)
}

/// The message for a standard input that is refused before it is used.
fn refusal(format: Format, stdin: impl AsRef<[u8]>) -> String {
    message(open_bytes(&args(format, &[]), stdin.as_ref()))
}

fn message(opened: Result<Input, InputError>) -> String {
    match opened {
        Ok(_) => panic!("the input should be refused"),
        Err(error) => error.to_string(),
    }
}

fn all(input: Input) -> Vec<Document> {
    input.documents().map(Result::unwrap).collect()
}

/// The good documents, and what is left of the iterator to ask for counts.
fn drain(input: Input) -> (Vec<Document>, Documents) {
    let mut documents = input.documents();
    let read = documents.by_ref().map(Result::unwrap).collect();
    (read, documents)
}

fn text(id: &str, text: &str) -> Document {
    Document {
        id: id.to_owned(),
        content: Content::Text(text.to_owned()),
    }
}

fn print(id: &str, fingerprint: u64) -> Document {
    Document {
        id: id.to_owned(),
        content: Content::Fingerprint(Fingerprint(fingerprint)),
    }
}
