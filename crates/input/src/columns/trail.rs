//! What a sample counts beside its documents, with the place of each: so it can be cut after any document.

use super::{Columns, Judged};
use crate::batches::Batch;
use crate::degenerate::DegenerateTexts;
use crate::first_bad::FirstBad;
use crate::lengths::TextLengths;
use crate::parse::ChunkOutcome;
use crate::skipped::Skipped;

/// The documents of a batch, and what was left out among them.
#[derive(Debug, Default)]
pub(super) struct Trail {
    /// By document, its place in the batch, ascending.
    places: Vec<u64>,
    judged: Vec<Judged>,
    /// What was left out at a place, or before it.
    left_out: Vec<(u64, LeftOut)>,
    first_bad: FirstBad,
}

/// What was left out.
#[derive(Debug)]
pub(super) enum LeftOut {
    ShortText,
    UnhashableText,
    BadLine,
    /// What a reader of documents passed over.
    Between(Box<Skipped>),
}

impl Trail {
    /// Notes a document.
    pub(super) fn add(&mut self, place: u64, judged: Judged) {
        self.places.push(place);
        self.judged.push(judged);
    }

    /// Notes a text that was left out.
    pub(super) fn leave_out(&mut self, place: u64, what: LeftOut) {
        self.left_out.push((place, what));
    }

    /// Notes what is no record.
    pub(super) fn finish(&mut self, batch: &Batch, outcome: &ChunkOutcome) {
        self.first_bad = outcome.skipped.first_bad.clone();
        let bad = outcome.bad_lines.iter();
        self.left_out
            .extend(bad.map(|&line| (line, LeftOut::BadLine)));
        let between = batch.skipped().iter();
        self.left_out.extend(between.map(|(after, skipped)| {
            let skipped = LeftOut::Between(Box::new(skipped.clone()));
            (*after as u64, skipped)
        }));
    }

    /// Has columns count only what comes no later than their last document, the `count`th of the batch.
    pub(super) fn cut(&self, columns: &mut Columns, count: usize) {
        let Some(last) = count.checked_sub(1).map(|last| self.places[last]) else {
            return;
        };
        columns.degenerate = DegenerateTexts::default();
        columns.lengths = TextLengths::default();
        self.judged[..count]
            .iter()
            .for_each(|judged| columns.count(*judged));
        columns.skipped = Skipped::default();
        let before = self.left_out.iter().filter(|(place, _)| *place <= last);
        for (_, what) in before {
            match what {
                LeftOut::ShortText => columns.skipped.short_texts += 1,
                LeftOut::UnhashableText => columns.skipped.unhashable_texts += 1,
                LeftOut::BadLine => columns.skipped.bad_lines += 1,
                LeftOut::Between(skipped) => columns.skipped += skipped,
            }
        }
        // Bad lines come in their order, and never beside what is left out between documents.
        let bad_lines = usize::try_from(columns.skipped.bad_lines).unwrap_or(usize::MAX);
        if bad_lines > 0 {
            columns.skipped.first_bad = self.first_bad.first(bad_lines);
        }
    }
}
