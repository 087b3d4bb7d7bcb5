//! The documents of a set, found by the place of their fingerprint.
//!
//! The join knows distinct fingerprints. From these to documents leads an index sorted by counting:
//! at each place, the documents with its fingerprint, in the order of the input.
//!
//! ```text
//! place        |  0  |  1  |  2  |
//! fingerprint  |  4  |  7  |  9  |
//! starts       |  0  |  1  |  3  |  4
//! documents    |  2  |  0     3  |  1
//! ```
//!
//! `starts` is left out where every document has a fingerprint to itself, and `documents` where
//! they are called by their fingerprints.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;
use simshard_input::Parts;
use simshard_simhash::{Fingerprint, FingerprintSet};

use crate::member::{BareName, Member};

/// More documents than can be numbered.
#[derive(Debug, thiserror::Error)]
#[error("{0} documents are more than one search can hold: 4294967295 (2^32-1)")]
pub struct TooManyDocuments(pub usize);

/// Documents, grouped by fingerprint.
#[derive(Debug)]
pub(crate) struct DocumentSet {
    set: FingerprintSet,
    names: Names,
    /// By place, and one more: where its documents start. Without it, at the place's own number.
    starts: Option<Vec<u32>>,
    len: usize,
}

/// How documents are named.
#[derive(Debug)]
enum Names {
    /// As their fingerprints are.
    Fingerprints,
    /// By their ids. The numbers of the documents stand ordered by place.
    Ids(Box<Parts>, Vec<u32>),
}

impl DocumentSet {
    /// Groups the documents of an input; those without ids get names of this kind.
    pub(crate) fn new(mut parts: Parts, bare_name: BareName) -> Result<Self, TooManyDocuments> {
        let len = parts.fingerprints.len();
        if u32::try_from(len).is_err() {
            return Err(TooManyDocuments(len));
        }
        if !parts.has_ids && bare_name == BareName::Fingerprint {
            let (set, repeated) = FingerprintSet::counted(parts.fingerprints);
            return Ok(Self {
                starts: starts(set.len(), &repeated),
                set,
                names: Names::Fingerprints,
                len,
            });
        }
        let (set, repeated) = FingerprintSet::counted(parts.fingerprints.clone());
        let starts = starts(set.len(), &repeated);
        let place = |&fingerprint: &Fingerprint| {
            let place = set.place(fingerprint);
            debug_assert!(place.is_some(), "the set is made of these");
            place.unwrap_or_default() as u32
        };
        let places = parts.fingerprints.par_iter().map(place).collect();
        // They have done their work.
        parts.fingerprints = Vec::new();
        Ok(Self {
            names: Names::Ids(parts.into(), ordered(places, starts.as_deref())),
            set,
            starts,
            len,
        })
    }

    /// The distinct fingerprints.
    pub(crate) fn fingerprints(&self) -> &FingerprintSet {
        &self.set
    }

    /// The number of documents.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The documents at a place.
    pub(crate) fn at(&self, place: usize) -> Group<'_> {
        Group {
            all: self,
            fingerprint: self.set.as_slice()[place],
            rows: self.rows(place),
        }
    }

    /// The documents with a fingerprint; none if it is not in the set.
    pub(crate) fn with(&self, fingerprint: Fingerprint) -> Group<'_> {
        let rows = match (&self.names, &self.starts) {
            // Nothing is looked up for one document that is called by its fingerprint.
            (Names::Fingerprints, None) => 0..1,
            (Names::Fingerprints, Some(_)) | (Names::Ids(..), _) => {
                let place = self.place(fingerprint);
                place.map_or(0..0, |place| self.rows(place))
            }
        };
        Group {
            all: self,
            fingerprint,
            rows,
        }
    }

    /// The place of a fingerprint, `None` if it is not in the set.
    pub(crate) fn place(&self, fingerprint: Fingerprint) -> Option<usize> {
        self.set.place(fingerprint)
    }

    /// All groups, by fingerprint.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        (0..self.set.len()).map(|place| self.at(place))
    }

    /// Those of two documents or more, by fingerprint.
    pub(crate) fn repeated(&self) -> impl Iterator<Item = Group<'_>> {
        // Without starts, nothing is repeated.
        let places = self.starts.as_ref().map_or(0, |_| self.set.len());
        let groups = (0..places).map(|place| self.at(place));
        groups.filter(|group| group.len() > 1)
    }

    /// The numbers of the documents at a place, in the order of the input; none where they are
    /// called by their fingerprints.
    pub(crate) fn numbers(&self, place: usize) -> &[u32] {
        match &self.names {
            Names::Fingerprints => &[],
            Names::Ids(_, documents) => &documents[self.rows(place)],
        }
    }

    /// The id of a document, by its number.
    pub(crate) fn id_of(&self, document: usize) -> Option<Cow<'_, str>> {
        match &self.names {
            Names::Fingerprints => None,
            Names::Ids(parts, _) => Some(parts.id(document)),
        }
    }

    /// Where the documents of a place stand in the order by place.
    fn rows(&self, place: usize) -> Range<usize> {
        match &self.starts {
            Some(starts) => starts[place] as usize..starts[place + 1] as usize,
            None => place..place + 1,
        }
    }

    fn id(&self, row: usize) -> Option<Cow<'_, str>> {
        match &self.names {
            Names::Fingerprints => None,
            Names::Ids(parts, documents) => Some(parts.id(documents[row] as usize)),
        }
    }
}

