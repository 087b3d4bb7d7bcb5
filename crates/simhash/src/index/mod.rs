//! The permuted tables of a set of fingerprints: a whole corpus, or one shard.
//!
//! # Invariants
//! - X5: table `t` holds the permuted fingerprints of the set whose leading byte under `t` belongs to the index. It
//!   lacks those in `recent`, and may also hold those in `removed`.
//! - X6: a search reports each match once over all shards of a corpus: only
//!   where the table is canonical (T4).
//!
//! # Which queries are sorted
//!
//! Putting the queries of a table into the order of its buckets pays where buckets are large and many queries share
//! each. Where buckets are small, it costs more than the sequential probes save. When this was measured, it cost a
//! sixth of the queries a second at (5, 3), n = 1M.

mod batch;
mod contains;
mod few;
mod run;
mod search;
mod sort;
mod store;

use std::collections::HashSet;
use std::sync::Arc;

use rayon::prelude::*;

use crate::Fingerprint;
use crate::scan::{self, Level, Zeroed};
use crate::table::Table;
use crate::tables::{ActiveTables, Tables};
pub use few::Bounds;
use run::Run;
use sort::Permuted;
use store::Store;

/// Recent fingerprints, which each query is compared with, for each table that it
/// probes: they cost a bulk search about a fifth of what the probes do.
const RECENT_PER_TABLE: usize = 64;

/// Fewest and most recent fingerprints that may wait: fewer are not worth a sort,
/// and each insert looks through them.
const RECENT: (usize, usize) = (256, 2048);

/// Removed fingerprints are taken out of the runs when they are more than this
/// share of the set.
const REMOVED_SHARE: usize = 8;

/// Removals below this number wait in any case.
const REMOVED_FEW: usize = 1024;

/// Fewer changes than this are not worth several threads.
const PARALLEL: usize = 1024;

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

/// The parameters of a search.
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
    /// One a table; none before there is anything to hold.
    stores: Vec<Store>,
    /// The latest fingerprints, which are in no store yet.
    recent: Vec<Fingerprint>,
    /// Fingerprints that are in the stores or recent, but no longer in the set.
    removed: HashSet<Fingerprint>,
    len: usize,
    level: Level,
}

/// Buffers of a thread, reused from table to table, so that it does not ask the system for new pages each time.
#[derive(Default)]
struct Buffers {
    sorted: Zeroed<u64>,
    left: Zeroed<u64>,
}

impl Index {
    /// An empty index of all shards.
    #[must_use]
    pub fn new(tables: Arc<Tables>) -> Self {
        Self::with(tables, None, Level::best())
    }

    /// An empty index of one shard: it holds, and finds, only entries whose
    /// leading byte is `shard`.
    #[must_use]
    pub fn of_shard(tables: Arc<Tables>, shard: u8) -> Self {
        Self::with(tables, Some(shard), Level::best())
    }

