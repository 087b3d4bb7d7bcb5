//! The allocator of every Simshard process: jemalloc.
//!
//! With 64 searches in flight, a router answers a sixth more than with glibc's allocator. And jemalloc gives memory
//! back by itself, where glibc keeps a quarter of it after a large load.
//!
//! # Invariants
//! - AL1: a process that serves gives memory that nothing has used for some seconds back to the system, whether it rests
//!   or not.

use std::io;

use tikv_jemalloc_ctl::background_thread;
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// The settings that jemalloc reads at its start: it gives back what nothing has used for a second, not for ten. That
/// holds for large blocks too: the tables of a bulk removal use them again at once, and new pages would cost a tenth.
// SAFETY: no other symbol has this name. jemalloc takes it for a pointer to text that ends with a zero byte, as it is.
#[expect(
    unsafe_code,
    reason = "jemalloc finds its settings by the name of a symbol"
)]
#[unsafe(export_name = "_rjem_malloc_conf")]
#[used]
static SETTINGS: &[u8; 58] = b"dirty_decay_ms:1000,muzzy_decay_ms:0,oversize_threshold:0\0";

/// Has threads of jemalloc give memory back. Without them that happens only in a call for other memory, so a process at
/// rest would keep it.
///
/// # Errors
/// If the system has no threads left.
pub fn give_back_at_rest() -> io::Result<()> {
    background_thread::write(true).map_err(|error| io::Error::other(error.to_string()))
}
