//! A batch of rows: which of its buffers are read, and how.

use std::io::Read;

use bytes::Bytes;

use super::fault::Fault;
use super::flat::{Malformed, Table};
use super::messages::{Messages, read_up_to};
use super::schema::{Field, Place, Walk};
use super::values::Values;

/// Most bytes of the columns of one batch that are held, before and after they are decompressed: 1 GiB.
pub const MAX_BATCH_BYTES: u64 = 1 << 30;

/// A buffer that is read: where it is in the body, and where it goes.
struct BufferPart {
    offset: u64,
    length: u64,
    column: usize,
    /// Its number among the buffers of the column; `None` for bits that say which values are there.
    number: Option<usize>,
}

/// The number of rows of a batch.
pub(super) fn rows(batch: Table<'_>) -> Result<usize, Malformed> {
    usize::try_from(batch.i64(0)?).map_err(|_| Malformed)
}

const TOO_LARGE: Fault = Fault::Malformed("a batch is larger than 1 GiB: write smaller ones");

/// Reads the columns that some paths lead to, from the body of a message: at most as many bytes.
pub(super) fn read(
    batch: Table<'_>,
    messages: &mut Messages,
    fields: &[Field],
    paths: &[Vec<usize>],
    most: u64,
) -> Result<Vec<Values>, Fault> {
    let rows = rows(batch)?;
    let views = views(batch)?;
    let mut columns = Vec::new();
    let mut parts = Vec::new();
    for (column, path) in paths.iter().enumerate() {
        let place = Walk::new(&views).place(fields, path)?;
        if numbers(batch.structs(1, 16)?).nth(2 * place.node) != Some(rows as i64) {
            return Err(Fault::Malformed("a column has other rows than its batch"));
        }
        columns.push(Values {
            rows,
            validities: Vec::new(),
            buffers: vec![Bytes::new(); place.buffers.saturating_sub(1)],
        });
        parts.extend(parts_of(batch, &place, column)?);
    }
    parts.sort_by_key(|part| (part.offset, part.length));
    let codec = match batch.table(3)? {
        Some(compression) => Some(compression.u8(0)?),
        None => None,
    };
    read_parts(parts, codec, messages, &mut columns, most)?;
    Ok(columns)
}

/// How many buffers each column of views has beside its two: no more than there are.
fn views(batch: Table<'_>) -> Result<Vec<usize>, Malformed> {
    let most = batch.structs(2, 16)?.len() / 16;
    let views = numbers(batch.structs(4, 8)?);
    views
        .map(|number| {
            let number = usize::try_from(number).ok();
            number.filter(|number| *number <= most).ok_or(Malformed)
        })
        .collect()
}

/// Reads buffers in the order of the body into their columns. Those that columns share are held once.
fn read_parts(
    parts: Vec<BufferPart>,
    codec: Option<u8>,
    messages: &mut Messages,
    columns: &mut [Values],
    most: u64,
) -> Result<(), Fault> {
    let mut position = 0;
    let (mut packed, mut held) = (Budget::new(most), Budget::new(most));
    let mut last: Option<(BufferPart, Bytes)> = None;
    for part in parts {
        let is_same =
            |before: &BufferPart| (before.offset, before.length) == (part.offset, part.length);
        let bytes = match &last {
            // Columns that are the same, or in the same struct, share buffers.
            Some((before, bytes)) if is_same(before) => bytes.clone(),
            Some(_) | None => {
                let gap = part.offset.checked_sub(position).ok_or(Malformed)?;
                messages.pass_over(gap)?;
                packed.take(part.length)?;
                let bytes = messages.body(part.length)?.into();
                position = part.offset + part.length;
                decompressed(bytes, codec, &mut held)?
            }
        };
        match part.number {
            None => columns[part.column].validities.push(bytes.clone()),
            Some(number) => columns[part.column].buffers[number].clone_from(&bytes),
        }
        last = Some((part, bytes));
    }
    Ok(())
}

/// How many bytes may still be held.
pub(super) struct Budget {
    left: u64,
}

impl Budget {
    pub(super) const fn new(most: u64) -> Self {
        Self { left: most }
    }

    pub(super) fn take(&mut self, bytes: u64) -> Result<(), Fault> {
        self.left = self.left.checked_sub(bytes).ok_or(TOO_LARGE)?;
        Ok(())
    }
}

/// The buffers of a column.
fn parts_of(batch: Table<'_>, place: &Place, column: usize) -> Result<Vec<BufferPart>, Malformed> {
    let all = batch.structs(2, 16)?;
    let part = |buffer: usize, number: Option<usize>| {
        let bytes = all.get(16 * buffer..16 * buffer + 16).ok_or(Malformed)?;
        let mut values = numbers(bytes).map(|number| u64::try_from(number).map_err(|_| Malformed));
        let (offset, length) = (values.next(), values.next());
        Ok(BufferPart {
            offset: offset.ok_or(Malformed)??,
            length: length.ok_or(Malformed)??,
            column,
            number,
        })
    };
    let validities = place.parents.iter().chain([&place.buffer]);
    let mut parts: Vec<BufferPart> = validities
        .map(|buffer| part(*buffer, None))
        .collect::<Result<_, _>>()?;
    for number in 1..place.buffers {
        parts.push(part(place.buffer + number, Some(number - 1))?);
    }
    for part in &parts {
        part.offset.checked_add(part.length).ok_or(Malformed)?;
    }
    parts.retain(|part| part.length > 0);
    Ok(parts)
}

/// The numbers of 8 bytes in a vector.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = i64> {
    bytes.chunks_exact(8).map(|bytes| {
        let mut number = [0; 8];
        number.copy_from_slice(bytes);
        i64::from_le_bytes(number)
    })
}

/// A buffer as it was before it was compressed: its length stands before it, or -1 where it was left as it is.
fn decompressed(bytes: Bytes, codec: Option<u8>, held: &mut Budget) -> Result<Bytes, Fault> {
    let Some(codec) = codec else {
        held.take(bytes.len() as u64)?;
        return Ok(bytes);
    };
    let (length, rest) = bytes.split_first_chunk().ok_or(Malformed)?;
    let length = i64::from_le_bytes(*length);
    if length == -1 {
        held.take(rest.len() as u64)?;
        return Ok(bytes.slice(size_of::<i64>()..));
    }
    let length = u64::try_from(length).map_err(|_| Malformed)?;
    held.take(length)?;
    const DAMAGED: Fault = Fault::Malformed("a buffer cannot be decompressed");
    let mut reader: Box<dyn Read> = match codec {
        0 => Box::new(lz4_flex::frame::FrameDecoder::new(rest)),
        1 => Box::new(zstd::stream::read::Decoder::with_buffer(rest).map_err(|_| DAMAGED)?),
        _ => return Err(Fault::Malformed("its compression is neither lz4 nor zstd")),
    };
    let whole = read_up_to(&mut reader, length).map_err(|_| DAMAGED)?;
    let has_more = reader.read(&mut [0]).map_err(|_| DAMAGED)? > 0;
    if has_more || whole.len() as u64 != length {
        return Err(DAMAGED);
    }
    Ok(whole.into())
}
