//! The documents of a part of an input, as columns.

mod trail;

use std::borrow::Cow;
use std::fmt::Write as _;

use simshard_simhash::{Degenerate, Fingerprint, TextRecipe};

use crate::batches::Batch;
use crate::degenerate::DegenerateTexts;
use crate::document::{Record, RecordContent, RecordId};
use crate::error::InputError;
use crate::input::Input;
use crate::lengths::TextLengths;
use crate::skipped::Skipped;
use trail::{LeftOut, Trail};

/// Documents in the order of their input, one element each in every column.
#[derive(Debug, Default)]
pub struct Columns {
    /// Their fingerprints, computed by the recipe where the input carries none.
    pub fingerprints: Vec<Fingerprint>,
    /// Their ids; `None` for bare fingerprints (`hashes`): see [`Columns::id`].
    pub(crate) ids: Option<IdColumn>,
    /// The skipped items; with a sample, those before its last document.
    pub skipped: Skipped,
    /// Texts that say too little.
    pub degenerate: DegenerateTexts,
    /// How long the texts are that have a fingerprint.
    pub(crate) lengths: TextLengths,
    /// Where bare fingerprints stood.
    lines: Vec<Run>,
}

/// Bare fingerprints on lines that follow one another.
#[derive(Clone, Debug)]
struct Run {
    /// The first of them, by its place from 0.
    document: usize,
    /// Its line, from 1.
    line: u64,
    /// Its source, where there are several.
    source: Option<String>,
}

/// Ids one after another in one string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IdColumn {
    text: String,
    /// Where each id ends.
    ends: Vec<usize>,
}

impl Columns {
    /// The id of a document, by its place from 0. That of a bare fingerprint is the number of its
    /// line from 1, as `path:line` where there are several paths.
    ///
    /// # Panics
    /// If there is no such document with an id.
    #[must_use]
    pub fn id(&self, document: usize) -> Cow<'_, str> {
        if let Some(ids) = &self.ids {
            return Cow::Borrowed(ids.get(document));
        }
        let after = self.lines.partition_point(|run| run.document <= document);
        let run = &self.lines[after - 1];
        let id = RecordId::Number {
            source: run.source.as_deref(),
            number: run.line + (document - run.document) as u64,
        };
        Cow::Owned(id.to_string())
    }
}

impl IdColumn {
    /// The id of a document, by its place from 0.
    ///
    /// # Panics
    /// If there is no such document.
    fn get(&self, document: usize) -> &str {
        let start = document.checked_sub(1).map_or(0, |last| self.ends[last]);
        &self.text[start..self.ends[document]]
    }

    fn push(&mut self, id: &RecordId<'_>) {
        match id {
            RecordId::Given(id) => self.text.push_str(id),
            // Writing to a string does not fail.
            RecordId::Number { .. } => drop(write!(self.text, "{id}")),
        }
        self.ends.push(self.text.len());
    }

    /// Keeps the first `count` ids.
    fn truncate(&mut self, count: usize) {
        self.ends.truncate(count);
        self.text.truncate(self.ends.last().copied().unwrap_or(0));
    }
}

/// What is counted of a document's text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    degenerate: Option<Degenerate>,
    /// `None` if the document has no text.
    bytes: Option<usize>,
}

/// The result of a batch.
#[derive(Default)]
struct BatchColumns {
    columns: Columns,
    /// For a sample, which may end in it.
    trail: Option<Trail>,
    error: Option<InputError>,
}

/// Hands the documents of an input, or the first `sample` of them (0 means all), to `take`, many
/// at once, in the order of the input.
///
/// # Errors
/// What cannot be read, and the first bad line, after the documents before it were taken; that all lines are bad; and
/// those of `take`.
pub fn for_each_part<E: From<InputError>>(
    input: Input,
    recipe: TextRecipe,
    sample: Option<u64>,
    mut take: impl FnMut(Columns) -> Result<(), E>,
) -> Result<(), E> {
    let (is_bare, min_words) = (input.is_bare(), input.min_words());
    let (mut skipped, mut has_documents) = (Skipped::default(), false);
    if !input.left_out().is_empty() {
        take(Columns {
            skipped: input.left_out().clone(),
            ids: (!is_bare).then(IdColumn::default),
            ..Columns::default()
        })?;
    }
    let mut room = match sample {
        None | Some(0) => usize::MAX,
        Some(most) => usize::try_from(most).unwrap_or(usize::MAX),
    };
    input.for_each_batch(
        |batch| {
            part_of(
                batch,
                recipe,
                is_bare,
                min_words,
                sample.is_some_and(|most| most > 0),
            )
        },
        |parts| -> Result<bool, E> {
            for part in parts {
                let BatchColumns {
                    mut columns,
                    trail,
                    error,
                } = part?;
                if let Some(trail) = trail
                    && columns.fingerprints.len() >= room
                {
                    columns.truncate(room);
                    trail.cut(&mut columns, room);
                }
                room -= columns.fingerprints.len();
                skipped += &columns.skipped;
                has_documents |= !columns.fingerprints.is_empty();
                take(columns)?;
                if room == 0 {
                    return Ok(false);
                }
                if let Some(error) = error {
                    return Err(error.into());
                }
            }
            Ok(true)
        },
    )?;
    Ok(skipped.refuse_all_bad(has_documents)?)
}

