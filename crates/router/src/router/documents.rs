//! Inserting and removing: each document to every shard that stores it.
//!
//! # Invariants
//! - CH1: a version is made for a request only while its caller waits: the caller has not been answered, is not known to
//!   have gone, and its deadline has not passed. A change in flight keeps its version, and is sent until its deadline.
//! - CH2: a document that has a newer version in one shard is sent to all its shards again, above that version.
//! - CH3: a document whose version is too far ahead of wall time fails its own request. The other documents of that
//!   request change, and no other request fails.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_request::Work;
use simshard_proto::shard::v1::work_response::Outcome as Answer;
use simshard_proto::{Documents, bits_into, shards_from};
use simshard_topology::{NodeId, Version};

use super::pending::{Next, Pending, groups, waiting};
use super::round::Round;
use super::together::{ChangeJob, last};
use super::{Failures, Router};
use crate::clock::Stamp;
use crate::coalesce::Replies;
use crate::corpora::OpenCorpus;
use crate::deadline::Deadline;
use crate::error::RouterError;
use crate::nodes::CallError;
use crate::offload::offload;
use crate::plan::{Part, plan_documents};

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
    /// Changes the documents of several requests, all about one corpus, and answers each how many of its documents
    /// changed anything. Once it is answered, every shard of every document has the change, durably.
    ///
    /// A request is answered as soon as the nodes that it needs have done their parts. A node that fails its part
    /// fails the requests with documents there, and no others.
    pub(super) async fn change_each(
        &self,
        jobs: Vec<ChangeJob>,
        replies: &Replies<Result<u64, RouterError>>,
    ) {
        let Some(first) = jobs.first() else { return };
        let (corpus, change) = (Arc::clone(&first.corpus), first.change);
        let jobs = jobs.into_iter().enumerate();
        let all = jobs.map(|(job, request)| Pending::new(job, request.documents, request.deadline));
        let attempt = |group| self.attempt(&corpus, change, group, replies);
        let mut under_way = FuturesUnordered::new();
        under_way.push(attempt(all.collect()));
        while let Some(left) = under_way.next().await {
            under_way.extend(groups(left).into_iter().map(attempt));
        }
    }

    /// Sends the next parts of requests with one version; returns the requests that have parts left.
    async fn attempt(
        &self,
        corpus: &OpenCorpus,
        change: Change,
        pending: Vec<Pending>,
        replies: &Replies<Result<u64, RouterError>>,
    ) -> Vec<Pending> {
        let Some(stamp) = pending.first().map(Pending::stamp) else {
            return Vec::new();
        };
        let version = self.clock.version(stamp);
        // The check comes after the version: a caller that waits now also waited when the version was made (CH1).
        let pending = waiting(pending, Deadline::now(), replies);
        let parts: Vec<Arc<Documents>> = pending.iter().map(Pending::documents).collect();
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        let send = Sending {
            corpus,
            change,
            version,
            beyond_clock: change.is_beyond_clock() && stamp != Stamp::Reading,
            documents: all_of(&parts),
            deadline: last(pending.iter().map(|request| request.deadline)),
        };
        let Ok(parts) = self
            .part_documents(corpus, Arc::clone(&send.documents))
            .await
        else {
            for request in &pending {
                replies.send(request.job, Err(RouterError::Stopping));
            }
            return Vec::new();
        };
        let round = Round::new(lengths, parts.values());
        self.send(&send, &parts, round, pending, replies).await
    }

    /// Sends each node its part, and answers each request once its nodes have answered; returns the requests that have
    /// parts left.
    async fn send(
        &self,
        send: &Sending<'_>,
        parts: &BTreeMap<NodeId, Part>,
        mut round: Round,
        pending: Vec<Pending>,
        replies: &Replies<Result<u64, RouterError>>,
    ) -> Vec<Pending> {
        let calls = parts
            .iter()
            .map(async |(node, part)| (node, part, self.change_on(node, send, part).await));
        let mut arriving: FuturesUnordered<_> = calls.collect();
        let mut outcome = Outcome::new(send.documents.len());
        let mut pending: Vec<Option<Pending>> = pending.into_iter().map(Some).collect();
        let mut left = Vec::new();
        loop {
            for ready in round.take_ready() {
                let Some(request) = pending[ready].take() else {
                    continue;
                };
                let job = request.job;
                match self.settle(send, &outcome, request, &round.places(ready)) {
                    Next::Send(request) => left.push(request),
                    Next::Answer(answer) => replies.send(job, answer),
                }
            }
            let Some((node, part, answer)) = arriving.next().await else {
                return left;
            };
            round.arrived(part);
            outcome.note(node, part, answer);
        }
    }

    /// What comes next for a request, whose part is at these places of what was sent.
    fn settle(
        &self,
        send: &Sending<'_>,
        outcome: &Outcome<'_>,
        request: Pending,
        places: &Range<usize>,
    ) -> Next {
        if let Err(error) = outcome.check(send.corpus, places) {
            return Next::Answer(Err(error));
        }
        let beyond_clock = send.change.is_beyond_clock();
        let above = |version| self.clock.above(version, beyond_clock);
        request.sent(outcome.changed(places), outcome.newer(places), above)
    }

    async fn part_documents(
        &self,
        corpus: &OpenCorpus,
        documents: Arc<Documents>,
    ) -> Result<BTreeMap<NodeId, Part>, RouterError> {
        let tables = Arc::clone(corpus.tables());
        let layout = Arc::clone(&self.layout);
        offload(documents.len(), move || {
            plan_documents(&tables, layout.map(), &documents.fingerprints)
        })
        .await
    }

    async fn change_on(
        &self,
        node: &NodeId,
        send: &Sending<'_>,
        part: &Part,
    ) -> Result<pb::Changed, CallError> {
        let work = || {
            let selected = send.documents.select(&part.places);
            Work::Change(pb::Change {
                target: Some(self.target(&send.corpus.record)),
                kind: send.change.kind().into(),
                shards: shards_from(part.shards),
                fingerprints: selected.fingerprints.iter().map(|value| value.0).collect(),
                ids: selected.ids,
                version: send.version.0,
                beyond_clock: send.beyond_clock,
            })
        };
        let items = part.places.len();
        let answer = self.nodes.work(node, send.deadline, items, work).await?;
        match answer.outcome {
            Answer::Changed(changed) => Ok(changed),
            Answer::Matches(_) | Answer::Status(_) => Err(CallError::nonsense()),
        }
    }
}

