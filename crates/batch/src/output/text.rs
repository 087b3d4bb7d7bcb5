//! Lines of text, gathered in memory before they are written.

use std::io::{self, Write};

use simshard_input::Notation;
use simshard_runtime::terminal::escaped;
use simshard_simhash::Fingerprint;

use super::escaped_json::write_json;
use super::file::Output;
use crate::member::Member;

/// Bytes gathered before they are written.
const PIECE_BYTES: usize = 256 << 10;

/// Lines on their way to an output.
pub(super) struct Text {
    gathered: Vec<u8>,
    /// How fingerprints are written.
    notation: Notation,
    output: Output,
    /// Whether a terminal shows it.
    shown: bool,
}

impl Text {
    pub(super) fn new(notation: Notation, output: Output) -> Self {
        Self {
            gathered: Vec::new(),
            notation,
            shown: output.is_terminal(),
            output,
        }
    }

    /// Adds these bytes.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.gathered.extend_from_slice(bytes);
    }

    /// Adds a decimal number.
    pub(super) fn number(&mut self, number: u64) {
        self.raw(itoa::Buffer::new().format(number).as_bytes());
    }

    /// Adds a fingerprint as a number.
    pub(super) fn fingerprint(&mut self, fingerprint: Fingerprint) {
        match self.notation {
            Notation::Unsigned => self.number(fingerprint.0),
            Notation::Signed => {
                let number = fingerprint.0.cast_signed();
                self.raw(itoa::Buffer::new().format(number).as_bytes());
            }
        }
    }

    /// Adds a fingerprint within quotes, for readers that take JSON numbers for floating point.
    pub(super) fn quoted_fingerprint(&mut self, fingerprint: Fingerprint) {
        self.raw(b"\"");
        self.fingerprint(fingerprint);
        self.raw(b"\"");
    }

    /// Adds a document's id as a JSON string, or its fingerprint as a number.
    pub(super) fn json_name(&mut self, document: &Member<'_>) -> io::Result<()> {
        match &document.id {
            Some(id) => write_json(&mut self.gathered, id)?,
            None => self.fingerprint(document.fingerprint),
        }
        Ok(())
    }

    /// Adds a document's id or fingerprint as a JSON string.
    pub(super) fn json_string_name(&mut self, document: &Member<'_>) -> io::Result<()> {
        match &document.id {
            Some(id) => write_json(&mut self.gathered, id)?,
            None => self.quoted_fingerprint(document.fingerprint),
        }
        Ok(())
    }

    /// Adds a document's id or fingerprint: as it is, but for a terminal, which would obey what is in it.
    pub(super) fn plain_name(&mut self, document: &Member<'_>) {
        match &document.id {
            Some(id) if self.shown => self.raw(escaped(id).as_bytes()),
            Some(id) => self.raw(id.as_bytes()),
            None => self.fingerprint(document.fingerprint),
        }
    }

    /// Adds a document as a JSON object that its caller ends.
    pub(super) fn json_document(&mut self, document: &Member<'_>) -> io::Result<()> {
        self.raw(b"{\"id\":");
        self.json_string_name(document)?;
        self.raw(b",\"fingerprint\":");
        self.quoted_fingerprint(document.fingerprint);
        Ok(())
    }

    /// Adds the end of a row.
    pub(super) fn end_row(&mut self, end: &[u8]) -> io::Result<()> {
        self.raw(end);
        self.write_if_full()
    }

    /// To be called now and then: writes what has gathered once it is much.
    pub(super) fn write_if_full(&mut self) -> io::Result<()> {
        if self.gathered.len() >= PIECE_BYTES {
            self.write()?;
        }
        Ok(())
    }

    /// Writes the rest.
    pub(super) fn finish(mut self) -> io::Result<Output> {
        self.write()?;
        Ok(self.output)
    }

    fn write(&mut self) -> io::Result<()> {
        self.output.write_all(&self.gathered)?;
        self.gathered.clear();
        Ok(())
    }
}
