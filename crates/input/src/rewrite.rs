//! Inputs that are read twice: first as documents, then to be written again as they were.
//!
//! A source is cut into units, numbered from 1:
//!
//! | format                            | a unit                                                     |
//! |-----------------------------------|------------------------------------------------------------|
//! | `jsonl`, `lines`, `tsv`, `hashes` | a line                                                     |
//! | `csv`                             | a line; the bit of a row of several is that of its first   |
//! | `warc`                            | a record                                                   |
//! | `parquet`                         | a row, all columns of it                                   |
//!
//! Between the two readings stands a bit for each unit. So the second makes no documents, and hands on the bytes
//! of the input; of Parquet, those of a file with the same values. Units without a document stay: headers, blank lines, records without text.
//!
//! # Invariants
//! - I6: both readings see the same units. What can be read only once is copied, and a file that was
//!   changed between the two is an error.

mod lines;
mod marks;
mod units;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use simshard_simhash::{Recipe, TextRecipe};

use crate::batches::{Batches, SourceReader};
use crate::chunk::Chunks;
use crate::document::Carries;
use crate::error::InputError;
use crate::fields::RankField;
use crate::files;
use crate::format::Format;
use crate::kinds::Kinds;
use crate::needs::Needs;
use crate::options::{InputOptions, Resolved};
use crate::parse::LineParser;
use crate::parts::Parts;
use crate::piece::Piece;
use crate::preference::Preference;
use crate::records::RecordReader;
use crate::source::{self, Source};
use marks::SourceMarks;
pub use marks::{Marks, Places};

/// An input that is read twice.
pub struct Rewrite {
    documents: DocumentReader,
    carries: Carries,
    paths: Vec<PathBuf>,
    /// Files of other formats.
    left_out: Kinds,
    /// Whether an input without any text is as it should be.
    may_lack_texts: bool,
    sources: Vec<TwiceRead>,
}

/// How units become documents.
struct DocumentReader {
    units: Units,
    format: Format,
    recipe: TextRecipe,
    preference: Preference,
}

/// What the units are, and how they are read.
enum Units {
    /// Lines.
    Lines(Arc<LineParser>),
    /// Lines, several of which may be a row. The parser only cuts them.
    Csv(RecordReader, Arc<LineParser>),
    /// Records of WARC, rows of Parquet.
    Records(RecordReader),
}

/// A source, as it is told apart and read the second time.
struct TwiceRead {
    name: String,
    source: Option<Source>,
    /// Where it is a file, and what that was like before the first reading.
    file: Option<(PathBuf, Option<State>)>,
}

/// What changes with a file's content: device, number, size and time of the last change.
type State = (u64, u64, u64, (i64, i64));

/// The documents of such an input.
pub struct MarkedDocuments {
    /// The documents.
    pub parts: Parts,
    /// By document, its rank; empty where the first is preferred.
    pub ranks: Vec<u64>,
    /// Where they stand.
    pub marks: Marks,
    /// By source, how many documents came up to its end.
    pub ends: Vec<usize>,
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
        if format == Format::Files && !is_given {
            // That there is nothing to write again says more than that the format is not written.
            files::check_any(&paths)?;
        }
        let several = paths.len() > 1;
        let units = Units::of(options, needs, format, several, preference.field())?;
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
                units,
                format,
                recipe,
                preference,
            },
            carries,
            paths,
            left_out,
            may_lack_texts: options.skip_bad_lines,
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
    /// What cannot be read, the first bad line, and that nothing can be read, or that no document can be preferred.
    pub fn read(&mut self, progress: &mut dyn FnMut(u64)) -> Result<MarkedDocuments, InputError> {
        let mut found = MarkedDocuments {
            parts: Parts::empty(!self.format().is_bare(), self.carries),
            ranks: Vec::new(),
            marks: Marks {
                sources: Vec::new(),
            },
            ends: Vec::new(),
        };
        found.parts.skipped.other_files += &self.left_out;
        for at in 0..self.sources.len() {
            let Some(source) = self.sources[at].source.take() else {
                continue;
            };
            let (first, again) = self.documents.twice(source)?;
            self.sources[at].source = Some(again);
            let marks = self.documents.read(first, &mut found, progress)?;
            found.marks.sources.push(marks);
            found.ends.push(found.parts.fingerprints.len());
        }
        let skipped = &found.parts.skipped;
        let has_texts = !found.parts.fingerprints.is_empty() || skipped.unhashable_texts > 0;
        if !has_texts && !self.may_lack_texts {
            skipped.refuse_no_texts()?;
        }
        skipped.refuse_all_bad(has_texts)?;
        self.documents.preference.check(&found.ranks)?;
        Ok(found)
    }

    /// Hands all units but those that are left out to `take`, with the number of their source from
    /// 0, in the order of the input.
    ///
    /// # Errors
    /// What cannot be read, a file that was changed since, and those of `take`.
    pub fn write<E: From<InputError>>(
        self,
        left_out: &Marks,
        mut take: impl FnMut(usize, Piece) -> Result<(), E>,
    ) -> Result<(), E> {
        for (at, (twice, marks)) in self.sources.into_iter().zip(&left_out.sources).enumerate() {
            let Some(source) = twice.source else {
                continue;
            };
            let units = self
                .documents
                .write(source, marks, |piece| take(at, piece))?;
            let file = twice.file.as_ref();
            let is_changed = file.is_some_and(|(path, before)| *before != state(path));
            if is_changed || units != marks.units {
                let file = twice.name;
                return Err(InputError::Changed { file }.into());
            }
        }
        Ok(())
    }
}

