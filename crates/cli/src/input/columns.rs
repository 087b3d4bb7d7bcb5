//! All documents of an input at once, as columns: what the batch commands work on.

use indicatif::ProgressBar;
use simshard_simhash::{Fingerprint, Recipe};

use super::{Content, Ids, Input, InputArgs, InputError, Skipped};

/// The documents of an input in its order, one element each in every column.
#[derive(Debug, Default)]
pub struct Columns {
    /// Their fingerprints, computed by the recipe where the input carries none.
    pub fingerprints: Vec<Fingerprint>,
    /// Their ids; `None` for bare fingerprints (`hashes`), which have a line number instead.
    pub ids: Option<IdColumn>,
    /// What was left out.
    pub skipped: Skipped,
}

/// Ids one after another in one string.
#[derive(Debug, Default)]
pub struct IdColumn {
    bytes: String,
    /// Where each id ends.
    ends: Vec<usize>,
}

impl IdColumn {
    /// The id of a document, by its place from 0.
    ///
    /// # Panics
    /// If there is no such document.
    #[must_use]
    pub fn get(&self, document: usize) -> &str {
        let start = document.checked_sub(1).map_or(0, |last| self.ends[last]);
        &self.bytes[start..self.ends[document]]
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn push(&mut self, id: &str) {
        self.bytes.push_str(id);
        self.ends.push(self.bytes.len());
    }
}

/// Reads all documents that `args` name, or the first `sample` of them, fingerprinted by `recipe`
/// where they carry texts. Counts them on `progress`.
///
/// # Errors
/// What cannot be read, arguments that contradict each other, and the first bad line; a line
/// whose id `ids` does not allow is one.
pub fn columns(
    args: &InputArgs,
    ids: Ids,
    recipe: Recipe,
    sample: Option<u64>,
    progress: &ProgressBar,
) -> Result<Columns, InputError> {
    let mut documents = Input::open(args, ids)?.documents();
    let mut columns = Columns::default();
    let mut column = IdColumn::default();
    let most = sample.filter(|&most| most > 0).unwrap_or(u64::MAX);
    while (column.len() as u64) < most {
        let Some(document) = documents.next() else {
            break;
        };
        let document = document?;
        columns.fingerprints.push(match &document.content {
            Content::Text(text) => recipe.fingerprint(text),
            Content::Fingerprint(fingerprint) => *fingerprint,
        });
        column.push(&document.id);
        progress.inc(1);
    }
    columns.skipped = documents.skipped();
    columns.ids = Some(column);
    Ok(columns)
}
