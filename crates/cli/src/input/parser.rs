//! From a line to a document, whatever the format.

use super::error::excerpt;
use super::ids::Ids;
use super::json::JsonFields;
use super::{Content, Document, LineProblem, tsv};

/// How to read a line.
pub(super) struct LineParser {
    pub(super) format: LineFormat,
    pub(super) ids: Ids,
}

/// What a line is.
pub(super) enum LineFormat {
    /// The line is the text.
    Lines {
        /// Whether ids are `source:number` rather than the line number alone.
        ids_name_the_source: bool,
    },
    /// The line is a JSON object.
    Jsonl(JsonFields),
    /// The line is an id, a tab and a fingerprint.
    Tsv,
}

impl LineParser {
    pub(super) fn carries_fingerprints(&self) -> bool {
        match &self.format {
            LineFormat::Lines { .. } => false,
            LineFormat::Jsonl(fields) => fields.carry_fingerprints(),
            LineFormat::Tsv => true,
        }
    }

    /// The document on line `number` of `source`; `None` where the line is to be passed over.
    pub(super) fn parse(
        &self,
        source: &str,
        number: u64,
        line: &[u8],
    ) -> Result<Option<Document>, LineProblem> {
        let line = std::str::from_utf8(line).map_err(|error| LineProblem::NotUtf8 {
            value: excerpt(&String::from_utf8_lossy(line)),
            byte: error.valid_up_to() + 1,
        })?;
        let document = match &self.format {
            LineFormat::Lines {
                ids_name_the_source,
            } => {
                if line.trim().is_empty() {
                    return Ok(None);
                }
                let id = if *ids_name_the_source {
                    format!("{source}:{number}")
                } else {
                    number.to_string()
                };
                let content = Content::Text(line.to_owned());
                Document { id, content }
            }
            LineFormat::Jsonl(fields) => {
                if line.trim().is_empty() {
                    return Ok(None);
                }
                fields.parse(line)?
            }
            LineFormat::Tsv => {
                if number == 1 && tsv::is_header(line) {
                    return Ok(None);
                }
                tsv::parse(line)?
            }
        };
        self.ids.check(&document.id)?;
        Ok(Some(document))
    }
}
