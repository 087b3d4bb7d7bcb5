//! Documents from sources that are not made of lines: rows of CSV and Parquet, records of WARC.
//!
//! A bad row or record is an error, or counted where such are skipped; reading ends where it cannot
//! go on.

#[cfg(feature = "parquet")]
use std::fs::File;
use std::io::Read;
use std::iter;
#[cfg(feature = "parquet")]
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::csv::{CsvDocuments, CsvFault};
use crate::decompress::Decompressed;
use crate::document::Document;
use crate::error::InputError;
use crate::fields::TableColumns;
use crate::format::Format;
use crate::found::Found;
use crate::head;
use crate::html::Html;
use crate::ids::Ids;
#[cfg(feature = "parquet")]
use crate::looks::LOOKED_AT;
use crate::looks::Looks;
use crate::options::InputOptions;
#[cfg(feature = "parquet")]
use crate::parquet::{ParquetDocuments, ParquetError};
use crate::row_number::RowNumber;
use crate::skipped::Skipped;
use crate::source::Source;
use crate::warc::{WarcDocuments, WarcError};
#[cfg(not(feature = "parquet"))]
use crate::without_parquet::WithoutParquet;

/// How to read sources that are not made of lines.
#[derive(Clone)]
pub(crate) struct RecordReader {
    format: RecordFormat,
    /// What is taken of pages: of texts, for Parquet, which does not say which are pages.
    html: Html,
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
    Csv(TableColumns),
    Warc,
}

type Documents = Box<dyn Iterator<Item = Found> + Send>;

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
        let (format, html) = match format {
            #[cfg(feature = "parquet")]
            Format::Parquet => {
                let columns = options.table_columns();
                (RecordFormat::Parquet(columns), options.of_texts())
            }
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => return Err(InputError::WithoutParquet(WithoutParquet)),
            Format::Csv => {
                let columns = options.table_columns();
                (RecordFormat::Csv(columns), options.of_texts())
            }
            Format::Warc => (RecordFormat::Warc, options.of_pages()),
            Format::Hashes | Format::Lines | Format::Jsonl | Format::Tsv | Format::Files => {
                return Ok(None);
            }
        };
        Ok(Some(Self {
            format,
            html,
            ids,
            skip_bad: options.skip_bad_lines,
            ids_name_the_source: several_sources,
        }))
    }

    /// The source twice, to be read one after the other, copied only where it must be.
    pub(crate) fn twice(&self, source: Source) -> Result<(Source, Source), InputError> {
        match self.format {
            #[cfg(feature = "parquet")]
            RecordFormat::Parquet(_) => source.seekable()?.twice(),
            RecordFormat::Csv(_) | RecordFormat::Warc => source.twice(),
        }
    }

    /// The documents of several sources, each opened when its turn comes.
    pub(crate) fn documents(
        self,
        sources: Vec<Source>,
    ) -> impl Iterator<Item = Found> + Send + 'static {
        sources.into_iter().flat_map(move |source| {
            let opened = self.open(source);
            opened.unwrap_or_else(|error| Box::new(iter::once(Found::Failed(error))))
        })
    }

    fn open(&self, source: Source) -> Result<Documents, InputError> {
        let (html, skip_bad) = (self.html, self.skip_bad);
        let name = source.name.clone();
        let number = RowNumber {
            source: self.ids_name_the_source.then(|| name.clone()),
            row: 0,
        };
        match &self.format {
            #[cfg(feature = "parquet")]
            RecordFormat::Parquet(columns) => {
                let taken_for = source.taken_for;
                let file = source.open_file()?;
                if let Some(format) = taken_for {
                    check_file(&file, &name, format)?;
                }
                let documents = ParquetDocuments::open(name, file, columns, self.ids)
                    .map(|documents| documents.numbered(number))
                    .map_err(InputError::Parquet)?;
                Ok(Box::new(
                    documents.map(move |document| found_row(document, html, skip_bad)),
                ))
            }
            RecordFormat::Csv(columns) => {
                let reader = open_checked(source)?;
                let documents = CsvDocuments::new(name, reader, columns.clone(), self.ids, number);
                Ok(Box::new(
                    documents.map(move |document| found_csv(document, html, skip_bad)),
                ))
            }
            RecordFormat::Warc => Ok(Box::new(WarcFound {
                documents: WarcDocuments::new(name, open_checked(source)?, html, self.ids),
                skip_bad,
                others: 0,
                next: None,
            })),
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

fn found_csv(document: Result<Document, CsvFault>, html: Html, skip_bad: bool) -> Found {
    match document {
        Ok(document) => Found::Document(document, html),
        Err(CsvFault::Row(_)) if skip_bad => Found::Skipped(Skipped {
            bad_rows: 1,
            ..Skipped::default()
        }),
        Err(CsvFault::Row(error) | CsvFault::File(error)) => Found::Failed(error),
    }
}

#[cfg(feature = "parquet")]
fn found_row(document: Result<Document, ParquetError>, html: Html, skip_bad: bool) -> Found {
    match document {
        Ok(document) => Found::Document(document, html),
        Err(error) if skip_bad && error.is_bad_row() => Found::Skipped(Skipped {
            bad_rows: 1,
            ..Skipped::default()
        }),
        Err(error) => Found::Failed(InputError::Parquet(error)),
    }
}

fn found_record(document: Result<(Document, Html), WarcError>, skip_bad: bool) -> Found {
    match document {
        Ok((document, html)) => Found::Document(document, html),
        Err(error) if skip_bad && error.is_bad_record() => Found::Skipped(Skipped {
            bad_records: 1,
            ..Skipped::default()
        }),
        Err(error) => Found::Failed(InputError::Warc(error)),
    }
}

/// The documents of a WARC file, and the records between them that are left out.
struct WarcFound {
    documents: WarcDocuments,
    skip_bad: bool,
    /// Records that were left out, as far as they have been told of.
    others: u64,
    /// The items after the last reported records.
    next: Option<Found>,
}

impl Iterator for WarcFound {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        if let Some(found) = self.next.take() {
            return Some(found);
        }
        let found = self.documents.next();
        let found = found.map(|document| found_record(document, self.skip_bad));
        let others = self.documents.other_records();
        if others == self.others {
            return found;
        }
        let left_out = others - self.others;
        self.others = others;
        self.next = found;
        Some(Found::Skipped(Skipped {
            other_records: left_out,
            ..Skipped::default()
        }))
    }
}
