//! Which fields of a JSON object are read, and which columns of a table.

use std::borrow::Cow;
use std::slice;

use crate::notation::Notation;

/// The arguments that say what ids are.
pub(crate) const ID_FLAGS: &str = "--id-field or --id row";

/// The argument that names the field that documents are preferred by.
pub(crate) const RANK_FLAGS: &str = "--keep";

/// The arguments that name another field than that of texts.
const TEXT_FLAGS: &str = "--text-field or --fingerprint-field";

/// The fields to read.
#[derive(Clone, Debug)]
pub(crate) struct JsonFields {
    /// The field of the id; `None` for the number of the line.
    pub(crate) id: Option<String>,
    /// The field of the content.
    pub(crate) content: JsonContent,
}

/// The field of the content, and what it holds.
#[derive(Clone, Debug)]
pub(crate) enum JsonContent {
    /// Texts that are joined.
    Texts(Vec<String>),
    Fingerprint(String, Notation),
    /// Hashes with their weights.
    Features(String),
}

impl JsonContent {
    /// The fields.
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::Texts(names) => names,
            Self::Fingerprint(name, _) | Self::Features(name) => slice::from_ref(name),
        }
    }

    /// The field, if it is only one.
    pub(crate) fn only_name(&self) -> Option<&str> {
        match self.names() {
            [name] => Some(name),
            _ => None,
        }
    }

    /// The arguments that name the field.
    pub(crate) fn flags(&self) -> &'static str {
        match self {
            Self::Texts(_) => TEXT_FLAGS,
            Self::Fingerprint(..) => "--fingerprint-field",
            Self::Features(_) => "--features-field",
        }
    }
}

/// Which columns hold what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumns {
    /// The documents' ids; `None` for the numbers of the rows.
    pub id: Option<String>,
    /// The kind of their content.
    pub content: ContentColumn,
    /// The column that says which document is preferred, if one does.
    pub rank: Option<RankField>,
}

/// The field that says which of several documents is preferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankField {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub by: RankedBy,
}

/// What documents are preferred by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankedBy {
    /// A date, the latest first.
    Date,
    /// A number, the largest first.
    Number,
}

/// The column that says what a document carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentColumn {
    /// Texts, joined where there are several columns.
    Texts(Vec<String>),
    /// Fingerprints.
    Fingerprint(String, Notation),
}

impl ContentColumn {
    /// The columns.
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::Texts(names) => names,
            Self::Fingerprint(name, _) => slice::from_ref(name),
        }
    }

    /// The arguments that name it.
    pub(crate) fn flags(&self) -> &'static str {
        match self {
            Self::Texts(_) => TEXT_FLAGS,
            Self::Fingerprint(..) => "--fingerprint-field",
        }
    }
}

/// Joins the texts of several fields with line breaks. Empty ones and those that are not there add nothing.
pub(crate) fn join<'a>(texts: impl IntoIterator<Item = Cow<'a, str>>) -> Cow<'a, str> {
    let mut texts = texts.into_iter().filter(|text| !text.is_empty());
    let mut joined = texts.next().unwrap_or_default();
    for text in texts {
        let joined = joined.to_mut();
        joined.push('\n');
        joined.push_str(&text);
    }
    joined
}
