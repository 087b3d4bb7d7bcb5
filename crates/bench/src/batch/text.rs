//! Real text to measure recipes on: files of this machine, as one JSONL file.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::ensure;
use serde_json::json;
use simshard_input::{Content, Document, Format, Input, InputOptions, Needs};
use tempfile::NamedTempFile;

/// Texts, in memory and in a file.
pub(super) struct Texts {
    pub(super) texts: Vec<String>,
    pub(super) bytes: u64,
    file: NamedTempFile,
}

/// Reads text files below `paths`, up to `max_mib` MiB, and writes them down as JSONL.
pub(super) fn collect(paths: &[PathBuf], max_mib: u32) -> anyhow::Result<Texts> {
    let most = u64::from(max_mib) << 20;
    let mut file = NamedTempFile::new()?;
    let mut texts = Vec::new();
    let mut bytes = 0;
    let mut out = BufWriter::new(file.as_file_mut());
    for document in Input::open(&InputOptions::walking(paths.to_vec()), Needs::CLIENT)?.documents()
    {
        let Document {
            id,
            content: Content::Text(text),
        } = document?
        else {
            continue;
        };
        if bytes + text.len() as u64 > most {
            break;
        }
        bytes += text.len() as u64;
        serde_json::to_writer(&mut out, &json!({ "id": id, "text": text }))?;
        out.write_all(b"\n")?;
        texts.push(text);
    }
    out.flush()?;
    drop(out);
    ensure!(
        !texts.is_empty(),
        "there is no text file: name some with --texts"
    );
    Ok(Texts { texts, bytes, file })
}

impl Texts {
    /// Where the JSONL file is.
    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The options of a command that reads the file.
    pub(super) fn options(&self) -> InputOptions {
        InputOptions {
            paths: vec![self.file.path().to_owned()],
            format: Some(Format::Jsonl),
            ..InputOptions::walking(Vec::new())
        }
    }
}
