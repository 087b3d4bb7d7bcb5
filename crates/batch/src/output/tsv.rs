//! `tsv`: columns under a header. The ids are known to hold no tab, line break or NUL byte.

use std::io;

use simshard_simhash::Fingerprint;

use super::file::Output;
use super::sinks::{ClusterSink, DocumentSink, PairSink};
use super::text::Text;
use crate::member::Member;

/// A line a pair.
pub(super) struct TsvPairs(Text);

impl TsvPairs {
    pub(super) fn new(output: Output) -> Self {
        let mut text = Text::new(output);
        text.raw(b"id_a\tid_b\tdistance\n");
        Self(text)
    }
}

impl PairSink for TsvPairs {
    fn pair(&mut self, a: &Member<'_>, b: &Member<'_>, distance: u32) -> io::Result<()> {
        self.0.plain_name(a);
        self.0.raw(b"\t");
        self.0.plain_name(b);
        self.0.raw(b"\t");
        self.0.number(distance.into());
        self.0.raw(b"\n");
        self.0.write_if_full()
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        self.0.finish()
    }
}

/// A line a member.
pub(super) struct TsvClusters(Text);

impl TsvClusters {
    pub(super) fn new(output: Output) -> Self {
        let mut text = Text::new(output);
        text.raw(b"id\thash\tcluster\n");
        Self(text)
    }
}

impl ClusterSink for TsvClusters {
    fn member(&mut self, cluster: Fingerprint, member: &Member<'_>) -> io::Result<()> {
        self.0.plain_name(member);
        self.0.raw(b"\t");
        self.0.number(member.fingerprint.0);
        self.0.raw(b"\t");
        self.0.number(cluster.0);
        self.0.raw(b"\n");
        self.0.write_if_full()
    }

    fn end_cluster(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        self.0.finish()
    }
}

/// A line a document.
pub(super) struct TsvDocuments(Text);

impl TsvDocuments {
    pub(super) fn new(output: Output) -> Self {
        let mut text = Text::new(output);
        text.raw(b"id\thash\n");
        Self(text)
    }
}

impl DocumentSink for TsvDocuments {
    fn document(&mut self, document: &Member<'_>) -> io::Result<()> {
        self.0.plain_name(document);
        self.0.raw(b"\t");
        self.0.number(document.fingerprint.0);
        self.0.raw(b"\n");
        self.0.write_if_full()
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        self.0.finish()
    }
}
