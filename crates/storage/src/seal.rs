//! Checksums, each right after the bytes that it covers: CRC-32C, 4 bytes.

use crate::bytes::{Bytes, Put};

/// Bytes that a checksum takes.
pub(crate) const SEAL_BYTES: usize = 4;

/// Appends the checksum of all bytes of the buffer from `start` on, and answers it.
pub(crate) fn seal(buffer: &mut Vec<u8>, start: usize) -> u32 {
    let sum = crc32c::crc32c(&buffer[start..]);
    buffer.put_u32(sum);
    sum
}

/// The bytes before the checksum, and the checksum. None if it is that of other bytes.
pub(crate) fn unseal(bytes: &[u8]) -> Option<(&[u8], u32)> {
    let end = bytes.len().checked_sub(SEAL_BYTES)?;
    let (sealed, sum) = bytes.split_at(end);
    let sum = Bytes(sum).u32()?;
    (crc32c::crc32c(sealed) == sum).then_some((sealed, sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_and_nothing_else() {
        let mut buffer = b"before|123456789".to_vec();
        let sum = seal(&mut buffer, 7);
        assert_eq!(sum, 0xE306_9283, "the check value of CRC-32C");
        assert_eq!(unseal(&buffer[7..]), Some((&b"123456789"[..], sum)));
        assert_eq!(unseal(&buffer), None);
        assert_eq!(unseal(&buffer[..3]), None);
    }
}
