//! Whether the disk of this node answers, and as fast as those of other stores. Pure.
//!
//! # Invariants
//! - PE8: this process counts its own looks, so its disk neither hangs nor is slow because the process was away.
//! - PE12: the disk is slow by several batches of changes in a row only, each of which took a second or more. Together
//!   they took five seconds, and each took ten times as long as what the other store said of its own disk.

use std::collections::BTreeMap;
use std::time::Duration;

use simshard_storage::Awaited;
use simshard_topology::replication::StoreId;
use tokio::time::Instant;

use super::health::INTERVAL;

/// After this number of looks, about five seconds, a disk hangs that has answered nothing, or is slow.
const PATIENT_LOOKS: u32 = 25;

/// A batch that took fewer looks than this, about a second, says that no disk is slow.
const SLOW_LOOKS: u32 = 5;

/// After this number of looks without a batch, what was seen before says nothing any more: about 15 seconds.
const FORGETFUL_LOOKS: u32 = 75;

/// How many times faster the disks of others are than a slow one.
const MUCH_FASTER: u32 = 10;

/// A store that left shards for its disk stays away for this time; twice the time if it does so again soon.
const SHORTEST_REST: Duration = Duration::from_secs(10);

const LONGEST_REST: Duration = Duration::from_secs(600);

/// What this process saw of its own disk.
#[derive(Debug, Default)]
pub(super) struct OwnDisk {
    /// What was on its way at the last look.
    awaited: Option<Awaited>,
    /// The number of looks in a row that saw it.
    looks: u32,
    /// The last batch that was seen on its way.
    last_batch: Option<u64>,
    /// For how many looks other stores have been much faster.
    faster: BTreeMap<StoreId, u32>,
    /// The number of looks in a row that saw no batch.
    idle: u32,
    rest: Rest,
    /// Whether the last look was during the rest.
    rests: bool,
}

impl OwnDisk {
    /// Looks once more. `delays` has what each other store that lives said last of its own disk: how long a batch takes.
    pub(super) fn look(
        &mut self,
        now: Instant,
        awaited: Option<Awaited>,
        delays: &BTreeMap<StoreId, Duration>,
    ) {
        let rested = std::mem::replace(&mut self.rests, self.rest.is_on(now));
        if rested && !self.rests {
            // The disk is judged anew.
            self.faster.clear();
        }
        let is_idle = !matches!(awaited, Some(Awaited::Batch(_)));
        self.idle = if is_idle {
            self.idle.saturating_add(1)
        } else {
            0
        };
        if self.idle > FORGETFUL_LOOKS {
            self.faster.clear();
        }
        if awaited.is_some() && awaited == self.awaited {
            self.looks = self.looks.saturating_add(1);
            return;
        }
        if let Some(Awaited::Batch(_)) = self.awaited {
            self.note_batch(delays);
        }
        if let Some(Awaited::Batch(batch)) = awaited {
            // Those between were on their way at no look.
            if self.last_batch.is_some_and(|last| batch > last + 1) {
                self.faster.clear();
            }
            self.last_batch = Some(batch);
        }
        self.looks = u32::from(awaited.is_some());
        self.awaited = awaited;
    }

    /// Takes note of the batch that has been answered.
    fn note_batch(&mut self, delays: &BTreeMap<StoreId, Duration>) {
        let took = INTERVAL * self.looks;
        let is_faster = |delay: &Duration| self.looks >= SLOW_LOOKS && *delay * MUCH_FASTER <= took;
        let faster = delays.iter().filter(|(_, delay)| is_faster(delay));
        let faster = faster.map(|(store, _)| {
            let before = self.faster.get(store).copied().unwrap_or(0);
            // One alone makes no slow disk: it may have hung.
            let looks = self.looks.min(PATIENT_LOOKS - 1);
            (*store, before.saturating_add(looks))
        });
        self.faster = faster.collect();
    }

