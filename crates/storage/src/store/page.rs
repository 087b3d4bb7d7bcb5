//! Reading the documents of a shard page by page, so that its changes do not wait for a slow reader.
//!
//! # Invariants
//! - PA1: pages that follow one another visit the documents by fingerprint, then id. They visit each document at most
//!   once, and each that is live from the first page to the last.

use std::sync::Arc;

use simshard_simhash::Fingerprint;
use simshard_topology::{CorpusUid, ShardId};

use super::Store;
use crate::error::ReadError;
use crate::memtable::{Key, Memtable};
use crate::merge::{Cursor, Merge};
use crate::segment::Segment;

/// Where the next page starts: at the first document that is not before these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageStart {
    /// A fingerprint.
    pub fingerprint: Fingerprint,
    /// An id.
    pub id: Box<str>,
}

impl PageStart {
    /// At the first document of a fingerprint.
    #[must_use]
    pub fn of(fingerprint: Fingerprint) -> Self {
        let id = Box::default();
        Self { fingerprint, id }
    }
}

/// The parts of a shard that make a page: copied, or immutable.
struct View {
    /// Elements in memory.
    parts: Vec<Memtable>,
    /// Where those in memory go on that were not copied.
    rest: Option<Key>,
    segments: Arc<Vec<Arc<Segment>>>,
}

impl Store {
    /// Visits live documents of a corpus in a shard, by fingerprint, then id. It visits those from `start` on up to the
    /// fingerprint `last`, as far as they are among the next `most` elements. Answers where to go on, unless that was
    /// all, or the store does not hold the corpus. Changes of the shard wait while at most `most` elements are copied,
    /// and not while segments are read.
    ///
    /// # Errors
    /// If the shard is not in the store, or a segment cannot be read.
    pub fn page(
        &self,
        id: ShardId,
        corpus: CorpusUid,
        start: &PageStart,
        last: Fingerprint,
        most: usize,
        mut visit: impl FnMut(Fingerprint, &str),
    ) -> Result<Option<PageStart>, ReadError> {
        let Some(view) = self.view(id, corpus, start, last, most)? else {
            return Ok(None);
        };
        let mut streams: Vec<Box<dyn Cursor + '_>> = Vec::new();
        for segment in &*view.segments {
            let from = Some((start.fingerprint, &*start.id));
            streams.push(Box::new(segment.scan(corpus, from)?));
        }
        for part in &view.parts {
            streams.push(Box::new(part.cursor(|_| true)));
        }
        let mut merged = Merge::new(streams);
        let mut visited = 0;
        while let Some((_, element)) = merged.element() {
            let is_behind = |(fingerprint, id): &Key| {
                (element.fingerprint, element.id) >= (*fingerprint, &**id)
            };
            if element.fingerprint > last || view.rest.as_ref().is_some_and(is_behind) {
                break;
            }
            if visited == most {
                return Ok(Some(PageStart {
                    fingerprint: element.fingerprint,
                    id: element.id.into(),
                }));
            }
            if element.live {
                visit(element.fingerprint, element.id);
            }
            visited += 1;
            merged.advance()?;
        }
        let rest = view.rest;
        Ok(rest.map(|(fingerprint, id)| PageStart { fingerprint, id }))
    }

    fn view(
        &self,
        id: ShardId,
        corpus: CorpusUid,
        start: &PageStart,
        last: Fingerprint,
        most: usize,
    ) -> Result<Option<View>, ReadError> {
        let from = (start.fingerprint, start.id.clone());
        let copy = |table: &Memtable| table.part(corpus, &from, last, most);
        let shard = self.read(id)?;
        if !self.holds(corpus) {
            return Ok(None);
        }
        let (changing, rest) = copy(&shard.memtable);
        let frozen = Arc::clone(&shard.frozen);
        let segments = Arc::clone(&shard.segments);
        drop(shard);
        let (frozen, rest_of_frozen) = copy(&frozen);
        Ok(Some(View {
            parts: vec![changing, frozen],
            rest: rest.into_iter().chain(rest_of_frozen).min(),
            segments,
        }))
    }
}

