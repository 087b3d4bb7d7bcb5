//! The count of what was left out, and of what may not be read as it was written.

use std::fmt;
use std::ops::AddAssign;

use crate::error::InputError;
use crate::first_bad::FirstBad;
use crate::html::Doubt;
use crate::kinds::Kinds;

/// The number of skipped items, by reason. Displays as `skipped 3 bad lines, 1 binary file`, or as nothing
/// where nothing was. What may not be read as it was written is counted beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Lines that break the rules of their format.
    pub bad_lines: u64,
    /// Rows of tables that are no document.
    pub bad_rows: u64,
    /// Records of web archives that should hold a text, and do not.
    pub bad_records: u64,
    /// Web archives without a record.
    pub empty_archives: u64,
    /// The first of these lines, rows, records and archives.
    pub first_bad: FirstBad,
    /// Records of web archives that hold neither plain text nor a page of HTML, by what they hold.
    pub other_records: Kinds,
    /// Files of formats that are not read beside that of the input, by what they are.
    pub other_files: Kinds,
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
    /// Pages of HTML that were not skipped, but may not be read as their authors wrote them.
    pub doubtful_pages: DoubtfulPages,
}

/// How many pages of HTML may not be read as their authors wrote them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoubtfulPages {
    /// They are no UTF-8, and nothing says their character set. They were read as windows-1252.
    pub undeclared: u64,
    /// The character set that they declare does not have some of their bytes. These became U+FFFD.
    pub misdeclared: u64,
}

impl From<Doubt> for DoubtfulPages {
    fn from(doubt: Doubt) -> Self {
        let is = |other| u64::from(doubt == other);
        Self {
            undeclared: is(Doubt::Undeclared),
            misdeclared: is(Doubt::Misdeclared),
        }
    }
}

impl AddAssign for DoubtfulPages {
    fn add_assign(&mut self, more: Self) {
        self.undeclared += more.undeclared;
        self.misdeclared += more.misdeclared;
    }
}

/// What may not be read as it was written, if anything was.
impl fmt::Display for DoubtfulPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for (count, why) in [
            (
                self.undeclared,
                "without a declared character set, read as windows-1252",
            ),
            (
                self.misdeclared,
                "with bytes that are not in their character set",
            ),
        ] {
            if count > 0 {
                let plural = if count == 1 { "" } else { "s" };
                write!(f, "{between}{count} page{plural} {why}")?;
                between = "; ";
            }
        }
        Ok(())
    }
}

impl Skipped {
    /// Whether nothing was left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts().iter().all(|(_, count)| *count == 0)
    }

    /// What may not be read as it was written, if anything is so.
    #[must_use]
    pub fn doubts(&self) -> Option<String> {
        let doubts = self.doubtful_pages.to_string();
        (!doubts.is_empty()).then_some(doubts)
    }

    /// Whether lines, rows or records among it should be documents, and are none.
    pub(crate) fn has_bad(&self) -> bool {
        self.bad() > 0
    }

    /// How many lines, rows and records should be documents, and are none.
    fn bad(&self) -> u64 {
        self.bad_lines + self.bad_rows + self.bad_records
    }

    /// Refuses an input in which all is bad. One that has texts without a fingerprint, or records of other kinds, is
    /// as it may be.
    pub(crate) fn refuse_all_bad(&self, has_documents: bool) -> Result<(), InputError> {
        let others = self.other_records.total() + self.unhashable_texts + self.short_texts;
        match self.bad_ones().into_iter().next() {
            Some(first) if self.has_bad() && !has_documents && others == 0 => {
                Err(InputError::AllBad {
                    skipped: self.clone(),
                    first,
                })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses an input of web archives that holds no text: for its records of other kinds, or as there is none.
    pub(crate) fn refuse_no_texts(&self) -> Result<(), InputError> {
        if !self.other_records.is_empty() {
            return Err(InputError::NoTexts(self.other_records.clone()));
        }
        match self.bad_ones().into_iter().next() {
            Some(first) if self.empty_archives > 0 => Err(InputError::NoRecords { first }),
            Some(_) | None => Ok(()),
        }
    }

    /// What is wrong with the first lines, rows and records that should be documents, with file and place, and how
    /// many more there are. Empty archives are among them.
    #[must_use]
    pub fn bad_ones(&self) -> Vec<String> {
        self.first_bad.told(self.bad() + self.empty_archives)
    }

    /// The reasons for skipping, with their counts.
    fn counts(&self) -> [(&'static str, u64); 13] {
        [
            ("bad line", self.bad_lines),
            ("bad row", self.bad_rows),
            ("bad record", self.bad_records),
            ("empty archive", self.empty_archives),
            (OTHER_RECORD, self.other_records.total()),
            (OTHER_FILE, self.other_files.total()),
            ("binary file", self.binary_files),
            ("invalid UTF-8 file", self.invalid_utf8_files),
            ("unreadable file", self.unreadable_files),
            ("too large file", self.too_large_files),
            ("unnameable file", self.unnameable_files),
            ("unhashable text", self.unhashable_texts),
            ("short text", self.short_texts),
        ]
    }

    /// What is counted by kind among the reasons.
    fn kinds(&self, reason: &str) -> Option<&Kinds> {
        match reason {
            OTHER_RECORD => Some(&self.other_records),
            OTHER_FILE => Some(&self.other_files),
            _ => None,
        }
    }

    /// The reasons for which something was skipped, kinds apart, with their counts.
    #[must_use]
    pub fn reasons(&self) -> Vec<(String, u64)> {
        let mut reasons = Vec::new();
        for (reason, count) in self.counts() {
            match self.kinds(reason) {
                Some(kinds) => {
                    let kinds = kinds.counts().into_iter();
                    reasons.extend(kinds.map(|(kind, count)| (format!("{reason}, {kind}"), count)));
                }
                None if count > 0 => reasons.push((reason.to_owned(), count)),
                None => {}
            }
        }
        reasons
    }
}

const OTHER_RECORD: &str = "other record";

const OTHER_FILE: &str = "other file";

impl AddAssign<&Self> for Skipped {
    fn add_assign(&mut self, more: &Self) {
        self.bad_lines += more.bad_lines;
        self.bad_rows += more.bad_rows;
        self.bad_records += more.bad_records;
        self.empty_archives += more.empty_archives;
        self.first_bad += &more.first_bad;
        self.other_records += &more.other_records;
        self.other_files += &more.other_files;
        self.binary_files += more.binary_files;
        self.invalid_utf8_files += more.invalid_utf8_files;
        self.unreadable_files += more.unreadable_files;
        self.too_large_files += more.too_large_files;
        self.unnameable_files += more.unnameable_files;
        self.unhashable_texts += more.unhashable_texts;
        self.short_texts += more.short_texts;
        self.doubtful_pages += more.doubtful_pages;
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lead = "skipped ";
        for (reason, count) in self.counts() {
            if count == 0 {
                continue;
            }
            let plural = if count == 1 { "" } else { "s" };
            write!(f, "{lead}{count} {reason}{plural}")?;
            if let Some(kinds) = self.kinds(reason) {
                write!(f, " ({kinds})")?;
            }
            lead = ", ";
        }
        Ok(())
    }
}
