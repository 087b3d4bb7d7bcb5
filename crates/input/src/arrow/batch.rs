//! A batch of rows: which of its buffers are read, and how.

use std::io::Read;

use super::fault::Fault;
use super::flat::{Malformed, Table};
use super::messages::Messages;
use super::schema::{Field, Place, Walk};
use super::values::Values;

/// Most bytes of the columns of one batch that are held, before and after they are decompressed: 1 GiB.
pub const MAX_BATCH_BYTES: u64 = 1 << 30;

/// A buffer that is read: where it is in the body, and where it goes.
struct Part {
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

/// Reads the columns that some paths lead to, from the body of a message.
pub(super) fn read(
    batch: Table<'_>,
    messages: &mut Messages,
    fields: &[Field],
    paths: &[Vec<usize>],
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
            buffers: vec![Vec::new(); place.buffers.saturating_sub(1)],
        });
        parts.extend(parts_of(batch, &place, column)?);
    }
    let lengths = parts.iter().map(|part| part.length);
    if lengths.fold(0, u64::saturating_add) > MAX_BATCH_BYTES {
        return Err(TOO_LARGE);
    }
    parts.sort_by_key(|part| (part.offset, part.length));
    let codec = match batch.table(3)? {
        Some(compression) => Some(compression.u8(0)?),
        None => None,
    };
    read_parts(parts, codec, messages, &mut columns)?;
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

/// Reads buffers in the order of the body into their columns.
fn read_parts(
    parts: Vec<Part>,
    codec: Option<u8>,
    messages: &mut Messages,
    columns: &mut [Values],
) -> Result<(), Fault> {
    let (mut position, mut held) = (0, 0);
    let mut last: Option<(Part, Vec<u8>)> = None;
    for part in parts {
        let is_same = |before: &Part| (before.offset, before.length) == (part.offset, part.length);
        let bytes = match &last {
            // Columns that are the same, or in the same struct, share buffers.
            Some((before, bytes)) if is_same(before) => bytes.clone(),
            Some(_) | None => {
                let gap = part.offset.checked_sub(position).ok_or(Malformed)?;
                messages.pass_over(gap)?;
                let bytes = messages.body(part.length)?;
                position = part.offset + part.length;
                decompressed(bytes, codec, MAX_BATCH_BYTES.saturating_sub(held))?
            }
        };
        held += bytes.len() as u64;
        match part.number {
            None => columns[part.column].validities.push(bytes.clone()),
            Some(number) => columns[part.column].buffers[number].clone_from(&bytes),
        }
        last = Some((part, bytes));
    }
    Ok(())
}

/// The buffers of a column.
fn parts_of(batch: Table<'_>, place: &Place, column: usize) -> Result<Vec<Part>, Malformed> {
    let all = batch.structs(2, 16)?;
    let part = |buffer: usize, number: Option<usize>| {
        let bytes = all.get(16 * buffer..16 * buffer + 16).ok_or(Malformed)?;
        let mut values = numbers(bytes).map(|number| u64::try_from(number).map_err(|_| Malformed));
        let (offset, length) = (values.next(), values.next());
        Ok(Part {
            offset: offset.ok_or(Malformed)??,
            length: length.ok_or(Malformed)??,
            column,
            number,
        })
    };
    let validities = place.parents.iter().chain([&place.buffer]);
    let mut parts: Vec<Part> = validities
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
fn decompressed(bytes: Vec<u8>, codec: Option<u8>, most: u64) -> Result<Vec<u8>, Fault> {
    let Some(codec) = codec else {
        return Ok(bytes);
    };
    let (length, rest) = bytes.split_first_chunk().ok_or(Malformed)?;
    let length = i64::from_le_bytes(*length);
    if length == -1 {
        return Ok(rest.to_vec());
    }
    let length = u64::try_from(length).map_err(|_| Malformed)?;
    if length > most {
        return Err(TOO_LARGE);
    }
    let mut whole = Vec::new();
    let read = match codec {
        0 => lz4_flex::frame::FrameDecoder::new(rest)
            .take(length + 1)
            .read_to_end(&mut whole),
        1 => zstd::stream::read::Decoder::with_buffer(rest)
            .and_then(|decoder| decoder.take(length + 1).read_to_end(&mut whole)),
        _ => return Err(Fault::Malformed("its compression is neither lz4 nor zstd")),
    };
    if read.is_err() || whole.len() as u64 != length {
        return Err(Fault::Malformed("a buffer cannot be decompressed"));
    }
    Ok(whole)
}
