//! `json`: an array a line, as the batch programs print whose place these commands take.

use std::io;

use simshard_input::Notation;
use simshard_simhash::Fingerprint;

use super::file::Output;
use super::sinks::Sink;
use super::text::Text;
use crate::member::Member;

/// `[4, 5]` a pair, `[4, 5, 7]` a cluster; documents as `jsonl` has them.
pub(super) struct Json {
    text: Text,
    /// The cluster whose members are being written.
    cluster: Option<Fingerprint>,
}

impl Json {
    pub(super) fn new(notation: Notation, output: Output) -> Self {
        Self {
            text: Text::new(notation, output),
            cluster: None,
        }
    }
}

impl Sink for Json {
    fn pair(&mut self, a: &Member<'_>, b: &Member<'_>, _distance: u32) -> io::Result<()> {
        self.text.raw(b"[");
        self.text.json_name(a)?;
        self.text.raw(b", ");
        self.text.json_name(b)?;
        self.text.end_row(b"]\n")
    }

    fn member(&mut self, cluster: Fingerprint, member: &Member<'_>) -> io::Result<()> {
        self.text.raw(match self.cluster.replace(cluster) {
            None => b"[",
            Some(before) if before == cluster => b", ",
            Some(_) => b"]\n[",
        });
        self.text.json_name(member)?;
        self.text.write_if_full()
    }

    fn document(&mut self, document: &Member<'_>) -> io::Result<()> {
        self.text.json_document(document)?;
        self.text.end_row(b"}\n")
    }

    fn finish(mut self: Box<Self>) -> io::Result<Output> {
        if self.cluster.is_some() {
            self.text.raw(b"]\n");
        }
        self.text.finish()
    }
}
