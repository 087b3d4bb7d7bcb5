//! The extension module `simshard._simshard`: the engine, for the Python package around it.
//!
//! Arrays come as contiguous NumPy arrays of native `uint64`; the package sees to that. Long work runs without the
//! interpreter's lock, and ends early when a signal such as Ctrl-C comes.

mod batches;
mod columns;
mod corpus;
mod fingerprints;
mod interruptible;
mod pairs;
mod recipes;
mod threads;

use pyo3::pymodule;

#[pymodule]
mod _simshard {
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python packages have this name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    use super::batches::{PairBatches, pair_batches};
    #[pymodule_export]
    use super::columns::{fingerprint_column, lengths_of_column};
    #[pymodule_export]
    use super::corpus::Corpus;
    #[pymodule_export]
    use super::pairs::{find_clusters, find_pairs};
    #[pymodule_export]
    use super::recipes::{fingerprint, recipes, similarity};
}
