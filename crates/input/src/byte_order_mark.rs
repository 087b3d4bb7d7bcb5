//! The byte order mark of UTF-8, which some programs write before a text, and which is no part of it.

pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Content without the byte order mark that it may begin with.
#[must_use]
pub fn without_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}
