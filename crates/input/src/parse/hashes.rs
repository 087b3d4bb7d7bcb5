//! The `hashes` format: a line is a fingerprint.

use simshard_simhash::Fingerprint;

use super::walk::{ChunkOutcome, Line, Walk};
use super::{decimal, tsv};
use crate::document::{Record, RecordContent};
use crate::format::Format;
use crate::notation::Notation;
use crate::problem::LineProblem;

/// Reads all lines: those of at most 20 digits at a glance, any other by the rules.
pub(super) fn parse<'a>(
    mut walk: Walk<'a, impl FnMut(&Line<'a>, Record<'a>)>,
    notation: Notation,
) -> ChunkOutcome {
    let most = match notation {
        Notation::Unsigned => u64::MAX,
        Notation::Signed => i64::MAX.cast_unsigned(),
    };
    loop {
        let goes_on = match decimal::leading(walk.rest()) {
            Some((hash, digits)) if walk.rest().get(digits) == Some(&b'\n') && hash <= most => {
                let line = walk.skip_line(digits);
                walk.take(&line, Ok(Some(record(&line, Fingerprint(hash)))))
            }
            Some(_) | None => walk.line(|line| by_the_rules(line, notation)),
        };
        if !goes_on {
            return walk.finish();
        }
    }
}

fn by_the_rules<'a>(
    line: &Line<'a>,
    notation: Notation,
) -> Result<Option<Record<'a>>, LineProblem> {
    match decimal::fingerprint(line.bytes, notation) {
        Ok(fingerprint) => Ok(Some(record(line, fingerprint))),
        Err(problem) => Err(with_hint(line, problem)),
    }
}

#[inline]
fn record<'a>(line: &Line<'a>, fingerprint: Fingerprint) -> Record<'a> {
    Record {
        id: line.id(),
        content: RecordContent::Fingerprint(fingerprint),
    }
}

/// Adds to the problem of a first line how else it can be read: the whole file may be meant so.
#[cold]
fn with_hint(line: &Line<'_>, problem: LineProblem) -> LineProblem {
    let text = std::str::from_utf8(line.bytes).ok();
    match text.filter(|_| line.number == 1).and_then(other_format) {
        None => problem,
        Some(format) => LineProblem::OtherFormat {
            problem: Box::new(problem),
            format,
        },
    }
}

/// The format that a line looks like; `None` where it may well be meant as a fingerprint.
fn other_format(line: &str) -> Option<Format> {
    if line.trim_start().starts_with('{') {
        return Some(Format::Jsonl);
    }
    if tsv::parse(1, line, Notation::Unsigned).is_ok() {
        return Some(Format::Tsv);
    }
    let is_hexadecimal = |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_word = |word: &str| word.starts_with(char::is_alphabetic) && !is_hexadecimal(word);
    let has_words = line.split_whitespace().any(is_word);
    has_words.then_some(Format::Lines)
}
