//! The CSV format: a header, and a document a row.

mod quotes;
mod rows;

use std::borrow::Cow;
use std::io::Read;

use crate::document::{Content, Document, MAX_RECORD_BYTES};
use crate::error::InputError;
use crate::fields::{ContentColumn, ID_FLAGS, RANK_FLAGS, TableColumns, join};
use crate::ids::Ids;
use crate::parse::fingerprint;
use crate::problem::LineProblem;
use crate::rank::LOWEST;
use crate::row_number::RowNumber;
use crate::separator::Separator;
use rows::{Fault, Rows};

/// The documents of one file, read as they are asked for. After a bad row it goes on with the next; after
/// any other error it ends.
pub(crate) struct CsvDocuments {
    name: String,
    pub(crate) rows: Rows,
    ids: Ids,
    columns: TableColumns,
    number: RowNumber,
    /// `None` before it was read.
    header: Option<Header>,
    /// The last line of the header.
    header_line: u64,
    rank: u64,
    ended: bool,
}

/// The places of the columns that are read, and how many there are.
#[derive(Clone)]
struct Header {
    id: Option<usize>,
    contents: Vec<usize>,
    rank: Option<usize>,
    columns: usize,
}

/// Why there is no document.
pub(crate) enum CsvFault {
    /// One row is at fault, and the next can be read.
    Row(InputError),
    /// Nothing more can be read.
    File(InputError),
}

impl CsvDocuments {
    pub(crate) fn new(
        name: String,
        from: Box<dyn Read + Send>,
        separator: Separator,
        columns: TableColumns,
        ids: Ids,
        number: RowNumber,
    ) -> Self {
        Self {
            name,
            rows: Rows::new(from, separator),
            ids,
            columns,
            number,
            header: None,
            header_line: 0,
            rank: LOWEST,
            ended: false,
        }
    }

    fn read_header(&mut self) -> Result<Option<Header>, Fault> {
        if !self.rows.next()? {
            return Ok(None);
        }
        let flags = self.columns.content.flags();
        let contents = self.columns.content.names().iter();
        let contents = contents.map(|name| self.rows.place(name, flags));
        let header = Header {
            id: match &self.columns.id {
                Some(name) => Some(self.rows.place(name, ID_FLAGS)?),
                None => None,
            },
            contents: contents.collect::<Result<_, _>>()?,
            rank: match &self.columns.rank {
                Some(field) => Some(self.rows.place(&field.name, RANK_FLAGS)?),
                None => None,
            },
            columns: self.rows.columns,
        };
        Ok(Some(header))
    }

    /// The first and the last line of the row that was read last.
    pub(crate) fn row_lines(&self) -> (u64, u64) {
        let last = self.lines();
        (self.rows.line, last)
    }

    /// The last line of the header.
    pub(crate) fn header_line(&self) -> u64 {
        self.header_line
    }

    /// How many lines were read, with the one that is read.
    pub(crate) fn lines(&self) -> u64 {
        self.rows.line_breaks + u64::from(self.rows.is_in_line)
    }

    /// The rank that its field gives the row that was read last.
    pub(crate) fn rank(&self) -> u64 {
        self.rank
    }

    fn document(&self, header: &Header) -> Result<(Document, u64), LineProblem> {
        if self.rows.columns != header.columns {
            return Err(LineProblem::OtherColumns {
                found: self.rows.columns,
                expected: header.columns,
            });
        }
        let id = match header.id {
            Some(place) => self.rows.text(place)?.to_owned(),
            None => self.number.id(),
        };
        self.ids.check(&id)?;
        let content = match self.columns.content {
            ContentColumn::Texts(_) => {
                let texts = header.contents.iter().map(|place| self.rows.text(*place));
                let texts = texts.map(|text| text.map(Cow::Borrowed));
                let text = join(texts.collect::<Result<Vec<_>, _>>()?).into_owned();
                if text.len() > MAX_RECORD_BYTES {
                    return Err(LineProblem::TooLong);
                }
                Content::Text(text)
            }
            ContentColumn::Fingerprint(_, notation) => {
                let place = header.contents.first().copied().unwrap_or_default();
                Content::Fingerprint(fingerprint(self.rows.value(place), notation)?)
            }
        };
        let rank = match (&self.columns.rank, header.rank) {
            (Some(field), Some(place)) => field.of_text(self.rows.text(place)?)?,
            (None, _) | (_, None) => LOWEST,
        };
        Ok((Document { id, content }, rank))
    }

    fn located(&self, fault: Fault) -> InputError {
        match fault {
            Fault::Problem(problem) => InputError::BadLine {
                file: self.name.clone(),
                line: self.rows.line,
                problem,
            },
            Fault::Unreadable(error) => InputError::unreadable(&self.name)(error),
        }
    }

    /// The next document; `None` at the end.
    fn read(&mut self) -> Result<Option<Document>, CsvFault> {
        if self.header.is_none() {
            match self.read_header() {
                Ok(header) => {
                    self.header = header;
                    self.header_line = self.lines();
                }
                Err(fault) => return Err(CsvFault::File(self.located(fault))),
            }
        }
        if self.header.is_none() {
            return Ok(None);
        }
        match self.rows.next() {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(fault) => return Err(CsvFault::File(self.located(fault))),
        }
        self.number.row += 1;
        let found = self.header.as_ref().map(|header| self.document(header));
        let found = found.transpose();
        let found = found.map_err(|problem| CsvFault::Row(self.located(problem.into())))?;
        Ok(found.map(|(document, rank)| {
            self.rank = rank;
            document
        }))
    }
}

impl Iterator for CsvDocuments {
    type Item = Result<Document, CsvFault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let read = self.read().transpose();
        self.ended = !matches!(read, Some(Ok(_) | Err(CsvFault::Row(_))));
        read
    }
}
