//! Work that stands behind requests: it runs on threads of its own, which give way to all others while processors are
//! scarce.

use std::thread;

use tokio::sync::oneshot;
use tracing::warn;

/// By how much less than others such a thread gets: about a third, where both have work. A shard that is short of replicas
/// is copied so, too. With nothing else to do, the processors are all its own.
const NICENESS: i32 = 5;

/// Runs work on a thread of its own. The receiver fails if the work panics, or if the system has no thread left.
pub(crate) fn run_behind<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> oneshot::Receiver<T> {
    let (sender, receiver) = oneshot::channel();
    let thread = thread::Builder::new().name(name.to_owned());
    let started = thread.spawn(move || {
        give_way();
        // Who waits may have gone.
        let _ = sender.send(work());
    });
    if let Err(error) = started {
        warn!(%error, name, "the system has no thread left for this work");
    }
    receiver
}

/// Lets the calling thread give way to all others from now on. Elsewhere than on Linux, a priority is one of a whole process.
pub(crate) fn give_way() {
    if cfg!(target_os = "linux") {
        // It may always be lowered.
        let _ = rustix::process::nice(NICENESS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_hands_over_its_outcome_and_a_panic_is_told() {
        assert_eq!(run_behind("a thread", || 7).await, Ok(7));
        let panic = || panic!("a test of what happens then");
        assert!(run_behind("a thread", panic).await.is_err());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn only_its_own_thread_gives_way() {
        let own = || rustix::process::nice(0).unwrap();
        let before = own();
        let behind = run_behind("a thread", own).await.unwrap();
        assert_eq!(behind, (before + NICENESS).min(19));
        assert_eq!(own(), before);
    }
}