/// The documents of a batch. No generic function, so that it is compiled here, where the parsers
/// are, whatever crate reads.
fn part_of(
    batch: &Batch,
    recipe: TextRecipe,
    is_bare: bool,
    min_words: usize,
    is_sampled: bool,
) -> BatchColumns {
    let mut part = BatchColumns {
        trail: is_sampled.then(Trail::default),
        ..BatchColumns::default()
    };
    part.columns.fingerprints.reserve(batch.most_documents());
    let mut ids = IdColumn::default();
    let outcome = batch.parse_placed(|place, record| {
        if record.content.is_shorter(min_words) {
            part.columns.skipped.short_texts += 1;
            if let Some(trail) = &mut part.trail {
                trail.leave_out(place, LeftOut::ShortText);
            }
            return;
        }
        let ids = (!is_bare).then_some(&mut ids);
        let judged = part.columns.push(&record, recipe, ids);
        if let Some(trail) = &mut part.trail {
            match judged {
                Some(judged) => trail.add(place, judged),
                None => trail.leave_out(place, LeftOut::UnhashableText),
            }
        }
    });
    if let Some(trail) = &mut part.trail {
        trail.finish(batch, &outcome);
    }
    part.columns.ids = (!is_bare).then_some(ids);
    part.columns.skipped += &outcome.skipped;
    part.error = outcome.error;
    part
}

impl Judged {
    fn of(content: &RecordContent<'_>) -> Self {
        match content {
            RecordContent::Text(text) => Self {
                degenerate: Degenerate::of(text),
                bytes: Some(text.len()),
            },
            RecordContent::Fingerprint(_) => Self {
                degenerate: None,
                bytes: None,
            },
        }
    }
}

impl Columns {
    /// Adds a document, and tells what was counted of it; `None` if it has no fingerprint.
    #[inline]
    pub(crate) fn push(
        &mut self,
        record: &Record<'_>,
        recipe: TextRecipe,
        ids: Option<&mut IdColumn>,
    ) -> Option<Judged> {
        let fingerprint = match &record.content {
            RecordContent::Text(text) => recipe.fingerprint(text),
            RecordContent::Fingerprint(fingerprint) => Some(*fingerprint),
        };
        let Some(fingerprint) = fingerprint else {
            self.skipped.unhashable_texts += 1;
            return None;
        };
        let judged = Judged::of(&record.content);
        self.count(judged);
        match ids {
            Some(ids) => ids.push(&record.id),
            None => self.place(&record.id),
        }
        self.fingerprints.push(fingerprint);
        Some(judged)
    }

    fn count(&mut self, judged: Judged) {
        if let Some(reason) = judged.degenerate {
            self.degenerate.count(reason);
        }
        if let Some(bytes) = judged.bytes {
            self.lengths.count(bytes);
        }
    }

    /// Notes on which line the next bare fingerprint stands.
    #[inline]
    fn place(&mut self, id: &RecordId<'_>) {
        let RecordId::Number { source, number } = *id else {
            return;
        };
        let document = self.fingerprints.len();
        if let Some(run) = self.lines.last()
            && run.line + (document - run.document) as u64 == number
        {
            return;
        }
        self.lines.push(Run {
            document,
            line: number,
            source: source.map(str::to_owned),
        });
    }

    /// Keeps the first `count` documents.
    fn truncate(&mut self, count: usize) {
        if count >= self.fingerprints.len() {
            return;
        }
        self.fingerprints.truncate(count);
        self.lines.retain(|run| run.document < count);
        if let Some(ids) = &mut self.ids {
            ids.truncate(count);
        }
    }

    /// Gives back the memory that the columns grew by beyond their documents.
    pub(crate) fn shrink(&mut self) {
        self.fingerprints.shrink_to_fit();
        self.lines.shrink_to_fit();
        if let Some(ids) = &mut self.ids {
            ids.text.shrink_to_fit();
            ids.ends.shrink_to_fit();
        }
    }
}
