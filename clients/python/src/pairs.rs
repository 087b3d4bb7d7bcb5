//! All pairs of near-duplicates, and their clusters.

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::{Bound, PyErr, PyResult, Python, pyfunction};
use simshard_simhash::{Fingerprint, FingerprintSet, LayoutError, Pair, PairSearch, Unsorted};

use crate::fingerprints::{array_of, fingerprints_of};
use crate::interruptible::interruptible;

pub(crate) fn refused(error: LayoutError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The fingerprints of an array, and how they are searched for pairs.
pub(crate) fn searched(
    array: &Bound<'_, PyArray1<u64>>,
    distance: u32,
    blocks: Option<u32>,
) -> PyResult<(Vec<Fingerprint>, PairSearch)> {
    let fingerprints = fingerprints_of(array)?;
    let search = PairSearch::new(distance, blocks, fingerprints.len()).map_err(refused)?;
    Ok((fingerprints, search))
}

/// Each pair of different fingerprints within the distance, once, as an array of two columns: the smaller one first.
#[pyfunction]
#[pyo3(signature = (fingerprints, distance, blocks))]
pub(crate) fn find_pairs<'py>(
    py: Python<'py>,
    fingerprints: &Bound<'py, PyArray1<u64>>,
    distance: u32,
    blocks: Option<u32>,
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    let (unsorted, search) = {
        let array = fingerprints.try_readonly()?;
        let numbers = array.as_slice()?;
        let search = PairSearch::new(distance, blocks, numbers.len()).map_err(refused)?;
        // Python may change the array once the interpreter goes on.
        (Unsorted::copy_of(numbers), search)
    };
    let numbers = interruptible(py, |interrupted| {
        let set = unsorted.into_set();
        let mut numbers: Vec<u64> = Vec::new();
        let mut visit = |pairs: &[Pair]| {
            numbers.extend(pairs.iter().flat_map(|pair| [pair.a.0, pair.b.0]));
            interrupted.goes_on()
        };
        let _ = search.pairs(&set, &|_, _| interrupted.goes_on(), &mut visit);
        numbers
    })?;
    as_pairs(py, numbers)
}

/// Numbers as an array of two columns, without a copy.
pub(crate) fn as_pairs(py: Python<'_>, numbers: Vec<u64>) -> PyResult<Bound<'_, PyArray2<u64>>> {
    let pairs = numbers.len() / 2;
    array_of(py, numbers).reshape([pairs, 2])
}

/// For each fingerprint the place of the first one of its cluster: its own, if it is that or alone. Fingerprints within
/// the distance, directly or through others, are in one cluster.
#[pyfunction]
#[pyo3(signature = (fingerprints, distance, blocks))]
pub(crate) fn find_clusters<'py>(
    py: Python<'py>,
    fingerprints: &Bound<'py, PyArray1<u64>>,
    distance: u32,
    blocks: Option<u32>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (fingerprints, search) = searched(fingerprints, distance, blocks)?;
    let labels = interruptible(py, |interrupted| {
        let set = FingerprintSet::from_unsorted(fingerprints.clone());
        let clusters = search.clusters(&set, &|_, _| interrupted.goes_on());
        if interrupted.goes_on().is_break() {
            // Links are missing, and the labels are not returned.
            return Vec::new();
        }
        labels(&fingerprints, &set, &clusters.roots())
    })?;
    Ok(PyArray1::from_vec(py, labels))
}

/// For each fingerprint the place of the first one with its root.
fn labels(fingerprints: &[Fingerprint], set: &FingerprintSet, roots: &[u32]) -> Vec<i64> {
    let mut firsts = vec![-1_i64; set.len()];
    let label = |(place, fingerprint)| {
        // Each is in the set that was made of them.
        let member = set.place(fingerprint).unwrap_or_default();
        let first = &mut firsts[roots[member] as usize];
        if *first < 0 {
            *first = place as i64;
        }
        *first
    };
    let places = fingerprints.iter().copied().enumerate();
    places.map(label).collect()
}
