//! Columns by their names.

use super::error::TableError;
use crate::fields::{ContentColumn, ID_FLAGS, TableColumns};
use crate::problem::excerpt;

/// How many columns an error names.
const NAMED_COLUMNS: usize = 20;

/// A column that is named, and what it must be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedColumn<'a> {
    file: &'a str,
    pub(crate) name: &'a str,
    /// The arguments that name it.
    flags: &'static str,
    /// Whether its values must be strings; if not, they may be integers, too.
    pub(crate) is_text: bool,
}

impl TableColumns {
    /// Finds the column of the id, if there is one, and those of the content.
    pub(crate) fn find<C>(
        &self,
        file: &str,
        mut find: impl FnMut(NamedColumn<'_>) -> Result<C, TableError>,
    ) -> Result<Vec<C>, TableError> {
        let is_text = matches!(self.content, ContentColumn::Texts(_));
        let flags = self.content.flags();
        let id = self.id.iter().map(|name| (name, ID_FLAGS, false));
        let contents = self.content.names().iter();
        let contents = contents.map(|name| (name, flags, is_text));
        let named = id.chain(contents).map(|(name, flags, is_text)| {
            find(NamedColumn {
                file,
                name,
                flags,
                is_text,
            })
        });
        named.collect()
    }
}

impl NamedColumn<'_> {
    /// The only one of those that were found; `present` are the names of all.
    pub(crate) fn only<P>(
        &self,
        found: Vec<P>,
        present: impl ExactSizeIterator<Item = String>,
    ) -> Result<P, TableError> {
        let (file, column) = (self.file.to_owned(), self.name.to_owned());
        let mut found = found.into_iter();
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only),
            (Some(_), Some(_)) => Err(TableError::RepeatedColumn { file, column }),
            (None, _) => Err(TableError::MissingColumn {
                file,
                column,
                present: listed(present),
                flags: self.flags,
            }),
        }
    }

    /// The error for a column of another type, in words.
    pub(crate) fn wrong_type(&self, found: impl Into<String>) -> TableError {
        TableError::WrongType {
            file: self.file.to_owned(),
            column: self.name.to_owned(),
            found: found.into(),
            expected: if self.is_text {
                "strings"
            } else {
                "strings or integers"
            },
        }
    }
}

fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(NAMED_COLUMNS);
    let shown = names.take(NAMED_COLUMNS);
    let shown: Vec<_> = shown
        .map(|name| format!("\"{}\"", excerpt(&name)))
        .collect();
    let mut listed = shown.join(", ");
    if more > 0 {
        listed.push_str(&format!(" and {more} more"));
    }
    listed
}
