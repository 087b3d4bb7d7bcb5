//! Small requests that arrive together are planned, sent and answered as one.
//!
//! A request of a batch is answered as soon as the nodes that it needs have answered, and fails only if one of those
//! does. Where a search could go around lost nodes, or its batch has too large an answer, it is done alone, a few at a
//! time.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use simshard_cluster::CorpusUid;
use simshard_proto::transport::Taken;
use simshard_proto::v1::Matches;
use simshard_proto::{Documents, Reason, split_matches};

use super::find::{merged, most_bytes, size};
use super::round::Round;
use super::{Change, Failures, Found, Near, Router};
use crate::coalesce::{Job, Replies};
use crate::corpora::OpenCorpus;
use crate::deadline::Deadline;
use crate::error::RouterError;
use crate::nodes::CallError;
use crate::plan::QueryPlan;

/// Requests with fewer documents or queries are put together. Larger ones gain nothing.
const FEW: usize = 256;

/// Searches of a batch that failed which are repeated at once.
const ALONE: usize = 8;

/// A round that takes longer than this answers those requests that it can already.
const SLOW: Duration = Duration::from_millis(20);

/// How long after its deadline a request waits for what its batch says of it, which nodes were late, say.
const GRACE: Duration = Duration::from_millis(20);

/// What searches have in common that can be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FindKey {
    corpus: CorpusUid,
    max_distance: u32,
    limit: u32,
    max_ids: u32,
    allow_partial: bool,
}

/// A search of one request.
#[derive(Debug)]
pub(crate) struct FindJob {
    corpus: Arc<OpenCorpus>,
    near: Near,
    deadline: Deadline,
}

impl Job for FindJob {
    type Answer = Result<Found, RouterError>;

    fn weight(&self) -> usize {
        self.near.queries.len()
    }
}

/// What changes have in common that can be one.
pub(crate) type ChangeKey = (CorpusUid, Change);

/// A change of one request.
#[derive(Debug)]
pub(crate) struct ChangeJob {
    corpus: Arc<OpenCorpus>,
    change: Change,
    documents: Arc<Documents>,
    deadline: Deadline,
}

impl Job for ChangeJob {
    type Answer = Result<u64, RouterError>;

    fn weight(&self) -> usize {
        self.documents.len()
    }
}

impl Router {
    /// Finds the matches of every query, together with others that ask the same of the same corpus.
    pub(crate) async fn find(
        self: &Arc<Self>,
        corpus: &Arc<OpenCorpus>,
        near: &Near,
        deadline: Deadline,
    ) -> Result<Found, RouterError> {
        if near.queries.len() >= FEW {
            return self.find_alone(corpus, near, deadline).await;
        }
        let key = FindKey {
            corpus: corpus.record.uid,
            max_distance: near.max_distance,
            limit: near.limit,
            max_ids: near.max_ids,
            allow_partial: near.allow_partial,
        };
        let job = FindJob {
            corpus: Arc::clone(corpus),
            near: near.clone(),
            deadline,
        };
        let router = Arc::clone(self);
        let work = move |jobs, replies| Arc::clone(&router).find_together(jobs, replies);
        let answer = self.finds.run(key, job, work);
        by(deadline, answer).await
    }

    /// Inserts or removes documents, together with others that do so; returns how many of them changed anything.
    pub(crate) async fn change(
        self: &Arc<Self>,
        corpus: &Arc<OpenCorpus>,
        change: Change,
        documents: Arc<Documents>,
        deadline: Deadline,
    ) -> Result<u64, RouterError> {
        let job = ChangeJob {
            corpus: Arc::clone(corpus),
            change,
            documents,
            deadline,
        };
        if job.weight() >= FEW {
            let (replies, answer) = Replies::one();
            Arc::clone(self).change_together(vec![job], replies).await;
            return answer.await.unwrap_or(Err(RouterError::Fault));
        }
        let router = Arc::clone(self);
        let work = move |jobs, replies| Arc::clone(&router).change_together(jobs, replies);
        let answer = self.changes.run((corpus.record.uid, change), job, work);
        by(deadline, answer).await
    }

    async fn find_together(
        self: Arc<Self>,
        jobs: Vec<FindJob>,
        replies: Replies<Result<Found, RouterError>>,
    ) {
        let everybody = (0..jobs.len()).collect();
        let alone = match &*jobs {
            [first, _, ..] if !self.may_go_around(&first.corpus, &first.near) => {
                self.find_round(&jobs, &replies).await
            }
            [first, _, ..] => {
                let (near, deadline) = all_of(&jobs);
                match self.find_alone(&first.corpus, &near, deadline).await {
                    Ok(found) if found.completeness.is_none() => {
                        let found = split(found.matches, &jobs).enumerate();
                        found.for_each(|(job, found)| replies.send(job, Ok(found)));
                        Vec::new()
                    }
                    Ok(_) | Err(_) => everybody,
                }
            }
            [_] | [] => everybody,
        };
        let alone = alone.into_iter().map(async |job| {
            let FindJob {
                corpus,
                near,
                deadline,
            } = &jobs[job];
            (job, self.find_alone(corpus, near, *deadline).await)
        });
        let alone: Vec<_> = alone.collect();
        let mut found = std::pin::pin!(stream::iter(alone).buffer_unordered(ALONE));
        while let Some((job, found)) = found.next().await {
            replies.send(job, found);
        }
    }

