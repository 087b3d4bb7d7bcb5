//! The newest elements of one shard, in memory, in the order of segments.
//!
//! # Invariants
//! - MT1: of all states of an element that were put, the newest stays, in whatever order they came.
//! - MT2: elements stand in the order of segments: corpus, fingerprint, id.
//! - MT3: `bytes` never understates what the elements take by more than the allocator's own overhead.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use simshard_simhash::Fingerprint;
use simshard_topology::CorpusUid;

use crate::element::{Element, State};
use crate::error::ReadError;
use crate::merge::Cursor;

/// Bytes that an element takes in the map, about, beside those of its id: a key, a state and
/// its part of a node, which are two thirds full on average.
const ELEMENT_BYTES: usize = (size_of::<Key>() + size_of::<State>()) * 3 / 2;

/// The key of an element in its corpus.
pub(crate) type Key = (Fingerprint, Box<str>);

/// Elements by corpus, fingerprint and id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memtable {
    corpora: BTreeMap<CorpusUid, BTreeMap<Key, State>>,
    bytes: usize,
}

impl Memtable {
    /// Bytes of memory taken, about.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is no element.
    pub(crate) fn is_empty(&self) -> bool {
        self.corpora.is_empty()
    }

    /// Puts a state of an element, unless a newer one is there.
    pub(crate) fn put(&mut self, corpus: CorpusUid, key: Key, state: State) {
        let elements = self.corpora.entry(corpus).or_default();
        let id_bytes = key.1.len();
        match elements.entry(key) {
            Entry::Vacant(place) => {
                place.insert(state);
                self.bytes += ELEMENT_BYTES + id_bytes;
            }
            Entry::Occupied(mut there) => {
                there.insert(state.max(*there.get()));
            }
        }
    }

    /// The state of an element.
    pub(crate) fn get(&self, corpus: CorpusUid, key: &Key) -> Option<State> {
        self.corpora.get(&corpus)?.get(key).copied()
    }

    /// The elements with a fingerprint, by id.
    pub(crate) fn with_fingerprint(
        &self,
        corpus: CorpusUid,
        fingerprint: Fingerprint,
    ) -> impl Iterator<Item = (&str, State)> {
        let elements = self.corpora.get(&corpus).into_iter();
        let from = (fingerprint, Box::<str>::default());
        let ranges = elements.flat_map(move |elements| elements.range(from.clone()..));
        ranges
            .take_while(move |((found, _), _)| *found == fingerprint)
            .map(|((_, id), state)| (&**id, *state))
    }

    /// The elements of the corpora that are kept, in order.
    pub(crate) fn cursor<'a>(
        &'a self,
        keep: impl Fn(CorpusUid) -> bool + 'a,
    ) -> MemtableCursor<'a> {
        let corpora = self
            .corpora
            .iter()
            .filter(move |(corpus, _)| keep(**corpus));
        let elements = corpora.flat_map(|(&corpus, elements)| {
            let element = |((fingerprint, id), state): (&'a Key, &State)| Element {
                fingerprint: *fingerprint,
                id,
                version: state.version,
                live: state.live,
            };
            elements.iter().map(move |entry| (corpus, element(entry)))
        });
        let mut rest: Box<dyn Iterator<Item = _> + 'a> = Box::new(elements);
        let current = rest.next();
        MemtableCursor { rest, current }
    }

    /// A copy of at most `most` elements of a corpus, from a key on up to the fingerprint `last`; and the key of the
    /// element that would be next.
    pub(crate) fn part(
        &self,
        corpus: CorpusUid,
        from: &Key,
        last: Fingerprint,
        most: usize,
    ) -> (Self, Option<Key>) {
        let mut part = Self::default();
        let elements = self.corpora.get(&corpus).into_iter();
        let elements = elements.flat_map(|elements| elements.range(from..));
        let mut elements = elements.take_while(|((fingerprint, _), _)| *fingerprint <= last);
        for (key, state) in elements.by_ref().take(most) {
            part.put(corpus, key.clone(), *state);
        }
        (part, elements.next().map(|(key, _)| key.clone()))
    }

    /// Forgets a corpus.
    pub(crate) fn drop_corpus(&mut self, corpus: CorpusUid) {
        let gone = self.corpora.remove(&corpus).into_iter().flatten();
        let bytes: usize = gone.map(|((_, id), _)| ELEMENT_BYTES + id.len()).sum();
        self.bytes -= bytes;
    }
}

