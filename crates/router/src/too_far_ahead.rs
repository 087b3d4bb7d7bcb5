//! The details of an error about documents with versions too far ahead.

use std::fmt;

use prost_types::Timestamp;
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

impl fmt::Display for TooFarAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            count,
            fingerprint,
            version,
        } = *self;
        let others = match count {
            0 | 1 => String::new(),
            more => format!(" and {} more of the request", more - 1),
        };
        write!(
            f,
            "document {fingerprint}{others} changed at {}, which is over a minute ahead of this router's clock: \
             set the clocks of the machines right, then send the request again after {}, or to remove documents \
             at once use simshard remove --beyond-clock",
            time(version.milliseconds()),
            time(version.acceptable_at()),
        )
    }
}

/// A time in milliseconds since 1970, as RFC 3339 writes it, to whole seconds.
fn time(milliseconds: u64) -> Timestamp {
    Timestamp {
        // A version has 48 bits for it.
        seconds: (milliseconds / 1000) as i64,
        nanos: 0,
    }
}
