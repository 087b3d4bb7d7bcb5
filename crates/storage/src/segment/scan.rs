//! Walking over the elements of a segment in order, with one block in memory.

use std::collections::VecDeque;
use std::ops::Range;

use simshard_simhash::Fingerprint;
use simshard_topology::CorpusUid;

use super::block::Block;
use super::reader::Segment;
use crate::directory::{ReadAt, StoredFile};
use crate::element::Element;
use crate::error::ReadError;
use crate::merge::Cursor;

/// A cursor over elements of a segment.
#[derive(Debug)]
pub(crate) struct Scan<'a, S = Box<dyn StoredFile>> {
    segment: &'a Segment<S>,
    /// Corpora, and the places of their blocks that are still to be read.
    ahead: VecDeque<(CorpusUid, Range<usize>)>,
    /// The block with the element it stands at; none at the end.
    current: Option<Current>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Current {
    corpus: CorpusUid,
    block: Block,
    place: usize,
}

impl<'a, S: ReadAt> Scan<'a, S> {
    /// Starts at the first element of these runs of blocks, or at the first one that is not before the key.
    pub(super) fn start(
        segment: &'a Segment<S>,
        runs: Vec<(CorpusUid, Range<usize>)>,
        from: Option<(Fingerprint, &str)>,
    ) -> Result<Self, ReadError> {
        let mut scan = Self {
            segment,
            ahead: runs.into(),
            current: None,
            buffer: Vec::new(),
        };
        scan.next_block()?;
        if let (Some(current), Some((fingerprint, id))) = (&mut scan.current, from) {
            current.place = current.block.seek(fingerprint, id);
            if current.place == current.block.len() {
                scan.next_block()?;
            }
        }
        Ok(scan)
    }

    /// Goes to the first element of the next block. If that fails, stays.
    fn next_block(&mut self) -> Result<(), ReadError> {
        while self
            .ahead
            .front()
            .is_some_and(|(_, places)| places.is_empty())
        {
            self.ahead.pop_front();
        }
        let Some((corpus, places)) = self.ahead.front_mut() else {
            self.current = None;
            return Ok(());
        };
        let block = self.segment.load(places.start, &mut self.buffer)?;
        let before = self.current.as_ref();
        if let Some(before) = before.filter(|before| before.corpus == *corpus) {
            let last = before.block.element(before.block.len() - 1);
            if block.compare(0, last.fingerprint, last.id).is_le() {
                return Err(self.segment.out_of_order(places.start));
            }
        }
        places.start += 1;
        self.current = Some(Current {
            corpus: *corpus,
            block,
            place: 0,
        });
        Ok(())
    }
}

impl<S: ReadAt> Cursor for Scan<'_, S> {
    fn element(&self) -> Option<(CorpusUid, Element<'_>)> {
        let current = self.current.as_ref()?;
        Some((current.corpus, current.block.element(current.place)))
    }

    fn advance(&mut self) -> Result<(), ReadError> {
        match &mut self.current {
            Some(current) if current.place + 1 < current.block.len() => {
                current.place += 1;
                Ok(())
            }
            Some(_) => self.next_block(),
            None => Ok(()),
        }
    }
}
