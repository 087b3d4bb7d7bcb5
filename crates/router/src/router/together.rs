//! Small requests that arrive together are planned, sent and answered as one.
//!
//! A request of a batch is answered as soon as the nodes that it needs have answered, and fails only if one of those
//! does.

use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::CorpusUid;
use simshard_proto::Documents;

use super::{Change, Found, Near, Router};
use crate::coalesce::{Job, Replies};
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
    pub(super) corpus: Arc<OpenCorpus>,
    pub(super) near: Near,
    pub(super) deadline: Deadline,
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
    pub(super) corpus: Arc<OpenCorpus>,
    pub(super) change: Change,
    pub(super) documents: Arc<Documents>,
    pub(super) deadline: Deadline,
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

    async fn change_together(
        self: Arc<Self>,
        jobs: Vec<ChangeJob>,
        replies: Replies<Result<u64, RouterError>>,
    ) {
        // A change in flight runs to its end even if its callers leave: half a change is worse than either.
        let change = async move { self.change_each(jobs, &replies).await };
        let _ = tokio::spawn(change).await;
    }
}

/// The latest of the deadlines.
pub(super) fn last(deadlines: impl Iterator<Item = Deadline>) -> Deadline {
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
