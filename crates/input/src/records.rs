//! Documents from sources that are not made of lines: rows of CSV, Parquet and Arrow, records of WARC.
//!
//! A bad row or record is an error, or counted where such are skipped; reading ends where it cannot
//! go on.

mod units;

use std::fmt::Display;
#[cfg(feature = "parquet")]
use std::fs::File;
use std::io::Read;
use std::iter;
#[cfg(feature = "parquet")]
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::arrow::ArrowDocuments;
use crate::csv::{CsvDocuments, CsvFault};
use crate::decompress::Decompressed;
use crate::document::Document;
use crate::error::InputError;
use crate::fields::{RankField, TableColumns};
use crate::first_bad::FirstBad;
use crate::format::Format;
use crate::head;
use crate::html::Extraction;
use crate::ids::Ids;
#[cfg(feature = "parquet")]
use crate::looks::LOOKED_AT;
use crate::looks::Looks;
use crate::next_item::NextItem;
use crate::options::InputOptions;
#[cfg(feature = "parquet")]
use crate::parquet::ParquetError;
use crate::row_number::RowNumber;
use crate::separator::Separator;
use crate::skipped::Skipped;
use crate::source::Source;
use crate::warc::{WarcDocuments, WarcError};
#[cfg(not(feature = "parquet"))]
use crate::without_parquet::WithoutParquet;
pub(crate) use units::UnitDocuments;

/// How to read sources that are not made of lines.
#[derive(Clone)]
pub(crate) struct RecordReader {
    format: RecordFormat,
    /// What is taken of pages: of texts, for Parquet, which does not say which are pages.
    extraction: Extraction,
    ids: Ids,
    skip_bad: bool,
    /// Whether ids that are numbers of rows name their source.
    ids_name_the_source: bool,
}

/// The content of a source.
#[derive(Clone)]
enum RecordFormat {
    #[cfg(feature = "parquet")]
    Parquet(TableColumns),
    /// Without a separator, the name of the source says it.
    Csv(TableColumns, Option<Separator>),
    Arrow(TableColumns),
    /// The field is that of headers that ranks documents, if one does.
    Warc(Option<RankField>),
}

type Documents = Box<dyn Iterator<Item = NextItem> + Send>;

impl RecordReader {
    /// The reader of a format; `None` where its sources are made of lines, or it walks folders.
    ///
    /// # Errors
    /// If the program was built without it.
    pub(crate) fn new(
        options: &InputOptions,
        ids: Ids,
        format: Format,
        several_sources: bool,
    ) -> Result<Option<Self>, InputError> {
        let (format, extraction) = match format {
            #[cfg(feature = "parquet")]
            Format::Parquet => {
                let columns = options.table_columns();
                (RecordFormat::Parquet(columns), options.of_texts())
            }
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => return Err(InputError::WithoutParquet(WithoutParquet)),
            Format::Csv => {
                let columns = options.table_columns();
                let format = RecordFormat::Csv(columns, options.separator);
                (format, options.of_texts())
            }
            Format::Arrow => {
                let columns = options.table_columns();
                (RecordFormat::Arrow(columns), options.of_texts())
            }
            Format::Warc => (RecordFormat::Warc(None), options.of_pages().into()),
            Format::Hashes | Format::Lines | Format::Jsonl | Format::Tsv | Format::Files => {
                return Ok(None);
            }
        };
        Ok(Some(Self {
            format,
            extraction,
            ids,
            skip_bad: options.skip_bad_lines,
            ids_name_the_source: several_sources,
        }))
    }

    /// The same, whose documents are ranked by a field, if they have fields.
    pub(crate) fn ranked_by(mut self, field: Option<&RankField>) -> Self {
        match &mut self.format {
            #[cfg(feature = "parquet")]
            RecordFormat::Parquet(columns) => columns.rank = field.cloned(),
            RecordFormat::Csv(columns, _) | RecordFormat::Arrow(columns) => {
                columns.rank = field.cloned();
            }
            RecordFormat::Warc(rank) => *rank = field.cloned(),
        }
        self
    }

    /// The source twice, to be read one after the other, copied only where it must be.
    pub(crate) fn twice(&self, source: Source) -> Result<(Source, Source), InputError> {
        match self.format {
            #[cfg(feature = "parquet")]
            RecordFormat::Parquet(_) => source.seekable()?.twice(),
            RecordFormat::Csv(..) | RecordFormat::Arrow(_) | RecordFormat::Warc(_) => {
                source.twice()
            }
        }
    }

    /// What numbers the rows of a source.
    fn number(&self, source: &Source) -> RowNumber {
        RowNumber {
            source: self.ids_name_the_source.then(|| source.name.clone()),
            row: 0,
        }
    }

