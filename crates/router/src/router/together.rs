//! Small requests that arrive together are planned, sent and answered as one.
//!
//! An outcome that the requests of a batch might not share, an error or a partial answer, is given to none of them:
//! each is then done alone.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use simshard_cluster::CorpusUid;
use simshard_proto::{Documents, split_matches};

use super::{Change, Found, Near, Router};
use crate::coalesce::Job;
use crate::corpora::OpenCorpus;
use crate::deadline::Deadline;
use crate::error::RouterError;

/// Requests with fewer documents or queries are put together. Larger ones gain nothing.
const FEW: usize = 256;

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
    type Answer = Result<Vec<bool>, RouterError>;

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
        let work = move |jobs| Arc::clone(&router).find_together(jobs);
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
        let changed = if documents.len() >= FEW {
            self.change_alone(corpus, change, documents, deadline)
                .await?
        } else {
            let job = ChangeJob {
                corpus: Arc::clone(corpus),
                change,
                documents,
                deadline,
            };
            let router = Arc::clone(self);
            let work = move |jobs| Arc::clone(&router).change_together(jobs);
            let answer = self.changes.run((corpus.record.uid, change), job, work);
            by(deadline, answer).await?
        };
        Ok(changed.iter().map(|&changed| u64::from(changed)).sum())
    }

    async fn find_together(self: Arc<Self>, jobs: Vec<FindJob>) -> Vec<Result<Found, RouterError>> {
        if let [first, _, ..] = &*jobs {
            let queries = jobs.iter().flat_map(|job| job.near.queries.iter().copied());
            let near = Near {
                queries: queries.collect(),
                ..first.near.clone()
            };
            let deadline = last(jobs.iter().map(|job| job.deadline));
            let found = self.find_alone(&first.corpus, &near, deadline).await;
            if let Ok(found) = found
                && found.completeness.is_none()
            {
                let counts = jobs.iter().map(|job| job.near.queries.len());
                let parts = split_matches(found.matches, counts);
                let found = |matches| Found {
                    matches,
                    completeness: None,
                };
                return parts.map(|matches| Ok(found(matches))).collect();
            }
        }
        let alone = |job: &FindJob| {
            let (router, corpus) = (Arc::clone(&self), Arc::clone(&job.corpus));
            let (near, deadline) = (job.near.clone(), job.deadline);
            async move { router.find_alone(&corpus, &near, deadline).await }
        };
        join_all(jobs.iter().map(alone)).await
    }

    async fn change_together(
        self: Arc<Self>,
        jobs: Vec<ChangeJob>,
    ) -> Vec<Result<Vec<bool>, RouterError>> {
        if let [first, _, ..] = &*jobs {
            let mut all = Documents::default();
            let some_have_ids = jobs.iter().any(|job| !job.documents.ids.is_empty());
            for job in &jobs {
                all.fingerprints.extend(&job.documents.fingerprints);
                if some_have_ids {
                    let ids =
                        (0..job.documents.len()).map(|place| job.documents.id(place).to_owned());
                    all.ids.extend(ids);
                }
            }
            let deadline = last(jobs.iter().map(|job| job.deadline));
            let changed = self
                .change_alone(&first.corpus, first.change, Arc::new(all), deadline)
                .await;
            if let Ok(changed) = changed {
                let mut rest = &*changed;
                let part = |job: &ChangeJob| {
                    let (part, others) = rest.split_at(job.documents.len());
                    rest = others;
                    Ok(part.to_vec())
                };
                return jobs.iter().map(part).collect();
            }
        }
        let alone = |job: &ChangeJob| {
            let (router, corpus) = (Arc::clone(&self), Arc::clone(&job.corpus));
            let (change, documents, deadline) =
                (job.change, Arc::clone(&job.documents), job.deadline);
            async move {
                router
                    .change_alone(&corpus, change, documents, deadline)
                    .await
            }
        };
        join_all(jobs.iter().map(alone)).await
    }
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
        Ok(answer) => answer.unwrap_or(Err(RouterError::Stopping)),
        Err(_) => Err(RouterError::Late),
    }
}