/// Where the documents of each place start, given how many there are at some places, if not one.
fn starts(places: usize, repeated: &[(usize, usize)]) -> Option<Vec<u32>> {
    if repeated.is_empty() {
        return None;
    }
    let mut starts = Vec::with_capacity(places + 1);
    let mut start = 0;
    let mut repeated = repeated.iter().peekable();
    for place in 0..places {
        starts.push(start);
        let several = repeated.next_if(|(repeated, _)| *repeated == place);
        start += several.map_or(1, |&(_, count)| count as u32);
    }
    starts.push(start);
    Some(starts)
}

/// The numbers of the documents ordered by their places, those of one place as in the input.
fn ordered(places: Vec<u32>, starts: Option<&[u32]>) -> Vec<u32> {
    let mut documents = vec![0; places.len()];
    let Some(starts) = starts else {
        for (document, place) in (0..).zip(places) {
            documents[place as usize] = document;
        }
        return documents;
    };
    let mut next = starts.to_vec();
    for (document, place) in (0..).zip(places) {
        let next = &mut next[place as usize];
        documents[*next as usize] = document;
        *next += 1;
    }
    documents
}

/// The documents of one fingerprint.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    all: &'a DocumentSet,
    /// The fingerprint of all its documents.
    pub(crate) fingerprint: Fingerprint,
    rows: Range<usize>,
}

impl<'a> Group<'a> {
    /// The number of documents.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The documents, in the order of the input.
    pub(crate) fn members(&self) -> impl Iterator<Item = Member<'a>> + use<'a> {
        self.members_after(0)
    }

    /// The documents after the first `count`.
    pub(crate) fn members_after(&self, count: usize) -> impl Iterator<Item = Member<'a>> + use<'a> {
        let (all, fingerprint) = (self.all, self.fingerprint);
        self.rows.clone().skip(count).map(move |row| Member {
            id: all.id(row),
            fingerprint,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{bare, named};

    fn ids(set: &DocumentSet) -> Vec<(u64, Vec<String>)> {
        let id = |member: Member<'_>| member.id.map_or("none".to_owned(), Cow::into_owned);
        let ids = |group: Group<'_>| (group.fingerprint.0, group.members().map(id).collect());
        set.groups().map(ids).collect()
    }

    fn expected(groups: &[(u64, &[&str])]) -> Vec<(u64, Vec<String>)> {
        let owned = |ids: &[&str]| ids.iter().map(ToString::to_string).collect();
        groups
            .iter()
            .map(|&(fingerprint, ids)| (fingerprint, owned(ids)))
            .collect()
    }

    #[test]
    fn documents_stand_by_fingerprint_in_the_order_of_the_input() {
        for bare_name in [BareName::Fingerprint, BareName::Line] {
            let set = named(&[("d", 7), ("b", 9), ("a", 4), ("c", 7)], bare_name);
            let expected = expected(&[(4, &["a"]), (7, &["d", "c"]), (9, &["b"])]);
            assert_eq!(ids(&set), expected);
            assert_eq!(set.len(), 4);
        }
    }

    #[test]
    fn bare_hashes_are_called_by_themselves_or_by_line() {
        let by_line = bare(&[7, 9, 7], BareName::Line);
        assert_eq!(ids(&by_line), expected(&[(7, &["1", "3"]), (9, &["2"])]));

        let repeated = bare(&[7, 9, 7], BareName::Fingerprint);
        assert_eq!(
            ids(&repeated),
            expected(&[(7, &["none"; 2]), (9, &["none"])])
        );

        let distinct = bare(&[7, 9], BareName::Fingerprint);
        assert!(distinct.starts.is_none());
        assert_eq!(ids(&distinct), expected(&[(7, &["none"]), (9, &["none"])]));
        assert_eq!(distinct.repeated().count(), 0);
    }

    #[test]
    fn repeated_fingerprints_are_those_of_two_documents_or_more() {
        let set = bare(&[0, u64::MAX, 0, 3, u64::MAX, 0], BareName::Line);
        let repeated = set
            .repeated()
            .map(|group| (group.fingerprint.0, group.len()));
        assert_eq!(repeated.collect::<Vec<_>>(), [(0, 3), (u64::MAX, 2)]);
        assert_eq!(set.with(Fingerprint(0)).members_after(2).count(), 1);
        assert_eq!(set.with(Fingerprint(0)).members_after(9).count(), 0);
        assert_eq!(set.with(Fingerprint(8)).len(), 0);
    }
}
