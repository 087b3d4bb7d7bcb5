//! What takes results, whatever their form.

use std::io;

use simshard_simhash::Fingerprint;

use super::file::Output;
use crate::member::Member;

/// What the rows of a result are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Pairs of documents.
    Pairs,
    /// Members of clusters, cluster by cluster.
    Members,
    /// Documents.
    Documents,
}

/// Takes a result row by row. All rows are of the kind that it was made for.
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

    /// Writes what is left. The output is not in its place before
    /// [`Complete::commit`](super::Complete::commit).
    fn finish(self: Box<Self>) -> io::Result<Output>;
}
