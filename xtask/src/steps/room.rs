//! Whether the disk of the temporary folder has the room that nodes of the tests ask for.

use std::env;

use anyhow::{Context, bail};

/// A node takes copies of shards while its disk is less full than this share in percent.
const MOST_PERCENT: u64 = 85;

/// It also takes them while this many bytes are free.
const LEAST_FREE: u64 = 20 << 30;

/// An error that says what to do, if nodes whose data are in the temporary folder would refuse copies.
pub(super) fn check() -> anyhow::Result<()> {
    let folder = env::temp_dir();
    let shown = folder.display();
    let disk = rustix::fs::statvfs(&folder);
    let disk = disk.with_context(|| format!("cannot see how full the disk of {shown} is"))?;
    let used = disk.f_blocks.saturating_sub(disk.f_bfree) * disk.f_frsize;
    let free = disk.f_bavail * disk.f_frsize;
    if !is_enough(used, free) {
        bail!(
            "the disk of {shown} has only {} GiB free, and is {MOST_PERCENT} % full or more: nodes of the tests would \
             refuse copies of shards; make room, or set TMPDIR to a folder on another disk",
            free >> 30
        );
    }
    Ok(())
}

const fn is_enough(used: u64, free: u64) -> bool {
    free >= LEAST_FREE || used * 100 < (used + free) * MOST_PERCENT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_neither_empty_enough_nor_large_enough_is_refused() {
        const GIB: u64 = 1 << 30;
        assert!(is_enough(84 * GIB, 16 * GIB));
        assert!(!is_enough(85 * GIB, 15 * GIB));
        assert!(is_enough(980 * GIB, 20 * GIB));
        assert!(!is_enough(980 * GIB, 20 * GIB - 1));
    }
}
