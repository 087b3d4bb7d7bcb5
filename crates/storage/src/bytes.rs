//! Writing and reading little-endian integers; reading never goes past the end.

/// Appends integers to a buffer.
pub(crate) trait Put {
    /// Appends the bytes as they are.
    fn put(&mut self, bytes: &[u8]);

    /// Appends 4 bytes.
    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    /// Appends 8 bytes.
    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// The unread rest of a slice. Each reader returns `None` if too little is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    /// The next bytes, this many.
    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next bytes, as many as the array has.
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    /// The next byte.
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    /// The next 4 bytes.
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next 8 bytes.
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_read_and_the_end_is_respected() {
        let mut buffer = Vec::new();
        buffer.put_u32(7);
        buffer.put_u64(u64::MAX - 1);
        buffer.put(b"abc");
        let mut bytes = Bytes(&buffer);
        assert_eq!((bytes.u32(), bytes.u64()), (Some(7), Some(u64::MAX - 1)));
        assert_eq!((bytes.u32(), bytes.take(4)), (None, None));
        assert_eq!((bytes.u8(), bytes.take(2)), (Some(b'a'), Some(&b"bc"[..])));
        assert_eq!((bytes.u8(), bytes.0.len()), (None, 0));
    }
}