    /// Whether the disk hangs.
    pub(super) const fn hangs(&self) -> bool {
        self.looks > PATIENT_LOOKS
    }

    /// Whether something has waited for the disk for so long that the disk may hang.
    pub(super) const fn is_late(&self) -> bool {
        self.looks >= SLOW_LOOKS
    }

    /// The stores whose disks have been much faster for some time.
    pub(super) fn much_faster(&self) -> impl Iterator<Item = StoreId> {
        let faster = self.faster.iter();
        let faster = faster.filter(|(_, looks)| **looks >= PATIENT_LOOKS);
        faster.map(|(store, _)| *store)
    }

    /// Takes note that the store has left shards because its disk is slow or hangs.
    pub(super) fn note_leaving(&mut self, now: Instant) {
        self.rest.begin(now);
    }

    /// Whether the store stays away from shards because its disk was slow or hung.
    pub(super) const fn rests(&self) -> bool {
        self.rests
    }
}

/// When a store comes back whose disk was slow or hung.
#[derive(Debug, Default)]
struct Rest {
    until: Option<Instant>,
    /// How long the last rest is.
    time: Duration,
}

impl Rest {
    /// Begins, unless one is on.
    fn begin(&mut self, now: Instant) {
        if self.is_on(now) {
            return;
        }
        let is_soon = self.until.is_some_and(|end| now < end + LONGEST_REST);
        let time = if is_soon {
            self.time * 2
        } else {
            SHORTEST_REST
        };
        self.time = time.min(LONGEST_REST);
        self.until = Some(now + self.time);
    }

