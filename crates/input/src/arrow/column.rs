//! One column: where it is, and what its values are.

use super::schema::{self, Field, Layout};
use crate::table::{NamedColumn, TableError, ValueKind};

/// A column that is read.
pub(super) struct Column {
    /// The numbers of the fields that lead to it.
    pub(super) path: Vec<usize>,
    pub(super) layout: Layout,
}

impl Column {
    pub(super) fn find(fields: &[Field], named: NamedColumn<'_>) -> Result<Self, TableError> {
        let names = fields.iter().map(|field| field.name.clone());
        let path = named.only(schema::find(fields, named.name), names)?;
        let field = schema::at(fields, &path);
        match (field, field.and_then(Field::layout)) {
            (Some(field), Some(layout)) if named.takes(kind(field)) => Ok(Self { path, layout }),
            (field, _) => Err(named.wrong_type(field.map_or("", Field::type_name))),
        }
    }
}

/// The kind of values that can be read.
fn kind(field: &Field) -> ValueKind {
    if field.is_text() {
        ValueKind::Strings
    } else {
        ValueKind::Integers
    }
}
