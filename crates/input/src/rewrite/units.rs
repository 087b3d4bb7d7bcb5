//! The first reading of units that are read one by one: lines of CSV, records and rows of tables.

use rayon::prelude::*;

use super::marks::SourceMarks;
use super::{DocumentReader, MarkedDocuments};
use crate::columns::{Columns, IdColumn};
use crate::document::{Content, Document, Record};
use crate::error::InputError;
use crate::html::Extraction;
use crate::next_item::NextItem;
use crate::preference::Preference;
use crate::records::UnitDocuments;
use crate::skipped::Skipped;

/// Bytes of documents that are worked on together, and the fewest documents of a thread.
const WAVE_BYTES: usize = 4 << 20;
const LEAST_DOCUMENTS: usize = 64;

/// Documents that are worked on together.
#[derive(Default)]
struct Wave {
    placed: Vec<Placed>,
    /// The first and the last unit of each bad one that is skipped.
    bad: Vec<(u64, u64)>,
    skipped: Skipped,
}

/// A document, its first and its last unit, and the rank that a field gives it.
struct Placed {
    document: Document,
    extraction: Extraction,
    units: (u64, u64),
    rank: u64,
}

/// What was made of some documents.
struct RewrittenUnits {
    columns: Columns,
    ranks: Vec<u64>,
    /// The units of those with a fingerprint.
    units: Vec<(u64, u64)>,
}

impl DocumentReader {
    /// Reads the documents of a source, the next ones while the last ones are worked on.
    pub(super) fn read_units(
        &self,
        mut units: Box<dyn UnitDocuments>,
        found: &mut MarkedDocuments,
        progress: &mut dyn FnMut(u64),
    ) -> Result<SourceMarks, InputError> {
        let mut marks = SourceMarks::default();
        let mut wave = Wave::read(units.as_mut())?;
        while !wave.is_empty() {
            let (next, parts) =
                rayon::join(|| Wave::read(units.as_mut()), || self.parts(&wave.placed));
            progress(wave.placed.len() as u64);
            found.parts.skipped += &wave.skipped;
            for part in parts {
                part.units
                    .iter()
                    .for_each(|&units| marks.add_document(units));
                found.ranks.extend(part.ranks);
                found.parts.push(part.columns);
            }
            wave.bad.iter().for_each(|&units| marks.add_bad(units));
            wave = next?;
        }
        // With the units after the last document.
        marks.grow(units.unit_count());
        Ok(marks)
    }

    /// Fingerprints documents on all cores, in their order.
    fn parts(&self, placed: &[Placed]) -> Vec<RewrittenUnits> {
        let parts = placed.par_chunks(LEAST_DOCUMENTS);
        parts.map(|placed| self.part_of(placed)).collect()
    }

    fn part_of(&self, placed: &[Placed]) -> RewrittenUnits {
        let is_ranked = self.preference != Preference::First;
        let (mut columns, mut ids) = (Columns::default(), IdColumn::default());
        let (mut ranks, mut units) = (Vec::new(), Vec::new());
        for one in placed {
            let record = one.extraction.of_record(Record::from(&one.document));
            let before = columns.fingerprints.len();
            columns.push(&record, self.recipe, Some(&mut ids));
            if columns.fingerprints.len() == before {
                continue;
            }
            units.push(one.units);
            if is_ranked {
                ranks.push(self.preference.rank(&record.content, one.rank));
            }
        }
        columns.ids = Some(ids);
        RewrittenUnits {
            columns,
            ranks,
            units,
        }
    }
}

impl Wave {
    /// The next documents; nothing at the end.
    fn read(units: &mut dyn UnitDocuments) -> Result<Self, InputError> {
        let (mut wave, mut bytes) = (Self::default(), 0);
        while bytes < WAVE_BYTES {
            match units.next() {
                None => break,
                Some(NextItem::Failed(error)) => return Err(error),
                Some(NextItem::Skipped(skipped)) => {
                    if skipped.has_bad() {
                        wave.bad.push(units.units());
                    }
                    wave.skipped += &skipped;
                }
                Some(NextItem::Document(document, extraction)) => {
                    bytes += size_of(&document);
                    wave.placed.push(Placed {
                        document,
                        extraction,
                        units: units.units(),
                        rank: units.rank(),
                    });
                }
            }
        }
        Ok(wave)
    }

    fn is_empty(&self) -> bool {
        self.placed.is_empty() && self.skipped.is_empty()
    }
}

fn size_of(document: &Document) -> usize {
    let text = match &document.content {
        Content::Text(text) => text.len(),
        Content::Fingerprint(_) => 0,
    };
    document.id.len() + text + std::mem::size_of::<Placed>()
}
