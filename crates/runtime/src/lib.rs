//! The surroundings of every Simshard process: configuration files,
//! logging, signals, the allocator, how amounts are told, and what it may show on a terminal.
//!
//! Nothing here knows what a fingerprint, a shard or a node is.

pub mod allocator;
pub mod amounts;
pub mod config;
pub mod logging;
pub mod shutdown;
pub mod system;
pub mod terminal;
pub mod toml_mistake;
