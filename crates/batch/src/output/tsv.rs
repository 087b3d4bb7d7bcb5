//! `tsv`: columns under a header. The ids are known to hold no tab, line break or NUL byte.

use std::io;

use simshard_input::Notation;
use simshard_simhash::Fingerprint;

use super::file::Output;
use super::sinks::{Rows, Sink};
use super::text::Text;
use crate::member::Member;

/// A line a row.
pub(super) struct Tsv(Text);

impl Tsv {
    pub(super) fn new(rows: Rows, notation: Notation, output: Output) -> Self {
        let mut text = Text::new(notation, output);
        text.raw(match rows {
            Rows::Pairs => b"id_a\tid_b\tdistance\n",
            Rows::Members => b"id\thash\tcluster\n",
            Rows::Documents => b"id\thash\n",
        });
        Self(text)
    }
}

impl Sink for Tsv {
    fn pair(&mut self, a: &Member<'_>, b: &Member<'_>, distance: u32) -> io::Result<()> {
        self.0.plain_name(a);
        self.0.raw(b"\t");
        self.0.plain_name(b);
        self.0.raw(b"\t");
        self.0.number(distance.into());
        self.0.end_row(b"\n")
    }

    fn member(&mut self, cluster: Fingerprint, member: &Member<'_>) -> io::Result<()> {
        self.0.plain_name(member);
        self.0.raw(b"\t");
        self.0.fingerprint(member.fingerprint);
        self.0.raw(b"\t");
        self.0.fingerprint(cluster);
        self.0.end_row(b"\n")
    }

    fn document(&mut self, document: &Member<'_>) -> io::Result<()> {
        self.0.plain_name(document);
        self.0.raw(b"\t");
        self.0.fingerprint(document.fingerprint);
        self.0.end_row(b"\n")
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        self.0.finish()
    }
}
