//! Gzip: members one after another, and the zeros that programs for tapes write after them.
//!
//! ```text
//! | member | member | 0 0 0 0 | member | 0 0 0 ... |
//! ```
//!
//! Anything else that follows a member is an error, since it may be what is left of a damaged one.

use std::io::{self, BufRead, ErrorKind, Read};

use flate2::bufread::GzDecoder;

/// The first byte of a member.
const MAGIC: u8 = 0x1F;

/// The content of all members.
pub(crate) struct Members<R> {
    /// The member being read; `None` after the last.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    /// Those of what begins with a member.
    pub(crate) fn new(from: R) -> Self {
        let member = Some(GzDecoder::new(from));
        Self { member }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let another = another_begins(member.get_mut())?;
            let ended = self.member.take().filter(|_| another);
            self.member = ended.map(|ended| GzDecoder::new(ended.into_inner()));
        }
        Ok(0)
    }
}

/// Passes over zeros to the next member; whether there is one.
fn another_begins(from: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let held = match from.fill_buf() {
            Ok(held) => held,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let zeros = held.iter().take_while(|byte| **byte == 0).count();
        match (held.is_empty(), held.get(zeros)) {
            (true, _) => return Ok(false),
            (false, None) => from.consume(zeros),
            (false, Some(&MAGIC)) => {
                from.consume(zeros);
                return Ok(true);
            }
            (false, Some(_)) => {
                let problem = "trailing data after the gzip data";
                return Err(io::Error::new(ErrorKind::InvalidData, problem));
            }
        }
    }
}
