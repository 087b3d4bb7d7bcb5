//! The beginning of a source, looked at and put back.

use std::fs::{self, File};
use std::io::{self, Cursor, ErrorKind, Read};
use std::path::Path;

use crate::decompress::Decompressed;
use crate::error::InputError;
use crate::html::may_precede_a_page;
use crate::looks::{LOOKED_AT, Looks};

/// What the content of a file looks like. `None` if it may be anything, or can be read only once: that is not looked at.
pub(crate) fn looks_of_file(path: &Path) -> Result<Option<Looks>, InputError> {
    let unreadable = || InputError::unreadable(path.display());
    let metadata = fs::metadata(path).map_err(unreadable())?;
    if !metadata.is_file() {
        return Ok(None);
    }
    let opened = File::open(path).and_then(|file| Decompressed::new(path, Box::new(file)));
    let reader = opened.map_err(unreadable())?.into_reader();
    // What cannot be decompressed says so when it is read.
    let peeked = peek(reader).ok();
    Ok(peeked.and_then(|(head, _)| Looks::of(&head)))
}

/// The first line of a source as far as it is looked at, and the whole of it. Comments may come before a page of HTML, so
/// more is looked at then.
pub(crate) fn peek(
    mut reader: Box<dyn Read + Send>,
) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let is_enough =
        |read: &[u8]| read.trim_ascii_start().contains(&b'\n') && !may_precede_a_page(read);
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
