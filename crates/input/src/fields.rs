//! Which fields of a JSON object are read, and which columns of a table.

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
    Text(String),
    Fingerprint(String),
    /// Hashes with their weights.
    Features(String),
}

impl JsonContent {
    /// The field.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Text(name) | Self::Fingerprint(name) | Self::Features(name) => name,
        }
    }

    /// The arguments that name the field.
    pub(crate) fn flags(&self) -> &'static str {
        match self {
            Self::Text(_) => "--text-field or --fingerprint-field",
            Self::Fingerprint(_) => "--fingerprint-field",
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
}

/// The column that says what a document carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentColumn {
    /// Texts.
    Text(String),
    /// Fingerprints.
    Fingerprint(String),
}

impl ContentColumn {
    /// The column.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Text(name) | Self::Fingerprint(name) => name,
        }
    }

    /// The arguments that name it.
    pub(crate) fn flags(&self) -> &'static str {
        match self {
            Self::Text(_) => "--text-field or --fingerprint-field",
            Self::Fingerprint(_) => "--fingerprint-field",
        }
    }
}
