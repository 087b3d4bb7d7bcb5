//! Units that are lines: read as documents many at once, and handed on as they stand in their chunks.

use super::marks::SourceMarks;
use super::{DocumentReader, MarkedDocuments};
use crate::batches::{Batch, Batches};
use crate::chunk::Chunk;
use crate::columns::{Columns, IdColumn};
use crate::error::InputError;
use crate::in_order;
use crate::parse::LineParser;
use crate::piece::Piece;
use crate::preference::Preference;
use crate::rank::LOWEST;

/// The documents of a chunk.
#[derive(Default)]
struct ChunkDocuments {
    columns: Columns,
    ranks: Vec<u64>,
    /// The lines of the documents.
    documents: Vec<u64>,
    bad: Vec<u64>,
    last_line: u64,
    error: Option<InputError>,
}

impl DocumentReader {
    /// Reads the documents of a source.
    pub(super) fn read_lines(
        &self,
        parser: &LineParser,
        batches: &mut Batches,
        found: &mut MarkedDocuments,
        progress: &mut dyn FnMut(u64),
    ) -> Result<SourceMarks, InputError> {
        let mut marks = SourceMarks::default();
        let work = |batch: &Batch| self.part(parser, batch);
        in_order::for_each(batches, work, |parts| {
            for part in parts {
                let part = part?;
                if let Some(error) = part.error {
                    return Err(error);
                }
                progress(part.documents.len() as u64);
                marks.add(&part.documents, part.bad, part.last_line);
                found.ranks.extend_from_slice(&part.ranks);
                found.parts.push(part.columns);
            }
            Ok(true)
        })?;
        Ok(marks)
    }

    fn part(&self, parser: &LineParser, batch: &Batch) -> ChunkDocuments {
        let mut part = ChunkDocuments::default();
        let Batch::Lines(chunk, _) = batch else {
            return part;
        };
        let is_ranked = self.preference != Preference::First;
        let mut ids = (!self.format.is_bare()).then(IdColumn::default);
        let mut problem = None;
        let outcome = parser.parse_lines(chunk, |line, record| {
            let field = self.preference.field();
            let by_field = field.map_or(Ok(LOWEST), |field| field.of_json(line.bytes));
            let by_field = match by_field {
                Ok(by_field) => by_field,
                Err(refused) => {
                    let refused = InputError::BadLine {
                        file: chunk.source.to_string(),
                        line: line.number,
                        problem: refused,
                    };
                    if parser.skips_bad_lines() {
                        tracing::debug!(error = %refused, "bad line skipped");
                        part.columns.skipped.bad_lines += 1;
                        part.columns.skipped.first_bad.add(line.number, &refused);
                        part.bad.push(line.number);
                    } else {
                        problem.get_or_insert(refused);
                    }
                    return;
                }
            };
            let before = part.columns.fingerprints.len();
            part.columns.push(&record, self.recipe, ids.as_mut());
            if part.columns.fingerprints.len() > before {
                part.documents.push(line.number);
                if is_ranked {
                    part.ranks
                        .push(self.preference.rank(&record.content, by_field));
                }
            }
        });
        part.columns.ids = ids;
        let refused = std::mem::take(&mut part.columns.skipped.first_bad);
        part.columns.skipped += &outcome.skipped;
        part.columns.skipped.first_bad.merge(&refused);
        part.bad.extend(outcome.bad_lines);
        part.last_line = last_line(chunk);
        part.error = problem.or(outcome.error);
        part
    }
}

/// Hands on the lines of a source that are kept. Returns the number of all.
pub(super) fn write<E: From<InputError>>(
    batches: &mut Batches,
    marks: &SourceMarks,
    mut take: impl FnMut(Piece) -> Result<(), E>,
) -> Result<u64, E> {
    let mut last = 0;
    let work = |batch: &Batch| match batch {
        Batch::Lines(chunk, _) => (kept(chunk, marks), last_line(chunk)),
        Batch::Documents(..) => (Vec::new(), 0),
    };
    in_order::for_each(batches, work, |parts| -> Result<bool, E> {
        for part in parts {
            let (bytes, line) = part?;
            last = line;
            take(Piece::inner(bytes))?;
        }
        Ok(true)
    })?;
    Ok(last)
}

/// The bytes of a chunk's lines but those that are left out.
fn kept(chunk: &Chunk, marks: &SourceMarks) -> Vec<u8> {
    let bytes = chunk.bytes();
    let mut kept = Vec::with_capacity(bytes.len());
    let (mut start, mut line) = (0, chunk.first_line);
    // What is kept since the last line that was left out is copied at once.
    let mut from = 0;
    while start < bytes.len() {
        let end = memchr::memchr(b'\n', &bytes[start..]);
        let end = end.map_or(bytes.len(), |end| start + end + 1);
        if marks.is_set(line) {
            kept.extend_from_slice(&bytes[from..start]);
            from = end;
        }
        (start, line) = (end, line + 1);
    }
    kept.extend_from_slice(&bytes[from..]);
    kept
}

/// The number of the last line of a chunk, or of one that is too long to be in it.
fn last_line(chunk: &Chunk) -> u64 {
    let without_break = !chunk.bytes().is_empty() && !chunk.bytes().ends_with(b"\n");
    let more = u64::from(without_break) + u64::from(chunk.then_too_long);
    (chunk.first_line + chunk.lines() as u64 + more).saturating_sub(1)
}
