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

/// How much room the disk of a data directory has, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// Inserts are refused.
    None,
    /// Inserts will soon be refused.
    Little,
    /// What is there may go on to grow.
    Enough,
    /// There is room for copies of shards, too.
    Ample,
}

/// A disk has this room below this share in percent, or while this many bytes are free.
const LEAST: [(Room, u64, u64); 3] = [
    (Room::Ample, 85, 20 << 30),
    (Room::Enough, 90, 18 << 30),
    (Room::Little, 92, 16 << 30),
];

/// The space of the disk that holds a directory.
#[derive(Debug)]
pub(crate) struct DiskSpace {
    directory: Arc<dyn Directory>,
    last: Mutex<Option<(Instant, Room)>>,
}

/// How many bytes may be written until there is no room for copies any more.
pub(crate) fn bytes_for_copies(space: Space) -> u64 {
    let Space { used, free } = space;
    let [(_, most_percent, free_bytes), ..] = LEAST;
    let most = (u128::from(used) + u128::from(free)) * u128::from(most_percent) / 100;
    let below_share = most.saturating_sub(u128::from(used));
    let below_share = u64::try_from(below_share).unwrap_or(u64::MAX);
    below_share.max(free.saturating_sub(free_bytes))
}

impl DiskSpace {
    /// Of the disk that holds this directory.
    pub(crate) fn new(directory: Arc<dyn Directory>) -> Self {
        Self {
            directory,
            last: Mutex::default(),
        }
    }

    /// How many bytes of copies there is room for, where the system says how much space there is.
    pub(crate) fn bytes_for_copies(&self) -> Option<u64> {
        self.directory.space().map(bytes_for_copies).ok()
    }

    /// How much there is. Where the system does not say, it is taken for ample: writing will tell.
    pub(crate) fn room(&self) -> Room {
        let mut last = self.last.lock();
        match *last {
            Some((when, answer)) if when.elapsed() < FRESH_FOR => answer,
            before => {
                let room = self.directory.space().map_or(Room::Ample, room);
                let before = before.map_or(Room::Ample, |(_, before)| before);
                if before.min(Room::Enough) != room.min(Room::Enough) {
                    report(self.directory.path(), room);
                }
                *last = Some((Instant::now(), room));
                room
            }
        }
    }
}

fn report(directory: &Path, room: Room) {
    let directory = directory.display();
    match room {
        Room::None => {
            tracing::warn!(%directory, "the disk is full but for what else needs space: inserts are refused");
        }
        Room::Little => {
            tracing::warn!(%directory, "the disk is nearly full: inserts will be refused at 92 %");
        }
        Room::Enough | Room::Ample => tracing::info!(%directory, "the disk has space for inserts"),
    }
}

/// The room that this leaves.
fn room(space: Space) -> Room {
    let Space { used, free } = space;
    let used_share = u128::from(used) * 100;
    let is_enough = |most_percent: u64, free_bytes| {
        let most = (u128::from(used) + u128::from(free)) * u128::from(most_percent);
        free >= free_bytes || used_share < most
    };
    let mut least = LEAST.iter();
    let best = least.find(|(_, most_percent, free_bytes)| is_enough(*most_percent, *free_bytes));
    best.map_or(Room::None, |(room, ..)| *room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_less_and_less_room_as_it_fills() {
        let of = |used, free| room(Space { used, free });
        let rooms = [0, 84, 85, 89, 90, 91, 92, 100].map(|used| of(used, 100 - used));
        let expected = [
            Room::Ample,
            Room::Ample,
            Room::Enough,
            Room::Enough,
            Room::Little,
            Room::Little,
            Room::None,
            Room::None,
        ];
        assert_eq!(rooms, expected);
    }

    /// Then there is none for more.
    #[test]
    fn a_disk_takes_copies_up_to_the_mark() {
        let of = |used, free| bytes_for_copies(Space { used, free });
        assert_eq!(
            [0, 84, 85, 99].map(|used| of(used, 100 - used)),
            [85, 1, 0, 0]
        );
        let (used, free) = (300 << 30, 50 << 30);
        let bytes = of(used, free);
        assert_eq!(bytes, 30 << 30);
        let after = |bytes| {
            room(Space {
                used: used + bytes,
                free: free - bytes,
            })
        };
        assert_eq!(after(bytes), Room::Ample);
        assert_eq!(after(bytes + 1), Room::Enough);
    }

    #[test]
    fn a_large_disk_has_room_while_much_is_free() {
        for (room_of, _, free) in LEAST {
            let of = |free| {
                room(Space {
                    used: u64::MAX / 2,
                    free,
                })
            };
            assert_eq!(of(free), room_of);
            assert!(of(free - 1) < room_of);
        }
    }
}
