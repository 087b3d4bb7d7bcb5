//! The memory of this process. The test is alone in it: others would free memory meanwhile.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use simshard_runtime::system::{
    anonymous_memory_of, peak_resident_memory, processor_ticks_of, resident_memory,
};

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
}
