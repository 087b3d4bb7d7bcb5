//! Carrying the newest states of documents to the replicas that lack them: as changes like any other, with the version
//! that each state has.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::shard_service_client::ShardServiceClient;
use simshard_proto::shard::v1::work_item::Work;
use simshard_proto::shard::v1::work_outcome::Outcome;
use simshard_proto::{epochs_from, status_from_bytes};
use simshard_storage::{Change, ChangeKind, Corpus, Documents, State};
use simshard_topology::replication::{Epoch, Sent};
use simshard_topology::{CorpusUid, ShardId, ShardSet};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::differences::Difference;
use super::elements::Replica;
use crate::engine::Engine;
use crate::error::NodeError;
use crate::peers::copying::in_time;
use crate::target::{PlannedBy, Target};

/// Documents of one change, at most.
const DOCUMENTS: usize = 1024;

/// Changes that are on their way to a replica, at most.
const IN_FLIGHT: usize = 16;

/// How long a change waits for its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Documents of a corpus that are to have one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repair {
    corpus: Corpus,
    state: State,
    documents: Documents,
}

/// What a replica is to get: the newest states of the differences that are meant. Corpora that not all hold are left out.
pub(super) fn repairs(
    differences: &[Difference],
    corpora: &[Corpus],
    is_meant: impl Fn(&Difference) -> bool,
) -> Vec<Repair> {
    let mut alike: BTreeMap<(CorpusUid, State), Vec<&Difference>> = BTreeMap::new();
    for difference in differences.iter().filter(|difference| is_meant(difference)) {
        let key = (difference.key.corpus, difference.newest);
        alike.entry(key).or_default().push(difference);
    }
    let mut repairs = Vec::new();
    for ((uid, state), alike) in alike {
        let Some(corpus) = corpora.iter().find(|corpus| corpus.uid == uid) else {
            continue;
        };
        for some in alike.chunks(DOCUMENTS) {
            let keys = some.iter().map(|difference| &difference.key);
            repairs.push(Repair {
                corpus: *corpus,
                state,
                documents: Documents {
                    fingerprints: keys.clone().map(|key| key.fingerprint).collect(),
                    ids: keys.map(|key| key.id.clone()).collect(),
                },
            });
        }
    }
    repairs
}

impl Repair {
    const fn kind(&self) -> ChangeKind {
        if self.state.live {
            ChangeKind::Insert
        } else {
            ChangeKind::Remove
        }
    }

    /// As a router would send it (SB2).
    fn message(&self, shard: ShardId, epoch: Epoch) -> pb::Change {
        let (epoch_numbers, epoch_generations) = epochs_from(&[(shard, epoch)]);
        let kind = match self.kind() {
            ChangeKind::Insert => pb::ChangeKind::Insert,
            ChangeKind::Remove => pb::ChangeKind::Remove,
        };
        let fingerprints = self.documents.fingerprints.iter();
        pb::Change {
            target: Some(pb::Target {
                corpus_uid: self.corpus.uid.to_string(),
                blocks: self.corpus.layout.blocks(),
                distance: self.corpus.layout.distance(),
                map_digest: 0,
                epoch_numbers,
                epoch_generations,
            }),
            kind: kind.into(),
            shards: vec![shard.0.into()],
            fingerprints: fingerprints.map(|fingerprint| fingerprint.0).collect(),
            ids: self.documents.ids.clone(),
            version: self.state.version.0,
            // A removal may be far ahead of all clocks; an insert is not.
            beyond_clock: self.kind() == ChangeKind::Remove,
            repairs: true,
        }
    }
}

/// Gives the own replica what it lacks, at the epoch of the reading (SB2).
pub(super) async fn repair_own(
    engine: &Arc<Engine>,
    shard: ShardId,
    epoch: Epoch,
    repairs: Vec<Repair>,
) -> Result<(), Status> {
    for repair in repairs {
        let target = Target {
            corpus: repair.corpus.uid,
            blocks: repair.corpus.layout.blocks(),
            distance: repair.corpus.layout.distance(),
            planned_by: PlannedBy::Records(Arc::new([(shard, epoch)])),
        };
        let is_removal = repair.kind() == ChangeKind::Remove;
        let change = Change {
            kind: repair.kind(),
            corpus: repair.corpus.uid,
            version: repair.state.version,
            shards: ShardSet::from_iter([shard]),
            documents: repair.documents,
        };
        let outcome = engine
            .change(target, change, Sent::ToRepair, is_removal, None)
            .await?;
        if !outcome.refused.is_empty() {
            return Err(NodeError::WrongEpoch(outcome.refused).into());
        }
    }
    Ok(())
}

