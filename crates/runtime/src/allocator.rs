//! The allocator of every Simshard process: jemalloc.
//!
//! A router that searches with 64 requests under way does a sixth more of them than with the allocator of glibc. And
//! jemalloc gives memory back by itself, where glibc keeps a quarter of it after a large load until it is asked.
//!
//! # Invariants
//! - AL1: memory that nothing has used for some seconds is given back to the system, whether the process rests or not.

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// The settings that jemalloc reads at its start: a thread of its own gives back what nothing has used for a second.
/// Without them memory is given back after ten seconds, and only while other memory is asked for.
// SAFETY: no other symbol has this name. jemalloc takes it for a pointer to text that ends with a zero byte, as it is.
#[expect(
    unsafe_code,
    reason = "jemalloc finds its settings by the name of a symbol"
)]
#[unsafe(export_name = "_rjem_malloc_conf")]
#[used]
static SETTINGS: &[u8; 60] = b"background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0\0";
