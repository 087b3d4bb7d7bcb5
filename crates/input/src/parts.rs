//! All documents of an input at once: what the batch commands work on.
//!
//! Their ids stay in the parts that they were read in. One column for all of them would have to grow, and be there
//! twice each time it does. Their fingerprints stand in one column, which is what searches sort.

use std::borrow::Cow;

use simshard_simhash::{Fingerprint, Recipe, TextRecipe};

use crate::columns::{Columns, for_each_part};
use crate::degenerate::DegenerateTexts;
use crate::document::Carries;
use crate::error::InputError;
use crate::format::Format;
use crate::ids::Ids;
use crate::input::Input;
use crate::lengths::TextLengths;
use crate::needs::{Check, Needs};
use crate::options::InputOptions;
use crate::skipped::Skipped;

/// The documents of an input in its order.
#[derive(Debug, Default)]
pub struct Parts {
    /// Of all documents.
    pub fingerprints: Vec<Fingerprint>,
    /// None of them is empty. Their fingerprints were moved out.
    parts: Vec<Columns>,
    /// By part, the number of its first document, from 0.
    starts: Vec<usize>,
    /// Whether the documents have ids. Others are bare fingerprints (`hashes`): see [`Parts::id`].
    pub has_ids: bool,
    /// Whether the recipe made the fingerprints, of texts or features; the input may carry them.
    pub by_recipe: bool,
    /// The skipped items; with a sample, those before its last document.
    pub skipped: Skipped,
    /// Texts that say too little.
    pub degenerate: DegenerateTexts,
    /// How long the texts are that have a fingerprint.
    pub lengths: TextLengths,
}

/// Reads all documents that `options` name, or the first `sample` of them (0 means all),
/// fingerprinted by `recipe` where they carry texts. Tells `progress` how many came each time.
///
/// Where neither `options` nor the paths say a format, it is `hashes`. The input is read once.
///
/// # Errors
/// What cannot be read, arguments that contradict each other, and the first bad line; a line
/// whose id `ids` does not allow is one. What follows the last document of a sample is not looked
/// at.
pub fn parts(
    options: &InputOptions,
    ids: Ids,
    recipe: Recipe,
    sample: Option<u64>,
    progress: &mut dyn FnMut(u64),
) -> Result<Parts, InputError> {
    let needs = Needs {
        ids,
        check: Check::AsRead,
        preferred_format: Format::Hashes,
        recipe,
    };
    let input = Input::open(options, needs)?;
    let recipe = input.text_recipe(recipe)?;
    read(input, recipe, sample, progress)
}

pub(crate) fn read(
    input: Input,
    recipe: TextRecipe,
    sample: Option<u64>,
    progress: &mut dyn FnMut(u64),
) -> Result<Parts, InputError> {
    let mut parts = Parts::empty(!input.is_bare(), input.carries());
    for_each_part(input, recipe, sample, |part| -> Result<(), InputError> {
        progress(part.fingerprints.len() as u64);
        parts.push(part);
        Ok(())
    })?;
    Ok(parts)
}

impl Parts {
    /// No documents yet, but such as are to come.
    pub(crate) fn empty(has_ids: bool, carries: Carries) -> Self {
        Self {
            has_ids,
            by_recipe: carries != Carries::Fingerprints,
            ..Self::default()
        }
    }

    pub(crate) fn push(&mut self, mut part: Columns) {
        self.skipped += &part.skipped;
        self.degenerate += part.degenerate;
        self.lengths += part.lengths;
        if part.fingerprints.is_empty() {
            return;
        }
        self.starts.push(self.fingerprints.len());
        self.fingerprints.append(&mut part.fingerprints);
        part.shrink();
        self.parts.push(part);
    }

    /// The id of a document, by its number from 0. That of a bare fingerprint is the number of its
    /// line from 1, as `path:line` where there are several paths.
    ///
    /// # Panics
    /// If there is no document at all.
    #[must_use]
    pub fn id(&self, document: usize) -> Cow<'_, str> {
        let part = self.starts.partition_point(|&start| start <= document) - 1;
        self.parts[part].id(document - self.starts[part])
    }
}
