//! Documents with the units that they stand on: rows on lines of CSV, records of WARC, rows of Parquet.

use crate::csv::CsvDocuments;
use crate::error::InputError;
use crate::fields::RankField;
#[cfg(feature = "parquet")]
use crate::fields::TableColumns;
use crate::format::Format;
use crate::html::Extraction;
use crate::next_item::NextItem;
#[cfg(feature = "parquet")]
use crate::parquet::{ParquetDocuments, copy_rows};
use crate::piece::Piece;
#[cfg(feature = "parquet")]
use crate::row_number::RowNumber;
use crate::source::Source;
use crate::warc::{RawRecords, WarcDocuments};

use super::{RecordFormat, RecordReader, WarcFound, found_csv, open_checked};
#[cfg(feature = "parquet")]
use super::{check_file, found_row};

/// The documents of a source, each on one unit or several that follow one another.
pub(crate) trait UnitDocuments: Iterator<Item = NextItem> + Send {
    /// The first and the last unit of the document, or the bad one, that was returned last, from 1.
    fn units(&self) -> (u64, u64);

    /// The rank that a field gives that document.
    fn rank(&self) -> u64;

    /// The number of all units, once all documents were returned.
    fn unit_count(&self) -> u64;
}

impl RecordReader {
    /// The documents of a source with their units.
    ///
    /// # Errors
    /// If it cannot be opened, or its format has no units.
    pub(crate) fn units(&self, source: Source) -> Result<Box<dyn UnitDocuments>, InputError> {
        let (extraction, skip_bad) = (self.extraction, self.skip_bad);
        match &self.format {
            RecordFormat::Csv(columns, separator) => Ok(Box::new(CsvUnits {
                name: source.name.clone(),
                documents: self.csv(source, columns, *separator)?,
                extraction,
                skip_bad,
                last_line: 0,
            })),
            RecordFormat::Warc(rank) => Ok(Box::new(self.records(source, rank)?)),
            #[cfg(feature = "parquet")]
            RecordFormat::Parquet(columns) => {
                let number = self.number(&source);
                Ok(Box::new(RowUnits {
                    documents: self.rows(source, columns, number)?,
                    extraction,
                    skip_bad,
                }))
            }
            RecordFormat::Arrow(_) => Err(not_rewritten(Format::Arrow)),
        }
    }

    /// The documents of a web archive.
    pub(super) fn records(
        &self,
        source: Source,
        rank: &Option<RankField>,
    ) -> Result<WarcFound, InputError> {
        let name = source.name.clone();
        Ok(WarcFound {
            documents: WarcDocuments::new(
                name,
                open_checked(source)?,
                self.extraction.html,
                self.ids,
            )
            .leaving_out_broken(self.skip_bad)
            .ranked_by(rank.clone()),
            skip_bad: self.skip_bad,
            next: None,
        })
    }

    /// The rows of a table.
    #[cfg(feature = "parquet")]
    pub(super) fn rows(
        &self,
        source: Source,
        columns: &TableColumns,
        number: RowNumber,
    ) -> Result<ParquetDocuments, InputError> {
        let (name, taken_for) = (source.name.clone(), source.taken_for);
        let file = source.open_file()?;
        if let Some(format) = taken_for {
            check_file(&file, &name, format)?;
        }
        let documents = ParquetDocuments::open(name, file, columns, self.ids);
        let documents = documents.map_err(InputError::Parquet)?;
        Ok(documents.numbered(number))
    }

    /// Hands on the units of a source that are kept, by their numbers from 1. Returns the number of all.
    ///
    /// # Errors
    /// What cannot be read, and those of `take`.
    pub(crate) fn write_kept<E: From<InputError>>(
        &self,
        source: Source,
        is_kept: &dyn Fn(u64) -> bool,
        mut take: impl FnMut(Piece) -> Result<(), E>,
    ) -> Result<u64, E> {
        let name = source.name.clone();
        match &self.format {
            RecordFormat::Warc(_) => {
                let mut records = RawRecords::new(name, open_checked(source)?, self.skip_bad);
                while let Some(piece) = records.next().map_err(InputError::Warc)? {
                    if is_kept(piece.record) {
                        take(Piece {
                            bytes: piece.bytes,
                            ends_member: piece.ends_record,
                        })?;
                    }
                }
                Ok(records.count())
            }
            #[cfg(feature = "parquet")]
            RecordFormat::Parquet(_) => {
                let file = source.open_file()?;
                let failed = |error| InputError::Parquet(error).into();
                copy_rows(
                    &name,
                    file,
                    is_kept,
                    |bytes| take(Piece::inner(bytes)),
                    failed,
                )
            }
            RecordFormat::Csv(..) => Err(not_rewritten(Format::Csv).into()),
            RecordFormat::Arrow(_) => Err(not_rewritten(Format::Arrow).into()),
        }
    }
}

fn not_rewritten(format: Format) -> InputError {
    InputError::NotRewritten { format }
}

/// Rows of CSV, no two of which share a line.
struct CsvUnits {
    documents: CsvDocuments,
    name: String,
    extraction: Extraction,
    skip_bad: bool,
    last_line: u64,
}

impl Iterator for CsvUnits {
    type Item = NextItem;

    fn next(&mut self) -> Option<NextItem> {
        let found = self.documents.next()?;
        let (first, last) = self.documents.row_lines();
        if first <= self.documents.header_line().max(self.last_line) {
            let (file, line) = (self.name.clone(), first);
            return Some(NextItem::Failed(InputError::BareReturns { file, line }));
        }
        self.last_line = last;
        Some(found_csv(found, self.extraction, self.skip_bad))
    }
}

impl UnitDocuments for CsvUnits {
    fn units(&self) -> (u64, u64) {
        self.documents.row_lines()
    }

    fn rank(&self) -> u64 {
        self.documents.rank()
    }

    fn unit_count(&self) -> u64 {
        self.documents.lines()
    }
}

impl UnitDocuments for WarcFound {
    fn units(&self) -> (u64, u64) {
        let record = self.documents.record();
        (record, record)
    }

    fn rank(&self) -> u64 {
        self.documents.rank()
    }

    fn unit_count(&self) -> u64 {
        self.documents.record()
    }
}

/// Rows of Parquet.
#[cfg(feature = "parquet")]
struct RowUnits {
    documents: ParquetDocuments,
    extraction: Extraction,
    skip_bad: bool,
}

#[cfg(feature = "parquet")]
impl Iterator for RowUnits {
    type Item = NextItem;

    fn next(&mut self) -> Option<NextItem> {
        let found = self.documents.next()?;
        Some(found_row(found, self.extraction, self.skip_bad))
    }
}

#[cfg(feature = "parquet")]
impl UnitDocuments for RowUnits {
    fn units(&self) -> (u64, u64) {
        (self.documents.row(), self.documents.row())
    }

    fn rank(&self) -> u64 {
        self.documents.rank()
    }

    fn unit_count(&self) -> u64 {
        self.documents.row()
    }
}
