//! The manifest of a backup: which corpora it has, and which segments.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::segment::SegmentHash;

/// The version of the manifest and of the segments, and of the rule where segments begin.
pub(crate) const FORMAT: u32 = 1;

/// A backup: some corpora as they were at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of what is stored.
    pub(crate) format: u32,
    /// Its name: when it was begun, in UTC, and some letters at random.
    pub id: String,
    /// When it was begun, as RFC 3339 has it.
    pub begun: String,
    /// When the last corpus was read, as RFC 3339 has it.
    pub ended: String,
    /// The version of Simshard that made it.
    pub version: String,
    /// Its corpora, by name.
    pub corpora: Vec<CorpusBackup>,
}

/// A corpus in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorpusBackup {
    /// Its name.
    pub name: String,
    /// Number of blocks a fingerprint is cut into.
    pub blocks: u32,
    /// Largest distance that is searched.
    pub distance: u32,
    /// What turns its texts into fingerprints.
    pub recipe: String,
    /// Which nodes had it, and which shards each of them answered for.
    pub nodes: Vec<NodeEntry>,
    /// Its documents, by fingerprint, then id.
    pub segments: Vec<SegmentEntry>,
}

/// A node that had a corpus. Nothing is restored from this: it tells what the cluster was like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEntry {
    /// Its name.
    pub name: String,
    /// Where it was.
    pub address: String,
    /// The shards that it answered for.
    pub shards: Vec<u32>,
}

/// A segment of a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// Its name.
    pub hash: SegmentHash,
    /// How many documents it has.
    pub documents: u64,
    /// How many bytes these take, before they are compressed.
    pub bytes: u64,
}

impl Manifest {
    /// The manifest of a backup that begins now, without corpora yet.
    pub(crate) fn begin(now: OffsetDateTime) -> Self {
        let letters: String = std::iter::repeat_with(fastrand::lowercase)
            .take(4)
            .collect();
        let (date, time) = (now.date(), now.time());
        let (year, month, day) = date.to_calendar_date();
        let (hour, minute, second, milli) = time.as_hms_milli();
        let month = u8::from(month);
        Self {
            format: FORMAT,
            // As text, they have the order of their times.
            id: format!(
                "{year}{month:02}{day:02}T{hour:02}{minute:02}{second:02}.{milli:03}Z-{letters}"
            ),
            begun: rfc3339(now),
            ended: String::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            corpora: Vec::new(),
        }
    }

    pub(crate) fn end(&mut self, now: OffsetDateTime) {
        self.ended = rfc3339(now);
    }

    /// Documents of all its corpora.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.corpora.iter().map(CorpusBackup::documents).sum()
    }

    /// Bytes of all its corpora, before they are compressed.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let segments = self.corpora.iter().flat_map(|corpus| &corpus.segments);
        segments.map(|segment| segment.bytes).sum()
    }
}

impl CorpusBackup {
    /// How many documents it has.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.segments.iter().map(|segment| segment.documents).sum()
    }
}

fn rfc3339(time: OffsetDateTime) -> String {
    let time = time.replace_nanosecond(0).unwrap_or(time);
    time.format(&Rfc3339).unwrap_or_default()
}
