//! The lines that records of WARC begin with.

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

/// Whether the next record begins in a header, in which the last line begins here. A record that is cut off has no line
/// break: its last line goes on with the version of the next one. A field may end in a version, too. So a field that comes
/// again after such a line tells that it is one of the next record.
pub(super) fn has_next_record(header: &[u8], last_line: usize) -> bool {
    let (before, last) = header.split_at(last_line);
    let is_cut = |line: &[u8]| {
        let start = version_at_end(line);
        start.is_some_and(|start| name_in(&line[..start]).is_none())
    };
    if is_cut(last) {
        return true;
    }
    let Some(name) = name_in(last) else {
        return false;
    };
    // The first line is the version of this record.
    let mut lines = before.split_inclusive(|byte| *byte == b'\n').skip(1);
    let mut is_again = false;
    lines.any(|line| {
        is_again |= name_in(line).is_some_and(|other| other.eq_ignore_ascii_case(name));
        is_again && version_at_end(line).is_some()
    })
}

/// The name of the field that a line holds.
fn name_in(line: &[u8]) -> Option<&[u8]> {
    let colon = memchr::memchr(b':', line)?;
    Some(line[..colon].trim_ascii())
}
