//! Rows of CSV as documents that stand on lines.

use rayon::prelude::*;

use super::marks::Marks;
use super::{DocumentReader, LineDocuments};
use crate::columns::{Columns, IdColumn};
use crate::csv::{CsvDocuments, CsvFault};
use crate::document::{Content, Document, Record};
use crate::error::InputError;
use crate::html::Html;
use crate::preference::Preference;
use crate::records::RecordReader;
use crate::source::Source;

/// Bytes of rows that are worked on together, and the fewest rows of a thread.
const WAVE_BYTES: usize = 4 << 20;
const LEAST_ROWS: usize = 64;

/// A row, and its first and last line.
struct Row {
    document: Document,
    lines: (u64, u64),
}

impl DocumentReader {
    /// Reads the rows of a source.
    pub(super) fn read_rows(
        &self,
        reader: &RecordReader,
        source: Source,
        found: &mut LineDocuments,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Marks, InputError> {
        let file = source.name.clone();
        let mut marks = Marks::default();
        let Some((mut documents, html)) = reader.csv_rows(source)? else {
            return Ok(marks);
        };
        let mut last_line = 0;
        loop {
            let rows = next_rows(
                &mut documents,
                reader,
                &file,
                &mut last_line,
                &mut marks,
                found,
            )?;
            if rows.is_empty() {
                break;
            }
            progress(rows.len() as u64);
            self.take_rows(&rows, html, &mut marks, found);
        }
        // With the blank lines after the last row.
        marks.grow(documents.lines());
        Ok(marks)
    }

    /// Fingerprints rows on all cores, in their order.
    fn take_rows(&self, rows: &[Row], html: Html, marks: &mut Marks, found: &mut LineDocuments) {
        let is_ranked = self.preference != Preference::First;
        let parts = rows.par_chunks(LEAST_ROWS).map(|rows| {
            let (mut columns, mut ids) = (Columns::default(), IdColumn::default());
            let (mut ranks, mut lines) = (Vec::new(), Vec::new());
            for row in rows {
                let record = html.of_record(Record::from(&row.document));
                let before = columns.fingerprints.len();
                columns.push(&record, self.recipe, Some(&mut ids));
                if columns.fingerprints.len() > before {
                    lines.push(row.lines);
                    // Rows have no fields that rank them, so that reading the line does not fail.
                    ranks.push(self.preference.rank(b"", &record).unwrap_or_default());
                }
            }
            columns.ids = Some(ids);
            (columns, ranks, lines)
        });
        let parts: Vec<_> = parts.collect();
        for (columns, ranks, lines) in parts {
            for (first, last) in lines {
                marks.grow(last);
                marks.set(first);
                if last > first {
                    marks.long.push((first, last));
                }
            }
            if is_ranked {
                found.ranks.extend(ranks);
            }
            found.parts.push(columns);
        }
    }
}

/// The next rows; none at the end. Bad ones are marked where they are skipped.
fn next_rows(
    documents: &mut CsvDocuments,
    reader: &RecordReader,
    file: &str,
    last_line: &mut u64,
    marks: &mut Marks,
    found: &mut LineDocuments,
) -> Result<Vec<Row>, InputError> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while bytes < WAVE_BYTES {
        let Some(next) = documents.next() else {
            break;
        };
        let lines = documents.row_lines();
        if lines.0 <= documents.header_line().max(*last_line) {
            let (file, line) = (file.to_owned(), lines.0);
            return Err(InputError::BareReturns { file, line });
        }
        *last_line = lines.1;
        match next {
            Ok(document) => {
                let text = match &document.content {
                    Content::Text(text) => text.len(),
                    Content::Fingerprint(_) => size_of::<u64>(),
                };
                bytes += document.id.len() + text + size_of::<Row>();
                rows.push(Row { document, lines });
            }
            Err(CsvFault::Row(error)) if reader.skips_bad() => {
                tracing::debug!(%error, "bad row skipped");
                found.parts.skipped.bad_rows += 1;
                marks.grow(lines.1);
                marks.bad.extend(lines.0..=lines.1);
            }
            Err(CsvFault::Row(error) | CsvFault::File(error)) => return Err(error),
        }
    }
    Ok(rows)
}
