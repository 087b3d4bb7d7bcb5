//! What a learner makes of what a source says, and of what it set aside.

use simshard_simhash::Fingerprint;
use simshard_topology::replication::{is_later, may_stay};
use simshard_topology::{CorpusUid, Version};

use super::{CompareError, CopyRange, Digest, Digester, RangeElements, Versions};
use crate::element::{Element, State};
use crate::error::ReadError;
use crate::merge::Cursor;

/// What was set aside, beside what the source says of the same corpora, in the same order.
pub(crate) struct Comparison<C> {
    aside: C,
    versions: Versions,
    digester: Digester,
    /// The corpus of the range that is open, and its first fingerprint; none where a corpus must begin.
    open: Option<(CorpusUid, Fingerprint)>,
    ended: Option<CorpusUid>,
    /// Elements that were compared.
    compared: u64,
    differing: Differing,
}

/// Where what was set aside differs from a source.
#[derive(Debug, Default)]
pub(crate) struct Differing {
    /// The ranges that differ, ascending; those that follow each other are one.
    pub(crate) ranges: Vec<CopyRange>,
    /// Whether something that was set aside has a later version. The source may not hold it.
    pub(crate) has_later: bool,
}

impl<C: Cursor> Comparison<C> {
    /// Begins to compare what was set aside of the corpora that the source holds.
    pub(crate) fn new(aside: C, versions: Versions) -> Self {
        Self {
            aside,
            versions,
            digester: Digester::default(),
            open: None,
            ended: None,
            compared: 0,
            differing: Differing::default(),
        }
    }

    /// Takes an element with a later version. What was set aside of it does not count.
    pub(crate) fn later(
        &mut self,
        corpus: CorpusUid,
        element: Element<'_>,
    ) -> Result<(), CompareError> {
        let first = self.open_range(corpus)?;
        if element.fingerprint < first {
            return Err(CompareError::OutOfOrder);
        }
        let key = (corpus, element.fingerprint, element.id);
        self.add_while(|corpus, element| (corpus, element.fingerprint, element.id) < key)?;
        let is_same = |(corpus, element): (CorpusUid, Element<'_>)| {
            (corpus, element.fingerprint, element.id) == key
        };
        if let Some(same) = self.aside.element().filter(|&same| is_same(same)) {
            self.differing.has_later |= is_later(same.1.into(), self.versions.until);
            self.aside.advance()?;
        }
        Ok(())
    }

    /// Takes the end of a range.
    pub(crate) fn end_range(
        &mut self,
        corpus: CorpusUid,
        last: Fingerprint,
        digest: Digest,
    ) -> Result<(), CompareError> {
        let first = self.open_range(corpus)?;
        if last < first {
            return Err(CompareError::OutOfOrder);
        }
        self.add_while(|found, element| (found, element.fingerprint) <= (corpus, last))?;
        if self.digester.finish() != digest {
            self.differing.add(CopyRange {
                corpus,
                first,
                last,
            });
        }
        match last.0.checked_add(1) {
            Some(next) => self.open = Some((corpus, Fingerprint(next))),
            None => (self.open, self.ended) = (None, Some(corpus)),
        }
        Ok(())
    }

    /// Elements that were compared so far.
    pub(crate) const fn compared(&self) -> u64 {
        self.compared
    }

    /// Ends where the source does.
    pub(crate) fn finish(self) -> Result<Differing, CompareError> {
        if self.open.is_some() || self.aside.element().is_some() {
            return Err(CompareError::OutOfOrder);
        }
        Ok(self.differing)
    }

    /// The first fingerprint of the range that is open, which may be the first one of its corpus.
    fn open_range(&mut self, corpus: CorpusUid) -> Result<Fingerprint, CompareError> {
        match self.open {
            Some((open, first)) if open == corpus => Ok(first),
            Some(_) => Err(CompareError::OutOfOrder),
            None => {
                // What was set aside of a corpus must have been compared before the next one.
                let is_next = self.ended.is_none_or(|ended| ended < corpus);
                let left = self.aside.element().map(|(corpus, _)| corpus);
                if !is_next || left.is_some_and(|left| left < corpus) {
                    return Err(CompareError::OutOfOrder);
                }
                self.open = Some((corpus, Fingerprint(0)));
                Ok(Fingerprint(0))
            }
        }
    }

    /// Adds to the digest what was set aside, as long as it is meant.
    fn add_while(
        &mut self,
        is_meant: impl Fn(CorpusUid, Element<'_>) -> bool,
    ) -> Result<(), ReadError> {
        while let Some((corpus, element)) = self.aside.element()
            && is_meant(corpus, element)
        {
            let state: State = element.into();
            if is_later(state, self.versions.until) {
                self.differing.has_later = true;
            } else if self.versions.has(state) {
                self.digester.add(element);
                self.compared += 1;
            }
            self.aside.advance()?;
        }
        Ok(())
    }
}

impl Differing {
    fn add(&mut self, range: CopyRange) {
        if let Some(before) = self.ranges.last_mut()
            && before.corpus == range.corpus
            && before.last.0.checked_add(1) == Some(range.first.0)
        {
            before.last = range.last;
        } else {
            self.ranges.push(range);
        }
    }
}

/// Whether the elements that were received outdo, or repeat, all that was set aside in these ranges (DC3).
pub(crate) fn is_outdone(
    aside: impl Cursor,
    received: impl Cursor,
    ranges: &[CopyRange],
) -> Result<bool, ReadError> {
    let all = Version(u64::MAX);
    let mut aside = RangeElements::within(aside, ranges, all)?;
    let mut received = RangeElements::within(received, ranges, all)?;
    while let Some((corpus, old)) = aside.element() {
        let key = (corpus, old.fingerprint, old.id);
        while let Some((corpus, new)) = received.element()
            && (corpus, new.fingerprint, new.id) < key
        {
            received.advance()?;
        }
        let is_same =
            |(corpus, new): &(CorpusUid, Element<'_>)| (*corpus, new.fingerprint, new.id) == key;
        let new = received.element().filter(is_same);
        if !may_stay(old.into(), new.map(|(_, new)| State::from(new))) {
            return Ok(false);
        }
        aside.advance()?;
    }
    Ok(true)
}