    fn with(tables: Arc<Tables>, shard: Option<u8>, level: Level) -> Self {
        Self {
            tables,
            shard,
            stores: Vec::new(),
            recent: Vec::new(),
            removed: HashSet::new(),
            len: 0,
            level,
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
        let runs: usize = self.stores.iter().map(Store::memory).sum();
        let stores = self.stores.capacity() * size_of::<Store>();
        runs + stores + self.recent.capacity() * size_of::<Fingerprint>()
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
        if self.recent.len() + new.len() <= self.most_recent() {
            return self.recent.append(&mut new);
        }
        new.append(&mut self.recent);
        self.change_stores(&new, |store, values, _| store.insert(values));
    }

    /// Most fingerprints that wait to be put into the tables.
    fn most_recent(&self) -> usize {
        let leads = self.tables.layout().distance() as usize + 1;
        let probed = match self.shard {
            // A query concerns a shard by one of its leading blocks.
            Some(_) => self.tables.len() / leads,
            None => self.tables.len(),
        };
        (probed * RECENT_PER_TABLE).clamp(RECENT.0, RECENT.1)
    }

    /// Takes fingerprints out. The caller knows that they are distinct and present.
    pub fn remove_present(&mut self, gone: &[Fingerprint]) {
        self.len -= gone.len();
        let waiting = self.removed.len() + gone.len();
        if waiting <= REMOVED_FEW.max(self.len / REMOVED_SHARE) {
            return self.removed.extend(gone);
        }
        let mut gone = gone.to_vec();
        gone.extend(self.removed.drain());
        self.purge(&gone);
    }

    /// Takes fingerprints out of the runs.
    fn purge(&mut self, gone: &[Fingerprint]) {
        let recent = std::mem::take(&mut self.recent);
        self.change_stores(&recent, |store, values, _| store.insert(values));
        self.change_stores(gone, Store::remove);
    }

    /// Changes every table by the values, ascending, that it holds of these, on
    /// several threads if they are many. The shards of a corpus change in parallel
    /// already, each under its owner's lock, and a thread must not take up other
    /// work while it holds one.
    fn change_stores(
        &mut self,
        fingerprints: &[Fingerprint],
        change: impl Fn(&mut Store, &[u64], &mut Zeroed<u64>) + Sync,
    ) {
        let (level, shard) = (self.level, self.shard);
        let change = |buffers: &mut Buffers, (store, table): (&mut Store, &Table)| {
            let permuted = Permuted {
                level,
                table,
                shard,
                fingerprints,
            };
            let values = permuted.sorted(&mut buffers.sorted);
            if !values.is_empty() {
                change(store, values, &mut buffers.left);
            }
        };
        let tables = self.tables.iter().as_slice();
        if self.stores.is_empty() && !fingerprints.is_empty() {
            let store = |table: &Table| Store::new(table.prefix_bits());
            self.stores = tables.iter().map(store).collect();
        }
        if fingerprints.len() < PARALLEL || shard.is_some() {
            let mut buffers = Buffers::default();
            let stores = self.stores.iter_mut().zip(tables);
            return stores.for_each(|store| change(&mut buffers, store));
        }
        let stores = self.stores.par_iter_mut().zip(tables);
        stores.for_each_init(Buffers::default, change);
    }

    /// The fingerprints in the set, in no order: all of them, or, for one shard,
    /// those whose own leading byte it is.
    pub fn iter(&self) -> impl Iterator<Item = Fingerprint> + '_ {
        // The first table is the identity.
        self.entries(0)
    }

    /// The fingerprints in the set that a table holds, in no order. An index of one shard holds those whose leading
    /// byte under that table is the shard; any other holds all.
    ///
    /// # Panics
    /// If there is no such table.
    pub fn entries(&self, table: usize) -> impl Iterator<Item = Fingerprint> + '_ {
        let stored = self.runs(table).iter().flat_map(Run::iter);
        let table = self.tables.get(table);
        let is_held = |fingerprint: &Fingerprint| {
            let own = |shard| table.leading_byte(*fingerprint) == shard;
            self.shard.is_none_or(own)
        };
        let recent = self.recent.iter().copied().filter(is_held);
        let mask = mixed_bits(table, self.shard);
        let stored = stored.map(move |mixed| table.unpermute(scan::unmix(mask, mixed)));
        let all = stored.chain(recent);
        all.filter(|&fingerprint| !self.is_removed(fingerprint))
    }

    fn runs(&self, table: usize) -> &[Run] {
        self.stores.get(table).map_or(&[], Store::runs)
    }

    fn is_removed(&self, fingerprint: Fingerprint) -> bool {
        !self.removed.is_empty() && self.removed.contains(&fingerprint)
    }
}

/// How many leading bits all entries of a table share.
const fn shared_bits(shard: Option<u8>) -> u32 {
    match shard {
        Some(_) => u8::BITS,
        None => 0,
    }
}

/// Bits of a prefix whose first byte is not mixed. Large runs have a bucket for each of so few prefixes: mixing evens out
/// nothing. Queries that agree in the first byte then share a stretch of memory.
const SHORT_PREFIX_BITS: u32 = 16;

/// The bits of a permuted value that are mixed: its prefix, but for what all entries share, or the first byte of a short
/// one.
const fn mixed_bits(table: &Table, shard: Option<u8>) -> u64 {
    let kept = if table.prefix_bits() <= SHORT_PREFIX_BITS {
        u8::BITS
    } else {
        shared_bits(shard)
    };
    table.leading_mask() & (u64::MAX >> kept)
}

#[cfg(test)]
mod tests;
