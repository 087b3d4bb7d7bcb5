//! The permuted tables of a set of fingerprints: a whole corpus, or one shard.
//!
//! # Invariants
//! - X5: table `t` holds the permuted fingerprints of the set whose leading
//!   byte under `t` belongs to the index, plus at most those in `removed`.
//! - X6: a search reports each match once over all shards of a corpus: only
//!   where the table is canonical (T4).

mod probe;
mod run;
mod sort;
mod store;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use rayon::prelude::*;

use crate::Fingerprint;
use crate::table::Table;
use crate::tables::{ActiveTables, Tables};
use store::Store;

/// Removed fingerprints are taken out of the runs when they are more than this
/// share of the set.
const REMOVED_SHARE: usize = 8;

/// Removals below this number wait in any case.
const REMOVED_FEW: usize = 1024;

/// Fewer new fingerprints than this are not worth several threads.
const PARALLEL: usize = 4096;

/// A candidate that a table found: places are those of the searched batch.
#[derive(Clone, Copy, Debug)]
struct Found {
    query: usize,
    /// Exclusive or of query and entry, permuted.
    difference: u64,
}

/// A stored fingerprint that matches a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// Place of the query in its batch.
    pub query: u32,
    /// Distance in bits.
    pub distance: u32,
    /// The stored fingerprint.
    pub fingerprint: Fingerprint,
}

/// What a search looks for.
#[derive(Clone, Debug)]
pub struct Search {
    /// The tables that take part, over all shards.
    pub active: ActiveTables,
    /// Largest distance of a match, at most the layout's.
    pub max_distance: u32,
}

/// The permuted tables of a set of fingerprints.
#[derive(Debug)]
pub struct Index {
    tables: Arc<Tables>,
    /// The leading byte whose entries are held; `None` holds all.
    shard: Option<u8>,
    stores: Vec<Store>,
    /// Fingerprints that are in the stores but no longer in the set.
    removed: HashSet<Fingerprint>,
    len: usize,
}

impl Index {
    /// An empty index of all shards.
    #[must_use]
    pub fn new(tables: Arc<Tables>) -> Self {
        Self::with_shard(tables, None)
    }

    /// An empty index of one shard: it holds, and finds, only entries whose
    /// leading byte is `shard`.
    #[must_use]
    pub fn of_shard(tables: Arc<Tables>, shard: u8) -> Self {
        Self::with_shard(tables, Some(shard))
    }

    fn with_shard(tables: Arc<Tables>, shard: Option<u8>) -> Self {
        let stores = (0..tables.len()).map(|_| Store::default()).collect();
        Self {
            tables,
            shard,
            stores,
            removed: HashSet::new(),
            len: 0,
        }
    }