    fn is_on(&self, now: Instant) -> bool {
        self.until.is_some_and(|end| now < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: StoreId = StoreId([1; 16]);
    const OTHER: StoreId = StoreId([2; 16]);

    /// By milliseconds.
    fn delays(one: u64, other: u64) -> BTreeMap<StoreId, Duration> {
        let delays = [(ONE, one), (OTHER, other)];
        let delays = delays.map(|(store, delay)| (store, Duration::from_millis(delay)));
        delays.into()
    }

    /// A disk that has answered these batches, each after this number of looks.
    fn after(
        batches: impl IntoIterator<Item = (u64, u32)>,
        delays: &BTreeMap<StoreId, Duration>,
    ) -> OwnDisk {
        let mut disk = OwnDisk::default();
        for (batch, looks) in batches {
            for _ in 0..looks {
                disk.look(Instant::now(), Some(Awaited::Batch(batch)), delays);
            }
        }
        disk.look(Instant::now(), None, delays);
        disk
    }

    fn much_faster(disk: &OwnDisk) -> Vec<StoreId> {
        disk.much_faster().collect()
    }

    /// PE8.
    #[test]
    fn a_disk_hangs_once_it_has_not_answered_a_batch_for_many_looks() {
        for awaited in [Awaited::Batch, Awaited::Write] {
            let mut disk = OwnDisk::default();
            let mut hangs = |awaited| {
                disk.look(Instant::now(), awaited, &BTreeMap::new());
                assert!(disk.is_late() || !disk.hangs());
                disk.hangs()
            };
            for look in 0..PATIENT_LOOKS * 3 {
                let awaited = awaited(u64::from(look / PATIENT_LOOKS));
                assert!(!hangs(Some(awaited)), "{look}");
            }
            assert!(!hangs(None));
            for look in 0..PATIENT_LOOKS {
                assert!(!hangs(Some(awaited(9))), "{look}");
            }
            assert!(hangs(Some(awaited(9))));
            assert!(!hangs(Some(awaited(10))));
        }
    }

    /// PE12.
    #[test]
    fn a_disk_is_slow_if_others_were_ten_times_as_fast_for_five_seconds() {
        let others = delays(5, 100);
        let slow = |batches: u64| after((1..=batches).map(|batch| (batch, SLOW_LOOKS)), &others);
        assert_eq!(much_faster(&slow(4)), []);
        assert_eq!(much_faster(&slow(5)), [ONE, OTHER]);
        // The others take a tenth of a second or more, as if all were slow.
        let times = |delay| after((1..=9).map(|batch| (batch, SLOW_LOOKS)), &delays(5, delay));
        assert_eq!(much_faster(&times(101)), [ONE]);
        assert_eq!(much_faster(&times(2_000)), [ONE]);
        // After its rest it is judged anew.
        let mut disk = slow(5);
        let now = Instant::now();
        disk.note_leaving(now);
        disk.look(now, None, &others);
        assert!(disk.rests());
        assert_eq!(much_faster(&disk), [ONE, OTHER]);
        disk.look(now + SHORTEST_REST, None, &others);
        assert!(!disk.rests());
        assert_eq!(much_faster(&disk), []);
    }

    /// PE12: noise of less than a second makes no disk slow.
    #[test]
    fn a_disk_that_answers_within_a_second_is_never_slow() {
        let others = delays(0, 0);
        let busy = after((1..99).map(|batch| (batch, SLOW_LOOKS - 1)), &others);
        assert_eq!(much_faster(&busy), []);
        let mut disk = after((1..9).map(|batch| (batch, SLOW_LOOKS)), &others);
        assert_eq!(much_faster(&disk), [ONE, OTHER]);
        // One batch is fast, which a look sees or not.
        disk.look(Instant::now(), Some(Awaited::Batch(9)), &others);
        disk.look(Instant::now(), None, &others);
        assert_eq!(much_faster(&disk), []);
        let skips = [(1, SLOW_LOOKS * 4), (3, SLOW_LOOKS * 4)];
        assert_eq!(much_faster(&after(skips, &others)), []);
    }

    /// PE12: a store that has stayed all the same does not leave for it later.
    #[test]
    fn a_disk_that_was_slow_is_judged_anew_after_some_time_without_changes() {
        let others = delays(0, 0);
        let mut disk = after((1..9).map(|batch| (batch, SLOW_LOOKS)), &others);
        for _ in 1..FORGETFUL_LOOKS {
            disk.look(Instant::now(), None, &others);
        }
        assert_eq!(much_faster(&disk), [ONE, OTHER]);
        disk.look(Instant::now(), None, &others);
        assert_eq!(much_faster(&disk), []);
    }

    /// PE12: one stall is no slow disk, whatever comes later.
    #[test]
    fn time_in_which_nothing_waits_says_nothing() {
        let others = delays(0, 0);
        let mut disk = after([(1, PATIENT_LOOKS - 1)], &others);
        for _ in 0..PATIENT_LOOKS {
            disk.look(Instant::now(), None, &others);
            assert_eq!(much_faster(&disk), []);
        }
        // Writes of a flush are of other sizes.
        for number in 0..PATIENT_LOOKS {
            disk.look(Instant::now(), Some(Awaited::Write(number.into())), &others);
        }
        assert_eq!(much_faster(&disk), []);
        for _ in 0..SLOW_LOOKS {
            disk.look(Instant::now(), Some(Awaited::Batch(2)), &others);
        }
        disk.look(Instant::now(), None, &others);
        assert_eq!(much_faster(&disk), [ONE, OTHER]);
    }

    #[test]
    fn a_store_whose_disk_is_slow_again_stays_away_for_longer() {
        let mut now = Instant::now();
        let mut rest = Rest::default();
        assert!(!rest.is_on(now));
        let mut times = Vec::new();
        for _ in 0..8 {
            rest.begin(now);
            rest.begin(now + Duration::from_secs(1));
            times.push(rest.time.as_secs());
            now += rest.time;
            assert!(rest.is_on(now - INTERVAL) && !rest.is_on(now));
        }
        assert_eq!(times, [10, 20, 40, 80, 160, 320, 600, 600]);
        rest.begin(now + LONGEST_REST);
        assert_eq!(rest.time, SHORTEST_REST);
    }
}
