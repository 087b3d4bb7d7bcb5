//! Columns by their names.

use super::error::TableError;
use crate::fields::{ContentColumn, ID_FLAGS, RANK_FLAGS, RankedBy, TableColumns};
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
    part: Part,
}

/// The part that a column has in a document.
#[derive(Clone, Copy, Debug)]
enum Part {
    Id,
    Text,
    Fingerprint,
    Rank(RankedBy),
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "parquet"),
    expect(dead_code, reason = "of Arrow, only strings and integers are read")
)]
pub(crate) enum ValueKind {
    Strings,
    Integers,
    /// Numbers that need not be integers.
    Numbers,
    /// Dates, and times of a date.
    Times,
    /// Nothing but nulls.
    Nulls,
}

impl TableColumns {
    /// Finds the column of the id, if there is one, those of the content, and that of the rank, if there is one.
    pub(crate) fn find<C>(
        &self,
        file: &str,
        mut find: impl FnMut(NamedColumn<'_>) -> Result<C, TableError>,
    ) -> Result<Vec<C>, TableError> {
        let content = match self.content {
            ContentColumn::Texts(_) => Part::Text,
            ContentColumn::Fingerprint(..) => Part::Fingerprint,
        };
        let flags = self.content.flags();
        let id = self.id.iter().map(|name| (name, ID_FLAGS, Part::Id));
        let contents = self.content.names().iter();
        let contents = contents.map(|name| (name, flags, content));
        let rank = self.rank.iter();
        let rank = rank.map(|field| (&field.name, RANK_FLAGS, Part::Rank(field.by)));
        let named = id.chain(contents).chain(rank).map(|(name, flags, part)| {
            find(NamedColumn {
                file,
                name,
                flags,
                part,
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

    /// Whether its values may be of this kind.
    pub(crate) fn takes(&self, kind: ValueKind) -> bool {
        use ValueKind::{Integers, Nulls, Numbers, Strings, Times};
        match self.part {
            Part::Id | Part::Fingerprint => matches!(kind, Strings | Integers),
            Part::Text => kind == Strings,
            Part::Rank(RankedBy::Date) => matches!(kind, Strings | Times | Nulls),
            Part::Rank(RankedBy::Number) => matches!(kind, Integers | Numbers | Nulls),
        }
    }

    /// The error for a column of another type, in words.
    pub(crate) fn wrong_type(&self, found: impl Into<String>) -> TableError {
        TableError::WrongType {
            file: self.file.to_owned(),
            column: self.name.to_owned(),
            found: found.into(),
            expected: match self.part {
                Part::Id | Part::Fingerprint => "strings or integers",
                Part::Text => "strings",
                Part::Rank(RankedBy::Date) => "dates, timestamps, or strings as in RFC 3339",
                Part::Rank(RankedBy::Number) => {
                    "integers, floats of 32 or 64 bits, or decimals of at most 38 digits"
                }
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
