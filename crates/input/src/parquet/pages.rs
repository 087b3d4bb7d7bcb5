//! Pages of bounded size, checked before they are decoded.
//!
//! A page says in its header how much memory it will take, and the library takes it at its word.
//! So the sizes are looked at first.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Type;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError as LibraryError;
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length, SerializedPageReader};
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

use super::delta;
use super::guard::guarded;

/// The largest page that is read, before and after decompression: 512 MiB. Writers aim at 1 MiB,
/// but some look at the size only after a thousand values.
pub const MAX_PAGE_BYTES: u64 = 512 << 20;

/// A file whose pages are refused where they are too large.
pub(super) struct BoundedPages(File);

/// The pages of one column in one row group.
pub(super) struct CheckedPages {
    pages: SerializedPageReader<BoundedPages>,
    column: ColumnDescPtr,
    /// The values that are to come: a row has one, unless it has a list of them.
    values_left: u64,
}

impl BoundedPages {
    pub(super) fn new(file: File) -> Self {
        Self(file)
    }
}

impl Length for BoundedPages {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

/// What the library reads a page header from. The header is looked at when the first byte is read: the library
/// opens readers at other places too, and leaves them unread.
pub(super) struct HeaderReader {
    reader: BufReader<File>,
    is_checked: bool,
}

impl Read for HeaderReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if !self.is_checked {
            check_header(self.reader.fill_buf()?).map_err(io::Error::other)?;
            self.is_checked = true;
        }
        self.reader.read(bytes)
    }
}

impl ChunkReader for BoundedPages {
    type T = HeaderReader;

    /// The library reads from it page headers, and the end of the file, which is none.
    fn get_read(&self, start: u64) -> Result<Self::T, LibraryError> {
        Ok(HeaderReader {
            reader: self.0.get_read(start)?,
            is_checked: start.checked_add(FOOTER_SIZE as u64) == Some(self.len()),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, LibraryError> {
        // A length beyond the end is a fault of the file, and no reason to take memory.
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.len()) {
            return Err(LibraryError::EOF(format!(
                "{length} bytes should stand at byte {start}, but the file has {} in all",
                self.len()
            )));
        }
        self.0.get_bytes(start, length)
    }
}

/// Refuses a header that does not say how large its page is, or says that it is too large.
fn check_header(header: &[u8]) -> Result<(), String> {
    let Some(sizes) = page_sizes(header) else {
        return Err("the header of a page does not begin with its sizes".to_owned());
    };
    match sizes.into_iter().flatten().max() {
        Some(size) if size > MAX_PAGE_BYTES => Err(format!(
            "a page takes {size} bytes, at most {MAX_PAGE_BYTES} are read: write the file with smaller pages"
        )),
        Some(_) | None => Ok(()),
    }
}

/// The sizes that a page header begins with, uncompressed and compressed; inside, `None` for a negative one, which is
/// the library's to refuse. It is a Thrift struct in compact form: an integer's field is 0x15 and a zigzag number of
/// seven bits a byte. The first three fields are the page's type and its two sizes. `None` for any other beginning: the
/// form has longer ways to write the same, which no writer takes.
fn page_sizes(header: &[u8]) -> Option<[Option<u64>; 2]> {
    let mut bytes = header.iter().copied();
    let mut field = || {
        bytes.next().filter(|field| *field == 0x15)?;
        let mut zigzag: u64 = 0;
        for shift in (0..35).step_by(7) {
            let byte = bytes.next()?;
            zigzag |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                // The library takes the low half of larger ones.
                let zigzag = u32::try_from(zigzag).ok()?;
                return Some(zigzag.is_multiple_of(2).then_some(u64::from(zigzag / 2)));
            }
        }
        None
    };
    let _page_type = field()?;
    Some([field()?, field()?])
}

impl CheckedPages {
    /// Opens the pages of a column chunk of `rows` rows.
    pub(super) fn open(
        file: &Arc<BoundedPages>,
        chunk: &ColumnChunkMetaData,
        rows: u64,
    ) -> Result<Self, LibraryError> {
        let total_rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let pages =
            guarded(|| SerializedPageReader::new(Arc::clone(file), chunk, total_rows, None))?;
        let column = chunk.column_descr_ptr();
        let values_left = match column.max_rep_level() {
            0 => rows,
            _ => chunk.num_values().unsigned_abs(),
        };
        Ok(Self {
            pages,
            column,
            values_left,
        })
    }
}

/// Refuses counts that would make the decoder take memory for nothing; returns how many values are
/// left after the page. In a dictionary a value has at least `least_width` bytes.
pub(super) fn check(page: &Page, least_width: u64, values_left: u64) -> Result<u64, LibraryError> {
    let values = u64::from(page.num_values());
    if page.is_dictionary_page() {
        let bytes = page.buffer().len() as u64;
        if values * least_width > bytes {
            return Err(LibraryError::General(format!(
                "a dictionary of {values} values in {bytes} bytes"
            )));
        }
        return Ok(values_left);
    }
    values_left.checked_sub(values).ok_or_else(|| {
        LibraryError::General(format!(
            "a page of {values} values where {values_left} are left"
        ))
    })
}

/// The fewest bytes of a value in a dictionary.
pub(super) fn least_width(column: &ColumnDescriptor) -> u64 {
    match column.physical_type() {
        Type::BOOLEAN => 0,
        Type::FIXED_LEN_BYTE_ARRAY => column.type_length().unsigned_abs().into(),
        // Of a string, its length.
        Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
        Type::INT64 | Type::DOUBLE => 8,
        Type::INT96 => 12,
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>, LibraryError> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.values_left = check(page, least_width(&self.column), self.values_left)?;
            let levels = [self.column.max_rep_level(), self.column.max_def_level()];
            delta::check(page, levels)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, LibraryError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), LibraryError> {
        self.pages.skip_next_page()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page, LibraryError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
