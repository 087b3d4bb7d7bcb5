//! An input: opened, checked where a command needs that, and read.

use std::io::{self, Read};
use std::path::PathBuf;

use simshard_simhash::{Recipe, TextRecipe};

use crate::batches::{Batch, Batches, DocumentBatches, SourceReader};
use crate::chunk::READ_BYTES;
use crate::document::{Carries, Document};
use crate::documents::Documents;
use crate::error::InputError;
use crate::files::{self, FileDocuments, OtherFiles};
use crate::ids::Ids;
use crate::in_order;
use crate::needs::{Check, Needs};
use crate::options::{InputOptions, Resolved};
use crate::skipped::Skipped;
use crate::source::{self, Source};

/// Input that is ready to be read, and already checked where the command needs it.
pub struct Input {
    document_count: Option<u64>,
    carries: Carries,
    /// Whether the documents are fingerprints alone, without ids.
    is_bare: bool,
    min_words: usize,
    /// What was left out before reading.
    left_out: Skipped,
    batches: Batches,
}

impl Input {
    /// Opens what `options` name and, where `needs` says so, checks all of it (I1).
    ///
    /// # Errors
    /// What cannot be read, arguments that contradict each other, and the first bad line, row or
    /// record; one whose id `needs` does not allow is bad.
    pub fn open(options: &InputOptions, needs: Needs) -> Result<Self, InputError> {
        Self::open_with_stdin(options, needs, Box::new(io::stdin()))
    }

    pub(crate) fn open_with_stdin(
        options: &InputOptions,
        needs: Needs,
        stdin: Box<dyn Read + Send>,
    ) -> Result<Self, InputError> {
        let Resolved {
            paths,
            format,
            is_given,
            left_out,
        } = options.resolve(needs.preferred_format)?;
        let carries = options.carries(format, needs.recipe);
        if options.min_words > 0 && carries != Carries::Texts {
            return Err(InputError::NoWords);
        }
        let check = needs.check == Check::BeforeUse && !options.skip_bad_lines;
        let Some(reader) = SourceReader::new(options, needs, format, paths.len() > 1)? else {
            return Self::open_files(&paths, options, needs.ids, check);
        };
        let mut sources = source::collect(&paths, format, is_given, options.row_ids, stdin)?;
        let mut document_count = None;
        if check {
            let (checked, count) = check_all(sources, &reader)?;
            sources = checked;
            document_count = Some(count);
        }
        Ok(Self {
            document_count,
            carries,
            is_bare: format.is_bare(),
            min_words: options.min_words,
            left_out: Skipped {
                other_files: left_out,
                ..Skipped::default()
            },
            batches: reader.batches(sources),
        })
    }

    fn open_files(
        roots: &[PathBuf],
        options: &InputOptions,
        ids: Ids,
        count: bool,
    ) -> Result<Self, InputError> {
        files::check_roots(roots)?;
        let others = match options.format {
            _ if options.skip_formats => OtherFiles::LeftOut,
            None => OtherFiles::Refused,
            Some(_) => OtherFiles::Read,
        };
        let documents = FileDocuments::new(roots, options.of_pages(), ids, others);
        Ok(Self {
            document_count: count.then(|| files::count(roots)),
            carries: Carries::Texts,
            is_bare: false,
            min_words: options.min_words,
            left_out: Skipped::default(),
            batches: Batches::Documents(DocumentBatches::new(documents)),
        })
    }

    /// How many documents there are, for a progress bar; `None` where nothing is checked before
    /// use. For `files` it is an upper bound: files that will turn out to be binary, say, are in
    /// it.
    #[must_use]
    pub fn document_count(&self) -> Option<u64> {
        self.document_count
    }

    /// How many words a text has at least that is not left out.
    pub(crate) const fn min_words(&self) -> usize {
        self.min_words
    }

    /// The kind of content of all documents.
    #[must_use]
    pub fn carries(&self) -> Carries {
        self.carries
    }

    /// The recipe for the texts among the documents, where there are any.
    ///
    /// # Errors
    /// If the recipe is not for what the documents carry.
    pub fn text_recipe(&self, recipe: Recipe) -> Result<TextRecipe, InputError> {
        self.carries().text_recipe(recipe)
    }

    /// What was left out before reading.
    pub(crate) fn left_out(&self) -> &Skipped {
        &self.left_out
    }

    /// Whether the documents are fingerprints alone, without ids.
    pub(crate) fn is_bare(&self) -> bool {
        self.is_bare
    }

    /// The documents, in the order of the input.
    #[must_use]
    pub fn documents(self) -> Documents {
        Documents::new(self.batches, self.left_out, self.min_words)
    }

    /// Does `work` with each batch on all cores and hands the results to `take`, several at once,
    /// in the order of the input, until that says `false`.
    ///
    /// What cannot be read is the last result; bad lines are for `work` to pass on.
    pub(crate) fn for_each_batch<T: Send, E>(
        mut self,
        work: impl Fn(&Batch) -> T + Sync,
        take: impl FnMut(Vec<Result<T, InputError>>) -> Result<bool, E>,
    ) -> Result<(), E> {
        in_order::for_each(&mut self.batches, work, take)
    }
}

impl Carries {
    /// The recipe for the texts among such documents, where there are any.
    pub(crate) fn text_recipe(self, recipe: Recipe) -> Result<TextRecipe, InputError> {
        match (self, recipe) {
            (Self::Texts, _) => recipe.for_texts().map_err(InputError::TakesNoTexts),
            (Self::Features, Recipe::Text(_)) => {
                Err(InputError::FeaturesNeedTheirRecipe { recipe })
            }
            (Self::Features, Recipe::Features) | (Self::Fingerprints, _) => {
                Ok(TextRecipe::default())
            }
        }
    }
}

/// The documents in some bytes, read as standard input would be: what hostile input meets, without
/// files.
///
/// # Errors
/// As [`Input::open`], and the first bad line where the input is checked as it is read.
pub fn parse_bytes(
    options: &InputOptions,
    needs: Needs,
    bytes: Vec<u8>,
) -> Result<Vec<Document>, InputError> {
    let stdin = Box::new(io::Cursor::new(bytes));
    Input::open_with_stdin(options, needs, stdin)?
        .documents()
        .collect()
}

/// Reads all sources once and throws the documents away, so that the first fault shows before
/// anything is done. That none has any text shows when they are read again: nothing is done before.
/// Returns the sources, which can still be read, and how many documents there
/// are.
fn check_all(
    sources: Vec<Source>,
    reader: &SourceReader,
) -> Result<(Vec<Source>, u64), InputError> {
    let mut checked = Vec::with_capacity(sources.len());
    let mut documents = 0;
    for source in sources {
        let (first, again) = reader.twice(source)?;
        let mut batches = reader.batches_of_one(first);
        while let Some(batch) = batches.next(READ_BYTES) {
            let batch = batch?;
            let outcome = batch.parse(|_| documents += 1);
            if let Some(error) = outcome.error {
                return Err(error);
            }
            batches.reuse(batch);
        }
        checked.push(again);
    }
    Ok((checked, documents))
}
