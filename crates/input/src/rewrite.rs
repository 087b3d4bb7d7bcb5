//! Lines that are read twice: first as documents, then to be written again as they were.
//!
//! Between the two stands a bit for each line. So the second reading parses nothing, and what it
//! hands on has the bytes of the input, headers, blank lines and line breaks included.
//!
//! A row of CSV may take several lines; its bit is that of the first.
//!
//! # Invariants
//! - I6: both readings see the same lines. What can be read only once is copied, and a file that was
//!   changed between the two is an error.

mod marks;
mod rows;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use simshard_simhash::{Recipe, TextRecipe};

use crate::batches::{Batch, Batches, SourceReader};
use crate::chunk::{Chunk, Chunks};
use crate::columns::{Columns, IdColumn};
use crate::document::Carries;
use crate::error::InputError;
use crate::format::Format;
use crate::in_order;
use crate::kinds::Kinds;
use crate::needs::Needs;
use crate::options::{InputOptions, Resolved};
use crate::parse::LineParser;
use crate::parts::Parts;
use crate::paths::is_stdin;
use crate::preference::Preference;
use crate::records::RecordReader;
use crate::source::{self, Source};
pub use marks::LineMarks;
use marks::Marks;

/// An input of lines that is read twice.
pub struct Rewrite {
    documents: DocumentReader,
    carries: Carries,
    paths: Vec<PathBuf>,
    /// Files of other formats.
    left_out: Kinds,
    sources: Vec<TwiceRead>,
}

/// How lines become documents.
struct DocumentReader {
    /// For CSV, how it is cut into lines.
    parser: Arc<LineParser>,
    /// How rows of CSV are read.
    rows: Option<RecordReader>,
    format: Format,
    recipe: TextRecipe,
    preference: Preference,
}

/// A source, as it is told apart and read the second time.
struct TwiceRead {
    name: String,
    source: Option<Source>,
    /// Where it is a file.
    state: Option<State>,
}

/// What changes with a file's content: device, number, size and time of the last change.
type State = (PathBuf, u64, u64, u64, (i64, i64));

/// The documents of such an input.
pub struct LineDocuments {
    /// The documents.
    pub parts: Parts,
    /// By document, its rank; empty where the first is preferred.
    pub ranks: Vec<u64>,
    /// Where they stand.
    pub marks: LineMarks,
}

/// The documents of a chunk.
#[derive(Default)]
struct Part {
    columns: Columns,
    ranks: Vec<u64>,
    /// The lines of the documents.
    documents: Vec<u64>,
    bad: Vec<u64>,
    last_line: u64,
    error: Option<InputError>,
}

impl Rewrite {
    /// Opens an input.
    ///
    /// # Errors
    /// What cannot be read, and arguments that contradict each other or the format.
    pub fn open(
        options: &InputOptions,
        needs: Needs,
        recipe: Recipe,
        preference: Preference,
        stdin: Box<dyn std::io::Read + Send>,
    ) -> Result<Self, InputError> {
        let Resolved {
            paths,
            format,
            is_given,
            left_out,
        } = options.resolve(needs.preferred_format)?;
        let several = paths.len() > 1;
        let (parser, rows) = match SourceReader::new(options, needs, format, several)? {
            Some(SourceReader::Lines(parser)) => (parser, None),
            Some(SourceReader::Records(rows)) if format == Format::Csv => {
                let lines = LineParser::new(options, needs, Format::Lines, several);
                let lines = lines.ok_or(InputError::NotRewritten { format })?;
                (Arc::new(lines), Some(rows))
            }
            Some(SourceReader::Records(_)) | None => {
                return Err(InputError::NotRewritten { format });
            }
        };
        let carries = options.carries(format, needs.recipe);
        let recipe = carries.text_recipe(recipe)?;
        if let Some(needs) = preference.lacks(format, carries == Carries::Texts) {
            return Err(InputError::NoPreference {
                preference: preference.to_string(),
                needs,
                format,
            });
        }
        let sources = source::collect(&paths, format, is_given, options.row_ids, stdin)?;
        let sources = sources.into_iter().map(TwiceRead::new).collect();
        Ok(Self {
            documents: DocumentReader {
                parser,
                rows,
                format,
                recipe,
                preference,
            },
            carries,
            paths,
            left_out,
            sources,
        })
    }

    /// The files of the input, as they are read; none where it is standard input.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The format of the input, which is that of what is written.
    #[must_use]
    pub fn format(&self) -> Format {
        self.documents.format
    }

