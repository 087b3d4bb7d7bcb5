//! Inserting and removing: each document to every shard that stores it.
//!
//! # Invariants
//! - CH1: a version is made for a request only while its caller waits. The caller has not been answered, its deadline
//!   has not passed, and the server did not know that the caller has gone when the version was made. A change in flight
//!   keeps its version, and is sent until its deadline.
//! - CH2: a document that has a newer version in one shard is sent to all its shards again, above that version.
//! - CH3: a document whose version is too far ahead of wall time fails its own request. The other documents of that
//!   request change, unless they conflict too often: then the answer is WRITE_CONFLICT.
//! - CH4: a change keeps the memory and the place of its request until it ends, though its caller may have gone.
//! - CH5: a change is done when every shard of every document has taken it. A shard that a node refuses, by another record
//!   of it, is sent the same version again, by the newest record that the router knows.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_item::Work;
use simshard_proto::shard::v1::work_outcome::Outcome as Answer;
use simshard_proto::{Documents, bits_into, shards_from, shards_into};
use simshard_topology::{NodeId, ShardSet, Version};
use simshard_transport::WorkKind;
use tokio::time::timeout_at;

use super::pending::{Next, Pending};
use super::rounds::Rounds;
use super::{Failures, Router};
use crate::caller::CallerWatch;
use crate::clock::Stamp;
use crate::cluster::ClusterView;
use crate::deadline::Deadline;
use crate::error::{RouterError, Why};
use crate::nodes::{CallError, call_all};
use crate::offload::offload;
use crate::plan::{NodePart, plan_documents};
use crate::remembered::OpenCorpus;
use crate::run_to_end::{CallerLeft, run_to_end};

/// How long the metadata has to answer before it counts as the cause of a failure.
const METADATA_ANSWERS: Duration = Duration::from_secs(1);

/// What is done with documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Change {
    /// They are inserted.
    Insert,
    /// They are removed.
    Remove,
    /// They are removed even if their versions are over a minute ahead of wall time.
    RemoveBeyondClock,
}

impl Change {
    const fn kind(self) -> pb::ChangeKind {
        match self {
            Self::Insert => pb::ChangeKind::Insert,
            Self::Remove | Self::RemoveBeyondClock => pb::ChangeKind::Remove,
        }
    }

    fn is_beyond_clock(self) -> bool {
        self == Self::RemoveBeyondClock
    }
}

impl Router {
    /// Inserts or removes documents; returns how many of them changed anything. Then every shard of every document has
    /// the change, durably. `request` is what counts for it (CH4).
    pub(crate) async fn change(
        self: &Arc<Self>,
        corpus: &Arc<OpenCorpus>,
        change: Change,
        documents: Arc<Documents>,
        deadline: Deadline,
        request: impl CallerWatch,
    ) -> Result<u64, RouterError> {
        let (router, corpus) = (Arc::clone(self), Arc::clone(corpus));
        // Half a change is worse than either.
        let work = run_to_end(async move |left| {
            let caller = Caller {
                request,
                left,
                deadline,
            };
            router.change_for(&caller, &corpus, change, documents).await
        });
        // A panic is a fault of the router: clients must not take it for a stop, after which they send again.
        let outcome = AssertUnwindSafe(work).catch_unwind().await;
        outcome.unwrap_or(Err(RouterError::Fault))
    }

    /// Sends the documents, and those that have newer versions again, above these, until all are changed.
    async fn change_for(
        &self,
        caller: &Caller<impl CallerWatch>,
        corpus: &OpenCorpus,
        change: Change,
        documents: Arc<Documents>,
    ) -> Result<u64, RouterError> {
        let mut pending = Pending::new(documents);
        loop {
            let stamp = pending.stamp();
            let version = self.clock.version(stamp);
            // The check comes after the version: a caller that waits now also waited when the version was made (CH1).
            caller.check().await?;
            let send = Sending {
                corpus,
                change,
                version,
                beyond_clock: change.is_beyond_clock() && stamp != Stamp::Reading,
                documents: pending.documents(),
                deadline: caller.deadline,
            };
            let ChangeProgress { changed, newer } = self.send(&send).await?;
            let above = |version| self.clock.above(version, change.is_beyond_clock());
            match pending.sent(
                changed.iter().map(|&changed| u64::from(changed)).sum(),
                newer,
                above,
            ) {
                Next::Send(rest) => pending = rest,
                Next::Answer(answer) => return answer,
            }
        }
    }

