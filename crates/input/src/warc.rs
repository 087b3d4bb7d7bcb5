//! The WARC format, and WET, which is WARC with texts in it: a document is a record.
//!
//! | record                | its document                                                      |
//! |-----------------------|-------------------------------------------------------------------|
//! | `conversion`          | its block, if that is plain text, as in a WET file, or HTML       |
//! | `resource`            | the same                                                          |
//! | `response`            | the payload of an HTTP response of status 200, if that is plain text or HTML, with chunks put together, gzip and deflate undone |
//! | `request`, `metadata`, `revisit` | none: they tell of a crawl, and are counted |
//! | `warcinfo`            | none: it tells of the file                                        |
//!
//! Plain text is `text/plain` in UTF-8, without NUL bytes. Servers name a wrong encoding, or none, so a capture in another
//! one is counted. A conversion in another one is damaged, and so a bad record. HTML is `text/html` and
//! `application/xhtml+xml` in any character set. Everything else is left out, and counted by what it holds.
//! The records of ARC, the format before WARC, are read as the same.
//! The id is the `WARC-Target-URI`, or the `WARC-Record-ID` of a record without one.
//!
//! This reader gets uncompressed bytes. A `.gz` holds each record in a gzip member of its own, so its decoder must go
//! on after the first.
//!
//! # Invariants
//! - WA1: of a record no more is held than its header, of at most [`MAX_HEADER_BYTES`], and
//!   [`MAX_BLOCK_BYTES`] of its block, before and after decoding.
//! - WA2: a file that ends within a record is an error. Two line breaks, both CRLF or both LF, must follow
//!   the block of a record, and then another record or the end. A length that leads to anything else is an error. One or
//!   both may be missing at the end of the file, and where the next record begins there, as some programs write them. No
//!   record is shortened or lost in silence. A length that counts one or both line breaks is not noticed: the text then
//!   ends in them.
//! - WA3: a reader that leaves out broken records goes on at the next line that ends in a version of WARC. A record that
//!   is cut off may be on that line, too. It looks for that from the header of the broken record on, or behind the block
//!   where this is longer than [`MAX_BLOCK_BYTES`].

mod arc;
mod error;
mod fields;
mod http;
mod raw;
mod record;
mod reread;
#[cfg(test)]
mod tests;
mod text;
mod version;

use std::io::Read;

pub use error::{BrokenProblem, RecordProblem, WarcError};
pub use record::{MAX_BLOCK_BYTES, MAX_HEADER_BYTES};

use fields::{Fields, TextKind, text_kind};
use http::Payload;
pub(crate) use raw::RawRecords;
use record::{Block, Broken, Records};
use text::Text;

use crate::document::{Content, Document, MAX_RECORD_BYTES};
use crate::fields::RankField;
use crate::first_bad::FirstBad;
use crate::html::{Extraction, Html};
use crate::ids::Ids;
use crate::kinds::Kinds;
use crate::problem::{not_utf8, refuse_nul};
use crate::rank::LOWEST;
use crate::skipped::{DoubtfulPages, Skipped};

/// The documents of one file, read as they are asked for. After [`WarcError::BadRecord`] it goes on
/// with the next record; after any other error it ends. A document is returned once its record was read to its end.
pub struct WarcDocuments {
    name: String,
    records: Records,
    html: Html,
    ids: Ids,
    other_records: Kinds,
    doubtful_pages: DoubtfulPages,
    /// The field of headers that ranks documents, if one does.
    rank_field: Option<RankField>,
    /// The rank of the document that was returned last.
    rank: u64,
    /// Whether broken records are left out.
    leaves_out_broken: bool,
    /// Whether a record came that does not only tell of the file.
    has_content: bool,
    /// Whether it was found to hold none, which is not counted yet.
    is_empty: bool,
    ended: bool,
}

/// The role of a record, by its type.
enum Role {
    /// Its block is what was captured, a text of this kind.
    Block(TextKind),
    /// Its block is an HTTP response.
    Response,
    /// It tells of the file.
    Info,
    /// It holds no content, or content of a kind that is not read.
    Other(String),
}

/// A record that was read: a document, or a record without one.
enum ReadRecord {
    Document(Document, Extraction),
    Info,
    Other(String),
}