    /// The documents of all sources, each opened when its turn comes. That none of them has any text is an
    /// error at the end.
    pub(crate) fn documents(
        self,
        sources: Vec<Source>,
    ) -> impl Iterator<Item = NextItem> + Send + 'static {
        AllFound {
            is_fine: self.skip_bad,
            found: self.documents_of_some(sources),
            skipped: Skipped::default(),
        }
    }

    /// The documents of some of the sources.
    pub(crate) fn documents_of_some(
        self,
        sources: Vec<Source>,
    ) -> impl Iterator<Item = NextItem> + Send + 'static {
        sources.into_iter().flat_map(move |source| {
            let opened = self.open(source);
            opened.unwrap_or_else(|error| Box::new(iter::once(NextItem::Failed(error))))
        })
    }

    /// The rows of CSV.
    fn csv(
        &self,
        source: Source,
        columns: &TableColumns,
        separator: Option<Separator>,
    ) -> Result<CsvDocuments, InputError> {
        let (name, number) = (source.name.clone(), self.number(&source));
        let separator = separator.unwrap_or_else(|| Separator::of_name(Path::new(&name)));
        let (reader, columns) = (open_checked(source)?, columns.clone());
        Ok(CsvDocuments::new(
            name, reader, separator, columns, self.ids, number,
        ))
    }

    fn open(&self, source: Source) -> Result<Documents, InputError> {
        let (extraction, skip_bad) = (self.extraction, self.skip_bad);
        let name = source.name.clone();
        let number = self.number(&source);
        match &self.format {
            #[cfg(feature = "parquet")]
            RecordFormat::Parquet(columns) => {
                let documents = self.rows(source, columns, number)?;
                Ok(Box::new(documents.map(move |document| {
                    found_row(document, extraction, skip_bad)
                })))
            }
            RecordFormat::Csv(columns, separator) => {
                let documents = self.csv(source, columns, *separator)?;
                Ok(Box::new(documents.map(move |document| {
                    found_csv(document, extraction, skip_bad)
                })))
            }
            RecordFormat::Arrow(columns) => {
                let reader = open_checked(source)?;
                let documents = ArrowDocuments::open(name, reader, columns, self.ids)
                    .map(|documents| documents.numbered(number))
                    .map_err(InputError::Arrow)?;
                Ok(Box::new(documents.map(move |document| match document {
                    Ok(document) => NextItem::Document(document, extraction),
                    Err(error) if skip_bad && error.is_bad_row() => bad_row(&error),
                    Err(error) => NextItem::Failed(InputError::Arrow(error)),
                })))
            }
            RecordFormat::Warc(rank) => Ok(Box::new(self.records(source, rank)?)),
        }
    }
}

/// Opens a source for what its format says, unless it looks like another one.
fn open_checked(source: Source) -> Result<Box<dyn Read + Send>, InputError> {
    let (name, taken_for) = (source.name.clone(), source.taken_for);
    let opened = Decompressed::new(Path::new(&name), source.open()?);
    let reader = opened.map_err(InputError::unreadable(&name))?.into_reader();
    let Some(format) = taken_for else {
        return Ok(reader);
    };
    let (head, reader) = head::peek(reader).map_err(InputError::unreadable(&name))?;
    Looks::check(&head, &name, format)?;
    Ok(reader)
}

/// Refuses a file that looks like another format, and leaves its position as it is.
#[cfg(feature = "parquet")]
fn check_file(file: &File, name: &str, format: Format) -> Result<(), InputError> {
    let mut head = [0; LOOKED_AT];
    let read = file.read_at(&mut head, 0);
    let read = read.map_err(InputError::unreadable(name))?;
    Looks::check(&head[..read], name, format)
}

fn bad_row(error: &impl Display) -> NextItem {
    NextItem::Skipped(Skipped {
        bad_rows: 1,
        first_bad: FirstBad::one(error),
        ..Skipped::default()
    })
}

fn found_csv(
    document: Result<Document, CsvFault>,
    extraction: Extraction,
    skip_bad: bool,
) -> NextItem {
    match document {
        Ok(document) => NextItem::Document(document, extraction),
        Err(CsvFault::Row(error)) if skip_bad => bad_row(&error),
        Err(CsvFault::Row(error) | CsvFault::File(error)) => NextItem::Failed(error),
    }
}

#[cfg(feature = "parquet")]
fn found_row(
    document: Result<Document, ParquetError>,
    extraction: Extraction,
    skip_bad: bool,
) -> NextItem {
    match document {
        Ok(document) => NextItem::Document(document, extraction),
        Err(error) if skip_bad && error.is_bad_row() => bad_row(&error),
        Err(error) => NextItem::Failed(InputError::Parquet(error)),
    }
}

fn found_record(document: Result<(Document, Extraction), WarcError>, skip_bad: bool) -> NextItem {
    match document {
        Ok((document, extraction)) => NextItem::Document(document, extraction),
        Err(error) if skip_bad && error.is_bad_record() => NextItem::Skipped(Skipped {
            bad_records: 1,
            first_bad: FirstBad::one(&error),
            ..Skipped::default()
        }),
        Err(error) => NextItem::Failed(InputError::Warc(error)),
    }
}

/// The documents of a WARC file, and what is counted between them.
struct WarcFound {
    documents: WarcDocuments,
    skip_bad: bool,
    /// The item after the counts that were reported last.
    next: Option<NextItem>,
}

impl Iterator for WarcFound {
    type Item = NextItem;

    fn next(&mut self) -> Option<NextItem> {
        if let Some(found) = self.next.take() {
            return Some(found);
        }
        let found = self.documents.next();
        let found = found.map(|document| found_record(document, self.skip_bad));
        let counts = self.documents.take_counts();
        if counts == Skipped::default() {
            return found;
        }
        self.next = found;
        Some(NextItem::Skipped(counts))
    }
}

/// What was found in all sources, and an error at the end if there were archives, and no text in any.
struct AllFound<I> {
    found: I,
    /// Whether there is nothing to complain of: a text, or a record that should hold one.
    is_fine: bool,
    skipped: Skipped,
}

impl<I: Iterator<Item = NextItem>> Iterator for AllFound<I> {
    type Item = NextItem;

    fn next(&mut self) -> Option<NextItem> {
        let found = self.found.next();
        match &found {
            Some(NextItem::Document(..) | NextItem::Failed(_)) => self.is_fine = true,
            Some(NextItem::Skipped(skipped)) => {
                if !self.is_fine {
                    self.skipped += skipped;
                }
            }
            None => {
                let skipped = std::mem::take(&mut self.skipped);
                let refused = skipped.refuse_no_texts().err();
                return refused.filter(|_| !self.is_fine).map(NextItem::Failed);
            }
        }
        found
    }
}