/// Gives another replica what it lacks, at the epoch of the reading (SB2).
pub(super) async fn repair(
    replica: &Replica,
    shard: ShardId,
    epoch: Epoch,
    repairs: &[Repair],
) -> Result<(), Status> {
    if repairs.is_empty() {
        return Ok(());
    }
    let (asking, asked) = mpsc::channel(1);
    let mut client = ShardServiceClient::new(replica.channel.clone());
    let answers = in_time(client.work(ReceiverStream::new(asked)), "no answer").await;
    let mut answers = answers
        .map_err(|status| replica.explain(&status))?
        .into_inner();
    for some in repairs.chunks(IN_FLIGHT) {
        let item = |(sequence, repair): (u64, &Repair)| pb::WorkItem {
            sequence,
            timeout_micros: ANSWER_TIMEOUT.as_micros() as u64,
            work: Some(Work::Change(Box::new(repair.message(shard, epoch)))),
        };
        let items = (0..).zip(some).map(item).collect();
        // If the replica is gone, its answers say so.
        let _ = asking.send(pb::WorkRequest { items }).await;
        let done = in_time(take(&mut answers, some.len()), "no answer to a repair").await;
        done.map_err(|status| replica.explain(&status))?;
    }
    Ok(())
}

/// Takes the answers to some changes. Where a newer state stays, the repair came too late, and that is well.
async fn take(answers: &mut Streaming<pb::WorkResponse>, expected: usize) -> Result<(), Status> {
    let mut taken = 0;
    while taken < expected {
        let answer = answers.message().await?;
        let answer = answer.ok_or_else(|| Status::unavailable("the answers were cut short"))?;
        for outcome in answer.outcomes {
            taken += 1;
            match outcome.outcome {
                Some(Outcome::Changed(changed)) if changed.refused_shards.is_empty() => {}
                Some(Outcome::Changed(_)) => {
                    let refused =
                        "the record of the shard has changed since the replicas were read";
                    return Err(Status::failed_precondition(refused));
                }
                Some(Outcome::Status(status)) => return Err(status_from_bytes(status)),
                Some(Outcome::Matches(_) | Outcome::Confirmed(_)) | None => {
                    return Err(Status::internal("a change is answered by something else"));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use simshard_simhash::{Fingerprint, Layout};
    use simshard_topology::Version;

    use super::super::differences::Key;
    use super::*;

    fn difference(corpus: u8, fingerprint: u64, version: u64, live: bool) -> Difference {
        let newest = State {
            version: Version(version),
            live,
        };
        Difference {
            key: Key {
                corpus: CorpusUid([corpus; 16]),
                fingerprint: Fingerprint(fingerprint),
                id: fingerprint.to_string(),
            },
            newest,
            states: vec![State::NEVER, newest],
        }
    }

    /// SB2: the version and the kind are those of the state, and the epoch that of the reading.
    #[test]
    fn documents_with_the_same_state_are_one_change() {
        let corpus = |uid| Corpus {
            uid: CorpusUid([uid; 16]),
            layout: Layout::default(),
        };
        let mut differences = vec![
            difference(1, 1, 5, true),
            difference(1, 2, 5, false),
            difference(1, 3, 5, true),
            difference(2, 4, 5, true),
            // Not all hold this one.
            difference(3, 5, 5, true),
        ];
        let all = repairs(&differences, &[corpus(1), corpus(2)], |_| true);
        let told: Vec<_> = all
            .iter()
            .map(|repair| {
                let fingerprints = repair.documents.fingerprints.iter();
                let fingerprints: Vec<u64> = fingerprints.map(|one| one.0).collect();
                (repair.corpus.uid.0[0], repair.kind(), fingerprints)
            })
            .collect();
        let expected = [
            (1, ChangeKind::Insert, vec![1, 3]),
            (1, ChangeKind::Remove, vec![2]),
            (2, ChangeKind::Insert, vec![4]),
        ];
        assert_eq!(told, expected);
        let epoch = Epoch {
            generation: 0,
            number: 9,
        };
        let message = all[0].message(ShardId(7), epoch);
        let target = message.target.unwrap();
        assert_eq!((message.version, target.epoch_numbers), (5, vec![9]));
        assert_eq!(
            (message.shards, message.ids),
            (vec![7], vec!["1".to_owned(), "3".to_owned()])
        );
        differences.truncate(1);
        assert_eq!(
            repairs(&differences, &[corpus(1)], |one| !one.is_lacking(0)),
            []
        );
        assert_eq!(
            repairs(&differences, &[corpus(1)], |one| one.is_lacking(0)).len(),
            1
        );
    }

    #[test]
    fn many_documents_are_several_changes() {
        let differences: Vec<_> = (0..2 * DOCUMENTS as u64 + 1)
            .map(|number| difference(1, number, 5, true))
            .collect();
        let corpus = Corpus {
            uid: CorpusUid([1; 16]),
            layout: Layout::default(),
        };
        let all = repairs(&differences, &[corpus], |_| true);
        let counts: Vec<usize> = all.iter().map(|repair| repair.documents.len()).collect();
        assert_eq!(counts, [DOCUMENTS, DOCUMENTS, 1]);
    }
}
