//! The count of what was left out.

use std::fmt;
use std::ops::AddAssign;

/// The number of skipped items, by reason. Displays as `skipped 3 bad lines, 1 binary file`, or as nothing
/// where nothing was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Lines that break the rules of their format.
    pub bad_lines: u64,
    /// Rows of Parquet files that are no document.
    pub bad_rows: u64,
    /// Records of WARC files that should hold a text, and do not.
    pub bad_records: u64,
    /// Records of WARC files that hold neither plain text nor a page of HTML.
    pub other_records: u64,
    /// Files with a NUL byte in them.
    pub binary_files: u64,
    /// Files that are neither binary nor UTF-8.
    pub invalid_utf8_files: u64,
    /// Files and folders that the operating system would not let us read.
    pub unreadable_files: u64,
    /// Files over the limit for one document.
    pub too_large_files: u64,
    /// Files whose path cannot be an id: too long, or not UTF-8.
    pub unnameable_files: u64,
    /// Texts that the recipe gives no fingerprint, such as those without words.
    pub unhashable_texts: u64,
    /// Texts with fewer words than asked for.
    pub short_texts: u64,
}

impl Skipped {
    /// Whether nothing was left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Skipped {
    /// The reasons for skipping, with their counts.
    #[must_use]
    pub fn reasons(self) -> [(&'static str, u64); 11] {
        [
            ("bad line", self.bad_lines),
            ("bad row", self.bad_rows),
            ("bad record", self.bad_records),
            ("non-text record", self.other_records),
            ("binary file", self.binary_files),
            ("invalid UTF-8 file", self.invalid_utf8_files),
            ("unreadable file", self.unreadable_files),
            ("too large file", self.too_large_files),
            ("unnameable file", self.unnameable_files),
            ("unhashable text", self.unhashable_texts),
            ("short text", self.short_texts),
        ]
    }
}

impl AddAssign for Skipped {
    fn add_assign(&mut self, more: Self) {
        self.bad_lines += more.bad_lines;
        self.bad_rows += more.bad_rows;
        self.bad_records += more.bad_records;
        self.other_records += more.other_records;
        self.binary_files += more.binary_files;
        self.invalid_utf8_files += more.invalid_utf8_files;
        self.unreadable_files += more.unreadable_files;
        self.too_large_files += more.too_large_files;
        self.unnameable_files += more.unnameable_files;
        self.unhashable_texts += more.unhashable_texts;
        self.short_texts += more.short_texts;
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lead = "skipped ";
        for (name, count) in self.reasons() {
            if count == 0 {
                continue;
            }
            let plural = if count == 1 { "" } else { "s" };
            write!(f, "{lead}{count} {name}{plural}")?;
            lead = ", ";
        }
        Ok(())
    }
}