/// A position in the elements of a memtable.
pub(crate) struct MemtableCursor<'a> {
    rest: Box<dyn Iterator<Item = (CorpusUid, Element<'a>)> + 'a>,
    current: Option<(CorpusUid, Element<'a>)>,
}

impl Cursor for MemtableCursor<'_> {
    fn element(&self) -> Option<(CorpusUid, Element<'_>)> {
        self.current
    }

    fn advance(&mut self) -> Result<(), ReadError> {
        self.current = self.rest.next();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use simshard_topology::Version;

    use super::*;

    const CORPUS: CorpusUid = CorpusUid([7; 16]);

    fn put(table: &mut Memtable, fingerprint: u64, id: &str, version: u64, live: bool) {
        let version = Version(version);
        let key = (Fingerprint(fingerprint), id.into());
        table.put(CORPUS, key, State { version, live });
    }

    fn elements(table: &Memtable) -> Vec<(u64, String, u64, bool)> {
        let mut cursor = table.cursor(|corpus| corpus == CORPUS);
        let mut elements = Vec::new();
        while let Some((_, element)) = cursor.element() {
            let id = element.id.to_owned();
            elements.push((element.fingerprint.0, id, element.version.0, element.live));
            cursor.advance().unwrap();
        }
        elements
    }

    /// MT1.
    #[test]
    fn the_newest_state_of_an_element_stays() {
        let mut table = Memtable::default();
        put(&mut table, 1, "a", 5, true);
        put(&mut table, 1, "a", 4, false);
        assert_eq!(elements(&table), [(1, "a".into(), 5, true)]);
        put(&mut table, 1, "a", 5, false);
        put(&mut table, 1, "a", 5, true);
        assert_eq!(elements(&table), [(1, "a".into(), 5, false)]);
        put(&mut table, 1, "a", 6, true);
        assert_eq!(elements(&table), [(1, "a".into(), 6, true)]);
    }

    /// MT2.
    #[test]
    fn elements_ascend_by_fingerprint_then_id() {
        let mut table = Memtable::default();
        for (fingerprint, id) in [(u64::MAX, ""), (2, "b"), (2, ""), (0, "z"), (2, "a")] {
            put(&mut table, fingerprint, id, 1, true);
        }
        let keys: Vec<_> = elements(&table).into_iter().map(|e| (e.0, e.1)).collect();
        let wanted = [(0, "z"), (2, ""), (2, "a"), (2, "b"), (u64::MAX, "")];
        assert_eq!(keys, wanted.map(|(f, id)| (f, id.to_owned())));
        let of_two = table.with_fingerprint(CORPUS, Fingerprint(2));
        assert_eq!(of_two.map(|(id, _)| id).collect::<Vec<_>>(), ["", "a", "b"]);
        assert_eq!(
            table
                .with_fingerprint(CORPUS, Fingerprint(u64::MAX))
                .count(),
            1
        );
        let other = CorpusUid([8; 16]);
        assert_eq!(table.with_fingerprint(other, Fingerprint(2)).count(), 0);
    }

    /// MT3.
    #[test]
    fn bytes_rise_with_elements_and_fall_with_their_corpus() {
        let mut table = Memtable::default();
        put(&mut table, 1, "", 1, true);
        let bare = table.bytes();
        put(&mut table, 1, "", 2, true);
        assert_eq!(table.bytes(), bare);
        put(&mut table, 1, "four", 1, true);
        assert_eq!(table.bytes(), 2 * bare + 4);
        table.drop_corpus(CORPUS);
        assert!(table.bytes() == 0 && table.is_empty());
    }
}
