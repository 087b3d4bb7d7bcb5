//! Where documents come from and how they are written.

use std::path::PathBuf;

use simshard_simhash::{Recipe, Takes};

use crate::document::Carries;
use crate::error::InputError;
use crate::fields::{ContentColumn, JsonContent, JsonFields, TableColumns};
use crate::folders::{self, Chosen};
use crate::format::Format;
use crate::html::{Extraction, Html};
use crate::kinds::Kinds;
use crate::needs::Needs;
use crate::notation::Notation;
use crate::paths::{self, is_stdin};
use crate::separator::Separator;
use crate::suggested;

/// Where documents come from and how they are written.
#[derive(Clone, Debug)]
pub struct InputOptions {
    /// Files, folders and patterns; `-` or nothing is standard input.
    pub paths: Vec<PathBuf>,
    /// How documents are written; without it by the paths, else as the command says.
    pub format: Option<Format>,
    /// The field or column of the id; without it `id`.
    pub id_field: Option<String>,
    /// Whether ids are the numbers of lines or rows, instead of a field.
    pub row_ids: bool,
    /// The fields or columns of the text, whose texts are joined; without them `text`.
    pub text_fields: Vec<String>,
    /// The field or column of the fingerprint, instead of a text.
    pub fingerprint_field: Option<String>,
    /// How fingerprints are written as numbers.
    pub notation: Notation,
    /// What stands between the values of CSV; without it by the names of the files.
    pub separator: Option<Separator>,
    /// The field of the features, instead of a text; without it `features`, where the recipe
    /// takes these.
    pub features_field: Option<String>,
    /// How HTML pages become text. The default is [`Html::Main`] for documents that are known to be HTML.
    pub html: Option<Html>,
    /// Whether files of other formats are counted, instead of stopping.
    pub skip_formats: bool,
    /// Whether lines, rows and records that cannot be read are counted, instead of stopping.
    pub skip_bad_lines: bool,
    /// Texts with fewer words than this are left out and counted, but not by [`Rewrite`](crate::Rewrite).
    pub min_words: usize,
}

/// Where documents come from and how they are written, for certain.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The paths, with patterns expanded.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) format: Format,
    /// Whether the caller said the format. If not, content that looks like another is refused.
    pub(crate) is_given: bool,
    /// Files of other formats that are left out.
    pub(crate) left_out: Kinds,
}

impl InputOptions {
    const ID_FIELD: &str = "id";
    const TEXT_FIELD: &str = "text";
    const FEATURES_FIELD: &str = "features";

    /// Options that walk these files and folders.
    /// Nothing is measured ahead, so a caller that wants only the first documents pays for no more.
    #[must_use]
    pub fn walking(paths: Vec<PathBuf>) -> Self {
        Self {
            paths,
            format: Some(Format::Files),
            id_field: None,
            row_ids: false,
            text_fields: Vec::new(),
            fingerprint_field: None,
            notation: Notation::Unsigned,
            separator: None,
            features_field: None,
            html: None,
            skip_formats: false,
            skip_bad_lines: true,
            min_words: 0,
        }
    }

    /// The paths with patterns expanded, and the format asked for, or the one that the paths
    /// suggest, or the one that the command prefers.
    pub(crate) fn resolve(&self, preferred: Format) -> Result<Resolved, InputError> {
        let paths = paths::expand(&self.paths)?;
        let format = match self.format {
            Some(format) => format,
            None => match suggested::format(&paths, self.skip_formats)? {
                Some(format) => format,
                None if preferred == Format::Lines => suggested::lines(&paths)?,
                None => preferred,
            },
        };
        self.check_fields(format)?;
        let Chosen {
            paths, left_out, ..
        } = folders::files_of(format, paths, self.skip_formats)?;
        Ok(Resolved {
            paths,
            left_out,
            format,
            is_given: self.format.is_some(),
        })
    }

    /// How to treat documents that are known to be HTML. By default only their main content is kept.
    pub(crate) fn of_pages(&self) -> Html {
        self.html.unwrap_or(Html::Main)
    }

    /// How to treat texts that may be HTML. They are kept as they are, unless the user says that they are HTML.
    pub(crate) fn of_texts(&self) -> Extraction {
        Extraction {
            is_unsaid: self.html.is_none(),
            ..self.html.unwrap_or(Html::Raw).into()
        }
    }