impl Units {
    /// Those of a format.
    fn of(
        options: &InputOptions,
        needs: Needs,
        format: Format,
        several: bool,
        rank: Option<&RankField>,
    ) -> Result<Self, InputError> {
        let not_rewritten = || InputError::NotRewritten { format };
        let reader = match SourceReader::new(options, needs, format, several)? {
            Some(SourceReader::Lines(parser)) => return Ok(Self::Lines(parser)),
            Some(SourceReader::Records(reader)) => reader.ranked_by(rank),
            None => return Err(not_rewritten()),
        };
        match format {
            Format::Csv => {
                let lines = LineParser::new(options, needs, Format::Lines, several);
                let lines = lines.ok_or_else(not_rewritten)?;
                Ok(Self::Csv(reader, Arc::new(lines)))
            }
            Format::Warc | Format::Parquet => Ok(Self::Records(reader)),
            Format::Arrow | Format::Files => Err(not_rewritten()),
            Format::Jsonl | Format::Lines | Format::Tsv | Format::Hashes => Err(not_rewritten()),
        }
    }
}

impl DocumentReader {
    /// The source twice, to be read one after the other.
    fn twice(&self, source: Source) -> Result<(Source, Source), InputError> {
        match &self.units {
            Units::Lines(_) | Units::Csv(..) => source.twice(),
            Units::Records(reader) => reader.twice(source),
        }
    }

    /// Reads the documents of a source.
    fn read(
        &self,
        source: Source,
        found: &mut MarkedDocuments,
        progress: &mut dyn FnMut(u64),
    ) -> Result<SourceMarks, InputError> {
        match &self.units {
            Units::Lines(parser) => {
                let mut batches = self.lines(source, parser);
                self.read_lines(parser, &mut batches, found, progress)
            }
            Units::Csv(reader, _) | Units::Records(reader) => {
                self.read_units(reader.units(source)?, found, progress)
            }
        }
    }

    /// Hands on the units of a source that are kept. Returns the number of all.
    fn write<E: From<InputError>>(
        &self,
        source: Source,
        marks: &SourceMarks,
        take: impl FnMut(Piece) -> Result<(), E>,
    ) -> Result<u64, E> {
        match &self.units {
            Units::Lines(parser) | Units::Csv(_, parser) => {
                lines::write(&mut self.lines(source, parser), marks, take)
            }
            Units::Records(reader) => reader.write_kept(source, &|unit| !marks.is_set(unit), take),
        }
    }

    /// A source as chunks of lines.
    fn lines(&self, source: Source, parser: &Arc<LineParser>) -> Batches {
        // A line that is too long ends the reading of CSV, and is not passed over.
        let is_passed_over = matches!(self.units, Units::Lines(_)) && parser.skips_bad_lines();
        Batches::Lines(Chunks::new(vec![source], is_passed_over), parser.clone())
    }
}

impl TwiceRead {
    fn new(source: Source) -> Self {
        let path = source.file().map(Path::to_owned);
        Self {
            name: source.name.clone(),
            file: path.map(|path| (path.clone(), state(&path))),
            source: Some(source),
        }
    }
}

/// The state of a file; `None` if it is none any more.
fn state(path: &Path) -> Option<State> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let changed = (metadata.ctime(), metadata.ctime_nsec());
    Some((metadata.dev(), metadata.ino(), metadata.size(), changed))
}

#[cfg(test)]
mod tests;
