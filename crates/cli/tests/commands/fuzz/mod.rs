//! Hostile settings and names. Hostile documents meet `crates/input` in its own tests.
//!
//! Each target is a plain test: ten thousand cases, or a million with `SIMSHARD_LONG`. Inputs are
//! pieces of real ones, put together at random and damaged ([`splice`]).

mod names;
mod settings;
#[path = "../../../../input/tests/fuzz/splice.rs"]
mod splice;

use splice::{assert_printable, cases};
