//! How many values a delta-encoded page claims to have, before the library takes memory for them.
//!
//! Lengths of byte strings are written as deltas: a header with their number, then blocks of bit-packed differences
//! (Parquet encodings, DELTA_BINARY_PACKED). The library believes the number; the page's header has another, which
//! is checked.

use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::errors::ParquetError as LibraryError;

/// Refuses a page whose delta streams claim more values than its header has. `levels` are the column's highest
/// repetition and definition level.
pub(super) fn check(page: &Page, levels: [i16; 2]) -> Result<(), LibraryError> {
    let encoding = page.encoding();
    let streams = if encoding == Encoding::DELTA_LENGTH_BYTE_ARRAY {
        1
    } else if encoding == Encoding::DELTA_BYTE_ARRAY {
        // Lengths of shared beginnings, then of what follows each.
        2
    } else {
        0
    };
    let values = u64::from(page.num_values());
    let mut rest = values_of(page, levels);
    for _ in 0..streams {
        // The library refuses a stream that ends too soon.
        let Some(stream) = rest.and_then(Stream::read) else {
            return Ok(());
        };
        if stream.count > values {
            return Err(LibraryError::General(format!(
                "a page of {values} values with the lengths of {}",
                stream.count
            )));
        }
        rest = stream.end();
    }
    Ok(())
}

/// The bytes of a page behind its levels.
fn values_of(page: &Page, levels: [i16; 2]) -> Option<&[u8]> {
    match page {
        Page::DataPage {
            buf,
            num_values,
            def_level_encoding,
            rep_level_encoding,
            ..
        } => {
            let [repetition, definition] = levels;
            let rest = behind(buf, *num_values, repetition, *rep_level_encoding)?;
            behind(rest, *num_values, definition, *def_level_encoding)
        }
        Page::DataPageV2 {
            buf,
            def_levels_byte_len,
            rep_levels_byte_len,
            ..
        } => {
            let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
            buf.get(usize::try_from(levels).ok()?..)
        }
        Page::DictionaryPage { .. } => None,
    }
}

/// The bytes behind levels up to this one, of which there are none if it is 0.
fn behind(bytes: &[u8], values: u32, highest: i16, encoding: Encoding) -> Option<&[u8]> {
    if highest == 0 {
        return Some(bytes);
    }
    if encoding == Encoding::RLE {
        let (length, rest) = bytes.split_first_chunk()?;
        return rest.get(u32::from_le_bytes(*length) as usize..);
    }
    let bits = u64::from(highest.unsigned_abs().ilog2() + 1);
    let taken = (u64::from(values) * bits).div_ceil(8);
    bytes.get(usize::try_from(taken).ok()?..)
}

/// A stream of deltas behind its header.
struct Stream<'a> {
    count: u64,
    mini_blocks: u64,
    values_per_mini_block: u64,
    blocks: &'a [u8],
}

impl<'a> Stream<'a> {
    fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let block_size = integer(&mut bytes)?;
        let mini_blocks = integer(&mut bytes)?;
        let count = integer(&mut bytes)?;
        let _first_value = integer(&mut bytes)?;
        Some(Self {
            count,
            mini_blocks,
            values_per_mini_block: block_size.checked_div(mini_blocks)?,
            blocks: bytes,
        })
    }

    /// The bytes after the stream.
    fn end(self) -> Option<&'a [u8]> {
        let mut bytes = self.blocks;
        let mut left = self.count.saturating_sub(1);
        while left > 0 {
            if self.values_per_mini_block == 0 {
                return None;
            }
            let _least_delta = integer(&mut bytes)?;
            let (widths, rest) = bytes.split_at_checked(usize::try_from(self.mini_blocks).ok()?)?;
            bytes = rest;
            for &width in widths {
                if left > 0 {
                    let packed = u64::from(width).checked_mul(self.values_per_mini_block)? / 8;
                    bytes = bytes.get(usize::try_from(packed).ok()?..)?;
                    left = left.saturating_sub(self.values_per_mini_block);
                }
            }
        }
        Some(bytes)
    }
}

/// An integer of seven bits a byte, the lowest first.
fn integer(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// Two values, the first 3, the second 4: header, then one block of four mini blocks.
    const TWO: [u8; 10] = [0x80, 0x01, 0x04, 0x02, 0x06, 0x02, 0, 0, 0, 0];

    fn page(encoding: Encoding, values: u32, bytes: &[u8]) -> Page {
        Page::DataPage {
            buf: Bytes::copy_from_slice(bytes),
            num_values: values,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    #[test]
    fn streams_within_their_page_pass_and_others_are_refused() {
        let bytes = [&TWO[..], b"abcdefg"].concat();
        let length = Encoding::DELTA_LENGTH_BYTE_ARRAY;
        assert!(check(&page(length, 2, &bytes), [0, 0]).is_ok());
        let error = check(&page(length, 1, &bytes), [0, 0])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("a page of 1 values with the lengths of 2"),
            "{error}"
        );
        // Behind two bytes of levels and their length.
        let levels = [&[2, 0, 0, 0, 9, 9], &bytes[..]].concat();
        assert!(check(&page(length, 2, &levels), [0, 1]).is_ok());
        assert!(check(&page(length, 1, &levels), [0, 1]).is_err());
        // And behind those that say where lists go on.
        let levels = [&[1, 0, 0, 0, 9], &levels[..]].concat();
        assert!(check(&page(length, 2, &levels), [1, 1]).is_ok());
        assert!(check(&page(length, 1, &levels), [1, 1]).is_err());
        assert!(check(&page(Encoding::PLAIN, 0, &bytes), [0, 0]).is_ok());
    }

    #[test]
    fn the_second_stream_is_found_behind_the_first() {
        let mut huge = TWO;
        huge[3] = 0x7F;
        let both = Encoding::DELTA_BYTE_ARRAY;
        let bytes = [TWO, TWO].concat();
        assert!(check(&page(both, 2, &bytes), [0, 0]).is_ok());
        let bytes = [TWO, huge].concat();
        assert!(check(&page(both, 2, &bytes), [0, 0]).is_err());
        // Deltas of 8 bits in the first mini block: 32 bytes more.
        let mut wide = TWO.to_vec();
        wide[6] = 8;
        wide.extend([0; 32]);
        wide.extend(huge);
        assert!(check(&page(both, 2, &wide), [0, 0]).is_err());
    }

    #[test]
    fn what_ends_too_soon_is_left_to_the_library() {
        for end in 0..TWO.len() {
            let page = page(Encoding::DELTA_BYTE_ARRAY, 2, &TWO[..end]);
            assert!(check(&page, [0, 0]).is_ok(), "{end}");
        }
    }
}
