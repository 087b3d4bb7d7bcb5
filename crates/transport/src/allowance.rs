//! What the owner of a token may have at once, and in a second.
//!
//! # Invariants
//! - AU7: no more requests of a token begin in any second than its rate, and as many more in a burst. A batch of a stream
//!   counts as a request, and waits for its turn instead of being refused.
//! - AU8: what the requests and answers of a token hold is within its own bytes and within those of the process.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use simshard_proto::Reason;
use tokio::time::{Instant, sleep_until};
use tonic::Status;

use crate::budget::{Budget, OwnBudget};

/// How long a token may have been idle to catch up with its rate.
const BURST: Duration = Duration::from_secs(1);

/// The limits of a token, as its entry says them; `None` where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests, and batches of streams, that begin in a second.
    pub requests_per_second: Option<u32>,
    /// Mebibytes that requests and answers in flight hold.
    pub in_flight_mib: Option<u32>,
}

/// What is left of the limits of a token.
#[derive(Debug)]
pub(super) struct Allowance {
    name: Arc<str>,
    rate: Option<Rate>,
    bytes: Option<OwnBudget>,
}

impl Allowance {
    /// That of a token that has done nothing yet; `None` without limits.
    pub(super) fn new(name: &Arc<str>, limits: Limits) -> Option<Arc<Self>> {
        let own =
            |mebibytes| OwnBudget::new(usize::try_from(mebibytes).unwrap_or(usize::MAX) << 20);
        (limits != Limits::default()).then(|| {
            Arc::new(Self {
                name: Arc::clone(name),
                rate: limits.requests_per_second.map(Rate::new),
                bytes: limits.in_flight_mib.map(own),
            })
        })
    }

    /// Lets a request begin.
    ///
    /// # Errors
    /// `OVERLOADED` if as many have begun as may.
    pub(super) fn begin(&self) -> Result<(), Status> {
        match &self.rate {
            Some(rate) if !rate.try_pass() => {
                let Self { name, .. } = self;
                let most = rate.per_second;
                let message = format!(
                    "the token {name:?} may begin {most} requests a second: retry a little later"
                );
                Err(Reason::Overloaded.status(message, []))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Waits until the batch of a stream may begin.
    pub(super) async fn wait(&self) {
        if let Some(rate) = &self.rate {
            rate.pass().await;
        }
    }

    /// A budget from which this token takes as well.
    pub(super) fn within(&self, all: &Budget) -> Budget {
        match &self.bytes {
            Some(bytes) => all.with_own(bytes),
            None => all.clone(),
        }
    }
}

/// Requests a second: the generic cell rate algorithm (ITU-T I.371).
#[derive(Debug)]
struct Rate {
    per_second: u32,
    interval: Duration,
    /// When the next one may begin, if it comes after the others.
    next: Mutex<Instant>,
}

impl Rate {
    fn new(per_second: u32) -> Self {
        let per_second = per_second.max(1);
        Self {
            per_second,
            interval: Duration::from_secs(1) / per_second,
            next: Mutex::new(Self::longest_ago(Instant::now())),
        }
    }

    /// When one more may begin.
    fn due(next: Instant, now: Instant) -> Instant {
        next.max(Self::longest_ago(now))
    }

    /// One that was due before may not catch up.
    fn longest_ago(now: Instant) -> Instant {
        now.checked_sub(BURST).unwrap_or(now)
    }

    fn try_pass(&self) -> bool {
        let now = Instant::now();
        let mut next = self.next.lock();
        let due = Self::due(*next, now);
        if due <= now {
            *next = due + self.interval;
        }
        due <= now
    }

    async fn pass(&self) {
        let due = {
            let mut next = self.next.lock();
            let due = Self::due(*next, Instant::now());
            *next = due + self.interval;
            due
        };
        sleep_until(due).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;

    fn allowance(limits: Limits) -> Arc<Allowance> {
        Allowance::new(&"crawler".into(), limits).unwrap()
    }

    fn with_rate(requests_per_second: u32) -> Arc<Allowance> {
        allowance(Limits {
            requests_per_second: Some(requests_per_second),
            in_flight_mib: None,
        })
    }

    /// AU7.
    #[tokio::test(start_paused = true)]
    async fn requests_beyond_the_rate_are_refused_until_time_has_passed() {
        let allowance = with_rate(10);
        sleep(Duration::from_secs(60)).await;
        let begun = (0..50).filter(|_| allowance.begin().is_ok()).count();
        assert_eq!(begun, 11, "a burst of a second, and the one that is due");
        let refused = allowance.begin().unwrap_err();
        assert!(
            refused
                .message()
                .contains("\"crawler\" may begin 10 requests a second")
        );
        sleep(Duration::from_secs(3)).await;
        let mut begun = 0;
        for _ in 0..1000 {
            sleep(Duration::from_millis(10)).await;
            begun += usize::from(allowance.begin().is_ok());
        }
        assert!((100..=111).contains(&begun), "{begun}");
    }

    /// AU7.
    #[tokio::test(start_paused = true)]
    async fn batches_wait_for_their_turn() {
        let allowance = with_rate(5);
        let began = Instant::now();
        for _ in 0..51 {
            allowance.wait().await;
        }
        assert_eq!(
            began.elapsed(),
            Duration::from_secs(9),
            "a burst, then one by one"
        );
        assert!(allowance.begin().is_err());
    }

    /// AU8.
    #[test]
    fn bytes_are_taken_of_both_budgets_or_of_none() {
        let allowance = allowance(Limits {
            requests_per_second: None,
            in_flight_mib: Some(1),
        });
        let all = Budget::new(16 << 20);
        let own = allowance.within(&all);
        let taken = own.try_take(900_000).unwrap();
        assert!(own.try_take(200_000).is_none());
        assert!(
            allowance.within(&all).try_take(200_000).is_none(),
            "all requests share it"
        );
        let others = all.try_take(14 << 20).unwrap();
        assert!(all.try_take(200_000).is_none());
        drop(taken);
        let more = own.try_take(500_000).unwrap();
        drop((others, more));
        assert!(own.try_take(900_000).is_some());
        assert!(all.try_take(15 << 20).is_some(), "all has come back");
    }

    #[test]
    fn a_token_without_limits_has_no_allowance() {
        assert!(Allowance::new(&"crawler".into(), Limits::default()).is_none());
    }
}
