//! The batches that all input comes in: chunks of lines, or documents that were read one by one.

use std::sync::Arc;

use crate::chunk::{Chunk, Chunks};
use crate::document::{Content, Document, Record};
use crate::error::InputError;
use crate::format::Format;
use crate::html::Extraction;
use crate::needs::Needs;
use crate::next_item::NextItem;
use crate::options::InputOptions;
use crate::parse::{ChunkOutcome, LineParser};
use crate::records::RecordReader;
use crate::skipped::Skipped;
use crate::source::Source;

/// Some documents in their order, not yet parsed where they are lines.
#[derive(Debug)]
pub(crate) enum Batch {
    /// Lines, and how to parse them.
    Lines(Chunk, Arc<LineParser>),
    /// Documents, pages among them yet to be turned into text, and what was left out beside them: each time after
    /// how many of the documents.
    Documents(Vec<(Document, Extraction)>, Vec<(usize, Skipped)>),
}

/// How sources are read.
pub(crate) enum SourceReader {
    /// Line by line.
    Lines(Arc<LineParser>),
    /// Row by row, or record by record.
    Records(RecordReader),
}

/// The batches of an input.
pub(crate) enum Batches {
    Lines(Chunks, Arc<LineParser>),
    Documents(DocumentBatches),
}

/// Gathers documents.
pub(crate) struct DocumentBatches {
    source: Box<dyn Iterator<Item = NextItem> + Send>,
    /// Why nothing follows the batch returned last.
    failed: Option<InputError>,
}

impl Batch {
    /// Hands each record to `take`, up to the first bad line.
    pub(crate) fn parse<'a>(&'a self, mut take: impl FnMut(Record<'a>)) -> ChunkOutcome {
        self.parse_placed(|_, record| take(record))
    }

    /// What a reader of documents passed over, each time after how many of the documents.
    pub(crate) fn skipped(&self) -> &[(usize, Skipped)] {
        match self {
            Self::Lines(..) => &[],
            Self::Documents(_, skipped) => skipped,
        }
    }

    /// As [`Batch::parse`], with the place of each record: its line, or how many came before it.
    pub(crate) fn parse_placed<'a>(
        &'a self,
        mut take: impl FnMut(u64, Record<'a>),
    ) -> ChunkOutcome {
        match self {
            Self::Lines(chunk, parser) => {
                parser.parse_lines(chunk, |line, record| take(line.number, record))
            }
            Self::Documents(documents, between) => {
                for (place, (document, extraction)) in (0..).zip(documents) {
                    take(place, extraction.of_record(document.into()));
                }
                let mut outcome = ChunkOutcome::default();
                for (_, skipped) in between {
                    outcome.skipped += skipped;
                }
                outcome
            }
        }
    }

    /// How many documents it may hold: as many as lines, where it is lines.
    pub(crate) fn most_documents(&self) -> usize {
        match self {
            Self::Lines(chunk, _) => chunk.lines(),
            Self::Documents(documents, _) => documents.len(),
        }
    }

    /// About how many bytes of input it holds.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Lines(chunk, _) => chunk.bytes().len(),
            Self::Documents(documents, _) => {
                documents.iter().map(|(document, _)| bytes(document)).sum()
            }
        }
    }
}

fn bytes(document: &Document) -> usize {
    let content = match &document.content {
        Content::Text(text) => text.len(),
        Content::Fingerprint(_) => size_of::<u64>(),
    };
    document.id.len() + content
}

impl SourceReader {
    /// The reader of a format; `None` for `files`, which is read from folders.
    ///
    /// # Errors
    /// If the program was built without the format.
    pub(crate) fn new(
        options: &InputOptions,
        needs: Needs,
        format: Format,
        several_sources: bool,
    ) -> Result<Option<Self>, InputError> {
        if let Some(parser) = LineParser::new(options, needs, format, several_sources) {
            return Ok(Some(Self::Lines(Arc::new(parser))));
        }
        let records = RecordReader::new(options, needs.ids, format, several_sources)?;
        Ok(records.map(Self::Records))
    }

    /// The source twice, to be read one after the other.
    pub(crate) fn twice(&self, source: Source) -> Result<(Source, Source), InputError> {
        match self {
            Self::Lines(_) => source.twice(),
            Self::Records(records) => records.twice(source),
        }
    }

    /// One of several sources as batches: nothing is said of all of them at its end.
    pub(crate) fn batches_of_one(&self, source: Source) -> Batches {
        match self {
            Self::Lines(_) => self.batches(vec![source]),
            Self::Records(records) => {
                let documents = records.clone().documents_of_some(vec![source]);
                Batches::Documents(DocumentBatches::new(documents))
            }
        }
    }

    /// All sources as batches of this format.
    pub(crate) fn batches(&self, sources: Vec<Source>) -> Batches {
        match self {
            Self::Lines(parser) => {
                let chunks = Chunks::new(sources, parser.skips_bad_lines());
                Batches::Lines(chunks, parser.clone())
            }
            Self::Records(records) => {
                let documents = records.clone().documents(sources);
                Batches::Documents(DocumentBatches::new(documents))
            }
        }
    }
}

impl Batches {
    /// The next batch. Documents that are read one by one are gathered until they take
    /// `least_bytes`.
    pub(crate) fn next(&mut self, least_bytes: usize) -> Option<Result<Batch, InputError>> {
        match self {
            Self::Lines(chunks, parser) => {
                let chunk = chunks.next()?;
                Some(chunk.map(|chunk| Batch::Lines(chunk, parser.clone())))
            }
            Self::Documents(documents) => documents.next(least_bytes),
        }
    }

    /// Takes back a batch that is done with.
    pub(crate) fn reuse(&mut self, batch: Batch) {
        if let (Self::Lines(chunks, _), Batch::Lines(chunk, _)) = (self, batch) {
            chunks.reuse(chunk);
        }
    }
}

impl DocumentBatches {
    pub(crate) fn new(source: impl Iterator<Item = NextItem> + Send + 'static) -> Self {
        Self {
            source: Box::new(source),
            failed: None,
        }
    }

    fn next(&mut self, least_bytes: usize) -> Option<Result<Batch, InputError>> {
        let mut documents = Vec::new();
        let mut skipped: Vec<(usize, Skipped)> = Vec::new();
        let mut gathered = 0;
        while gathered < least_bytes && self.failed.is_none() {
            match self.source.next() {
                None => break,
                Some(NextItem::Skipped(more)) => match skipped.last_mut() {
                    Some((after, before)) if *after == documents.len() => *before += &more,
                    Some(_) | None => skipped.push((documents.len(), more)),
                },
                Some(NextItem::Failed(error)) => self.failed = Some(error),
                Some(NextItem::Document(document, extraction)) => {
                    gathered += bytes(&document).max(1);
                    documents.push((document, extraction));
                }
            }
        }
        if documents.is_empty() && skipped.is_empty() {
            return self.failed.take().map(Err);
        }
        Some(Ok(Batch::Documents(documents, skipped)))
    }
}