    /// The tables that the set is permuted by.
    #[must_use]
    pub const fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// Number of fingerprints in the set.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory behind the tables.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.stores.iter().map(Store::memory).sum()
    }

    /// Adds fingerprints. The caller knows that they are distinct and absent,
    /// and, for one shard, that each has that leading byte in some table.
    ///
    /// Tables are built on the threads of the current rayon pool.
    pub fn insert_new(&mut self, mut new: Vec<Fingerprint>) {
        self.len += new.len();
        if !self.removed.is_empty() {
            // Those still in the stores need only be wanted again.
            new.retain(|fingerprint| !self.removed.remove(fingerprint));
        }
        self.each_store(new.len(), |store, table, shard| {
            let mut values = permuted(table, shard, &new);
            if !values.is_empty() {
                sort::sort(&mut values);
                store.insert(values);
            }
        });
    }

    /// Takes fingerprints out. The caller knows that they are distinct and present.
    pub fn remove_present(&mut self, gone: &[Fingerprint]) {
        self.len -= gone.len();
        self.removed.extend(gone);
        if self.removed.len() > REMOVED_FEW.max(self.len / REMOVED_SHARE) {
            self.purge();
        }
    }

    /// Takes what was removed out of the runs.
    fn purge(&mut self) {
        let gone: Vec<Fingerprint> = self.removed.drain().collect();
        self.removed.shrink_to_fit();
        self.each_store(gone.len(), |store, table, shard| {
            let mut values = permuted(table, shard, &gone);
            sort::sort(&mut values);
            store.remove(&values);
        });
    }

    /// Changes every table, on several threads if the change is large. The
    /// shards of a corpus change in parallel already, each under its owner's
    /// lock, and a thread must not take up other work while it holds one.
    fn each_store(
        &mut self,
        changes: usize,
        change: impl Fn(&mut Store, &Table, Option<u8>) + Sync,
    ) {
        let (tables, shard) = (&self.tables, self.shard);
        if changes < PARALLEL || shard.is_some() {
            for (store, table) in self.stores.iter_mut().zip(tables.iter()) {
                change(store, table, shard);
            }
            return;
        }
        let stores = self.stores.par_iter_mut().zip(tables.iter().as_slice());
        stores.for_each(|(store, table)| change(store, table, shard));
    }

    /// Whether a fingerprint is in the set.
    #[must_use]
    pub fn contains(&self, fingerprint: Fingerprint) -> bool {
        let mut held = self.tables.iter().zip(&self.stores).filter(|(table, _)| {
            self.shard
                .is_none_or(|shard| table.leading_byte(fingerprint) == shard)
        });
        let Some((table, store)) = held.next() else {
            return false;
        };
        store.contains(table.permute(fingerprint)) && !self.is_removed(fingerprint)
    }

    /// The fingerprints that the first table holds, in no order: all of them,
    /// or, for one shard, those whose own leading byte it is.
    pub fn iter(&self) -> impl Iterator<Item = Fingerprint> + '_ {
        let all = self.stores[0].iter().map(Fingerprint);
        all.filter(|&fingerprint| !self.is_removed(fingerprint))
    }

    /// Calls `hit` for every match of every query, each once, in no order, until
    /// it breaks: then the search ends with that.
    ///
    /// Goes through one table after the other, so that the directory of the
    /// table stays in the cache: many queries at once are faster than few.
    ///
    /// # Panics
    /// If there are 2^32 queries or more.
    pub fn search(
        &self,
        search: &Search,
        queries: &[Fingerprint],
        mut hit: impl FnMut(Hit) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        assert!(u32::try_from(queries.len()).is_ok(), "2^32 queries or more");
        let mut batch = Batch::default();
        for (place, (store, table)) in self.stores.iter().zip(self.tables.iter()).enumerate() {
            if !search.active.contains(place) || store.is_empty() {
                continue;
            }
            for start in (0..queries.len()).step_by(probe::BATCH) {
                let end = queries.len().min(start + probe::BATCH);
                batch.fill(table, self.shard, &queries[start..end]);
                store.search(table, &batch.permuted, search.max_distance, &mut |found| {
                    let query = start + batch.places[found.query] as usize;
                    let difference = table.unpermute(found.difference).0;
                    let fingerprint = Fingerprint(queries[query].0 ^ difference);
                    let canonical = self.tables.is_canonical(place, &search.active, difference);
                    if !canonical || self.is_removed(fingerprint) {
                        return ControlFlow::Continue(());
                    }
                    hit(Hit {
                        query: query as u32,
                        distance: difference.count_ones(),
                        fingerprint,
                    })
                })?;
            }
        }
        ControlFlow::Continue(())
    }

    fn is_removed(&self, fingerprint: Fingerprint) -> bool {
        !self.removed.is_empty() && self.removed.contains(&fingerprint)
    }
}

/// The queries of a batch that concern one table of an index, permuted.
#[derive(Default)]
struct Batch {
    permuted: Vec<u64>,
    /// Their places in the batch.
    places: Vec<u32>,
}

impl Batch {
    fn fill(&mut self, table: &Table, shard: Option<u8>, queries: &[Fingerprint]) {
        table.permute_all(queries, &mut self.permuted);
        self.places.clear();
        let Some(shard) = shard else {
            return self.places.extend(0..queries.len() as u32);
        };
        let mut kept = 0;
        for place in 0..queries.len() {
            let permuted = self.permuted[place];
            if table.leading_bytes(permuted).contains(&shard) {
                self.permuted[kept] = permuted;
                self.places.push(place as u32);
                kept += 1;
            }
        }
        self.permuted.truncate(kept);
    }
}

/// The permuted values that an index of this shard holds in a table.
fn permuted(table: &Table, shard: Option<u8>, fingerprints: &[Fingerprint]) -> Vec<u64> {
    let values = fingerprints
        .iter()
        .map(|&fingerprint| table.permute(fingerprint));
    match shard {
        None => values.collect(),
        Some(shard) => values
            .filter(|value| (value >> 56) as u8 == shard)
            .collect(),
    }
}
