//! The surroundings of every Simshard process: configuration files, logging, signals and the allocator. Also how amounts
//! are told, what a process may show on a terminal, and what it shows of itself on its side port.
//!
//! Nothing here knows what a fingerprint, a shard or a node is.

pub mod allocator;
pub mod amounts;
pub mod causes;
pub mod config;
pub mod logging;
pub mod observed;
pub mod shutdown;
pub mod system;
pub mod terminal;
pub mod toml_mistake;
