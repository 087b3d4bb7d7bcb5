//! What a source says of a shard.

use simshard_simhash::Fingerprint;
use simshard_topology::CorpusUid;
use simshard_topology::replication::is_later;

use super::{Digest, Digester, Versions};
use crate::element::Element;
use crate::error::ReadError;
use crate::merge::Cursor;

/// Ranges of a shard, about, if it is large.
const RANGES: u64 = 4096;

/// Elements of a range at least. A digest and its bound take 24 bytes, a bare element 16.
const LEAST_ELEMENTS: u64 = 64;

/// What comes next of a corpus.
#[derive(Clone, Copy, Debug)]
pub enum Compared<'a> {
    /// An element with a later version.
    Later(Element<'a>),
    /// A range ends with this fingerprint. Its other elements have this digest.
    RangeEnd(Fingerprint, Digest),
}

/// Elements of a range, in a shard that has this number of them.
pub(crate) const fn elements_per_range(elements: u64) -> u64 {
    let even = elements.div_ceil(RANGES);
    if even < LEAST_ELEMENTS {
        LEAST_ELEMENTS
    } else {
        even
    }
}

/// Visits the later elements of these corpora, which ascend, and the ends of their ranges, until `visit` returns false
/// (DC2). Answers whether it did not.
pub(crate) fn compare(
    elements: &mut impl Cursor,
    corpora: impl Iterator<Item = CorpusUid>,
    compared: Versions,
    per_range: u64,
    mut visit: impl FnMut(CorpusUid, Compared<'_>) -> bool,
) -> Result<bool, ReadError> {
    let mut digester = Digester::default();
    for corpus in corpora {
        let mut before: Option<Fingerprint> = None;
        while let Some((found, element)) = elements.element()
            && found <= corpus
        {
            if found == corpus {
                let fingerprint = element.fingerprint;
                if let Some(last) = before.filter(|last| *last < fingerprint)
                    && digester.elements >= per_range
                    && !visit(corpus, Compared::RangeEnd(last, digester.finish()))
                {
                    return Ok(false);
                }
                before = Some(fingerprint);
                if compared.has(element.into()) {
                    digester.add(element);
                } else if is_later(element.into(), compared.until)
                    && !visit(corpus, Compared::Later(element))
                {
                    return Ok(false);
                }
            }
            elements.advance()?;
        }
        let end = Compared::RangeEnd(Fingerprint(u64::MAX), digester.finish());
        if !visit(corpus, end) {
            return Ok(false);
        }
    }
    Ok(true)
}
