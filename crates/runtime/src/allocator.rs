//! The allocator of every Simshard process: jemalloc.
//!
//! With 64 searches in flight, a router answers a sixth more than with glibc's allocator. And jemalloc gives memory
//! back by itself, where glibc keeps a quarter of it after a large load.
//!
//! # Invariants
//! - AL1: memory that nothing has used for some seconds is given back to the system, whether the process rests or not.

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// The settings that jemalloc reads at its start: a thread of its own gives back what nothing has used for a second.
/// Without them jemalloc gives memory back after ten seconds, and only in a call for other memory.
// SAFETY: no other symbol has this name. jemalloc takes it for a pointer to text that ends with a zero byte, as it is.
#[expect(
    unsafe_code,
    reason = "jemalloc finds its settings by the name of a symbol"
)]
#[unsafe(export_name = "_rjem_malloc_conf")]
#[used]
static SETTINGS: &[u8; 60] = b"background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0\0";
