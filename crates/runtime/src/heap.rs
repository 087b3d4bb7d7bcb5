//! Giving back what was freed. The system's allocator keeps most of it for the process, which after a large load is
//! a quarter of all its memory.
//!
//! # Invariants
//! - HP1: memory is given back when a process rests after work, as then nobody waits for the locks that this takes;
//!   and while it does not rest, at most once in [`BUSY`].

use std::io;
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How often a process looks whether it rests.
const TICK: Duration = Duration::from_secs(1);

/// It rests if it has computed for less than this since the last look.
const REST: Duration = Duration::from_millis(20);

/// A process that never rests gives back after so long all the same.
const BUSY: Duration = Duration::from_secs(60);

/// Starts a thread that gives memory back for as long as the process runs.
///
/// # Errors
/// If the system has no threads left.
pub fn give_back_at_rest() -> io::Result<()> {
    let janitor = thread::Builder::new().name("janitor".to_owned());
    janitor.spawn(|| {
        let mut rhythm = Rhythm::default();
        loop {
            thread::sleep(TICK);
            if rhythm.is_time(computed()) {
                give_back();
            }
        }
    })?;
    Ok(())
}

/// What this process has computed so far.
fn computed() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// When to give back.
#[derive(Debug, Default)]
struct Rhythm {
    computed: Duration,
    /// Looks since it last gave back, of those that found it at work.
    busy: u32,
}

impl Rhythm {
    /// Whether it is time, at a look that finds so much computed since the start.
    fn is_time(&mut self, computed: Duration) -> bool {
        let more = computed.saturating_sub(self.computed);
        self.computed = computed;
        let rests = more < REST;
        self.busy += u32::from(!rests);
        let is_time = self.busy > 0 && (rests || self.busy >= BUSY.as_secs() as u32);
        if is_time {
            self.busy = 0;
        }
        is_time
    }
}

/// Gives back what is free; nothing where the system's allocator is another one.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library offers it in no other way")]
fn give_back() {
    // SAFETY: it takes a number, may be called at any time from any thread, and moves nothing that is in use.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
const fn give_back() {}

#[cfg(test)]
mod tests {
    use super::*;

    /// HP1.
    #[test]
    fn memory_is_given_back_once_after_work() {
        let mut rhythm = Rhythm::default();
        let mut look = |milliseconds| rhythm.is_time(Duration::from_millis(milliseconds));
        assert!(!look(0), "there was no work yet");
        assert!(!look(1_000), "it works");
        assert!(!look(2_000));
        assert!(look(2_001), "it rests");
        assert!(!look(2_002), "it has given back");
        assert!(!look(3_000));
        assert!(look(3_000));
    }

    /// HP1.
    #[test]
    fn a_process_that_never_rests_gives_back_now_and_then() {
        let mut rhythm = Rhythm::default();
        let given = (1..=600).filter(|second| rhythm.is_time(TICK * *second));
        assert_eq!(given.count(), 600 / BUSY.as_secs() as usize);
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn what_lies_free_between_what_is_kept_is_given_back() {
        use crate::system::resident_memory;

        let before = resident_memory().unwrap();
        let mut blocks: Vec<_> = (0..64 << 10).map(|_| Some(vec![1_u8; 1000])).collect();
        let kept = blocks.iter_mut().enumerate();
        for (place, block) in kept {
            if place % 64 != 0 {
                *block = None;
            }
        }
        let freed = resident_memory().unwrap() - before;
        assert!(freed > 48 << 20, "the allocator kept but {freed} bytes");
        give_back();
        let left = resident_memory().unwrap().saturating_sub(before);
        assert!(left < 16 << 20, "{left} bytes are left");
        drop(blocks);
    }
}
