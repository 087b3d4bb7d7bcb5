//! What one table holds: sorted runs that grow geometrically, and a small
//! mutable run in front that takes recent inserts.
//!
//! # Invariants
//! - X3: no value is in two runs.
//! - X4: each run is more than [`GROWTH`] times the one after it, unless both
//!   together were longer than a run may be.

use std::ops::ControlFlow;

use super::run::{MAX_RUN, Run, merge, narrow};
use super::{Found, probe};
use crate::table::Table;

/// Most entries of the mutable run.
const RECENT: usize = 1024;

/// A run that is not this many times larger than the next is merged with it.
const GROWTH: usize = 4;

/// The permuted fingerprints of one table.
#[derive(Debug, Default)]
pub(super) struct Store {
    runs: Vec<Run>,
    recent: Vec<u64>,
}

impl Store {
    /// Adds ascending values, none of which is present.
    pub(super) fn insert(&mut self, values: Vec<u64>) {
        if self.recent.len() + values.len() > RECENT {
            let recent = std::mem::take(&mut self.recent);
            let merged = if recent.is_empty() {
                values
            } else {
                merge(&recent, &values)
            };
            return self.push(merged);
        }
        if let [value] = values[..] {
            let place = self.recent.partition_point(|&entry| entry < value);
            return self.recent.insert(place, value);
        }
        self.recent = merge(&self.recent, &values);
    }

    fn push(&mut self, mut entries: Vec<u64>) {
        while let Some(last) = self.runs.last() {
            let fits = last.len() + entries.len() <= MAX_RUN;
            if last.len() > entries.len() * GROWTH || !fits {
                break;
            }
            entries = merge(last.entries(), &entries);
            self.runs.pop();
        }
        self.runs.extend(Run::from_sorted(entries));
    }

    /// Takes out ascending values, whether present or not.
    pub(super) fn remove(&mut self, gone: &[u64]) {
        self.recent
            .retain(|value| gone.binary_search(value).is_err());
        for run in std::mem::take(&mut self.runs) {
            let rest = run.without(gone);
            if !rest.is_empty() {
                self.push(rest);
            }
        }
    }

    /// Whether a value is present.
    pub(super) fn contains(&self, value: u64) -> bool {
        let values = value..=value;
        let in_run = |run: &Run| {
            let places = run.places(&run.buckets(&values));
            run.candidates(places, &values).contains(&value)
        };
        self.recent.binary_search(&value).is_ok() || self.runs.iter().any(in_run)
    }

    /// Calls `found` for every value that shares its prefix with a query and is
    /// at most `max_distance` from it, until it breaks.
    pub(super) fn search(
        &self,
        table: &Table,
        queries: &[u64],
        max_distance: u32,
        found: &mut impl FnMut(Found) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for run in &self.runs {
            probe::probe(run, table, queries, max_distance, found)?;
        }
        if self.recent.is_empty() {
            return ControlFlow::Continue(());
        }
        for (query, &permuted) in queries.iter().enumerate() {
            let candidates = narrow(&self.recent, &table.prefix_range(permuted));
            probe::scan(candidates, query, permuted, u64::MAX, max_distance, found)?;
        }
        ControlFlow::Continue(())
    }

    /// Whether there is no value.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.recent.is_empty()
    }

    /// All values, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let runs = self.runs.iter().flat_map(Run::entries);
        runs.chain(&self.recent).copied()
    }

    /// Bytes of memory behind the table.
    pub(super) fn memory(&self) -> usize {
        let runs: usize = self.runs.iter().map(Run::memory).sum();
        runs + self.recent.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn value(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn sorted(numbers: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut values: Vec<u64> = numbers.map(value).collect();
        values.sort_unstable();
        values
    }

    /// X3 and X4, and that the store holds exactly these.
    fn check(store: &Store, expected: &BTreeSet<u64>) {
        let sizes: Vec<usize> = store.runs.iter().map(Run::len).collect();
        let grows = |pair: &[usize]| pair[0] > pair[1] * GROWTH;
        assert!(sizes.windows(2).all(grows), "X4: {sizes:?}");
        let all: Vec<u64> = store.iter().collect();
        assert_eq!(all.len(), expected.len(), "X3: a value is in two runs");
        assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), *expected);
    }

    #[test]
    fn any_sizes_of_inserts_and_removals_leave_few_runs() {
        let mut store = Store::default();
        let mut expected = BTreeSet::new();
        let mut next = 0;
        for round in 0..200_u64 {
            let count = [1, 3, 700, 1_500, 20, 9_000][round as usize % 6];
            let values = sorted(next..next + count);
            next += count;
            expected.extend(&values);
            store.insert(values);
            if round % 7 == 6 {
                let gone = sorted((0..next).filter(|number| number % 50 == round % 50));
                store.remove(&gone);
                expected.retain(|value| gone.binary_search(value).is_err());
            }
            if round % 11 == 0 {
                check(&store, &expected);
            }
        }
        check(&store, &expected);
        assert!(expected.len() > 50_000);
    }

    #[test]
    fn many_single_inserts_leave_few_runs() {
        let mut store = Store::default();
        for number in 0..100_000 {
            store.insert(vec![value(number)]);
        }
        check(&store, &(0..100_000).map(value).collect());
    }
}
