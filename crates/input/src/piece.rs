//! Bytes of what is written again.

/// Some bytes of what is kept.
pub struct Piece {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether a unit ends with them that stands in a member or frame of its own where it is compressed.
    pub ends_member: bool,
}

impl Piece {
    /// Bytes that are compressed with those before and after them.
    pub(crate) fn inner(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            ends_member: false,
        }
    }
}