/// What the nodes made of a change so far.
struct Outcome<'a> {
    changed: Vec<bool>,
    /// Places of the documents that have newer versions, and the highest of these.
    newer: BTreeMap<usize, Version>,
    /// Parts that were not done.
    failed: Vec<(&'a NodeId, &'a Part, CallError)>,
}

impl<'a> Outcome<'a> {
    fn new(documents: usize) -> Self {
        Self {
            changed: vec![false; documents],
            newer: BTreeMap::new(),
            failed: Vec::new(),
        }
    }

    /// Takes note of an answer.
    fn note(&mut self, node: &'a NodeId, part: &'a Part, answer: Result<pb::Changed, CallError>) {
        if let Err(error) = answer.and_then(|answer| self.add(part, &answer)) {
            self.failed.push((node, part, error));
        }
    }

    fn add(&mut self, part: &Part, answer: &pb::Changed) -> Result<(), CallError> {
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
        Ok(())
    }

    /// How many of the documents at these places changed.
    fn changed(&self, places: &Range<usize>) -> u64 {
        let changed = self.changed[places.clone()].iter();
        changed.map(|&changed| u64::from(changed)).sum()
    }

    /// Those of the documents at these places that have newer versions, counted from the first place.
    fn newer(&self, places: &Range<usize>) -> impl Iterator<Item = (usize, Version)> {
        let first = places.start;
        let newer = self.newer.range(places.clone());
        newer.map(move |(&place, &version)| (place - first, version))
    }

    /// The failures that concern the documents at these places.
    fn check(&self, corpus: &OpenCorpus, places: &Range<usize>) -> Result<(), RouterError> {
        let failed = self.failed.iter();
        let failed = failed.map(|(node, part, error)| (*node, *part, error));
        Failures::at(places, failed)?.check(&corpus.record.name)
    }
}

/// The documents of several requests, one after the other.
fn all_of(requests: &[Arc<Documents>]) -> Arc<Documents> {
    if let [only] = requests {
        return Arc::clone(only);
    }
    let mut all = Documents::default();
    let have_ids = requests.iter().any(|documents| !documents.ids.is_empty());
    for documents in requests {
        all.fingerprints.extend(&documents.fingerprints);
        if have_ids {
            let ids = (0..documents.len()).map(|place| documents.id(place).to_owned());
            all.ids.extend(ids);
        }
    }
    Arc::new(all)
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
