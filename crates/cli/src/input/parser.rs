//! From a line to a document, whatever the format.

use super::error::excerpt;
use super::json::JsonFields;
use super::{Content, Document, LineProblem, MAX_ID_BYTES, tsv};

/// How to read a line.
pub(super) enum LineParser {
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
        match self {
            Self::Lines { .. } => false,
            Self::Jsonl(fields) => fields.carry_fingerprints(),
            Self::Tsv => true,
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
        let document = match self {
            Self::Lines {
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
            Self::Jsonl(fields) => {
                if line.trim().is_empty() {
                    return Ok(None);
                }
                fields.parse(line)?
            }
            Self::Tsv => {
                if number == 1 && tsv::is_header(line) {
                    return Ok(None);
                }
                tsv::parse(line)?
            }
        };
        if document.id.len() > MAX_ID_BYTES {
            return Err(LineProblem::IdTooLong {
                value: excerpt(&document.id),
                bytes: document.id.len(),
            });
        }
        Ok(Some(document))
    }
}