/// Why a record is no document: its own fault, or the file's.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum Fault {
    Record(#[from] RecordProblem),
    File(#[from] Broken),
}

impl WarcDocuments {
    /// Documents from uncompressed WARC. `name` stands for the file in errors. Pages of HTML are
    /// handed out as markup, and beside them how they become text, which `html` says.
    #[must_use]
    pub fn new(name: String, from: Box<dyn Read + Send>, html: Html, ids: Ids) -> Self {
        Self {
            name,
            records: Records::new(from),
            html,
            ids,
            other_records: Kinds::default(),
            doubtful_pages: DoubtfulPages::default(),
            rank_field: None,
            rank: LOWEST,
            leaves_out_broken: false,
            has_content: false,
            is_empty: false,
            ended: false,
        }
    }

    /// The same, and a broken record is a bad one, after which reading goes on, if the next record can be found.
    #[must_use]
    pub fn leaving_out_broken(self, leaves_out_broken: bool) -> Self {
        Self {
            leaves_out_broken,
            ..self
        }
    }

    /// The same, ranked by a field of their headers.
    pub(crate) fn ranked_by(self, rank_field: Option<RankField>) -> Self {
        Self { rank_field, ..self }
    }

    /// The records that have been left out so far, since what they hold is no text.
    #[must_use]
    pub fn other_records(&self) -> &Kinds {
        &self.other_records
    }

    /// What was left out, or read by a guess, since this was asked last.
    pub(crate) fn take_counts(&mut self) -> Skipped {
        let is_empty = std::mem::take(&mut self.is_empty);
        let first_bad = if is_empty {
            let problem = if self.record() == 0 {
                "record 1 at byte 0: there is none, as the file is empty"
            } else {
                "no record but one that tells of the file"
            };
            FirstBad::one(&format!("{}: {problem}", self.name))
        } else {
            FirstBad::default()
        };
        Skipped {
            empty_archives: u64::from(is_empty),
            first_bad,
            other_records: std::mem::take(&mut self.other_records),
            doubtful_pages: std::mem::take(&mut self.doubtful_pages),
            ..Skipped::default()
        }
    }

    /// The next record; `None` at the end.
    fn read_record(&mut self) -> Result<Option<ReadRecord>, Fault> {
        let Some(header) = self.records.next_header()? else {
            return Ok(None);
        };
        let record = self.record_of(Fields::of(&header));
        if !matches!(record, Err(Fault::File(_))) {
            self.records.finish()?;
        }
        record.map(Some)
    }

    /// The record with this header.
    fn record_of(&mut self, fields: Fields<'_>) -> Result<ReadRecord, Fault> {
        if is_of_type(fields, "") {
            return Err(RecordProblem::NoType.into());
        }
        let text = match role(fields) {
            Role::Info => return Ok(ReadRecord::Info),
            Role::Other(kind) => return Ok(ReadRecord::Other(kind)),
            Role::Block(kind) => {
                let content_type = fields.get("Content-Type").unwrap_or_default();
                Text::new(kind, whole_text(&self.records.block()?)?, &content_type)
            }
            Role::Response => match http::payload(&self.records.block()?)? {
                Payload::Text(text) => text,
                Payload::Other(kind) => return Ok(ReadRecord::Other(kind)),
            },
        };
        if text.is_not_utf8() && !is_of_type(fields, "conversion") {
            return Ok(ReadRecord::Other("text/plain, not UTF-8".to_owned()));
        }
        let id = id_of(fields)?;
        self.ids.check(&id).map_err(RecordProblem::Value)?;
        let rank = self.rank_of(fields)?;
        let is_xhtml = matches!(text, Text::Xhtml(_));
        let (text, html) = match text {
            Text::NoPage => return Ok(ReadRecord::Other("text/html, binary".to_owned())),
            Text::Plain(bytes) => (to_text(bytes)?, Html::Raw),
            // A page may have grown when it became UTF-8.
            Text::Html(page) | Text::Xhtml(page) if page.markup.len() > MAX_RECORD_BYTES => {
                return Err(RecordProblem::TooLong.into());
            }
            Text::Html(page) | Text::Xhtml(page) => {
                if let Some(doubt) = page.doubt {
                    self.doubtful_pages += doubt.into();
                }
                (page.markup, self.html)
            }
        };
        self.rank = rank;
        let content = Content::Text(text);
        Ok(ReadRecord::Document(
            Document { id, content },
            Extraction {
                is_xhtml,
                ..html.into()
            },
        ))
    }

    /// The rank that its header gives a document.
    fn rank_of(&self, fields: Fields<'_>) -> Result<u64, RecordProblem> {
        let Some(field) = &self.rank_field else {
            return Ok(LOWEST);
        };
        let value = fields.get(&field.name).unwrap_or_default();
        Ok(field.of_text(&String::from_utf8_lossy(&value))?)
    }

    /// The rank of the document that was returned last.
    pub(crate) fn rank(&self) -> u64 {
        self.rank
    }

    /// The fault of a broken record, which is its own if it can be left out.
    fn left_out(&mut self, broken: Broken) -> Fault {
        match self.records.leave_out(broken) {
            Ok(problem) => RecordProblem::Broken(problem).into(),
            Err(broken) => broken.into(),
        }
    }

    /// The number of the record that was read last, from 1; 0 before the first.
    pub(crate) fn record(&self) -> u64 {
        self.records.number()
    }
}

/// The error of a fault in the record that was read last.
fn located<R: Read>(name: &str, records: &Records<R>, fault: Fault) -> WarcError {
    let file = name.to_owned();
    let (record, offset) = (records.number(), records.offset());
    match fault {
        Fault::Record(problem) => WarcError::BadRecord {
            file,
            record,
            offset,
            problem,
        },
        Fault::File(Broken::Problem(problem)) => WarcError::Broken {
            file,
            record,
            offset,
            problem,
        },
        Fault::File(Broken::Unreadable(error)) => WarcError::Unreadable {
            file,
            record,
            offset,
            error,
        },
    }
}

impl Iterator for WarcDocuments {
    type Item = Result<(Document, Extraction), WarcError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let read = self.read_record();
            self.has_content |= !matches!(read, Ok(None | Some(ReadRecord::Info)));
            match read {
                Ok(Some(ReadRecord::Document(document, extraction))) => {
                    return Some(Ok((document, extraction)));
                }
                Ok(Some(ReadRecord::Info)) => {}
                Ok(Some(ReadRecord::Other(kind))) => self.other_records.add(&kind, 1),
                Ok(None) => {
                    self.ended = true;
                    self.is_empty = !self.has_content;
                }
                Err(fault) => {
                    let fault = match fault {
                        Fault::File(broken) if self.leaves_out_broken => self.left_out(broken),
                        other @ (Fault::Record(_) | Fault::File(_)) => other,
                    };
                    self.ended = matches!(fault, Fault::File(_));
                    return Some(Err(located(&self.name, &self.records, fault)));
                }
            }
        }
        None
    }
}

