//! The queries of a search, in batches for one table after the other.

use super::{Index, mixed_bits};
use crate::Fingerprint;
use crate::counting;
use crate::scan::{self, BATCH};
use crate::table::Table;

/// Where the two leading bytes of a value begin.
const FIRST_BYTE: u32 = 56;
const SECOND_BYTE: u32 = 48;

/// Values of a byte.
const BYTES: usize = 256;

/// How the queries of a search are cut into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// This many queries each, as they come.
    Every(usize),
    /// All queries in one part, to be sorted.
    Whole,
    /// The queries of a part agree in these bits, a row of few.
    By(u64),
}

/// The queries of a search in parts, which go through a table one by one.
pub(super) struct Parts<'a> {
    queries: &'a [Fingerprint],
    cut: Option<Cut>,
    /// The queries by part, where they are not in parts as they come.
    grouped: Vec<Fingerprint>,
    /// The place of each query among all.
    places: Vec<u32>,
    /// Where each part ends.
    ends: Vec<u32>,
}

/// Queries with their places among all.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    queries: &'a [Fingerprint],
    places: &'a [u32],
}

impl<'a> Parts<'a> {
    pub(super) const fn of(queries: &'a [Fingerprint]) -> Self {
        Self {
            queries,
            cut: None,
            grouped: Vec::new(),
            places: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Cuts the queries, unless they were cut like this for the table before.
    pub(super) fn cut(&mut self, cut: Cut) {
        if self.cut.replace(cut) == Some(cut) {
            return;
        }
        match cut {
            Cut::Every(most) => self.chunk(most),
            Cut::Whole => self.chunk(self.queries.len()),
            Cut::By(bits) => self.group(bits),
        }
    }

    fn chunk(&mut self, most: usize) {
        let all = self.queries.len();
        self.places.clear();
        self.places.extend(0..all as u32);
        self.ends.clear();
        let inner = (most..all).step_by(most);
        self.ends.extend(inner.chain([all]).map(|end| end as u32));
    }

    fn group(&mut self, bits: u64) {
        let part = |query: Fingerprint| ((query.0 & bits) >> bits.trailing_zeros()) as usize;
        self.ends.clear();
        self.ends.resize(1 << bits.count_ones(), 0);
        let parts = self.queries.iter().map(|&query| part(query));
        counting::count(&mut self.ends, parts);
        counting::to_starts(&mut self.ends);
        self.grouped.resize(self.queries.len(), Fingerprint(0));
        self.places.resize(self.queries.len(), 0);
        for (place, &query) in (0..).zip(self.queries) {
            let next = &mut self.ends[part(query)];
            (self.grouped[*next as usize], self.places[*next as usize]) = (query, place);
            *next += 1;
        }
    }

    /// The parts, some perhaps empty.
    pub(super) fn iter(&self) -> impl Iterator<Item = Part<'_>> {
        let queries = match self.cut {
            Some(Cut::By(_)) => &self.grouped,
            _ => self.queries,
        };
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let part = std::mem::replace(&mut start, end as usize)..end as usize;
            Part {
                queries: &queries[part.clone()],
                places: &self.places[part],
            }
        })
    }
}

/// The queries of a part that concern one table of an index, permuted and mixed.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) permuted: Vec<u64>,
    /// The places of these queries among all.
    pub(super) places: Vec<u32>,
    /// Room to sort the queries and their places.
    unordered: (Vec<u64>, Vec<u32>),
}

impl Batch {
    /// Takes the queries of a part for the table at this place.
    pub(super) fn fill(&mut self, index: &Index, place: usize, Part { queries, places }: Part<'_>) {
        let table = index.tables.get(place);
        self.permuted.resize(queries.len(), 0);
        let targets = self.permuted.chunks_mut(BATCH);
        for (queries, permuted) in queries.chunks(BATCH).zip(targets) {
            scan::permute(index.level, table, queries, permuted);
        }
        self.places.clear();
        self.places.extend(places);
        if let Some(shard) = index.shard {
            self.keep(table, shard);
        }
        scan::mix_all(
            index.level,
            mixed_bits(table, index.shard),
            &mut self.permuted,
        );
    }

    /// Sorts the queries by the two bytes behind the `shared` leading bits. Queries of one bucket, or of neighbouring
    /// ones, then follow each other.
    pub(super) fn order(&mut self, shared: u32) {
        self.order_by(SECOND_BYTE - shared);
        self.order_by(FIRST_BYTE - shared);
    }

    /// Sorts the queries of a part by the second byte, where they agree in what the first one comes from.
    pub(super) fn order_part(&mut self) {
        self.order_by(SECOND_BYTE);
    }

    /// Sorts the queries by the byte that begins at this bit. Those with the same one keep their order.
    fn order_by(&mut self, bit: u32) {
        std::mem::swap(&mut self.permuted, &mut self.unordered.0);
        std::mem::swap(&mut self.places, &mut self.unordered.1);
        let (values, places) = &self.unordered;
        let byte = |value: u64| usize::from((value >> bit) as u8);
        let mut ends = [0_u32; BYTES];
        counting::count(&mut ends, values.iter().map(|&value| byte(value)));
        counting::to_starts(&mut ends);
        self.permuted.resize(values.len(), 0);
        self.places.resize(values.len(), 0);
        for (&value, &place) in values.iter().zip(places) {
            let next = &mut ends[byte(value)];
            (self.permuted[*next as usize], self.places[*next as usize]) = (value, place);
            *next += 1;
        }
    }

    /// Keeps the queries that may have a match in a shard.
    fn keep(&mut self, table: &Table, shard: u8) {
        let mut kept = 0;
        for place in 0..self.permuted.len() {
            let permuted = self.permuted[place];
            if table.leading_bytes(permuted).contains(&shard) {
                self.permuted[kept] = permuted;
                self.places[kept] = self.places[place];
                kept += 1;
            }
        }
        self.permuted.truncate(kept);
    }
}
