//! Requests of one document or query each, several in flight at once, and how long each took.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tonic::Status;

/// The time and latencies of requests, and the answers that were kept.
pub(super) struct Taken<A> {
    pub(super) seconds: f64,
    pub(super) latencies: Latencies,
    pub(super) answers: Vec<A>,
}

/// How long each of some requests took, ascending.
pub(super) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(super) fn new(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        Self(durations)
    }

    /// The milliseconds within which this share of them, in percent, was done.
    pub(super) fn percentile(&self, percent: usize) -> f64 {
        let place = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        let duration = self.0.get(place).copied().unwrap_or_default();
        duration.as_secs_f64() * 1e3
    }
}

/// Makes `count` requests, each by its number, and always `in_flight` of them at once: when one is answered, the next
/// begins. What `request` answers is kept.
pub(super) async fn make<S, A, F>(
    count: usize,
    in_flight: usize,
    asker: &Arc<S>,
    request: impl Fn(Arc<S>, usize) -> F + Copy + Send + 'static,
) -> anyhow::Result<Taken<A>>
where
    S: Send + Sync + 'static,
    A: Send + 'static,
    F: Future<Output = anyhow::Result<Option<A>>> + Send,
{
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    let start = Instant::now();
    for _ in 0..in_flight {
        let (next, asker) = (Arc::clone(&next), Arc::clone(asker));
        workers.spawn(async move {
            let (mut durations, mut answers) = (Vec::new(), Vec::new());
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return anyhow::Ok((durations, answers));
                }
                let start = Instant::now();
                let answer = request(Arc::clone(&asker), number).await?;
                durations.push(start.elapsed());
                answers.extend(answer);
            }
        });
    }
    let (mut durations, mut answers) = (Vec::new(), Vec::new());
    while let Some(worker) = workers.join_next().await {
        let (some, kept) = worker??;
        durations.extend(some);
        answers.extend(kept);
    }
    Ok(Taken {
        seconds: start.elapsed().as_secs_f64(),
        latencies: Latencies::new(durations),
        answers,
    })
}

/// The error of a failed request.
pub(super) fn refused(status: Status) -> anyhow::Error {
    anyhow::Error::new(status).context("a request failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_nearest_that_covers_its_share() {
        let milliseconds = |values: &[u64]| {
            Latencies::new(values.iter().map(|&ms| Duration::from_millis(ms)).collect())
        };
        let hundred = milliseconds(&(1..=100).rev().collect::<Vec<_>>());
        assert_eq!(hundred.percentile(50), 50.0);
        assert_eq!(hundred.percentile(99), 99.0);
        assert_eq!(milliseconds(&[7, 3]).percentile(50), 3.0);
        assert_eq!(milliseconds(&[7, 3]).percentile(99), 7.0);
        assert_eq!(milliseconds(&[]).percentile(50), 0.0);
    }

    #[tokio::test]
    async fn every_request_is_made_once_and_what_it_answers_kept() {
        let odd = |_, number| async move { anyhow::Ok((number % 2 == 1).then_some(number)) };
        let mut taken = make(7, 3, &Arc::new(()), odd).await.unwrap();
        taken.answers.sort_unstable();
        assert_eq!(taken.answers, [1, 3, 5]);
        assert_eq!(taken.latencies.0.len(), 7);
    }

    #[tokio::test]
    async fn one_request_that_fails_ends_it() {
        let failing = |_, number| async move {
            anyhow::ensure!(number != 4, "no answer to {number}");
            anyhow::Ok(Some(()))
        };
        let error = make(7, 2, &Arc::new(()), failing)
            .await
            .map(|_| ())
            .unwrap_err();
        assert_eq!(error.to_string(), "no answer to 4");
    }
}
