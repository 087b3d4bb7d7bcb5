//! Streams about whole corpora against the slow, obvious answers, while nodes are lost, readers stop and documents
//! change.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clusters;
mod pairs;
mod refusals;
mod scan;
mod scene;
