//! Fingerprints between NumPy and the engine.

use numpy::{PyArray1, PyArrayMethods};
use pyo3::{Bound, PyResult, Python};
use simshard_simhash::Fingerprint;

/// The fingerprints of a contiguous array: a copy, as Python may change the array meanwhile.
pub(crate) fn fingerprints_of(array: &Bound<'_, PyArray1<u64>>) -> PyResult<Vec<Fingerprint>> {
    let array = array.try_readonly()?;
    let numbers = array.as_slice()?;
    Ok(numbers.iter().copied().map(Fingerprint).collect())
}

/// An array that owns these numbers, without a copy.
pub(crate) fn array_of(py: Python<'_>, numbers: Vec<u64>) -> Bound<'_, PyArray1<u64>> {
    PyArray1::from_vec(py, numbers)
}

/// The numbers of fingerprints.
pub(crate) fn numbers_of(fingerprints: impl IntoIterator<Item = Fingerprint>) -> Vec<u64> {
    let numbers = fingerprints.into_iter();
    numbers.map(|fingerprint| fingerprint.0).collect()
}
