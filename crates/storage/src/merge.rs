//! Merging ascending streams of elements into one, where the newest state of each element wins.
//!
//! # Invariants
//! - K1: keys (corpus, fingerprint, id) ascend strictly, and each key of any stream comes once.
//! - K2: of a key's elements the one with the newest state comes.
//! - K3: an error of a stream is passed on, and no element is lost by it: to go on is to try again.
//! - K4: of a stream without forgotten tombstones, every other element comes, and none of these.

use std::cmp::Ordering;

use simshard_simhash::Fingerprint;
use simshard_topology::replication::is_forgotten;
use simshard_topology::{CorpusUid, Version};

use crate::element::{Element, State};
use crate::error::ReadError;

/// A position in a stream of elements whose keys ascend strictly.
pub(crate) trait Cursor {
    /// The element it stands at, with its corpus; none at the end.
    fn element(&self) -> Option<(CorpusUid, Element<'_>)>;

    /// Goes to the next element. If that fails, stays.
    fn advance(&mut self) -> Result<(), ReadError>;
}

impl<C: Cursor + ?Sized> Cursor for Box<C> {
    fn element(&self) -> Option<(CorpusUid, Element<'_>)> {
        (**self).element()
    }

    fn advance(&mut self) -> Result<(), ReadError> {
        (**self).advance()
    }
}

/// Corpus and fingerprint that a stream stands at. The end comes after all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    ended: bool,
    corpus: u128,
    fingerprint: Fingerprint,
}

/// Several streams as one.
#[derive(Debug)]
pub(crate) struct Merge<C> {
    streams: Vec<C>,
    /// Where each stream stands: the least is found without asking them.
    heads: Vec<Head>,
    /// The streams that stand at the least key; the first of them has the element that counts.
    least: Vec<usize>,
}

impl<C: Cursor> Merge<C> {
    /// Merges streams, in whatever order.
    pub(crate) fn new(streams: Vec<C>) -> Self {
        let mut merge = Self {
            heads: streams.iter().map(head).collect(),
            least: Vec::with_capacity(streams.len()),
            streams,
        };
        merge.choose();
        merge
    }

    /// Finds the streams at the least key, and puts the one with the newest element first. A handful of
    /// streams is gone through faster than a heap is kept.
    fn choose(&mut self) {
        self.least.clear();
        let least = self.heads.iter().min().filter(|head| !head.ended);
        let Some(&least) = least else {
            return;
        };
        for place in 0..self.heads.len() {
            if self.heads[place] != least {
                continue;
            }
            match self.compare_with_least(place) {
                Ordering::Less => {
                    self.least.clear();
                    self.least.push(place);
                }
                Ordering::Equal if self.is_newer_than_least(place) => self.least.insert(0, place),
                Ordering::Equal => self.least.push(place),
                Ordering::Greater => {}
            }
        }
    }

    /// How the id of a stream's element compares with the least one so far, of equal fingerprints.
    fn compare_with_least(&self, place: usize) -> Ordering {
        let Some((_, least)) = self.element() else {
            return Ordering::Less;
        };
        let element = self.streams[place].element();
        element.map_or(Ordering::Greater, |(_, element)| element.id.cmp(least.id))
    }

    fn is_newer_than_least(&self, place: usize) -> bool {
        let state = |element: Option<(CorpusUid, Element<'_>)>| {
            element.map(|(_, element)| State::from(element))
        };
        state(self.streams[place].element()) > state(self.element())
    }
}

impl<C: Cursor> Cursor for Merge<C> {
    fn element(&self) -> Option<(CorpusUid, Element<'_>)> {
        self.streams[*self.least.first()?].element()
    }

    /// The stream whose element counts goes last: until then, a failure leaves everything to be tried again.
    fn advance(&mut self) -> Result<(), ReadError> {
        while let Some(&place) = self.least.last() {
            self.streams[place].advance()?;
            self.heads[place] = head(&self.streams[place]);
            self.least.pop();
        }
        self.choose();
        Ok(())
    }
}

/// A stream without tombstones up to a version (K4).
#[derive(Debug)]
pub(crate) struct Remembered<C> {
    stream: C,
    settled: Version,
}

impl<C: Cursor> Remembered<C> {
    pub(crate) fn new(stream: C, settled: Version) -> Result<Self, ReadError> {
        let mut remembered = Self { stream, settled };
        remembered.skip()?;
        Ok(remembered)
    }

    fn skip(&mut self) -> Result<(), ReadError> {
        while let Some((_, element)) = self.stream.element()
            && is_forgotten(element.into(), self.settled)
        {
            self.stream.advance()?;
        }
        Ok(())
    }
}

impl<C: Cursor> Cursor for Remembered<C> {
    fn element(&self) -> Option<(CorpusUid, Element<'_>)> {
        // After an error it may stand at one that is to go: nothing is lost by that.
        self.stream.element()
    }

    fn advance(&mut self) -> Result<(), ReadError> {
        self.stream.advance()?;
        self.skip()
    }
}

fn head(stream: &impl Cursor) -> Head {
    let element = stream.element();
    let (corpus, fingerprint) = element
        .map_or((u128::MAX, Fingerprint(u64::MAX)), |(corpus, element)| {
            (u128::from_be_bytes(corpus.0), element.fingerprint)
        });
    Head {
        ended: element.is_none(),
        corpus,
        fingerprint,
    }
}

#[cfg(test)]
mod tests;
