//! Whether fingerprints are in the set of an index.

use std::collections::HashSet;

use super::run::Run;
use super::{Index, mixed_bits};
use crate::Fingerprint;
use crate::scan::{self, Packed};

/// Fingerprints that are looked for together: what they need of a few runs fits a small cache.
const TOGETHER: usize = 64;

/// What an index has of a fingerprint: the place of a table, and the value that its runs would hold.
#[derive(Clone, Copy)]
struct Entry {
    table: usize,
    value: u64,
}

impl Index {
    /// Whether a fingerprint is in the set.
    #[must_use]
    pub fn contains(&self, fingerprint: Fingerprint) -> bool {
        let Some(entry) = self.entry(fingerprint) else {
            return false;
        };
        for (run, bucket) in self.runs_of(entry) {
            run.prefetch_places(bucket);
        }
        self.has(fingerprint, entry)
    }

    /// Those of some fingerprints that are in the set.
    ///
    /// Runs do not fit the caches. So it asks for all that a batch needs of them before it reads any of it. In a set
    /// of millions, many fingerprints at once then take a fraction of the time of one after the other.
    #[must_use]
    pub fn contained(
        &self,
        fingerprints: impl IntoIterator<Item = Fingerprint>,
    ) -> HashSet<Fingerprint> {
        let mut contained = HashSet::new();
        let mut fingerprints = fingerprints.into_iter().peekable();
        let mut batch = Vec::with_capacity(fingerprints.size_hint().0.min(TOGETHER));
        while fingerprints.peek().is_some() {
            batch.clear();
            let entries = fingerprints.by_ref().take(TOGETHER);
            batch.extend(entries.filter_map(|one| Some((one, self.entry(one)?))));
            let in_runs = || batch.iter().flat_map(|&(_, entry)| self.runs_of(entry));
            for (run, bucket) in in_runs() {
                run.prefetch_places(bucket);
            }
            for (run, bucket) in in_runs() {
                // This begins to load the entries.
                let _ = run.places(bucket);
            }
            let held = batch.iter().filter(|(one, entry)| self.has(*one, *entry));
            contained.extend(held.map(|(one, _)| one));
        }
        contained
    }

    /// Whether a fingerprint, whose entry this is, is in the set.
    fn has(&self, fingerprint: Fingerprint, entry: Entry) -> bool {
        let in_run = |(run, _): (Packed<'_>, u32)| run.contains(entry.value);
        let is_held = self.runs_of(entry).any(in_run) || self.recent.contains(&fingerprint);
        is_held && !self.is_removed(fingerprint)
    }

    /// The first table that has an entry for a fingerprint in this index, if one has.
    fn entry(&self, fingerprint: Fingerprint) -> Option<Entry> {
        let mut tables = self.tables.iter().enumerate();
        let (place, table) = tables.find(|(_, table)| self.holds(table, fingerprint))?;
        let mixed = mixed_bits(table, self.shard);
        Some(Entry {
            table: place,
            value: scan::mix(mixed, table.permute(fingerprint)),
        })
    }

    /// The runs that may hold an entry, and its bucket in each.
    fn runs_of(&self, entry: Entry) -> impl Iterator<Item = (Packed<'_>, u32)> {
        let runs = self.runs(entry.table).iter().map(Run::packed);
        runs.map(move |run| (run, run.bucket(entry.value)))
    }
}
