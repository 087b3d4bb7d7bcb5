//! Inserting and removing: each document to every shard that stores it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_request::Work;
use simshard_proto::shard::v1::work_response::Outcome as Answer;
use simshard_proto::{Documents, bits_into, shards_from};
use simshard_topology::{NodeId, Version};

use super::round::Round;
use super::{Failures, Router};
use crate::coalesce::Replies;
use crate::corpora::OpenCorpus;
use crate::deadline::Deadline;
use crate::error::RouterError;
use crate::nodes::CallError;
use crate::offload::offload;
use crate::plan::{Part, plan_documents};

/// What is done with documents.
pub(crate) use simshard_proto::shard::v1::ChangeKind as Change;

/// How often a change is sent, at most, with versions ever higher, before it gives way to others.
const ATTEMPTS: usize = 8;

/// A request of a batch that is not done yet.
struct Pending {
    /// Its place in the batch.
    job: usize,
    documents: Arc<Documents>,
    /// Documents of it that changed so far.
    changed: u64,
}

impl Router {
    /// Inserts or removes the documents of several requests, and answers each how many of its documents changed
    /// anything. Once it is answered, every shard of every document has the change, durably.
    ///
    /// A request is answered as soon as the nodes that it needs have done their parts. A node that fails its part
    /// fails the requests with documents there, and no others.
    pub(super) async fn change_each(
        &self,
        corpus: &OpenCorpus,
        change: Change,
        jobs: Vec<Arc<Documents>>,
        deadline: Deadline,
        replies: &Replies<Result<u64, RouterError>>,
    ) {
        let pending = jobs
            .into_iter()
            .enumerate()
            .map(|(job, documents)| Pending {
                job,
                documents,
                changed: 0,
            });
        let mut pending: Vec<Pending> = pending.collect();
        for _ in 0..ATTEMPTS {
            let send = Sending {
                corpus,
                change,
                version: self.clock.now(),
                documents: all_of(&pending),
                deadline,
            };
            pending = self.attempt(&send, pending, replies).await;
            if pending.is_empty() {
                return;
            }
        }
        for request in pending {
            replies.send(request.job, Err(RouterError::WriteConflict));
        }
    }

    /// Sends the requests once; returns those that a newer version stood against.
    async fn attempt(
        &self,
        send: &Sending<'_>,
        mut pending: Vec<Pending>,
        replies: &Replies<Result<u64, RouterError>>,
    ) -> Vec<Pending> {
        let Ok(parts) = self
            .part_documents(send.corpus, Arc::clone(&send.documents))
            .await
        else {
            for request in &pending {
                replies.send(request.job, Err(RouterError::Stopping));
            }
            return Vec::new();
        };
        let lengths = pending.iter().map(|request| request.documents.len());
        let mut round = Round::new(lengths, parts.values());
        let calls = parts
            .iter()
            .map(async |(node, part)| (node, part, self.change_on(node, send, part).await));
        let mut arriving: FuturesUnordered<_> = calls.collect();
        let mut outcome = Outcome::new(send.documents.len());
        let mut again = BTreeSet::new();
        let mut settle = |round: &mut Round, outcome: &Outcome<'_>| {
            for ready in round.take_ready() {
                let (request, places) = (&mut pending[ready], round.places(ready));
                request.changed += outcome.changed(&places);
                match outcome.check(send.corpus, &places) {
                    Err(error) => replies.send(request.job, Err(error)),
                    Ok(()) if outcome.is_newer(&places) => drop(again.insert(ready)),
                    Ok(()) => replies.send(request.job, Ok(request.changed)),
                }
            }
        };
        while let Some((node, part, answer)) = arriving.next().await {
            round.arrived(part);
            if let Some(newer) = outcome.note(node, part, answer) {
                self.clock.observe(newer);
            }
            settle(&mut round, &outcome);
        }
        settle(&mut round, &outcome);
        let pending = pending.into_iter().enumerate();
        let again = pending.filter(|(place, _)| again.contains(place));
        again.map(|(_, request)| request).collect()
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
                kind: send.change.into(),
                shards: shards_from(part.shards),
                fingerprints: selected.fingerprints.iter().map(|value| value.0).collect(),
                ids: selected.ids,
                version: send.version.0,
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
    /// Parts with documents that a newer version stood against.
    newer: Vec<&'a Part>,
    /// Parts that were not done.
    failed: Vec<(&'a NodeId, &'a Part, CallError)>,
}

impl<'a> Outcome<'a> {
    fn new(documents: usize) -> Self {
        Self {
            changed: vec![false; documents],
            newer: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Takes note of an answer; returns the version that stood against the change, if one did.
    fn note(
        &mut self,
        node: &'a NodeId,
        part: &'a Part,
        answer: Result<pb::Changed, CallError>,
    ) -> Option<Version> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.failed.push((node, part, error));
                return None;
            }
        };
        for place in bits_into(part.places.len(), &answer.documents) {
            self.changed[part.places[place] as usize] = true;
        }
        let newer = Version(answer.newer_version);
        (newer != Version::NONE).then(|| {
            self.newer.push(part);
            newer
        })
    }

    /// How many of the documents at these places changed.
    fn changed(&self, places: &Range<usize>) -> u64 {
        let changed = self.changed[places.clone()].iter();
        changed.map(|&changed| u64::from(changed)).sum()
    }

    /// Whether a newer version may have stood against one of the documents at these places.
    fn is_newer(&self, places: &Range<usize>) -> bool {
        self.newer.iter().any(|part| part.has_any(places))
    }

    /// The failures that concern the documents at these places.
    fn check(&self, corpus: &OpenCorpus, places: &Range<usize>) -> Result<(), RouterError> {
        let failed = self.failed.iter();
        let failed = failed.map(|(node, part, error)| (*node, *part, error));
        Failures::at(places, failed)?.check(&corpus.record.name)
    }
}

/// The documents of several requests, one after the other.
fn all_of(pending: &[Pending]) -> Arc<Documents> {
    if let [only] = pending {
        return Arc::clone(&only.documents);
    }
    let mut all = Documents::default();
    let have_ids = pending
        .iter()
        .any(|request| !request.documents.ids.is_empty());
    for Pending { documents, .. } in pending {
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
    documents: Arc<Documents>,
    deadline: Deadline,
}
