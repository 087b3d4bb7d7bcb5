//! The beginning of a source, looked at and put back.

use std::io::{self, Cursor, ErrorKind, Read};

use crate::looks::LOOKED_AT;

/// The first line of a source as far as it is looked at, and the whole of it.
pub(crate) fn peek(
    mut reader: Box<dyn Read + Send>,
) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let is_enough = |read: &[u8]| read.trim_ascii_start().contains(&b'\n');
    let head = take(&mut reader, LOOKED_AT, is_enough)?;
    let whole = Box::new(Cursor::new(head.clone()).chain(reader));
    Ok((head, whole))
}

/// Reads the first bytes, until they are enough, `most` bytes or all. Waits for no more than that.
pub(crate) fn take(
    reader: &mut dyn Read,
    most: usize,
    is_enough: impl Fn(&[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    let mut head = vec![0; most];
    let mut filled = 0;
    while filled < most && !is_enough(&head[..filled]) {
        match reader.read(&mut head[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    head.truncate(filled);
    Ok(head)
}
