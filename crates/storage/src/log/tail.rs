//! The end of a log, where writing continues.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use uuid::Uuid;

use super::file;
use super::frame::FileHeader;
use crate::FORMAT_VERSION;
use crate::directory::{Directory, Nowhere, StoredFile};

/// A write to the log that was cut off before it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The file.
    pub path: PathBuf,
    /// Where it starts.
    pub offset: usize,
    /// Its bytes, without the zeros behind them.
    pub bytes: usize,
}

/// The last file of the log ends with its last record, or within one. Either no space was allocated ahead of the
/// records, or something cut the file short; the file does not show which (`FORMAT.md`, section Log).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbruptEnd {
    /// The file.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
}

/// The end of a log that was read, where writing continues. All frames before it are on disk.
pub(crate) struct Tail {
    pub(super) directory: Arc<dyn Directory>,
    pub(super) header: FileHeader,
    pub(super) file: Box<dyn StoredFile>,
    /// The first sequence of each file, ascending; the last is open.
    pub(super) files: Vec<u64>,
    /// Where the next frame goes.
    pub(super) position: u64,
    /// How long the file is; zeros follow its frames.
    pub(super) length: u64,
    /// The sequence of the next record.
    pub(crate) sequence: u64,
    /// Bytes of the records that were visited when the log was read.
    pub(crate) needed_bytes: usize,
    /// Whether the log shows that its last record was on disk.
    pub(super) is_marked: bool,
    pub(super) cut: Option<Torn>,
}

impl Tail {
    /// The log of a store in memory, which keeps none of its records.
    pub(crate) fn nowhere() -> Self {
        let header = FileHeader {
            format: FORMAT_VERSION,
            store: Uuid::nil(),
            first: 1,
        };
        Self {
            directory: Arc::new(Nowhere),
            header,
            file: Box::new(Nowhere),
            files: vec![header.first],
            position: file::START,
            length: file::START,
            sequence: header.first,
            needed_bytes: 0,
            is_marked: true,
            cut: None,
        }
    }

    /// The torn write that was cut off, if there was one.
    pub(crate) fn cut(&self) -> Option<&Torn> {
        self.cut.as_ref()
    }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tail = f.debug_struct("Tail");
        tail.field("files", &self.files)
            .field("position", &self.position)
            .field("sequence", &self.sequence)
            .field("cut", &self.cut);
        tail.finish_non_exhaustive()
    }
}
