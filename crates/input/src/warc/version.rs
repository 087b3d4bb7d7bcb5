//! The lines that records of WARC begin with.

use std::collections::HashSet;

use memchr::memmem;

use super::error::BrokenProblem;
use crate::problem::excerpt;

/// What they begin with.
pub(super) const VERSION: &[u8] = b"WARC/";

/// The supported versions of the format. The reader treats them alike.
pub(super) const VERSIONS: [&str; 4] = ["WARC/0.17", "WARC/0.18", "WARC/1.0", "WARC/1.1"];

/// The bytes of the longest of these lines.
pub(super) const LONGEST_LINE: usize = "WARC/0.17\r\n".len();

/// Refuses a header whose first line is no supported version.
pub(super) fn check_version(header: &[u8]) -> Result<(), BrokenProblem> {
    let line = header.split(|byte| *byte == b'\n').next();
    let version = String::from_utf8_lossy(line.unwrap_or_default().trim_ascii_end());
    if VERSIONS.contains(&&*version) {
        return Ok(());
    }
    let value = excerpt(&version);
    Err(BrokenProblem::UnknownVersion { value })
}

/// Where the version begins that is at the end of a line.
pub(super) fn version_at_end(line: &[u8]) -> Option<usize> {
    let start = memmem::rfind(line, VERSION)?;
    check_version(&line[start..]).is_ok().then_some(start)
}

/// Finds the next record within a header. A record that is cut off has no line break: its last line goes on with the
/// version of the next one. A field may end in a version, too. So a field that comes again after such a line tells that it
/// is one of the next record.
#[derive(Default)]
pub(super) struct NextRecord {
    /// The fields up to the last line that ends in a version, in lower case.
    names: HashSet<Vec<u8>>,
    /// Where the lines begin whose fields are not among them.
    rest: usize,
}

impl NextRecord {
    /// Whether the next record begins in a header, the last line of which begins here. It is not the first line, which is
    /// the version of this record.
    pub(super) fn has_begun(&mut self, header: &[u8], last_line: usize) -> bool {
        let last = &header[last_line..];
        let name = name_in(last);
        let is_again = !self.names.is_empty()
            && name.is_some_and(|name| self.names.contains(&name.to_ascii_lowercase()));
        let Some(start) = version_at_end(last) else {
            return is_again;
        };
        let lines = header[self.rest..].split_inclusive(|byte| *byte == b'\n');
        let lines = lines.skip(usize::from(self.rest == 0));
        let names = lines.filter_map(name_in).map(<[u8]>::to_ascii_lowercase);
        self.names.extend(names);
        self.rest = header.len();
        is_again || name_in(&last[..start]).is_none()
    }
}

/// The name of the field that a line holds.
fn name_in(line: &[u8]) -> Option<&[u8]> {
    let colon = memchr::memchr(b':', line)?;
    Some(line[..colon].trim_ascii())
}