#[cfg(test)]
mod tests {
    use simshard_simhash::{Documents, Layout};
    use simshard_topology::{ShardSet, Version};

    use super::*;
    use crate::element::{Change, ChangeKind, Operation};
    use crate::stored::SharedChange;

    const CORPUS: CorpusUid = CorpusUid([1; 16]);

    fn change(store: &Store, kind: ChangeKind, version: u64, documents: &[(u64, &str)]) {
        let change = Change {
            kind,
            corpus: CORPUS,
            version: Version(version),
            shards: store.shards(),
            documents: Documents {
                fingerprints: documents.iter().map(|(f, _)| Fingerprint(*f)).collect(),
                ids: documents.iter().map(|(_, id)| (*id).to_owned()).collect(),
            },
        };
        let places: Vec<u32> = (0..documents.len() as u32).collect();
        store.apply(ShardId(0), &SharedChange::new(&change), &places, |_| true);
    }

    fn store() -> Store {
        let owned: ShardSet = [ShardId(0)].into_iter().collect();
        let store = Store::in_memory(owned);
        let layout = Layout::default();
        let create = Operation::CreateCorpus {
            uid: CORPUS,
            layout,
        };
        store.note(1, &create);
        store
    }

    fn page(
        store: &Store,
        start: &PageStart,
        last: u64,
        most: usize,
    ) -> (Vec<(u64, String)>, Option<PageStart>) {
        let mut visited = Vec::new();
        let visit =
            |fingerprint: Fingerprint, id: &str| visited.push((fingerprint.0, id.to_owned()));
        let next = store.page(ShardId(0), CORPUS, start, Fingerprint(last), most, visit);
        (visited, next.unwrap())
    }

    /// PA1.
    #[test]
    fn changes_between_two_pages_neither_hide_nor_repeat_the_documents_that_stay() {
        let store = store();
        let stay = [(1, "a"), (1, "c"), (2, ""), (4, "x"), (9, "")];
        change(&store, ChangeKind::Insert, 1, &stay);
        let mut start = Some(PageStart::of(Fingerprint(0)));
        let mut visited = Vec::new();
        let mut version = 2;
        while let Some(at) = start {
            let (documents, next) = page(&store, &at, 8, 1);
            visited.extend(documents);
            // Before, at and behind the place where the next page starts.
            let others = [(0, "z"), (1, "b"), (1, "d"), (3, "")];
            change(&store, ChangeKind::Insert, version, &others);
            change(&store, ChangeKind::Remove, version + 1, &others);
            version += 2;
            start = next;
        }
        let stay = stay[..4].iter().map(|(f, id)| (*f, (*id).to_owned()));
        assert!(visited.into_iter().eq(stay));
    }

    #[test]
    fn a_page_ends_at_its_last_fingerprint_and_at_its_number_of_elements() {
        let store = store();
        change(
            &store,
            ChangeKind::Insert,
            1,
            &[(1, "a"), (2, "b"), (3, "c")],
        );
        change(&store, ChangeKind::Remove, 2, &[(2, "b")]);
        let start = PageStart::of(Fingerprint(1));
        // A tombstone counts, though it is not visited: a page of them alone must end too.
        let (documents, next) = page(&store, &start, 9, 2);
        assert_eq!(documents, [(1, "a".to_owned())]);
        assert_eq!(
            next,
            Some(PageStart {
                fingerprint: Fingerprint(3),
                id: "c".into()
            })
        );
        assert_eq!(page(&store, &start, 2, 2).1, None);
        assert_eq!(
            page(&store, &PageStart::of(Fingerprint(4)), 9, 2),
            (vec![], None)
        );
        assert_eq!(page(&store, &start, 9, 3).1, None);
    }
}
