//! Sinks: the writers of results, one for each output format.

use std::io;

use simshard_simhash::Fingerprint;

use super::file::Output;
use crate::member::Member;

/// The kind of a result's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Pairs of documents.
    Pairs,
    /// Members of clusters, cluster by cluster.
    Members,
    /// Documents.
    Documents,
}

/// Writes a result row by row. All rows are of the kind that it was made for.
///
/// # Errors
/// Every method fails if the output cannot be written.
pub trait Sink: Send {
    /// Writes a pair and its distance in bits.
    fn pair(&mut self, a: &Member<'_>, b: &Member<'_>, distance: u32) -> io::Result<()>;

    /// Writes a member of the cluster with this id: the smallest fingerprint in it.
    fn member(&mut self, cluster: Fingerprint, member: &Member<'_>) -> io::Result<()>;

    /// Writes a document with its fingerprint.
    fn document(&mut self, document: &Member<'_>) -> io::Result<()>;

    /// Writes the rest. The output is not in its place before
    /// [`Complete::commit`](super::Complete::commit).
    fn finish(self: Box<Self>) -> io::Result<Output>;
}
