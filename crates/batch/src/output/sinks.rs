//! What takes results, whatever their form.

use std::io;

use simshard_simhash::Fingerprint;

use super::file::Output;
use crate::member::Member;

/// Takes pairs of documents, one by one.
pub trait PairSink: Send {
    /// Writes a pair and its distance in bits.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn pair(&mut self, a: &Member<'_>, b: &Member<'_>, distance: u32) -> io::Result<()>;

    /// Writes what is left. The output is not in its place before [`Complete::commit`].
    ///
    /// # Errors
    /// If the output cannot be written.
    fn finish(self: Box<Self>) -> io::Result<Output>;
}

/// Takes the members of clusters, cluster by cluster.
pub trait ClusterSink: Send {
    /// Writes a member of the cluster with this id: the smallest fingerprint in it.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn member(&mut self, cluster: Fingerprint, member: &Member<'_>) -> io::Result<()>;

    /// Ends a cluster that has members.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn end_cluster(&mut self) -> io::Result<()>;

    /// Writes what is left. The output is not in its place before [`Complete::commit`].
    ///
    /// # Errors
    /// If the output cannot be written.
    fn finish(self: Box<Self>) -> io::Result<Output>;
}

/// Takes documents, one by one.
pub trait DocumentSink: Send {
    /// Writes a document with its fingerprint.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn document(&mut self, document: &Member<'_>) -> io::Result<()>;

    /// Writes what is left. The output is not in its place before [`Complete::commit`].
    ///
    /// # Errors
    /// If the output cannot be written.
    fn finish(self: Box<Self>) -> io::Result<Output>;
}