    /// Refuses a field that the format does not have: ignoring it would fingerprint, say, the JSON
    /// around it.
    fn check_fields(&self, format: Format) -> Result<(), InputError> {
        for (flag, is_given) in [
            ("--id-field", self.id_field.is_some()),
            ("--id", self.row_ids),
            ("--text-field", !self.text_fields.is_empty()),
            ("--fingerprint-field", self.fingerprint_field.is_some()),
            ("--features-field", self.features_field.is_some()),
            ("--separator", self.separator.is_some()),
            ("--html", self.html.is_some()),
        ] {
            let homes = Format::that_take(flag);
            if is_given && !homes.contains(&format) {
                return Err(InputError::FieldOfOtherFormat {
                    flag,
                    homes,
                    format,
                });
            }
        }
        Ok(())
    }

    /// The same options with the files that patterns among the paths match.
    ///
    /// # Errors
    /// If a pattern matches nothing, or is none.
    pub fn expanded(self) -> Result<Self, InputError> {
        Ok(Self {
            paths: paths::expand(&self.paths)?,
            ..self
        })
    }

    /// The inputs, for people.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        if self.paths.is_empty() {
            return vec!["<stdin>".to_owned()];
        }
        let name = |path: &PathBuf| {
            if is_stdin(path) {
                return "<stdin>".to_owned();
            }
            path.display().to_string()
        };
        self.paths.iter().map(name).collect()
    }

    /// Whether some of the documents come from standard input.
    #[must_use]
    pub fn reads_stdin(&self) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|path| is_stdin(path))
    }

    /// The kind of content of all documents, before any is read.
    ///
    /// # Errors
    /// Arguments that contradict each other, and paths whose format is not known.
    pub fn carried(&self, needs: Needs) -> Result<Carries, InputError> {
        let resolved = self.resolve(needs.preferred_format)?;
        Ok(self.carries(resolved.format, needs.recipe))
    }

    /// The kind of content of all documents.
    pub(crate) fn carries(&self, format: Format, recipe: Recipe) -> Carries {
        match format {
            Format::Hashes | Format::Tsv => Carries::Fingerprints,
            Format::Lines | Format::Files | Format::Warc => Carries::Texts,
            Format::Jsonl => match self.json_fields(recipe).content {
                JsonContent::Fingerprint(..) => Carries::Fingerprints,
                JsonContent::Texts(_) => Carries::Texts,
                JsonContent::Features(_) => Carries::Features,
            },
            Format::Csv | Format::Parquet | Format::Arrow => match self.fingerprint_field {
                Some(_) => Carries::Fingerprints,
                None => Carries::Texts,
            },
        }
    }

    /// The fields or columns of the text.
    fn text_names(&self) -> Vec<String> {
        match self.text_fields.as_slice() {
            [] => vec![Self::TEXT_FIELD.to_owned()],
            given => given.to_vec(),
        }
    }

    /// The columns to read.
    pub(crate) fn table_columns(&self) -> TableColumns {
        let content = match &self.fingerprint_field {
            Some(name) => ContentColumn::Fingerprint(name.clone(), self.notation),
            None => ContentColumn::Texts(self.text_names()),
        };
        TableColumns {
            id: (!self.row_ids).then(|| named(&self.id_field, Self::ID_FIELD)),
            content,
            rank: None,
        }
    }

    /// The fields to read; the recipe says whether they are texts or features unless the options
    /// do.
    pub(crate) fn json_fields(&self, recipe: Recipe) -> JsonFields {
        let content = match (&self.fingerprint_field, &self.features_field) {
            (Some(name), _) => JsonContent::Fingerprint(name.clone(), self.notation),
            (None, Some(name)) => JsonContent::Features(name.clone()),
            (None, None) if recipe.takes() == Takes::Features && self.text_fields.is_empty() => {
                JsonContent::Features(Self::FEATURES_FIELD.to_owned())
            }
            (None, None) => JsonContent::Texts(self.text_names()),
        };
        JsonFields {
            id: (!self.row_ids).then(|| named(&self.id_field, Self::ID_FIELD)),
            content,
        }
    }
}

/// The name of a field, given or not.
fn named(given: &Option<String>, default: &str) -> String {
    given.clone().unwrap_or_else(|| default.to_owned())
}
