//! The bytes that a reader holds already.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

/// Some of the next unread bytes; none at the end.
pub(crate) fn held<R: Read>(reader: &mut BufReader<R>) -> io::Result<&[u8]> {
    while let Err(error) = reader.fill_buf() {
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(reader.buffer())
}
