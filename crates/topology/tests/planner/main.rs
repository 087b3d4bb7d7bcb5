//! The planner's promises P1 to P6 and P8: plans that a person can read, and random lives of clusters.
//!
//! Each breach is printed with its seed. `SIMSHARD_SEED=7` runs the seed 7 only.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod golden;
mod lives;
mod promises;
mod scene;
