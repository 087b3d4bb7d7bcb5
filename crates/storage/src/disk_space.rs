//! Whether the disk of a data directory has space for more documents.
//!
//! Inserts are refused while there still is some, so that removals, compaction and the log itself go on.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::directory::{Directory, Space};

/// How long the answer is good for.
const FRESH_FOR: Duration = Duration::from_millis(100);

/// Inserts are refused from this share of the disk on, in percent, ...
const MOST_PERCENT: u64 = 92;

/// ... unless at least this many bytes are free.
const ENOUGH_FREE_BYTES: u64 = 16 << 30;

/// The space of the disk that holds a directory.
#[derive(Debug)]
pub(crate) struct DiskSpace {
    directory: Arc<dyn Directory>,
    last: Mutex<Option<(Instant, bool)>>,
}

impl DiskSpace {
    /// Of the disk that holds this directory.
    pub(crate) fn new(directory: Arc<dyn Directory>) -> Self {
        Self {
            directory,
            last: Mutex::default(),
        }
    }

    /// Whether inserts are to be accepted. Where the system does not say, they are: writing will tell.
    pub(crate) fn is_enough(&self) -> bool {
        let mut last = self.last.lock();
        match *last {
            Some((when, answer)) if when.elapsed() < FRESH_FOR => answer,
            before => {
                let space = self.directory.space();
                let answer = space.map_or(true, is_enough);
                if before.is_none_or(|(_, was)| was) != answer {
                    report(self.directory.path(), answer);
                }
                *last = Some((Instant::now(), answer));
                answer
            }
        }
    }
}

fn report(directory: &Path, is_enough: bool) {
    let directory = directory.display();
    if is_enough {
        tracing::info!(%directory, "there is space for inserts again");
    } else {
        tracing::warn!(%directory, "the disk is nearly full: inserts are refused");
    };
}

/// Whether this leaves space for inserts.
fn is_enough(space: Space) -> bool {
    let Space { used, free } = space;
    let used_share = u128::from(used) * 100;
    let most = (u128::from(used) + u128::from(free)) * u128::from(MOST_PERCENT);
    free >= ENOUGH_FREE_BYTES || used_share < most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_of_a_disk_is_kept_free() {
        let has_space = |used, free| is_enough(Space { used, free });
        assert!(has_space(0, 1));
        assert!(has_space(91, 9));
        assert!(!has_space(92, 8));
        assert!(!has_space(100, 0));
        assert!(has_space(u64::MAX / 2, ENOUGH_FREE_BYTES));
        assert!(!has_space(u64::MAX / 2, ENOUGH_FREE_BYTES - 1));
    }
}