fn whole_text(block: &Block<'_>) -> Result<Vec<u8>, RecordProblem> {
    if !block.is_whole || block.bytes.len() > MAX_RECORD_BYTES {
        return Err(RecordProblem::TooLong);
    }
    Ok(block.bytes.to_vec())
}

fn is_of_type(fields: Fields<'_>, name: &str) -> bool {
    let kind = fields.get("WARC-Type").unwrap_or_default();
    kind.eq_ignore_ascii_case(name.as_bytes())
}

fn role(fields: Fields<'_>) -> Role {
    let is = |name: &str| is_of_type(fields, name);
    if is("warcinfo") {
        return Role::Info;
    }
    let content_type = fields.get("Content-Type").unwrap_or_default();
    let content = || fields::kind_name(&content_type);
    if is("metadata") {
        let is_usual = ["", "application/warc-fields"].contains(&fields::media_type(&content_type));
        return Role::Other(if is_usual {
            "metadata".to_owned()
        } else {
            format!("metadata in {}", content())
        });
    }
    // A part of a record is no text of its own.
    if fields.get("WARC-Segment-Number").is_some() {
        return Role::Other("part of a record".to_owned());
    }
    if is("response") {
        let is_http = fields::media_type(&content_type).eq_ignore_ascii_case("application/http");
        return if is_http {
            Role::Response
        } else {
            Role::Other(content())
        };
    }
    if !is("conversion") && !is("resource") {
        let kind = fields.get("WARC-Type").unwrap_or_default();
        return Role::Other(String::from_utf8_lossy(&kind).to_ascii_lowercase());
    }
    if is("conversion") && content_type.is_empty() {
        return Role::Block(TextKind::Plain);
    }
    match text_kind(&content_type) {
        Some(kind) => Role::Block(kind),
        None => Role::Other(content()),
    }
}

fn id_of(fields: Fields<'_>) -> Result<String, RecordProblem> {
    let id = match fields.get("WARC-Target-URI") {
        // Some crawlers put it in angle brackets.
        Some(uri) => match uri
            .strip_prefix(b"<")
            .and_then(|uri| uri.strip_suffix(b">"))
        {
            Some(inner) => inner.to_vec(),
            None => uri.into_owned(),
        },
        None => match fields.get("WARC-Record-ID") {
            Some(id) => id.into_owned(),
            None => return Err(RecordProblem::NoId),
        },
    };
    to_text(id)
}

fn to_text(bytes: Vec<u8>) -> Result<String, RecordProblem> {
    let text = String::from_utf8(bytes);
    let text = text.map_err(|error| not_utf8(error.as_bytes(), &error.utf8_error()))?;
    refuse_nul(&text)?;
    Ok(text)
}
