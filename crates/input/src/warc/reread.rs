//! A reader that takes back what was read of it.

use std::io::{self, BufRead, BufReader, Read};

use crate::held::held;

/// Reads what was given back, and then what follows.
pub(super) struct Rereader<R> {
    from: BufReader<R>,
    back: Vec<u8>,
    /// Of these bytes, the number that was read again.
    read: usize,
}

impl<R: Read> Rereader<R> {
    pub(super) fn new(from: BufReader<R>) -> Self {
        Self {
            from,
            back: Vec::new(),
            read: 0,
        }
    }

    /// Takes back the bytes that were read last. Those that were given back before are not copied again: in an archive of
    /// cut headers that would take a time that grows with its square.
    pub(super) fn give_back(&mut self, mut bytes: Vec<u8>) {
        let (read, unread) = self.back.split_at(self.read);
        if read.ends_with(&bytes) {
            self.read -= bytes.len();
            return;
        }
        bytes.extend_from_slice(unread);
        (self.back, self.read) = (bytes, 0);
    }

    /// Some of the next unread bytes; none at the end.
    pub(super) fn held(&mut self) -> io::Result<&[u8]> {
        match &self.back[self.read..] {
            [] => held(&mut self.from),
            back => Ok(back),
        }
    }

    /// The reader below, which may have read further.
    pub(super) fn source_mut(&mut self) -> &mut R {
        self.from.get_mut()
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.from.capacity() + self.back.capacity()
    }
}

impl<R: Read> Read for Rereader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.back.len() {
            return self.from.read(buffer);
        }
        let read = (&self.back[self.read..]).read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: Read> BufRead for Rereader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match &self.back[self.read..] {
            [] => self.from.fill_buf(),
            back => Ok(back),
        }
    }

    fn consume(&mut self, bytes: usize) {
        if self.read == self.back.len() {
            return self.from.consume(bytes);
        }
        self.read += bytes;
        if self.read == self.back.len() {
            (self.back, self.read) = (Vec::new(), 0);
        }
    }
}
