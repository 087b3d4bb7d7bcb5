//! Changing documents and corpora: handed to the storage, answered once committed and applied.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use simshard_cluster::CorpusUid;
use simshard_simhash::Layout;
use simshard_storage::{Barred, Change, InstallFailure, Operation, Refusal, ShardCopy};
use simshard_topology::replication::{Epoch, Pin, Sent, ShardRecords, StoreId};
use simshard_topology::{ShardId, ShardSet, Version};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::{ChangeOutcome, Class, Engine};
use crate::error::NodeError;
use crate::target::{PlannedBy, Target};

/// Between two attempts to install records of shards.
const INSTALL_PAUSE: Duration = Duration::from_millis(200);

/// A change of fewer documents is encoded where it arrives.
const ENCODED_INLINE: usize = 1024;

impl Engine {
    /// Makes an empty corpus; the same layout again changes nothing.
    pub(crate) async fn create_corpus(self: &Arc<Self>, target: Target) -> Result<(), NodeError> {
        let layout = Layout::new(target.blocks, target.distance)?;
        match self.corpus_if_held(&target, ShardSet::EMPTY) {
            Err(NodeError::CorpusNotLoaded(uid)) => {
                self.commit(Operation::CreateCorpus { uid, layout }).await?;
                Ok(())
            }
            opened => opened.map(drop),
        }
    }

    /// Drops a corpus. Where there is none, its creation may be in flight, so this is committed all the same.
    pub(crate) async fn delete_corpus(self: &Arc<Self>, target: Target) -> Result<(), NodeError> {
        match self.corpus_if_held(&target, ShardSet::EMPTY) {
            Ok(_) | Err(NodeError::CorpusNotLoaded(_)) => self.drop_corpus(target.corpus).await,
            Err(error) => Err(error),
        }
    }

    /// Drops a corpus whose deletion the metadata tells of.
    pub(crate) async fn drop_corpus(&self, uid: CorpusUid) -> Result<(), NodeError> {
        self.commit(Operation::DropCorpus { uid }).await?;
        Ok(())
    }

    /// Installs those of these records of shards that are news; tries again while there is a shortage.
    ///
    /// # Errors
    /// If a record may not follow the one that is installed.
    pub(crate) async fn install(
        &self,
        records: &ShardRecords,
        reported: impl Fn(ShardId, StoreId) -> Epoch,
    ) -> Result<(), InstallFailure> {
        // What is taken back must be all that is queued.
        let _turn = self.entering.lock().await;
        loop {
            let (ticket, outcome) = oneshot::channel();
            let refusal = match self.writer.install(records, &reported, ticket) {
                Ok(false) => return Ok(()),
                Ok(true) => match outcome.await {
                    Ok(Err(NodeError::Refused(refusal))) => {
                        self.writer.withdraw();
                        refusal
                    }
                    // If the storage has failed, the node ends by that.
                    Ok(_) | Err(_) => return Ok(()),
                },
                Err(InstallFailure::Refused(Refusal::Closed)) => return Ok(()),
                Err(InstallFailure::Refused(refusal)) => refusal,
                Err(failure @ InstallFailure::Record { .. }) => return Err(failure),
            };
            tracing::warn!(%refusal, "records of shards are not installed yet, trying again");
            sleep(INSTALL_PAUSE).await;
        }
    }

    /// Makes a copy of what was pinned part of its shard. Answers whether it is: if not, the source has left.
    pub(crate) async fn end_copy(&self, pin: Pin, copy: ShardCopy) -> Result<bool, NodeError> {
        let _turn = self.entering.lock().await;
        let (ticket, outcome) = oneshot::channel();
        if !self.writer.end_copy(pin, copy, ticket)? {
            return Ok(false);
        }
        let outcome = outcome.await.unwrap_or(Err(NodeError::Stopping));
        if matches!(outcome, Err(NodeError::Refused(_))) {
            self.writer.withdraw();
        }
        outcome.map(|_| true)
    }

    /// Makes a corpus that a source of a copy holds, unless the node holds it, or dropped it.
    pub(crate) async fn make_copied(
        &self,
        uid: CorpusUid,
        layout: Layout,
    ) -> Result<(), NodeError> {
        if self.store.holds(uid) {
            return Ok(());
        }
        match self.commit(Operation::CreateCorpus { uid, layout }).await {
            Ok(_) | Err(NodeError::CorpusNotLoaded(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Changes documents in those of their shards that are meant. Once it answers, the change is durable. It is
    /// not begun after the deadline, but once it has, it goes on whether its caller waits or not. `beyond_clock` accepts a
    /// version of any time. A shard whose floor is not below its version answers that every document has a newer one.
    pub(crate) async fn change(
        self: &Arc<Self>,
        target: Target,
        change: Change,
        sent: Sent,
        beyond_clock: bool,
        deadline: Option<Instant>,
    ) -> Result<ChangeOutcome, NodeError> {
        self.open_to_change(&target, change.shards).await?;
        if !beyond_clock {
            check_clock(change.version)?;
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(NodeError::Abandoned);
        }
        if change.documents.fingerprints.len() < ENCODED_INLINE {
            self.queue_change(&target, change, sent)?.outcome().await
        } else {
            let engine = Arc::clone(self);
            let queue = move |_: &Self, _: &_| engine.queue_change(&target, change, sent);
            let queued = self.run(Class::Change, deadline, queue).await?;
            queued.outcome().await
        }
    }

    /// Queues a change in those of its shards whose records are those of the router.
    fn queue_change(
        &self,
        target: &Target,
        change: Change,
        sent: Sent,
    ) -> Result<Queued, NodeError> {
        let epochs = match &target.planned_by {
            PlannedBy::Map(_) => &[][..],
            PlannedBy::Records(epochs) => epochs,
        };
        let (ticket, outcome) = oneshot::channel();
        let documents = change.documents.fingerprints.len() as u32;
        let (barred, not_needed) = self.writer.change(epochs, change, sent, ticket)?;
        if let Some(ticket) = not_needed {
            let _received = ticket.send(Ok(ChangeOutcome::default()));
        }
        Ok(Queued {
            barred,
            documents,
            outcome,
        })
    }

    pub(super) async fn commit(&self, operation: Operation) -> Result<ChangeOutcome, NodeError> {
        let (ticket, outcome) = oneshot::channel();
        self.writer.append(operation, ticket)?;
        outcome.await.unwrap_or(Err(NodeError::Stopping))
    }
}

/// A change whose outcome is to come.
struct Queued {
    barred: Barred,
    /// How many documents the change has.
    documents: u32,
    outcome: oneshot::Receiver<Result<ChangeOutcome, NodeError>>,
}

impl Queued {
    async fn outcome(self) -> Result<ChangeOutcome, NodeError> {
        let outcome = self.outcome.await.unwrap_or(Err(NodeError::Stopping))?;
        let mut newer = outcome.newer;
        // Which of them are in these shards does not matter: each may have a new version.
        if !self.barred.late.is_empty() {
            newer.extend((0..self.documents).map(|place| (place, self.barred.above)));
        }
        Ok(ChangeOutcome {
            refused: self.barred.refused,
            newer,
            ..outcome
        })
    }
}

/// Refuses a version that is too far ahead of the clock.
pub(crate) fn check_clock(version: Version) -> Result<(), NodeError> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = u64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(u64::MAX);
    if version.is_too_far_ahead(now) {
        Err(NodeError::ClockAhead(version))
    } else {
        Ok(())
    }
}