    /// Asks every node once about all jobs, and answers those that it can; returns those that are to be done alone.
    async fn find_round(
        &self,
        jobs: &[FindJob],
        replies: &Replies<Result<Found, RouterError>>,
    ) -> Vec<usize> {
        let corpus = &jobs[0].corpus;
        let (near, deadline) = all_of(jobs);
        let everybody = (0..jobs.len()).collect();
        let Ok(plan) = self.plan(corpus, &near, BTreeSet::new()).await else {
            return everybody;
        };
        let lengths = jobs.iter().map(|job| job.near.queries.len());
        let parts = plan.requests.iter().map(|(_, _, part)| part);
        let mut round = Round::new(lengths, parts);
        let mut arrived = Arrived::default();
        let mut alone = Vec::new();
        let mut arriving = std::pin::pin!(self.answers(corpus, &near, &plan, deadline));
        let mut slow = std::pin::pin!(tokio::time::sleep(SLOW));
        let mut is_late = false;
        loop {
            tokio::select! {
                answer = arriving.next() => {
                    let Some((place, answer)) = answer else { break };
                    round.arrived(&plan.requests[place].2);
                    arrived.note(place, answer);
                    if arrived.bytes > most_bytes(&near) {
                        alone.extend(round.rest());
                        return alone;
                    }
                }
                () = &mut slow, if !is_late => is_late = true,
            }
            // Usually all answers come together, and are merged once.
            if is_late || !arrived.failed.is_empty() {
                let ready = round.take_ready();
                if ready.is_empty() {
                    continue;
                }
                let answers = arrived.answers.clone();
                alone.extend(settle(
                    &arrived, answers, ready, &round, jobs, &plan, replies,
                ));
            }
        }
        let ready = round.take_ready();
        let answers = std::mem::take(&mut arrived.answers);
        alone.extend(settle(
            &arrived, answers, ready, &round, jobs, &plan, replies,
        ));
        alone
    }

    async fn change_together(
        self: Arc<Self>,
        jobs: Vec<ChangeJob>,
        replies: Replies<Result<u64, RouterError>>,
    ) {
        let Some(first) = jobs.first() else { return };
        let (corpus, change) = (Arc::clone(&first.corpus), first.change);
        let deadline = last(jobs.iter().map(|job| job.deadline));
        let jobs = jobs.into_iter().map(|job| job.documents).collect();
        // It goes on to its end even if nobody waits: half a change is worse than either.
        let change = async move {
            self.change_each(&corpus, change, jobs, deadline, &replies)
                .await;
        };
        let _ = tokio::spawn(change).await;
    }
}

/// The answers of a round so far.
#[derive(Default)]
struct Arrived {
    answers: Vec<(usize, Matches)>,
    /// Places of requests to nodes, and why there is no answer to them.
    failed: Vec<(usize, CallError)>,
    bytes: usize,
    memory: Vec<Taken>,
}

impl Arrived {
    fn note(&mut self, place: usize, answer: Result<(Matches, Taken), CallError>) {
        match answer {
            Ok((matches, memory)) => {
                self.bytes += size(&matches);
                self.memory.push(memory);
                self.answers.push((place, matches));
            }
            Err(error) => self.failed.push((place, error)),
        }
    }

    /// The failures that concern the queries at these places.
    fn check(
        &self,
        corpus: &OpenCorpus,
        plan: &QueryPlan,
        places: &Range<usize>,
    ) -> Result<(), RouterError> {
        let failed = self.failed.iter().map(|(place, error)| {
            let (_, node, part) = &plan.requests[*place];
            (node, part, error)
        });
        Failures::at(places, failed)?.check(&corpus.record.name)
    }
}

/// Answers the jobs that are ready; returns those that are to be done alone, as the others made the answer too large.
fn settle(
    arrived: &Arrived,
    answers: Vec<(usize, Matches)>,
    ready: Vec<usize>,
    round: &Round,
    jobs: &[FindJob],
    plan: &QueryPlan,
    replies: &Replies<Result<Found, RouterError>>,
) -> Vec<usize> {
    let mut alone = Vec::new();
    let mut done = Vec::new();
    for job in ready {
        let checked = arrived.check(&jobs[job].corpus, plan, &round.places(job));
        match checked {
            Ok(()) => done.push(job),
            Err(error) if error.reason() == Reason::AnswerTooLarge => alone.push(job),
            Err(error) => replies.send(job, Err(error)),
        }
    }
    if done.is_empty() {
        return alone;
    }
    let queries = jobs.iter().map(|job| job.near.queries.len()).sum();
    match merged(queries, jobs[0].near.limit, plan, answers) {
        Ok(matches) => {
            for (job, found) in split(matches, jobs).enumerate() {
                if done.binary_search(&job).is_ok() {
                    replies.send(job, Ok(found));
                }
            }
        }
        // Each finds out what is wrong.
        Err(_) => alone.extend(done),
    }
    alone
}

/// What was found for each job of a batch.
fn split(matches: Matches, jobs: &[FindJob]) -> impl Iterator<Item = Found> {
    let counts = jobs.iter().map(|job| job.near.queries.len());
    split_matches(matches, counts).map(|matches| Found {
        matches,
        completeness: None,
    })
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

fn last(deadlines: impl Iterator<Item = Deadline>) -> Deadline {
    deadlines.max().unwrap_or_else(Deadline::now)
}

/// An answer if it comes by the deadline, which may be earlier than that of its batch.
async fn by<T>(
    deadline: Deadline,
    answer: impl Future<Output = Option<Result<T, RouterError>>>,
) -> Result<T, RouterError> {
    match tokio::time::timeout_at(deadline.instant() + GRACE, answer).await {
        Ok(answer) => answer.unwrap_or(Err(RouterError::Fault)),
        Err(_) => Err(RouterError::Late),
    }
}
