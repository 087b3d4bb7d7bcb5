//! `parquet`: rows of tables, see [`super::parquet`].

use std::borrow::Cow;
use std::io;

use simshard_simhash::Fingerprint;

use super::file::Output;
use super::parquet::{ClusterRow, ClusterTable, DocumentRow, DocumentTable, PairRow, PairTable};
use super::sinks::{ClusterSink, DocumentSink, PairSink};
use crate::member::Member;

/// A row a pair.
pub(super) struct ParquetPairs(PairTable<Output>);

impl ParquetPairs {
    pub(super) fn new(output: Output) -> io::Result<Self> {
        PairTable::new(output).map(Self)
    }
}

impl PairSink for ParquetPairs {
    fn pair(&mut self, a: &Member<'_>, b: &Member<'_>, distance: u32) -> io::Result<()> {
        self.0.push(&PairRow {
            id_a: &id(a),
            id_b: &id(b),
            fingerprint_a: a.fingerprint,
            fingerprint_b: b.fingerprint,
            distance: distance as u8,
        })
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        self.0.finish()
    }
}

/// A row a member.
pub(super) struct ParquetClusters(ClusterTable<Output>);

impl ParquetClusters {
    pub(super) fn new(output: Output) -> io::Result<Self> {
        ClusterTable::new(output).map(Self)
    }
}

impl ClusterSink for ParquetClusters {
    fn member(&mut self, cluster: Fingerprint, member: &Member<'_>) -> io::Result<()> {
        self.0.push(&ClusterRow {
            id: &id(member),
            fingerprint: member.fingerprint,
            cluster,
        })
    }

    fn end_cluster(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        self.0.finish()
    }
}

/// A row a document.
pub(super) struct ParquetDocuments(DocumentTable<Output>);

impl ParquetDocuments {
    pub(super) fn new(output: Output) -> io::Result<Self> {
        DocumentTable::new(output).map(Self)
    }
}

impl DocumentSink for ParquetDocuments {
    fn document(&mut self, document: &Member<'_>) -> io::Result<()> {
        self.0.push(&DocumentRow {
            id: &id(document),
            fingerprint: document.fingerprint,
        })
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        self.0.finish()
    }
}

fn id<'a>(document: &'a Member<'_>) -> Cow<'a, str> {
    match &document.id {
        Some(id) => Cow::Borrowed(id),
        None => Cow::Owned(document.fingerprint.to_string()),
    }
}
