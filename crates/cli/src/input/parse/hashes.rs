//! The `hashes` format: a line is a fingerprint.

use simshard_simhash::Fingerprint;

use super::walk::{Line, Walk};
use super::{Outcome, Record, RecordContent, decimal};
use crate::input::LineProblem;

/// Reads all lines: those of 17 to 20 digits at a glance, any other by the rules.
pub(super) fn parse<'a>(mut walk: Walk<'a, impl FnMut(Record<'a>)>) -> Outcome {
    loop {
        if let Some((hash, digits)) = decimal::leading(walk.rest())
            && walk.rest().get(digits) == Some(&b'\n')
        {
            let line = walk.skip_line(digits);
            walk.take(record(&line, Fingerprint(hash)));
        } else if !walk.line(by_the_rules) {
            return walk.finish();
        }
    }
}

fn by_the_rules<'a>(line: &Line<'a>) -> Result<Option<Record<'a>>, LineProblem> {
    Ok(Some(record(line, decimal::fingerprint(line.bytes)?)))
}

#[inline]
fn record<'a>(line: &Line<'a>, fingerprint: Fingerprint) -> Record<'a> {
    Record {
        id: line.id(),
        content: RecordContent::Fingerprint(fingerprint),
    }
}
