//! The searches of a batch: one round of requests to nodes about all of them, and some done alone after it.
//!
//! # Invariants
//! - GA1: a search is answered as soon as the nodes that it needs have answered, whatever others wait for.
//! - GA2: a search that can go around nodes does so once those that it needs have answered or failed, at the latest at
//!   half of its own time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use simshard_proto::transport::Taken;
use simshard_proto::v1::Matches;
use simshard_proto::{Reason, split_matches};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::find::{merged, most_bytes, size};
use super::round::Round;
use super::together::{FindJob, last};
use super::{Failures, Found, Near, Router};
use crate::coalesce::Replies;
use crate::deadline::Deadline;
use crate::error::RouterError;
use crate::nodes::CallError;
use crate::plan::QueryPlan;

/// Searches of a batch that are done alone at once, besides slow ones: the answers of those may be large.
const ALONE: usize = 8;

/// A round that takes longer than this answers those requests that it can already.
const SLOW: Duration = Duration::from_millis(20);

/// A search that is to be done alone, and the nodes that it is to go around.
type Alone = (usize, Failures);

impl Router {
    /// Answers the searches of a batch.
    pub(super) async fn find_together(
        self: Arc<Self>,
        jobs: Vec<FindJob>,
        replies: Replies<Result<Found, RouterError>>,
    ) {
        if let [job] = &*jobs {
            let found = self.find_alone(&job.corpus, &job.near, job.deadline).await;
            replies.send(0, found);
            return;
        }
        let room = Semaphore::new(ALONE);
        let mut alone = FuturesUnordered::new();
        let do_alone =
            async |(job, lost): Alone| (job, self.find_in(&room, &jobs[job], lost).await);
        self.find_round(&jobs, &replies, &mut alone, do_alone).await;
        while let Some((job, found)) = alone.next().await {
            replies.send(job, found);
        }
    }

    /// Asks every node once about all jobs, and answers those that it can; the others are `alone` by its end.
    async fn find_round<F>(
        &self,
        jobs: &[FindJob],
        replies: &Replies<Result<Found, RouterError>>,
        alone: &mut FuturesUnordered<F>,
        do_alone: impl Fn(Alone) -> F,
    ) where
        F: Future<Output = (usize, Result<Found, RouterError>)>,
    {
        let Some(FindJob { corpus, .. }) = jobs.first() else {
            return;
        };
        let (near, deadline) = all_of(jobs);
        let Ok(plan) = self.plan(corpus, &near, BTreeSet::new()).await else {
            (0..jobs.len()).for_each(|job| replies.send(job, Err(RouterError::Stopping)));
            return;
        };
        let mut gathering = Gathering::new(jobs, &near, &plan, replies);
        if self.may_go_around(corpus, &near) {
            gathering.halves = jobs.iter().map(|job| job.deadline.half()).collect();
        }
        let mut arriving = std::pin::pin!(self.answers(corpus, &near, &plan, deadline));
        let slow = Instant::now() + SLOW;
        let mut next = Some(gathering.next_half().map_or(slow, |half| half.min(slow)));
        let mut alarm = std::pin::pin!(tokio::time::sleep_until(next.unwrap_or(slow)));
        while !gathering.round.is_over() {
            let left = tokio::select! {
                answer = arriving.next() => match answer {
                    Some((place, answer)) => gathering.arrived(place, answer),
                    None => gathering.settle(),
                },
                () = &mut alarm, if next.is_some() => {
                    gathering.is_eager = true;
                    let left = gathering.settle();
                    next = gathering.next_half();
                    next.into_iter().for_each(|half| alarm.as_mut().reset(half));
                    left
                }
                Some((job, found)) = alone.next() => {
                    replies.send(job, found);
                    continue;
                }
            };
            alone.extend(left.into_iter().map(&do_alone));
        }
    }

    /// Does a search alone, a few at a time, around the nodes that are lost. One that takes long makes room.
    async fn find_in(
        &self,
        room: &Semaphore,
        job: &FindJob,
        lost: Failures,
    ) -> Result<Found, RouterError> {
        let place = room.acquire().await;
        let found = self.find_around(&job.corpus, &job.near, job.deadline, lost);
        let mut found = std::pin::pin!(found);
        match tokio::time::timeout(SLOW, &mut found).await {
            Ok(found) => found,
            Err(_) => {
                drop(place);
                found.await
            }
        }
    }
}

/// What has arrived of a round, and which jobs still wait for the rest.
struct Gathering<'a> {
    jobs: &'a [FindJob],
    plan: &'a QueryPlan,
    replies: &'a Replies<Result<Found, RouterError>>,
    most_bytes: usize,
    round: Round,
    /// For each job, when it goes around nodes that have not answered by then; empty if none can.
    halves: Vec<Deadline>,
    /// Whether jobs are answered before all nodes have.
    is_eager: bool,
    answers: Vec<(usize, Matches)>,
    /// Places of requests to nodes without an answer, and why: they are late, unless it is known otherwise.
    missing: BTreeMap<usize, CallError>,
    bytes: usize,
    memory: Vec<Taken>,
}

