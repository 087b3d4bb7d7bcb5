//! A corpus in memory.

use numpy::PyArray1;
use parking_lot::RwLock;
use pyo3::{Bound, PyResult, Python, pyclass, pymethods};
use simshard_simhash::{self as engine, Fingerprint, Match};

use crate::fingerprints::{array_of, fingerprints_of, numbers_of};
use crate::interruptible::{Interrupted, interruptible};
use crate::pairs::refused;

/// Queries of the first chunk, and the fewest and most of a later one. Between two, a signal is looked for.
const CHUNK: (usize, usize, usize) = (1 << 8, 1 << 4, 1 << 16);

/// Matches that a chunk aims at: crowded queries have very many each.
const MATCHES: usize = 1 << 20;

/// Changes between two looks for a signal.
const CHANGES: usize = 1 << 22;

/// Distinct fingerprints, found up to a distance.
#[pyclass(frozen, module = "simshard._simshard")]
#[derive(Debug)]
pub(crate) struct Corpus(RwLock<engine::Corpus>);

/// The matches of many queries as columns: the place of each query, the fingerprint, the distance.
type Columns<'py> = (
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u8>>,
);

#[pymethods]
impl Corpus {
    #[new]
    fn new(blocks: u32, distance: u32) -> PyResult<Self> {
        let corpus = engine::Corpus::new(blocks, distance).map_err(refused)?;
        Ok(Self(RwLock::new(corpus)))
    }

    fn layout(&self) -> (u32, u32) {
        let layout = self.0.read().layout();
        (layout.blocks(), layout.distance())
    }

    fn __len__(&self) -> usize {
        self.0.read().len()
    }

    fn contains(&self, fingerprint: u64) -> bool {
        self.0.read().contains(Fingerprint(fingerprint))
    }

    fn to_array<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        array_of(py, py.detach(|| numbers_of(self.0.read().iter())))
    }

    fn insert(&self, fingerprint: u64) -> bool {
        self.0.write().insert(Fingerprint(fingerprint))
    }

    fn remove(&self, fingerprint: u64) -> bool {
        self.0.write().remove(Fingerprint(fingerprint))
    }

    /// Answers how many were absent. An interruption leaves a part of them inserted.
    fn insert_bulk(
        &self,
        py: Python<'_>,
        fingerprints: &Bound<'_, PyArray1<u64>>,
    ) -> PyResult<usize> {
        self.change(py, fingerprints, engine::Corpus::insert_bulk)
    }

    /// Answers how many were present. An interruption leaves a part of them removed.
    fn remove_bulk(
        &self,
        py: Python<'_>,
        fingerprints: &Bound<'_, PyArray1<u64>>,
    ) -> PyResult<usize> {
        self.change(py, fingerprints, engine::Corpus::remove_bulk)
    }

    fn find_first(&self, query: u64) -> Option<(u64, u32)> {
        let found = self.0.read().find_first(Fingerprint(query));
        found.map(|found| (found.fingerprint.0, found.distance))
    }

    fn find_all(&self, query: u64) -> Vec<(u64, u32)> {
        let found = self.0.read().find_all(Fingerprint(query)).into_iter();
        found
            .map(|found| (found.fingerprint.0, found.distance))
            .collect()
    }

    fn find_first_bulk<'py>(
        &self,
        py: Python<'py>,
        queries: &Bound<'py, PyArray1<u64>>,
    ) -> PyResult<Columns<'py>> {
        self.find(py, queries, |corpus, queries, found| {
            let nearest = corpus.find_first_bulk(queries).into_iter();
            for (query, nearest) in nearest.enumerate() {
                found.add(query, nearest.as_slice());
            }
        })
    }

    fn find_all_bulk<'py>(
        &self,
        py: Python<'py>,
        queries: &Bound<'py, PyArray1<u64>>,
    ) -> PyResult<Columns<'py>> {
        self.find(py, queries, |corpus, queries, found| {
            for (query, matches) in corpus.find_all_bulk(queries).iter().enumerate() {
                found.add(query, matches);
            }
        })
    }

    /// Bytes of memory.
    fn memory(&self) -> usize {
        self.0.read().memory()
    }
}

impl Corpus {
    fn change(
        &self,
        py: Python<'_>,
        fingerprints: &Bound<'_, PyArray1<u64>>,
        change: impl Fn(&mut engine::Corpus, &[Fingerprint]) -> usize + Sync,
    ) -> PyResult<usize> {
        let fingerprints = fingerprints_of(fingerprints)?;
        interruptible(py, |interrupted| {
            let mut corpus = self.0.write();
            let chunks = fingerprints.chunks(CHANGES);
            let chunks = chunks.take_while(|_| interrupted.goes_on().is_continue());
            chunks.map(|chunk| change(&mut corpus, chunk)).sum()
        })
    }

    fn find<'py>(
        &self,
        py: Python<'py>,
        queries: &Bound<'py, PyArray1<u64>>,
        find: impl Fn(&engine::Corpus, &[Fingerprint], &mut Found) + Sync,
    ) -> PyResult<Columns<'py>> {
        let queries = fingerprints_of(queries)?;
        let found = interruptible(py, |interrupted: &Interrupted| {
            let mut found = Found::default();
            let corpus = self.0.read();
            let (mut size, fewest, most) = CHUNK;
            let mut left = &queries[..];
            while !left.is_empty() && interrupted.goes_on().is_continue() {
                let (chunk, later) = left.split_at(size.min(left.len()));
                let before = found.queries.len();
                find(&corpus, chunk, &mut found);
                found.before += chunk.len() as u64;
                let matches = (found.queries.len() - before).max(1);
                size = (chunk.len() * MATCHES / matches).clamp(fewest, most);
                left = later;
            }
            found
        })?;
        Ok((
            array_of(py, found.queries),
            array_of(py, found.fingerprints),
            PyArray1::from_vec(py, found.distances),
        ))
    }
}

/// Matches as columns.
#[derive(Debug, Default)]
struct Found {
    /// Queries of earlier chunks.
    before: u64,
    queries: Vec<u64>,
    fingerprints: Vec<u64>,
    distances: Vec<u8>,
}

impl Found {
    fn add(&mut self, query: usize, matches: &[Match]) {
        for found in matches {
            self.queries.push(self.before + query as u64);
            self.fingerprints.push(found.fingerprint.0);
            self.distances.push(found.distance as u8);
        }
    }
}
