//! What `simshard bench` measures, and how: the engine in memory, the batch tools, clusters of
//! real processes, and the client of one that runs.
//!
//! Processes are started from the program that runs, which must know `serve node` and `serve router`.
//! Figures go to standard output. Errors are for people alone, so they are of `anyhow`;
//! [`BadSettings`] tells those apart that the caller is to blame for.

pub mod batch;
pub mod client;
pub mod cluster;
pub mod echo;
pub mod engine;
mod figure;
mod scan;
mod settings;

pub use settings::{BadSettings, DataArg, count};
