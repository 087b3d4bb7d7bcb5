//! `jsonl`: an object a line. Fingerprints are strings, since many readers of JSON lose the lower
//! bits of large numbers.

use std::io;

use simshard_simhash::Fingerprint;

use super::file::Output;
use super::sinks::Sink;
use super::text::Text;
use crate::member::Member;

/// `{"id_a":"a","id_b":"b","fingerprint_a":"4","fingerprint_b":"5","distance":1}` a pair,
/// `{"id":"b","fingerprint":"5","cluster":"4"}` a member, `{"id":"b","fingerprint":"5"}` a document.
pub(super) struct Jsonl(pub(super) Text);

impl Sink for Jsonl {
    fn pair(&mut self, a: &Member<'_>, b: &Member<'_>, distance: u32) -> io::Result<()> {
        self.0.raw(b"{\"id_a\":");
        self.0.json_string_name(a)?;
        self.0.raw(b",\"id_b\":");
        self.0.json_string_name(b)?;
        self.0.raw(b",\"fingerprint_a\":");
        self.0.quoted_fingerprint(a.fingerprint);
        self.0.raw(b",\"fingerprint_b\":");
        self.0.quoted_fingerprint(b.fingerprint);
        self.0.raw(b",\"distance\":");
        self.0.number(distance.into());
        self.0.end_row(b"}\n")
    }

    fn member(&mut self, cluster: Fingerprint, member: &Member<'_>) -> io::Result<()> {
        self.0.json_document(member)?;
        self.0.raw(b",\"cluster\":");
        self.0.quoted_fingerprint(cluster);
        self.0.end_row(b"}\n")
    }

    fn document(&mut self, document: &Member<'_>) -> io::Result<()> {
        self.0.json_document(document)?;
        self.0.end_row(b"}\n")
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        self.0.finish()
    }
}