    /// Sends the documents to all their shards; again to those that nodes refuse by other records of them (CH5).
    async fn send(&self, send: &Sending<'_>) -> Result<ChangeProgress, RouterError> {
        let mut progress = ChangeProgress::new(send.documents.len());
        let mut rounds = Rounds::new();
        let mut meant = ShardSet::ALL;
        loop {
            let cluster = self.cluster.view();
            let failures = self
                .send_round(&cluster, send, meant, &mut progress)
                .await?;
            if failures.is_empty() {
                return Ok(progress);
            }
            // A node that is lost may be taken out of the records.
            let mut lost = failures.nodes.iter();
            let may_repeat = lost.all(|(node, shards)| cluster.may_leave(node, *shards));
            if !may_repeat
                || failures.not_loaded.is_some()
                || !rounds.another(self, &cluster, send.deadline).await
            {
                let error = failures.error(&send.corpus.record.name);
                return Err(self.with_cause(error, send.deadline).await);
            }
            meant = left_over(&failures);
        }
    }

    /// The error of a change that would go on without a lost node, if the metadata answered.
    async fn with_cause(&self, error: RouterError, deadline: Deadline) -> RouterError {
        let RouterError::Unreachable {
            nodes,
            why: Why::Lost,
        } = error
        else {
            return error;
        };
        let may_go_on = self.cluster.view().layout.map().is_replicated();
        let end = deadline.min(Deadline::within(METADATA_ANSWERS)).instant();
        if !may_go_on {
            return RouterError::Unreachable {
                nodes,
                why: Why::Lost,
            };
        }
        let read = timeout_at(end, self.metadata.layout_now()).await;
        let why = if let Ok(Ok(layout)) = read {
            self.cluster.take_read(&layout);
            Why::Lost
        } else {
            Why::LostWithMetadata
        };
        RouterError::Unreachable { nodes, why }
    }

    /// Sends each node its part of what these shards store, and waits for the answers of all that keep their shards.
    async fn send_round(
        &self,
        cluster: &ClusterView,
        send: &Sending<'_>,
        meant: ShardSet,
        progress: &mut ChangeProgress,
    ) -> Result<Failures, RouterError> {
        let parts = part_documents(cluster, send, meant).await?;
        let mut failures = Failures::default();
        let mut refusal = None;
        let calls = parts
            .iter()
            .map(|(node, part)| self.change_unless_left(cluster, node, send, part));
        let Ok(()) = call_all(calls, usize::MAX, send.deadline, |place, answer| {
            let (node, part) = &parts[place];
            let taken = progress.take(&mut failures, node, part, answer);
            refusal = refusal.take().or(taken.err());
            Ok::<_, Infallible>(())
        })
        .await;
        refusal.map_or(Ok(failures), Err)
    }

    /// The answer of one node; as if it had refused the shards, once they are not its own any more.
    async fn change_unless_left(
        &self,
        cluster: &ClusterView,
        node: &NodeId,
        send: &Sending<'_>,
        part: &NodePart,
    ) -> Result<pb::Changed, CallError> {
        let change = change_on(cluster, node, send, part);
        if !cluster.layout.map().is_replicated() {
            return change.await;
        }
        tokio::select! {
            biased;
            answer = change => answer,
            () = self.cluster.left(node, part.shards) => Err(CallError::WrongEpoch),
        }
    }
}

/// The documents that each node stores in these shards.
async fn part_documents(
    cluster: &ClusterView,
    send: &Sending<'_>,
    meant: ShardSet,
) -> Result<Vec<(NodeId, NodePart)>, RouterError> {
    let tables = Arc::clone(send.corpus.tables());
    let layout = Arc::clone(&cluster.layout);
    let documents = Arc::clone(&send.documents);
    offload(documents.len(), move || {
        plan_documents(&tables, layout.map(), meant, &documents.fingerprints)
    })
    .await
}

/// The documents of a part, for one attempt to send it.
async fn select(documents: &Arc<Documents>, places: &[u32]) -> Result<Documents, CallError> {
    let (documents, places) = (Arc::clone(documents), places.to_vec());
    let selected = offload(places.len(), move || documents.select(&places)).await;
    // The runtime is going down.
    selected.map_err(|_| CallError::Unreachable)
}

