//! `json`: an array a line, as the batch programs print whose place these commands take.

use std::io;

use simshard_simhash::Fingerprint;

use super::file::Output;
use super::sinks::{ClusterSink, PairSink};
use super::text::Text;
use crate::member::Member;

/// `[4, 5]` a pair.
pub(super) struct JsonPairs(Text);

impl JsonPairs {
    pub(super) fn new(output: Output) -> Self {
        Self(Text::new(output))
    }
}

impl PairSink for JsonPairs {
    fn pair(&mut self, a: &Member<'_>, b: &Member<'_>, _distance: u32) -> io::Result<()> {
        self.0.raw(b"[");
        self.0.json_name(a)?;
        self.0.raw(b", ");
        self.0.json_name(b)?;
        self.0.raw(b"]\n");
        self.0.write_if_full()
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        self.0.finish()
    }
}

/// `[4, 5, 7]` a cluster.
pub(super) struct JsonClusters {
    text: Text,
    /// Whether a cluster has members so far.
    within: bool,
}

impl JsonClusters {
    pub(super) fn new(output: Output) -> Self {
        Self {
            text: Text::new(output),
            within: false,
        }
    }
}

impl ClusterSink for JsonClusters {
    fn member(&mut self, _cluster: Fingerprint, member: &Member<'_>) -> io::Result<()> {
        self.text.raw(if self.within { b", " } else { b"[" });
        self.text.json_name(member)?;
        self.within = true;
        self.text.write_if_full()
    }

    fn end_cluster(&mut self) -> io::Result<()> {
        self.text.raw(b"]\n");
        self.within = false;
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        self.text.finish()
    }
}
