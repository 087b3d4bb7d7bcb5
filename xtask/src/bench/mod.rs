//! The benchmarks: what is promised of this program's speed and memory, and what a machine gives.

mod figures;
mod machine;
mod page;
mod rows;
pub(crate) mod scaling;
mod secrets;

pub(crate) use figures::Programs;
pub(crate) use machine::Machine;
pub(crate) use page::{constants, page};
pub(crate) use rows::{Case, Group, Measured, cases};