async fn change_on(
    cluster: &ClusterView,
    node: &NodeId,
    send: &Sending<'_>,
    part: &NodePart,
) -> Result<pb::Changed, CallError> {
    let work = || async {
        let selected = select(&send.documents, &part.places).await?;
        let fingerprints = selected.fingerprints.into_iter();
        Ok(Work::from(pb::Change {
            target: Some(cluster.target(&send.corpus.record, part.shards)),
            kind: send.change.kind().into(),
            shards: shards_from(part.shards),
            fingerprints: fingerprints.map(|value| value.0).collect(),
            ids: selected.ids,
            version: send.version.0,
            beyond_clock: send.beyond_clock,
            repairs: false,
        }))
    };
    let kind = WorkKind::Change(part.places.len());
    let answer = cluster.nodes.work(node, send.deadline, kind, work).await?;
    match answer.outcome {
        Answer::Changed(changed) => Ok(changed),
        Answer::Matches(_) | Answer::Confirmed(_) | Answer::Status(_) => Err(CallError::nonsense()),
    }
}

/// The caller of a change.
struct Caller<R> {
    request: R,
    left: CallerLeft,
    deadline: Deadline,
}

impl<R: CallerWatch> Caller<R> {
    /// Fails if the deadline has passed, or the caller is known to have gone.
    async fn check(&self) -> Result<(), RouterError> {
        let waits = self.request.is_waiting(self.deadline).await && !self.left.is_known();
        if waits && Deadline::now() < self.deadline {
            Ok(())
        } else {
            Err(RouterError::Late)
        }
    }
}

/// What the nodes made of a change so far.
struct ChangeProgress {
    /// For each document, whether it changed.
    changed: Vec<bool>,
    /// Places of the documents that have newer versions, and the highest of these.
    newer: BTreeMap<usize, Version>,
}

impl ChangeProgress {
    fn new(documents: usize) -> Self {
        Self {
            changed: vec![false; documents],
            newer: BTreeMap::new(),
        }
    }

    /// Takes what a node answered to its part, or that it did not. A refusal of the whole part is an error at once.
    fn take(
        &mut self,
        failures: &mut Failures,
        node: &NodeId,
        part: &NodePart,
        answer: Result<pb::Changed, CallError>,
    ) -> Result<(), RouterError> {
        match answer.and_then(|answer| self.add(part, &answer)) {
            Ok(refused) if refused.is_empty() => {}
            Ok(refused) => failures.refused(node.clone(), refused),
            Err(error) => failures.note(node.clone(), part.shards, error)?,
        }
        Ok(())
    }

    /// Adds the answer to a part. Returns the shards that the node refused.
    fn add(&mut self, part: &NodePart, answer: &pb::Changed) -> Result<ShardSet, CallError> {
        for place in bits_into(part.places.len(), &answer.documents) {
            self.changed[part.places[place] as usize] = true;
        }
        if answer.newer_documents.len() != answer.newer_versions.len() {
            return Err(CallError::nonsense());
        }
        for (&place, &version) in answer.newer_documents.iter().zip(&answer.newer_versions) {
            let place = part.places.get(place as usize);
            let place = *place.ok_or_else(CallError::nonsense)? as usize;
            let newer = self.newer.entry(place).or_default();
            *newer = Version(version).max(*newer);
        }
        let refused = shards_into(&answer.refused_shards);
        let refused = refused.map_err(|_| CallError::nonsense())?;
        if refused.difference(&part.shards).is_empty() {
            Ok(refused)
        } else {
            Err(CallError::nonsense())
        }
    }
}

/// The shards that some of their stores have not taken the change for.
fn left_over(failures: &Failures) -> ShardSet {
    let left = failures.stale.values().chain(failures.nodes.values());
    left.flat_map(ShardSet::iter).collect()
}

/// A change as it is sent to the nodes.
struct Sending<'a> {
    corpus: &'a OpenCorpus,
    change: Change,
    version: Version,
    /// Whether nodes accept the version even if it is over a minute ahead.
    beyond_clock: bool,
    documents: Arc<Documents>,
    deadline: Deadline,
}

