//! The newest elements of one shard, in memory, in the order of segments.
//!
//! # Invariants
//! - MT1: of all states of an element that were put, the newest stays, in whatever order they came.
//! - MT2: elements stand in the order of segments: corpus, fingerprint, id.
//! - MT3: `bytes` never understates what the elements take by more than the allocator's own overhead.

use std::collections::BTreeMap;

use simshard_simhash::Fingerprint;
use simshard_topology::CorpusUid;

use crate::element::{Element, State};
use crate::error::ReadError;
use crate::merge::Cursor;
use crate::sorted::Sorted;
use crate::stored::Stored;

/// Bytes that a state takes in the table, about: a pointer and leading bits, in chunks that are four fifths full. Its
/// own bytes come on top, and may be those of other tables too.
const PLACE_BYTES: usize = (size_of::<Stored>() + size_of::<u16>()) * 5 / 4;

/// The key of an element in its corpus.
pub(crate) type Key = (Fingerprint, Box<str>);

/// Elements by corpus, fingerprint and id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memtable {
    corpora: BTreeMap<CorpusUid, Sorted>,
    bytes: usize,
}

impl Memtable {
    /// Bytes of memory taken, about, as if no other table shared any of them.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of elements.
    pub(crate) fn elements(&self) -> u64 {
        let elements = self.corpora.values().map(|elements| elements.len() as u64);
        elements.sum()
    }

    /// Whether there is no element.
    pub(crate) fn is_empty(&self) -> bool {
        self.corpora.is_empty()
    }

    /// Puts a state of an element, unless a newer one is there.
    pub(crate) fn put(&mut self, corpus: CorpusUid, stored: Stored) {
        let bytes = PLACE_BYTES + stored.bytes();
        if self.corpora.entry(corpus).or_default().put(stored) {
            self.bytes += bytes;
        }
    }

    /// Puts all elements of another table.
    pub(crate) fn put_all(&mut self, other: &Self) {
        for (corpus, elements) in &other.corpora {
            for stored in elements.iter() {
                self.put(*corpus, stored.clone());
            }
        }
    }

    /// The state of an element.
    pub(crate) fn get(
        &self,
        corpus: CorpusUid,
        fingerprint: Fingerprint,
        id: &str,
    ) -> Option<State> {
        let found = self.corpora.get(&corpus)?.get(fingerprint, id)?;
        Some(found.state())
    }

    /// The elements with a fingerprint, by id.
    pub(crate) fn with_fingerprint(
        &self,
        corpus: CorpusUid,
        fingerprint: Fingerprint,
    ) -> impl Iterator<Item = (&str, State)> {
        let elements = self.corpora.get(&corpus).into_iter();
        let elements = elements.flat_map(move |elements| elements.from(fingerprint, ""));
        elements
            .take_while(move |stored| stored.fingerprint() == fingerprint)
            .map(|stored| (stored.id(), stored.state()))
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
            elements
                .iter()
                .map(move |stored| (corpus, stored.element()))
        });
        let mut rest: Box<dyn Iterator<Item = _> + 'a> = Box::new(elements);
        let current = rest.next();
        MemtableCursor { rest, current }
    }

    /// A copy of at most `most` elements of a corpus, from a key on up to the fingerprint `last`. Beside it, the key of
    /// the element that would be next.
    pub(crate) fn part(
        &self,
        corpus: CorpusUid,
        from: &Key,
        last: Fingerprint,
        most: usize,
    ) -> (Self, Option<Key>) {
        let mut part = Self::default();
        let elements = self.corpora.get(&corpus).into_iter();
        let elements = elements.flat_map(|elements| elements.from(from.0, &from.1));
        let mut elements = elements.take_while(|stored| stored.fingerprint() <= last);
        for stored in elements.by_ref().take(most) {
            part.put(corpus, stored.clone());
        }
        let next = elements.next();
        (
            part,
            next.map(|next| (next.fingerprint(), next.id().into())),
        )
    }

    /// Forgets a corpus.
    pub(crate) fn drop_corpus(&mut self, corpus: CorpusUid) {
        if let Some(gone) = self.corpora.remove(&corpus) {
            let bytes: usize = gone.iter().map(|one| PLACE_BYTES + one.bytes()).sum();
            self.bytes -= bytes;
        }
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
        let state = State { version, live };
        table.put(CORPUS, Stored::new(Fingerprint(fingerprint), id, state));
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
