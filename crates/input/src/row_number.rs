//! The numbers of rows, as ids.

/// The number of a row, after its source where there are several.
#[derive(Clone, Debug, Default)]
pub struct RowNumber {
    /// The source, where ids name it.
    pub(crate) source: Option<String>,
    /// From 1; 0 before the first row.
    pub(crate) row: u64,
}

impl RowNumber {
    /// It as an id.
    pub(crate) fn id(&self) -> String {
        match &self.source {
            Some(source) => format!("{source}:{}", self.row),
            None => self.row.to_string(),
        }
    }
}
