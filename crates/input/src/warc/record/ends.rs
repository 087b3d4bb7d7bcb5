//! What stands between two records.

use std::io::{self, BufRead, Read};

use super::{END_BYTES, Records};
use crate::problem::excerpt;
use crate::warc::arc;
use crate::warc::error::BrokenProblem;
use crate::warc::record::Broken;
use crate::warc::version::VERSION;

/// The ends of a record, after its block. Some programs write the second.
const ENDS: [&[u8]; 2] = [b"\r\n\r\n", b"\n\n"];
impl<R: Read> Records<R> {
    /// Skips the end of a record. A file may end within it, as no content is lost then. The next record must begin
    /// behind it, or where one or both line breaks are missing: some programs leave them out.
    pub(super) fn pass_over_end(&mut self) -> Result<(), Broken> {
        let mut end = Vec::new();
        for breaks in 0..3 {
            let mut bounded = self.reader.by_ref().take(END_BYTES);
            let read = bounded.read_until(b'\n', &mut end);
            let whole = ENDS.iter().find(|whole| end.starts_with(whole));
            if let (Err(_), Some(whole)) = (&read, whole) {
                self.position += whole.len() as u64;
                self.begin_record();
            }
            read?;
            if breaks < 2 && !ENDS.iter().any(|whole| whole.starts_with(&end)) {
                break;
            }
        }
        for line_breaks in [&b""[..], b"\r\n", b"\n", ENDS[0], ENDS[1]] {
            let Some(line) = end.strip_prefix(line_breaks) else {
                continue;
            };
            let ends_alike =
                line_breaks.is_empty() || line.ends_with(b"\r\n") == line_breaks.ends_with(b"\r\n");
            let begins_record = line.starts_with(VERSION) && line.ends_with(b"\n") && ends_alike;
            // What is behind both line breaks is the next record's own.
            let is_whole = ENDS.contains(&line_breaks)
                && (line.starts_with(VERSION) || VERSION.starts_with(line));
            if begins_record || is_whole {
                self.ahead = line.to_vec();
                self.position += line_breaks.len() as u64;
                return Ok(());
            }
        }
        self.position += end.len() as u64;
        if self.is_at_end()? && ENDS.iter().any(|whole| whole.starts_with(&end)) {
            return Ok(());
        }
        let value = excerpt(&String::from_utf8_lossy(&end));
        if !self.is_held {
            self.again = end;
            let claimed = self.claimed;
            return Err(BrokenProblem::NoEndOfLong { value, claimed }.into());
        }
        self.again = std::mem::take(&mut self.block);
        self.again.append(&mut end);
        Err(BrokenProblem::NoEnd { value }.into())
    }

    /// Skips the line breaks before the first record, or after one of ARC.
    pub(super) fn pass_over_line_breaks(&mut self) -> io::Result<()> {
        while !self.is_at_end()? {
            let held = self.reader.held()?;
            let breaks = held.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
            let breaks = breaks.count();
            if breaks == 0 {
                return Ok(());
            }
            self.reader.consume(breaks);
            self.position += breaks as u64;
        }
        Ok(())
    }

    /// Skips the end of a record of ARC: a line break at least, which its length may count, or the end of the file. If its
    /// length is too long, the next record is in its block, or begins there.
    pub(super) fn pass_over_end_of_arc(&mut self) -> Result<(), Broken> {
        let block_end = self.position;
        self.pass_over_line_breaks()?;
        let is_apart = self.position > block_end || self.block.ends_with(b"\n");
        let has_ended = is_apart || !self.is_held || self.is_at_end()?;
        if !has_ended || self.is_held && arc::ends_with_record(&self.block) {
            return Err(BrokenProblem::NoArcEnd.into());
        }
        Ok(())
    }
}