impl<'a> Gathering<'a> {
    fn new(
        jobs: &'a [FindJob],
        near: &Near,
        plan: &'a QueryPlan,
        replies: &'a Replies<Result<Found, RouterError>>,
    ) -> Self {
        let lengths = jobs.iter().map(|job| job.near.queries.len());
        let parts = plan.requests.iter().map(|(_, _, part)| part);
        let late = |place| (place, CallError::Late);
        Self {
            jobs,
            plan,
            replies,
            most_bytes: most_bytes(near),
            round: Round::new(lengths, parts),
            halves: Vec::new(),
            is_eager: false,
            answers: Vec::with_capacity(plan.requests.len()),
            missing: (0..plan.requests.len()).map(late).collect(),
            bytes: 0,
            memory: Vec::new(),
        }
    }

    /// When the next job goes around nodes, though no answer has come.
    fn next_half(&self) -> Option<Instant> {
        let halves = self.halves.iter().enumerate();
        let waiting = halves.filter(|(job, _)| self.round.is_out(*job));
        waiting.map(|(_, half)| half.instant()).min()
    }

    /// Takes note of an answer, or why there is none; returns the jobs that are to be done alone.
    fn arrived(&mut self, place: usize, answer: Result<(Matches, Taken), CallError>) -> Vec<Alone> {
        self.round.arrived(&self.plan.requests[place].2);
        match answer {
            Ok((matches, memory)) => {
                self.bytes += size(&matches);
                self.memory.push(memory);
                self.missing.remove(&place);
                self.answers.push((place, matches));
            }
            Err(error) => {
                self.missing.insert(place, error);
                self.is_eager = true;
            }
        }
        if self.bytes > self.most_bytes {
            let rest = self.round.take_where(|_, _| true);
            return rest.into_iter().map(afresh).collect();
        }
        // Usually all answers come together, and are merged once.
        match self.is_eager {
            true => self.settle(),
            false => Vec::new(),
        }
    }

    /// Answers the jobs that are ready; returns those that are to be done alone: they go around nodes, or the others
    /// made the answer too large.
    fn settle(&mut self) -> Vec<Alone> {
        let now = Deadline::now();
        let is_due = |job: usize| self.halves.get(job).is_some_and(|half| *half <= now);
        let ready = self.round.take_where(|job, out| out == 0 || is_due(job));
        let mut alone = Vec::new();
        let mut done = Vec::new();
        for job in ready {
            match self.lost(job) {
                Ok(lost) if lost.is_empty() => done.push(job),
                Ok(lost) if !self.halves.is_empty() => alone.push((job, lost)),
                Ok(lost) => {
                    let error = lost.error(&self.jobs[job].corpus.record.name);
                    self.replies.send(job, Err(error));
                }
                Err(error) if error.reason() == Reason::AnswerTooLarge => alone.push(afresh(job)),
                Err(error) => self.replies.send(job, Err(error)),
            }
        }
        if !self.answer(&done) {
            // Each finds out what is wrong.
            alone.extend(done.into_iter().map(afresh));
        }
        alone
    }

    /// The nodes that a job needs and that have not answered.
    fn lost(&self, job: usize) -> Result<Failures, RouterError> {
        let missing = self.missing.iter().map(|(place, error)| {
            let (_, node, part) = &self.plan.requests[*place];
            (node, part, error)
        });
        Failures::at(&self.round.places(job), missing)
    }

    /// Answers jobs whose nodes have all answered; whether that made sense.
    fn answer(&mut self, done: &[usize]) -> bool {
        if done.is_empty() {
            return true;
        }
        let answers = match self.round.is_over() {
            true => std::mem::take(&mut self.answers),
            false => self.answers.clone(),
        };
        let counts = || self.jobs.iter().map(|job| job.near.queries.len());
        let limit = self.jobs[0].near.limit;
        let Ok(matches) = merged(counts().sum(), limit, self.plan, answers) else {
            return false;
        };
        for (job, matches) in split_matches(matches, counts()).enumerate() {
            if done.binary_search(&job).is_ok() {
                let completeness = None;
                let found = Found {
                    matches,
                    completeness,
                };
                self.replies.send(job, Ok(found));
            }
        }
        true
    }
}

/// A search that is done again as if it had never been in a batch.
fn afresh(job: usize) -> Alone {
    (job, Failures::default())
}

/// The searches of a batch in one.
fn all_of(jobs: &[FindJob]) -> (Near, Deadline) {
    let queries = jobs.iter().flat_map(|job| job.near.queries.iter().copied());
    let near = Near {
        queries: queries.collect(),
        ..jobs[0].near.clone()
    };
    (near, last(jobs.iter().map(|job| job.deadline)))
}
