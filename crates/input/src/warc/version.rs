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

/// Whether the next record begins in a line of a header. An address may end in a version, too.
pub(super) fn has_next_record(line: &[u8]) -> bool {
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
    let is_address = name.trim_ascii_end().to_ascii_uppercase().ends_with(b"URI");
    let start = version_at_end(line);
    start.is_some_and(|start| !(is_address && line[..start].ends_with(b"/")))
}