#[cfg(test)]
mod rule;

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use simshard_cluster::{ClusterLayout, CorpusRecord, CorpusState, Node};
    use simshard_simhash::Fingerprint;
    use simshard_topology::ShardId;
    use simshard_transport::{Admitted, Budget};
    use tokio::sync::oneshot;

    use super::*;
    use crate::nodes::{Access, Nodes};
    use crate::offload::while_offloaded_work_waits;

    fn cluster() -> ClusterView {
        let nodes = ["a", "b"].map(|name| Node {
            id: NodeId::new(name).unwrap(),
            address: format!("http://{name}:1"),
        });
        let layout = ClusterLayout::planned(nodes.to_vec(), 1).unwrap();
        let nodes = Nodes::new(&layout, Access::of_tests()).unwrap();
        ClusterView::new(Arc::new(layout), nodes)
    }

    fn corpus() -> OpenCorpus {
        let record = CorpusRecord {
            name: simshard_cluster::CorpusName::new("c").unwrap(),
            uid: simshard_cluster::random_corpus_uid(),
            blocks: 5,
            distance: 3,
            recipe: "words-v1".to_owned(),
            create_time: SystemTime::UNIX_EPOCH,
            state: CorpusState::Live,
        };
        OpenCorpus::new(record).unwrap()
    }

    #[test]
    fn many_documents_are_selected_elsewhere_and_few_at_once() {
        while_offloaded_work_waits(async || {
            let (cluster, corpus) = (cluster(), corpus());
            for (count, at_once) in [(20_u64, true), (500, false)] {
                let documents = Arc::new(Documents {
                    fingerprints: (0..count).map(Fingerprint).collect(),
                    ids: (0..count).map(|id| id.to_string()).collect(),
                });
                let send = Sending {
                    corpus: &corpus,
                    change: Change::Insert,
                    version: Version(1),
                    beyond_clock: false,
                    documents: Arc::clone(&documents),
                    deadline: Deadline::within(Duration::from_secs(60)),
                };
                let parts = part_documents(&cluster, &send, ShardSet::ALL).now_or_never();
                assert_eq!(parts.is_some(), at_once);
                let places: Vec<u32> = (0..).take(documents.len()).collect();
                let selected = select(&documents, &places).now_or_never();
                assert_eq!(selected.is_some(), at_once);
                if let Some(selected) = selected {
                    assert_eq!(selected.unwrap().ids, documents.ids);
                }
            }
        });
    }

    /// What is asked whether its caller waits, and answers so.
    #[derive(Clone)]
    struct Answering(bool);

    impl CallerWatch for Answering {
        async fn is_waiting(&self, _deadline: Deadline) -> bool {
            self.0
        }
    }

    /// CH1.
    #[tokio::test]
    async fn a_version_is_made_only_for_a_caller_that_waits_in_time() {
        let soon = Deadline::within(Duration::from_secs(60));
        for (deadline, waits, stays, is_made) in [
            (soon, true, true, true),
            (soon, true, false, false),
            (soon, false, true, false),
            (Deadline::now(), true, true, false),
        ] {
            let (checked, outcome) = oneshot::channel();
            let change = run_to_end(async move |left| {
                let request = Answering(waits);
                let caller = Caller {
                    request,
                    left,
                    deadline,
                };
                checked.send(caller.check().await.is_ok()).unwrap();
            });
            if stays {
                change.await;
            } else {
                drop(change);
            }
            assert_eq!(outcome.await, Ok(is_made));
        }
    }
    /// CH1: the server drops a cancelled call the first time that its work waits.
    #[tokio::test]
    async fn a_call_that_is_dropped_when_it_waits_first_makes_no_version() {
        let deadline = Deadline::within(Duration::from_secs(60));
        let (checked, outcome) = oneshot::channel();
        let change = run_to_end(async move |left| {
            let request = Admitted::new(&Budget::new(0), None);
            let caller = Caller {
                request,
                left,
                deadline,
            };
            checked.send(caller.check().await.is_ok()).unwrap();
        });
        assert!(change.now_or_never().is_none());
        assert_eq!(outcome.await, Ok(false));
    }

    /// CH5.
    #[test]
    fn refused_shards_are_told_and_those_that_were_not_meant_are_nonsense() {
        let part = NodePart {
            shards: [1, 2, 3].map(ShardId).into_iter().collect(),
            places: vec![0],
        };
        let refused = |shards: &[u32]| {
            let answer = pb::Changed {
                documents: vec![0],
                refused_shards: shards.to_vec(),
                ..pb::Changed::default()
            };
            ChangeProgress::new(1).add(&part, &answer)
        };
        assert_eq!(refused(&[]).unwrap(), ShardSet::EMPTY);
        let some = [1, 3].map(ShardId).into_iter().collect();
        assert_eq!(refused(&[1, 3]).unwrap(), some);
        for wrong in [&[4][..], &[1, 256]] {
            assert!(matches!(refused(wrong), Err(CallError::Refused(_))));
        }
    }
}
