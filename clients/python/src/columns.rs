//! Columns of texts in memory of other libraries.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::types::PyAnyMethods;
use pyo3::{Bound, FromPyObject, PyAny, PyResult, Python, pyfunction};

use crate::fingerprints::array_of;
use crate::recipes::{fingerprints_by, recipe_for_texts};

/// `simshard._arrow.Texts`: each text is from a start to an end in one of the buffers.
#[derive(FromPyObject)]
struct Texts<'py> {
    buffers: Vec<PyReadonlyArray1<'py, u8>>,
    which: PyReadonlyArray1<'py, i64>,
    starts: PyReadonlyArray1<'py, i64>,
    ends: PyReadonlyArray1<'py, i64>,
    is_null: PyReadonlyArray1<'py, bool>,
}

impl Texts<'_> {
    /// The texts, each checked to lie in its buffer and to be UTF-8; `None` for null.
    fn strings(&self) -> PyResult<Vec<Option<&str>>> {
        let buffers = self.buffers.iter().map(|buffer| buffer.as_slice());
        let buffers: Vec<&[u8]> = buffers.collect::<Result<_, _>>()?;
        let starts = self.starts.as_array();
        let ends = self.ends.as_array();
        let places = self.which.as_array();
        let is_null = self.is_null.as_array();
        let places = places.iter().zip(&starts).zip(&ends).zip(&is_null);
        let text = |(row, (((&buffer, &start), &end), &is_null))| {
            if is_null {
                return Ok(None);
            }
            let octets = slice(&buffers, buffer, start, end);
            let text = octets.and_then(|octets| str::from_utf8(octets).ok());
            let text = text.map(Some);
            text.ok_or_else(|| PyValueError::new_err(format!("text {row} is no text of UTF-8")))
        };
        places.enumerate().map(text).collect()
    }
}

/// The fingerprints of a column of texts, as of a list.
#[pyfunction]
pub(crate) fn fingerprint_column<'py>(
    py: Python<'py>,
    texts: &Bound<'py, PyAny>,
    recipe: &str,
) -> PyResult<(Bound<'py, PyArray1<u64>>, Vec<usize>)> {
    let recipe = recipe_for_texts(recipe)?;
    let texts: Texts<'_> = texts.extract()?;
    let (numbers, without) = fingerprints_by(py, recipe, &texts.strings()?)?;
    Ok((array_of(py, numbers), without))
}

/// How many characters each text of a column has; null has none.
#[pyfunction]
pub(crate) fn lengths_of_column<'py>(
    py: Python<'py>,
    texts: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let texts: Texts<'_> = texts.extract()?;
    let strings = texts.strings()?.into_iter();
    let lengths = strings.map(|text| text.map_or(0, |text| text.chars().count() as i64));
    Ok(PyArray1::from_vec(py, lengths.collect()))
}

fn slice<'a>(buffers: &[&'a [u8]], buffer: i64, start: i64, end: i64) -> Option<&'a [u8]> {
    let buffer = buffers.get(usize::try_from(buffer).ok()?)?;
    buffer.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}
