//! Crowds of clients at clusters of processes: others are answered, in time.
//!
//! These tests measure how long answers take, or open as many files as one process may.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tokio::sync::Mutex;

mod connections;
mod fair_shares;
mod greedy_peers;
mod requests_at_once;

/// Held by a test that opens thousands of connections: two would need more files than one process may have open.
static MANY_CONNECTIONS: Mutex<()> = Mutex::const_new(());
