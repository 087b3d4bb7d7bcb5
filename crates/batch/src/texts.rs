//! The texts of the few documents that a report shows, read again from the input.
//!
//! The search holds no texts. What can be read only once has none to show, nor has a document that another process
//! changed meanwhile.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use simshard_input::{
    Check, Format, Ids, Input, InputError, InputOptions, Needs, RecordId, for_each_text,
};
use simshard_simhash::{Fingerprint, TextRecipe};

/// Bytes of a text that are kept.
const KEPT_BYTES: usize = 64 << 10;

/// A document by its id and its fingerprint.
pub(crate) type Key = (String, Fingerprint);

/// The beginning of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Excerpt {
    /// The first 64 KiB.
    pub text: String,
    /// The bytes of all of it.
    pub bytes: u64,
}

impl Excerpt {
    fn of(text: &str) -> Self {
        Self {
            text: text[..text.floor_char_boundary(KEPT_BYTES)].to_owned(),
            bytes: text.len() as u64,
        }
    }

    /// Whether it is all of the text.
    pub(crate) fn is_whole(&self) -> bool {
        self.text.len() as u64 == self.bytes
    }
}

/// Texts by their documents.
#[derive(Debug, Default)]
pub(crate) struct Texts(HashMap<Key, Excerpt>);

impl Texts {
    /// Reads the input again, until the texts of all `wanted` documents are found.
    ///
    /// # Errors
    /// What cannot be read.
    pub(crate) fn read(
        options: &InputOptions,
        ids: Ids,
        recipe: TextRecipe,
        wanted: &HashSet<Key>,
    ) -> Result<Self, InputError> {
        let mut found = HashMap::new();
        if wanted.is_empty() || !can_be_read_again(options) {
            return Ok(Self(found));
        }
        let needs = Needs {
            ids,
            check: Check::AsRead,
            preferred_format: Format::Hashes,
            recipe: recipe.into(),
        };
        let wanted_ids: HashSet<&str> = wanted.iter().map(|(id, _)| id.as_str()).collect();
        let of_wanted = |id: &RecordId<'_>, text: &str| {
            let id = match id {
                RecordId::Given(id) => Cow::Borrowed(&**id),
                RecordId::Number { .. } => Cow::Owned(id.to_string()),
            };
            if !wanted_ids.contains(&*id) {
                return None;
            }
            let key = (id.into_owned(), recipe.fingerprint(text)?);
            let is_wanted = wanted.contains(&key);
            is_wanted.then(|| (key, Excerpt::of(text)))
        };
        for_each_text(
            Input::open(options, needs)?,
            of_wanted,
            |one| -> Result<bool, InputError> {
                if let Some((key, text)) = one {
                    found.entry(key).or_insert(text);
                }
                Ok(found.len() < wanted.len())
            },
        )?;
        Ok(Self(found))
    }

    /// The text of a document, if it was found.
    pub(crate) fn of(&self, id: &str, fingerprint: Fingerprint) -> Option<&Excerpt> {
        self.0.get(&(id.to_owned(), fingerprint))
    }
}

/// Whether the input is files and folders: pipes, and what else is no file, can be read only once.
pub(crate) fn can_be_read_again(options: &InputOptions) -> bool {
    let is_there = |path: &std::path::PathBuf| path.is_file() || path.is_dir();
    !options.reads_stdin() && options.paths.iter().all(is_there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wanted_texts_are_found_by_id_and_fingerprint() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("texts.jsonl");
        let long = "word ".repeat(20_000);
        let lines = [("a", "one two"), ("a", "three four"), ("b", &long)];
        let lines = lines.map(|(id, text)| format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n"));
        std::fs::write(&file, lines.concat()).unwrap();
        let recipe = TextRecipe::default();
        let key = |id: &str, text: &str| (id.to_owned(), recipe.fingerprint(text).unwrap());
        let wanted = [key("a", "three four"), key("b", &long), key("b", "gone")];
        let wanted = HashSet::from(wanted);
        let options = InputOptions {
            format: Some(Format::Jsonl),
            skip_bad_lines: false,
            ..InputOptions::walking(vec![file])
        };
        let texts = Texts::read(&options, Ids::Any, recipe, &wanted).unwrap();
        let of = |(id, fingerprint): Key| texts.of(&id, fingerprint);
        assert_eq!(of(key("a", "three four")).unwrap().text, "three four");
        assert_eq!(of(key("a", "one two")), None);
        assert_eq!(of(key("b", "gone")), None);
        let cut = of(key("b", &long)).unwrap();
        assert_eq!((cut.text.len(), cut.bytes), (KEPT_BYTES, 100_000));
        let stdin = InputOptions {
            paths: Vec::new(),
            ..options
        };
        let none = Texts::read(&stdin, Ids::Any, recipe, &wanted).unwrap();
        assert!(none.0.is_empty());
    }
}
