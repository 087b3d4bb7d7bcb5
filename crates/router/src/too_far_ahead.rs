//! What an error tells of documents with versions too far ahead.

use simshard_simhash::Fingerprint;
use simshard_topology::Version;

/// Documents of a request whose versions are too far ahead of wall time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooFarAhead {
    /// Number of them.
    pub(crate) count: u64,
    /// The one that is the farthest ahead.
    pub(crate) fingerprint: Fingerprint,
    /// Its version.
    pub(crate) version: Version,
}
