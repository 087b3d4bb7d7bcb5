//! Fingerprints of texts.

use std::ops::{ControlFlow, Deref};

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyAnyMethods, PyList, PyListMethods};
use pyo3::{Bound, PyResult, Python, pyfunction};
use rayon::prelude::*;
use simshard_simhash::{Fingerprint, Recipe, TextRecipe};

use crate::fingerprints::array_of;
use crate::interruptible::interruptible;

/// The most texts, and bytes of texts, that count as few: their fingerprints take about as long as it takes to begin work
/// that can be interrupted.
const FEW: (usize, usize) = (1 << 10, 16 << 10);

/// The names of the recipes for texts, the default first. Some take other windows than the one that is listed.
#[pyfunction]
pub(crate) fn recipes() -> Vec<String> {
    let texts = Recipe::LISTED
        .into_iter()
        .filter(|recipe| recipe.for_texts().is_ok());
    texts.map(|recipe| recipe.to_string()).collect()
}

/// The fingerprints of a list of texts, and the places of those that have none: `None`, and what the recipe gives none.
/// These have 0.
#[pyfunction]
pub(crate) fn fingerprint<'py>(
    py: Python<'py>,
    texts: &Bound<'py, PyList>,
    recipe: &str,
) -> PyResult<(Bound<'py, PyArray1<u64>>, Vec<usize>)> {
    let recipe = recipe_for_texts(recipe)?;
    let texts = strings_of(texts)?;
    let (numbers, without) = fingerprints_by(py, recipe, &texts)?;
    Ok((array_of(py, numbers), without))
}

/// The fingerprints of texts, and the places of those that have none. All threads make them, if the texts are not few.
pub(crate) fn fingerprints_by<T: Deref<Target = str> + Sync>(
    py: Python<'_>,
    recipe: TextRecipe,
    texts: &[Option<T>],
) -> PyResult<(Vec<u64>, Vec<usize>)> {
    let one = |text: &Option<T>| recipe.fingerprint(text.as_deref()?);
    let bytes: usize = texts.iter().flatten().map(|text| text.len()).sum();
    let are_few = texts.len() <= FEW.0 && bytes <= FEW.1;
    let fingerprints: Vec<Option<Fingerprint>> = if are_few {
        py.detach(|| texts.iter().map(one).collect())
    } else {
        interruptible(py, |interrupted| {
            let one = |text: &Option<T>| match interrupted.goes_on() {
                ControlFlow::Continue(()) => one(text),
                ControlFlow::Break(()) => None,
            };
            texts.par_iter().map(one).collect()
        })?
    };
    let places = fingerprints.iter().enumerate();
    let without = places.filter(|(_, fingerprint)| fingerprint.is_none());
    let without = without.map(|(place, _)| place).collect();
    let numbers = fingerprints.into_iter().map(Option::unwrap_or_default);
    Ok((numbers.map(|fingerprint| fingerprint.0).collect(), without))
}

/// The Jaccard similarity that a distance suggests, if the recipe is known and suggests one.
#[pyfunction]
pub(crate) fn similarity(distance: u32, recipe: &str) -> Option<f64> {
    recipe.parse::<Recipe>().ok()?.similarity(distance)
}

pub(crate) fn recipe_for_texts(name: &str) -> PyResult<TextRecipe> {
    let refused = |error: String| PyValueError::new_err(error);
    let recipe: Recipe = name.parse().map_err(|error| refused(format!("{error}")))?;
    recipe
        .for_texts()
        .map_err(|error| refused(error.to_string()))
}

fn strings_of(texts: &Bound<'_, PyList>) -> PyResult<Vec<Option<PyBackedStr>>> {
    let string = |(place, text): (usize, Bound<'_, pyo3::PyAny>)| {
        text.extract::<Option<PyBackedStr>>().map_err(|error| {
            PyValueError::new_err(format!(
                "text {place} is no string of Unicode characters: {error}"
            ))
        })
    };
    texts.iter().enumerate().map(string).collect()
}
