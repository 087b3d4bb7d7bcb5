//! A request of an operator while it is served.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use simshard_admin::{Admin, AdminError, Departure, Emptying, ReplicationPlan};
use simshard_cluster::KeyValueStore;
use simshard_proto::{Reason, admin::v1 as pb};
use simshard_topology::ShardSet;
use simshard_transport::Dialer;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout_at;
use tonic::Status;

use super::error;
use crate::deadline::Deadline;

/// A request of an operator.
pub(super) struct Call {
    keys: Arc<dyn KeyValueStore>,
    dialer: Dialer,
    deadline: Deadline,
    warnings: Arc<Mutex<Vec<String>>>,
    warn: Box<dyn Fn(&str) + Send + Sync>,
    _place: OwnedSemaphorePermit,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut call = f.debug_struct("Call");
        call.field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl Call {
    pub(super) fn new(
        keys: Arc<dyn KeyValueStore>,
        dialer: Dialer,
        deadline: Deadline,
        place: OwnedSemaphorePermit,
    ) -> Self {
        let warnings = Arc::<Mutex<Vec<String>>>::default();
        let told = Arc::clone(&warnings);
        Self {
            keys,
            dialer,
            deadline,
            warnings,
            warn: Box::new(move |warning| told.lock().push(warning.to_owned())),
            _place: place,
        }
    }

    /// The operations, whose warnings are kept for the answer.
    pub(super) fn admin(&self) -> Admin<'_> {
        Admin::new(&*self.keys, &self.dialer, &*self.warn)
    }

    /// Does an operation, which ends at the deadline. Some of what it was to write may be written then.
    pub(super) async fn in_time<T>(
        &self,
        operation: impl Future<Output = Result<T, AdminError>>,
    ) -> Result<T, Status> {
        match timeout_at(self.deadline.instant(), operation).await {
            Ok(done) => done.map_err(|error| error::status(&error)),
            Err(_) => {
                let problem = "it was not done by its deadline, or only in part: allow more time, and repeat it";
                Err(Reason::DeadlineTooShort.status(problem, []))
            }
        }
    }

    /// Empties a node, or only plans that. Answers the plan, and the shards that move.
    pub(super) async fn empty(
        &self,
        departure: &Departure,
        dry_run: bool,
    ) -> Result<(Emptying, ShardSet), Status> {
        if dry_run {
            let admin = self.admin();
            let planned = self.in_time(admin.plan_departure(departure)).await?;
            return Ok((planned, ShardSet::EMPTY));
        }
        let departed = self.in_time(self.admin().depart(departure)).await;
        let (planned, placing) = departed.map_err(|status| match Reason::of(&status) {
            Some(late @ Reason::DeadlineTooShort) => {
                let problem = status.message();
                late.status(format!("{problem}; or undrain the node"), [])
            }
            Some(_) | None => status,
        })?;
        Ok((planned, placing.unplaced))
    }

    /// Changes how many replicas there are as was planned, if it is to be done. Answers the shards that move.
    pub(super) async fn replicate(
        &self,
        plan: ReplicationPlan,
        request: &pb::SetReplicationRequest,
    ) -> Result<ShardSet, Status> {
        if request.dry_run {
            return Ok(ShardSet::EMPTY);
        }
        confirm(plan.question.as_deref(), request.confirmed)?;
        self.in_time(self.admin().wish_for(&plan)).await?;
        let placing = self.in_time(self.admin().place_replicas(plan)).await?;
        Ok(placing.unplaced)
    }

    /// What the operations have warned of.
    pub(super) fn warnings(&self) -> Vec<String> {
        self.warnings_and(Vec::new())
    }

    /// The same, with more.
    pub(super) fn warnings_and(&self, more: Vec<String>) -> Vec<String> {
        let mut warnings = std::mem::take(&mut *self.warnings.lock());
        warnings.extend(more);
        warnings
    }
}

/// Refuses what is dangerous, and was not confirmed. The question says what would happen.
pub(super) fn confirm(question: Option<&str>, confirmed: bool) -> Result<(), Status> {
    match question {
        Some(question) if !confirmed => {
            let problem = format!("{question} Nothing was changed: set confirmed if so");
            Err(Reason::NotConfirmed.status(problem, []))
        }
        Some(_) | None => Ok(()),
    }
}
