//! The TSV format: `id<TAB>fingerprint`.

use super::error::excerpt;
use super::{Content, Document, LineProblem};

/// Whether a file's first line is a header: two columns, the second of which nobody can have meant
/// as a number. A blank, or what begins like a number (`12abc`, `-1`, 2^64), is a bad fingerprint
/// instead: a header is dropped in silence, a damaged document must not be.
pub(super) fn is_header(line: &str) -> bool {
    let Some((_, second)) = line.split_once('\t') else {
        return false;
    };
    if second.contains('\t') {
        return false;
    }
    match second.trim().chars().next() {
        Some(first) => !first.is_numeric() && !matches!(first, '+' | '-' | '.'),
        None => false,
    }
}

/// Reads a line that is no header.
pub(super) fn parse(line: &str) -> Result<Document, LineProblem> {
    let mut columns = line.split('\t');
    let (Some(id), Some(number), None) = (columns.next(), columns.next(), columns.next()) else {
        return Err(LineProblem::NotTwoColumns {
            value: excerpt(line),
            found: line.split('\t').count(),
        });
    };
    match number.parse() {
        Ok(fingerprint) => Ok(Document {
            id: id.to_owned(),
            content: Content::Fingerprint(fingerprint),
        }),
        Err(error) => Err(LineProblem::NotFingerprint {
            value: excerpt(number),
            error,
        }),
    }
}