    /// Reads all documents. Tells `progress` how many came each time.
    ///
    /// # Errors
    /// What cannot be read, and the first bad line.
    pub fn read(&mut self, progress: &mut dyn FnMut(u64)) -> Result<LineDocuments, InputError> {
        let mut found = LineDocuments {
            parts: Parts::empty(self.format() != Format::Hashes, self.carries),
            ranks: Vec::new(),
            marks: LineMarks {
                sources: Vec::new(),
            },
        };
        found.parts.skipped.other_files += &self.left_out;
        for at in 0..self.sources.len() {
            let Some(source) = self.sources[at].source.take() else {
                continue;
            };
            let (first, again) = source.twice()?;
            self.sources[at].source = Some(again);
            let marks = match &self.documents.rows {
                None => self.documents.read_source(first, &mut found, progress)?,
                Some(rows) => self
                    .documents
                    .read_rows(rows, first, &mut found, progress)?,
            };
            found.marks.sources.push(marks);
        }
        Ok(found)
    }

    /// Hands all lines but those that are left out to `take`, with the number of their source from
    /// 0, in the order of the input.
    ///
    /// # Errors
    /// What cannot be read, a file that was changed since, and those of `take`.
    pub fn write<E: From<InputError>>(
        self,
        left_out: &LineMarks,
        mut take: impl FnMut(usize, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        for (at, (twice, marks)) in self.sources.into_iter().zip(&left_out.sources).enumerate() {
            let changed = || InputError::Changed {
                file: twice.name.clone(),
            };
            let Some(source) = twice.source else {
                continue;
            };
            let mut last = 0;
            let mut batches = self.documents.batches(source);
            let work = |batch: &Batch| match batch {
                Batch::Lines(chunk, _) => (marks.kept(chunk), last_line(chunk)),
                Batch::Documents(..) => (Vec::new(), 0),
            };
            in_order::for_each(&mut batches, work, |parts| -> Result<bool, E> {
                for part in parts {
                    let (bytes, line) = part?;
                    last = line;
                    take(at, bytes)?;
                }
                Ok(true)
            })?;
            if last != marks.lines || twice.state != state(&twice.name) {
                return Err(changed().into());
            }
        }
        Ok(())
    }
}

impl DocumentReader {
    fn batches(&self, source: Source) -> Batches {
        match self.rows {
            None => SourceReader::Lines(self.parser.clone()).batches(vec![source]),
            // A line that is too long ends the reading, and is not passed over.
            Some(_) => Batches::Lines(Chunks::new(vec![source], false), self.parser.clone()),
        }
    }

    fn read_source(
        &self,
        source: Source,
        found: &mut LineDocuments,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Marks, InputError> {
        let mut marks = Marks::default();
        let mut batches = self.batches(source);
        let work = |batch: &Batch| self.part(batch);
        in_order::for_each(&mut batches, work, |parts| {
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

    fn part(&self, batch: &Batch) -> Part {
        let mut part = Part::default();
        let Batch::Lines(chunk, _) = batch else {
            return part;
        };
        let is_ranked = self.preference != Preference::First;
        let mut ids = (self.format != Format::Hashes).then(IdColumn::default);
        let mut problem = None;
        let outcome = self.parser.parse_lines(chunk, |line, record| {
            let rank = match self.preference.rank(line.bytes, &record) {
                Ok(rank) => rank,
                Err(refused) if self.parser.skips_bad_lines() => {
                    tracing::debug!(line = line.number, error = %refused, "bad line skipped");
                    part.columns.skipped.bad_lines += 1;
                    part.bad.push(line.number);
                    return;
                }
                Err(refused) => {
                    problem.get_or_insert((line.number, refused));
                    return;
                }
            };
            let before = part.columns.fingerprints.len();
            part.columns.push(&record, self.recipe, ids.as_mut());
            if part.columns.fingerprints.len() > before {
                part.documents.push(line.number);
                if is_ranked {
                    part.ranks.push(rank);
                }
            }
        });
        part.columns.ids = ids;
        part.columns.skipped += &outcome.skipped;
        part.bad.extend(outcome.bad_lines);
        part.last_line = last_line(chunk);
        let refused = problem.map(|(line, problem)| InputError::BadLine {
            file: chunk.source.to_string(),
            line,
            problem,
        });
        part.error = refused.or(outcome.error);
        part
    }
}

impl TwiceRead {
    fn new(source: Source) -> Self {
        Self {
            name: source.name.clone(),
            state: state(&source.name),
            source: Some(source),
        }
    }
}

/// The state of a file; `None` for anything else.
fn state(name: &str) -> Option<State> {
    let path = Path::new(name);
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let changed = (metadata.ctime(), metadata.ctime_nsec());
    let state = (metadata.dev(), metadata.ino(), metadata.size(), changed);
    (!is_stdin(path)).then(|| (path.to_owned(), state.0, state.1, state.2, state.3))
}

/// The number of the last line of a chunk, or of one that is too long to be in it.
fn last_line(chunk: &Chunk) -> u64 {
    let without_break = !chunk.bytes().is_empty() && !chunk.bytes().ends_with(b"\n");
    let more = u64::from(without_break) + u64::from(chunk.then_too_long);
    (chunk.first_line + chunk.lines() as u64 + more).saturating_sub(1)
}

#[cfg(test)]
mod tests;
