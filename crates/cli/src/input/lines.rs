//! Documents from lines: one source after another, with or without a check ahead.

use std::io::Read;
use std::vec;

use super::line_reader::{Line, LineReader};
use super::parser::LineParser;
use super::source::Source;
use super::{Document, InputError, LineProblem, Skipped};

/// Reads the documents of several sources.
pub(super) struct LineDocuments {
    parser: LineParser,
    skip_bad_lines: bool,
    waiting: vec::IntoIter<Source>,
    current: Option<OpenSource>,
}

/// The source being read.
struct OpenSource {
    name: String,
    lines: LineReader,
}

/// Reads all sources once and throws the documents away, so that the first fault shows before
/// anything is done; returns the sources, which can still be read, and how many there were.
pub(super) fn check(
    sources: Vec<Source>,
    parser: &LineParser,
) -> Result<(Vec<Source>, u64), InputError> {
    let mut checked = Vec::with_capacity(sources.len());
    let mut documents = 0;
    for source in sources {
        let (reader, again) = source.open_for_check()?;
        let mut open = OpenSource::new(again.name.clone(), reader);
        while open.next(parser)?.is_some() {
            documents += 1;
        }
        checked.push(again);
    }
    Ok((checked, documents))
}

impl LineDocuments {
    pub(super) fn new(sources: Vec<Source>, parser: LineParser, skip_bad_lines: bool) -> Self {
        Self {
            parser,
            skip_bad_lines,
            waiting: sources.into_iter(),
            current: None,
        }
    }

    /// The next document.
    pub(super) fn next(&mut self, skipped: &mut Skipped) -> Option<Result<Document, InputError>> {
        loop {
            let open = match &mut self.current {
                Some(open) => open,
                None => {
                    let source = self.waiting.next()?;
                    let name = source.name.clone();
                    match source.open() {
                        Ok(reader) => self.current.insert(OpenSource::new(name, reader)),
                        Err(error) => return Some(Err(error)),
                    }
                }
            };
            match open.next(&self.parser) {
                Ok(Some(document)) => return Some(Ok(document)),
                Ok(None) => self.current = None,
                Err(error @ InputError::BadLine { .. }) if self.skip_bad_lines => {
                    tracing::debug!(%error, "bad line skipped");
                    skipped.bad_lines += 1;
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl OpenSource {
    fn new(name: String, reader: Box<dyn Read + Send>) -> Self {
        Self {
            name,
            lines: LineReader::new(reader),
        }
    }

    /// The document on the next line that has one. After a bad line it goes on with the one after.
    fn next(&mut self, parser: &LineParser) -> Result<Option<Document>, InputError> {
        loop {
            let number = self.lines.number() + 1;
            let parsed = match self.lines.next() {
                Ok(Some(Line::Whole(line))) => parser.parse(&self.name, number, line),
                Ok(Some(Line::TooLong)) => Err(LineProblem::TooLong),
                Ok(None) => return Ok(None),
                Err(error) => {
                    return Err(InputError::Unreadable {
                        file: self.name.clone(),
                        error,
                    });
                }
            };
            match parsed {
                Ok(Some(document)) => return Ok(Some(document)),
                Ok(None) => {}
                Err(problem) => {
                    return Err(InputError::BadLine {
                        file: self.name.clone(),
                        line: number,
                        problem,
                    });
                }
            }
        }
    }
}
