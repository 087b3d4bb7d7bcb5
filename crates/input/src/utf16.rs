//! Texts in UTF-16, which are told apart from what is merely no UTF-8.

/// What to do with UTF-16.
pub(crate) const UTF_16_REMEDY: &str =
    "write it as UTF-8 first, as `iconv -f UTF-16 -t UTF-8` does";

/// Whether a text begins with the byte order mark of UTF-16.
pub(crate) fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF")
}
