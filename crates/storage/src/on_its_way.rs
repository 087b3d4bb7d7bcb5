//! What a thread has given the disk and the disk has not answered yet. A disk that hangs never answers, and a slow one
//! takes long.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Work of one thread at a time, which waits for the disk again and again.
#[derive(Debug, Default)]
pub(crate) struct OnItsWay(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The number of the last work, from 1 on.
    number: u64,
    /// When the disk got it; `None` once it has answered.
    begun: Option<Instant>,
    /// How long the disk took for the work of this number that it has answered.
    took: Duration,
    /// How long it took for that of the number before.
    before: Duration,
    /// How long it took for all work that it has answered.
    total: Duration,
}

/// The work that a disk has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskWork {
    /// How many pieces of it there were.
    pub pieces: u64,
    /// How long the disk took for all of them.
    pub took: Duration,
}

impl OnItsWay {
    /// Does more of the work of the same number.
    pub(crate) fn go_on<R>(&self, work: impl FnOnce() -> R) -> R {
        self.0.lock().begun = Some(Instant::now());
        let done = work();
        let mut state = self.0.lock();
        let took = state.begun.take().map(|begun| begun.elapsed());
        let took = took.unwrap_or_default();
        state.took += took;
        state.total += took;
        done
    }

    /// Does the work of the next number.
    pub(crate) fn begin<R>(&self, work: impl FnOnce() -> R) -> R {
        {
            let mut state = self.0.lock();
            state.number += 1;
            state.before = std::mem::take(&mut state.took);
        }
        self.go_on(work)
    }

    /// The number of the work that the disk has not answered.
    pub(crate) fn number(&self) -> Option<u64> {
        let state = self.0.lock();
        state.begun.map(|_| state.number)
    }

    /// The work that the disk has answered.
    pub(crate) fn done(&self) -> DiskWork {
        let state = self.0.lock();
        DiskWork {
            pieces: state.number - u64::from(state.begun.is_some()),
            took: state.total,
        }
    }

    /// How long the disk takes: for the last work or the one before, whichever is longer. Work that has just begun says
    /// nothing yet. `None` if there was none.
    pub(crate) fn delay(&self) -> Option<Duration> {
        let state = self.0.lock();
        let so_far = state.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        let delay = state.before.max(state.took + so_far);
        (state.number > 0).then_some(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_on_its_way_until_it_is_done() {
        let disk = OnItsWay::default();
        assert_eq!(disk.number(), None);
        assert_eq!(disk.done(), DiskWork::default());
        for number in 1..=3 {
            let seen = disk.begin(|| disk.number());
            assert_eq!(seen, Some(number));
            assert_eq!(disk.go_on(|| disk.number()), Some(number));
            assert_eq!(disk.number(), None);
            assert_eq!(disk.done().pieces, number);
        }
    }

    #[test]
    fn work_counts_once_the_disk_has_answered_with_the_time_of_all_of_it() {
        let disk = OnItsWay::default();
        let wait = || {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(1) {}
            disk.done()
        };
        assert_eq!(disk.begin(wait), DiskWork::default());
        assert_eq!(disk.go_on(wait).pieces, 0);
        assert_eq!(disk.begin(wait).pieces, 1);
        let done = disk.done();
        assert_eq!(done.pieces, 2);
        assert!(done.took >= Duration::from_millis(3), "{done:?}");
    }

    #[test]
    fn a_delay_is_that_of_the_last_work_with_all_of_it_or_of_the_work_before() {
        let disk = OnItsWay::default();
        assert_eq!(disk.delay(), None);
        let during = disk.begin(|| {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(2) {}
            disk.delay()
        });
        assert!(during >= Some(Duration::from_millis(2)));
        let first = disk.delay();
        assert!(first >= during);
        disk.go_on(|| {});
        let all = disk.delay();
        assert!(all >= first);
        assert_eq!(disk.begin(|| disk.delay()), all);
        assert_eq!(disk.delay(), all);
        disk.begin(|| {});
        assert!(disk.delay() < all);
    }
}
