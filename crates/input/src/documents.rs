//! Documents one by one, for callers that send them on.

use std::collections::VecDeque;

use simshard_simhash::TextRecipe;

use crate::batches::{Batch, Batches};
use crate::document::{Document, RecordContent};
use crate::error::InputError;
use crate::skipped::Skipped;

/// As many bytes as one document has at least: none is kept waiting for others.
const LEAST_BYTES: usize = 1;

/// The documents of an [`Input`](crate::Input), read as they are asked for. Ends after the first
/// error.
pub struct Documents {
    batches: Batches,
    ready: VecDeque<Document>,
    skipped: Skipped,
    /// How many words a text has at least that is not left out.
    min_words: usize,
    /// The recipe that texts must have a fingerprint by, if any.
    recipe: Option<TextRecipe>,
    error: Option<InputError>,
    has_documents: bool,
    ended: bool,
}

impl Documents {
    pub(crate) fn new(batches: Batches, skipped: Skipped, min_words: usize) -> Self {
        Self {
            batches,
            ready: VecDeque::new(),
            skipped,
            min_words,
            recipe: None,
            error: None,
            has_documents: false,
            ended: false,
        }
    }

    /// The same documents without the texts that a recipe gives no fingerprint.
    #[must_use]
    pub fn hashable(mut self, recipe: Option<TextRecipe>) -> Self {
        self.recipe = recipe;
        self
    }

    /// The items skipped so far.
    #[must_use]
    pub fn skipped(&self) -> Skipped {
        self.skipped.clone()
    }

    /// Parses a batch.
    fn take(&mut self, batch: Batch) {
        let (ready, recipe, min_words) = (&mut self.ready, self.recipe, self.min_words);
        let [mut unhashable_texts, mut short_texts] = [0; 2];
        let outcome = batch.parse(|record| match (&record.content, recipe) {
            (content, _) if content.is_shorter(min_words) => short_texts += 1,
            (RecordContent::Text(text), Some(recipe)) if !recipe.has_fingerprint(text) => {
                unhashable_texts += 1;
            }
            _ => ready.push_back(record.into()),
        });
        self.skipped.unhashable_texts += unhashable_texts;
        self.skipped.short_texts += short_texts;
        self.has_documents |= !self.ready.is_empty();
        self.skipped += &outcome.skipped;
        self.error = outcome.error;
        self.batches.reuse(batch);
    }
}

impl Iterator for Documents {
    type Item = Result<Document, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(document) = self.ready.pop_front() {
                return Some(Ok(document));
            }
            if let Some(error) = self.error.take() {
                self.ended = true;
                return Some(Err(error));
            }
            if self.ended {
                return None;
            }
            match self.batches.next(LEAST_BYTES) {
                Some(Ok(batch)) => self.take(batch),
                Some(Err(error)) => self.error = Some(error),
                None => {
                    self.ended = true;
                    self.error = self.skipped.refuse_all_bad(self.has_documents).err();
                }
            }
        }
    }
}
