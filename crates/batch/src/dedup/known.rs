//! Documents that a corpus has already.

/// A document of a corpus that is near a fingerprint of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The place of the fingerprint in [`ReadDocuments::fingerprints`](super::ReadDocuments::fingerprints).
    pub place: usize,
    /// The id of the document.
    pub id: String,
    /// The distance of the two.
    pub distance: u32,
}
