//! The parser of the formats that are made of lines.

use super::walk::{ChunkOutcome, Line, Rules, Walk};
use super::{hashes, json, lines, tsv};
use crate::chunk::Chunk;
use crate::document::Record;
use crate::fields::JsonFields;
use crate::format::Format;
use crate::html::Extraction;
use crate::needs::Needs;
use crate::notation::Notation;
use crate::options::InputOptions;

/// How to read lines.
#[derive(Clone, Debug)]
pub struct LineParser {
    format: LineFormat,
    rules: Rules,
}

#[derive(Clone, Debug)]
enum LineFormat {
    /// The line is a fingerprint.
    Hashes(Notation),
    /// The line is the text.
    Lines,
    /// The line is a JSON object, whose text may be a page.
    Jsonl(JsonFields, Extraction),
    /// The line is an id, a tab and a fingerprint.
    Tsv(Notation),
}

impl LineParser {
    /// The parser of a format; `None` where that is not made of lines.
    #[must_use]
    pub fn new(
        options: &InputOptions,
        needs: Needs,
        format: Format,
        several_sources: bool,
    ) -> Option<Self> {
        let format = match format {
            Format::Hashes => LineFormat::Hashes(options.notation),
            Format::Lines => LineFormat::Lines,
            Format::Jsonl => {
                let extraction = options.of_texts();
                LineFormat::Jsonl(options.json_fields(needs.recipe), extraction)
            }
            Format::Tsv => LineFormat::Tsv(options.notation),
            Format::Csv | Format::Parquet | Format::Arrow | Format::Warc | Format::Files => {
                return None;
            }
        };
        let rules = Rules {
            ids: needs.ids,
            ids_name_the_source: several_sources,
            skip_bad_lines: options.skip_bad_lines,
        };
        Some(Self { format, rules })
    }

    /// Whether bad lines are counted rather than errors.
    pub(crate) fn skips_bad_lines(&self) -> bool {
        self.rules.skip_bad_lines
    }

    /// Hands the records of a chunk to `take`, up to the first bad line, or around bad lines
    /// where they are skipped.
    pub fn parse_chunk<'a>(
        &'a self,
        chunk: &'a Chunk,
        mut take: impl FnMut(Record<'a>),
    ) -> ChunkOutcome {
        self.parse_lines(chunk, |_, record| take(record))
    }

    /// As [`LineParser::parse_chunk`], with the line of each record.
    pub(crate) fn parse_lines<'a>(
        &'a self,
        chunk: &'a Chunk,
        take: impl FnMut(&Line<'a>, Record<'a>),
    ) -> ChunkOutcome {
        let walk = Walk::new(&self.rules, chunk, take);
        match &self.format {
            LineFormat::Hashes(notation) => hashes::parse(walk, *notation),
            LineFormat::Lines => walk.each_text(lines::parse),
            LineFormat::Tsv(notation) => {
                walk.each_text(|line, text| tsv::parse(line.number, text, *notation))
            }
            LineFormat::Jsonl(fields, extraction) => walk.each_text(|line, text| {
                let record = json::parse(fields, line, text)?;
                Ok(record.map(|record| extraction.of_record(record)))
            }),
        }
    }
}
