//! Hostile settings and names. Hostile documents meet `crates/input` in its own tests.
//!
//! Each target is a plain test: ten thousand cases, or a million with `SIMSHARD_LONG`. Inputs are
//! pieces of real ones, put together at random and damaged ([`splice`]). A case that fails is made
//! smaller and printed, with the seed that `BOLERO_RANDOM_SEED` takes to run it again.

mod names;
mod settings;
#[path = "../../../../input/tests/fuzz/splice.rs"]
mod splice;

use splice::{assert_printable, cases};
