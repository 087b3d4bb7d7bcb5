//! `jsonl`: an object a line. Fingerprints are strings, since many readers of JSON lose the lower
//! bits of large numbers.

use std::io;

use simshard_simhash::Fingerprint;

use super::file::Output;
use super::sinks::{ClusterSink, DocumentSink, PairSink};
use super::text::Text;
use crate::member::Member;

/// `{"id_a":"a","id_b":"b","fingerprint_a":"4","fingerprint_b":"5","distance":1}` a pair.
pub(super) struct JsonlPairs(Text);

impl JsonlPairs {
    pub(super) fn new(output: Output) -> Self {
        Self(Text::new(output))
    }
}

impl PairSink for JsonlPairs {
    fn pair(&mut self, a: &Member<'_>, b: &Member<'_>, distance: u32) -> io::Result<()> {
        self.0.raw(b"{\"id_a\":");
        self.0.json_string_name(a)?;
        self.0.raw(b",\"id_b\":");
        self.0.json_string_name(b)?;
        self.0.raw(b",\"fingerprint_a\":");
        self.0.quoted_number(a.fingerprint.0);
        self.0.raw(b",\"fingerprint_b\":");
        self.0.quoted_number(b.fingerprint.0);
        self.0.raw(b",\"distance\":");
        self.0.number(distance.into());
        self.0.raw(b"}\n");
        self.0.write_if_full()
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        self.0.finish()
    }
}

/// `{"id":"b","fingerprint":"5","cluster":"4"}` a member.
pub(super) struct JsonlClusters(Text);

impl JsonlClusters {
    pub(super) fn new(output: Output) -> Self {
        Self(Text::new(output))
    }
}

impl ClusterSink for JsonlClusters {
    fn member(&mut self, cluster: Fingerprint, member: &Member<'_>) -> io::Result<()> {
        self.0.raw(b"{\"id\":");
        self.0.json_string_name(member)?;
        self.0.raw(b",\"fingerprint\":");
        self.0.quoted_number(member.fingerprint.0);
        self.0.raw(b",\"cluster\":");
        self.0.quoted_number(cluster.0);
        self.0.raw(b"}\n");
        self.0.write_if_full()
    }

    fn end_cluster(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        self.0.finish()
    }
}

/// `{"id":"b","fingerprint":"5"}` a document.
pub(super) struct JsonlDocuments(Text);

impl JsonlDocuments {
    pub(super) fn new(output: Output) -> Self {
        Self(Text::new(output))
    }
}

impl DocumentSink for JsonlDocuments {
    fn document(&mut self, document: &Member<'_>) -> io::Result<()> {
        self.0.raw(b"{\"id\":");
        self.0.json_string_name(document)?;
        self.0.raw(b",\"fingerprint\":");
        self.0.quoted_number(document.fingerprint.0);
        self.0.raw(b"}\n");
        self.0.write_if_full()
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        self.0.finish()
    }
}
