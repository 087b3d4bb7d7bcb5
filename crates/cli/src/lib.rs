//! Placeholder.

pub mod input;
