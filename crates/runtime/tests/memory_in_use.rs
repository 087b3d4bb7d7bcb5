//! The memory of this process. The test is alone in it: others would take and free memory meanwhile.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use simshard_runtime::allocator::give_back_at_rest;
use simshard_runtime::system::{
    anonymous_memory_of, peak_resident_memory, processor_ticks_of, resident_memory,
};

/// Bytes of a page, at least.
const PAGE: u64 = 4096;

#[test]
fn memory_in_use_is_counted() {
    let size = 64 << 20;
    let before = resident_memory().unwrap();
    let block = std::hint::black_box(vec![1_u8; size]);
    let after = resident_memory().unwrap();
    assert!(
        after >= before + size as u64 / 2,
        "{before} bytes before, {after} after"
    );
    assert!(anonymous_memory_of(std::process::id()).unwrap() >= size as u64 / 2);
    assert!(processor_ticks_of(std::process::id()).is_some());
    drop(block);
    assert!(peak_resident_memory().unwrap() >= before + size as u64 / 2);
    what_lies_free_between_what_is_kept_is_given_back();
}

/// AL1. Nothing is allocated while it waits: the allocator has to give memory back by itself.
fn what_lies_free_between_what_is_kept_is_given_back() {
    give_back_at_rest().unwrap();
    let before = resident_without_allocating();
    let mut blocks: Vec<_> = (0..64 << 10).map(|_| Some(vec![1_u8; 1000])).collect();
    let full = resident_without_allocating();
    assert!(full - before > 48 << 20, "the blocks are not in memory");
    for block in blocks
        .iter_mut()
        .enumerate()
        .filter(|(place, _)| place % 64 != 0)
    {
        *block.1 = None;
    }
    let patience = Instant::now() + Duration::from_secs(60);
    while resident_without_allocating().saturating_sub(before) > 16 << 20 {
        assert!(Instant::now() < patience, "the memory was not given back");
        thread::yield_now();
    }
    drop(blocks);
}

/// Resident memory of this process, in bytes.
fn resident_without_allocating() -> u64 {
    let mut text = [0; 256];
    let read = File::open("/proc/self/statm")
        .unwrap()
        .read(&mut text)
        .unwrap();
    let mut numbers = text[..read].split(|byte| *byte == b' ');
    let pages = numbers.nth(1).unwrap().iter();
    pages.fold(0, |pages, digit| 10 * pages + u64::from(digit - b'0')) * PAGE
}
