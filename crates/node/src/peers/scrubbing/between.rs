//! Comparing a shard with others: each document is to have the same state in all its shards. A router that dies, or gives
//! up, leaves documents in some of them.
//!
//! A document is compared by its lowest shard, in turn with each other shard that differs. The newest state goes to the
//! stores of its own shard first, and from there to the others (SB3).

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::try_join_all;
use futures_util::{StreamExt, stream};
use simshard_proto::shard::v1 as pb;
use simshard_proto::shards_into;
use simshard_simhash::{Fingerprint, Tables};
use simshard_storage::{CopyRange, Corpus};
use simshard_topology::replication::{ShardRecord, StoreId};
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};
use tokio::task::spawn_blocking;
use tonic::Status;
use tracing::info;

use super::differences::{Compared, Difference, Found, Key, differences, ranges};
use super::elements::{Elements, Incoming, Replica};
use super::repairs::{Repair, repair, repairs};
use super::telling::Telling;
use super::{OwnShard, most, pin, uids};
use crate::engine::Cell;
use crate::error::NodeError;
use crate::peers::copying::range;

/// Shards that documents are carried to at once.
const CARRIED_AT_ONCE: usize = 4;

/// A shard that is compared with others.
pub(super) struct Between {
    own: OwnShard,
    others: ShardSet,
    corpora: Vec<CorpusUid>,
    until: Version,
    most: usize,
    repairs: bool,
}

/// What a reading of two shards found.
struct Reading {
    found: Found,
    /// The corpora that either of them holds.
    corpora: Vec<Corpus>,
    /// Bytes of messages.
    bytes: u64,
}

impl Between {
    pub(super) fn new(own: OwnShard, request: &pb::ScrubShardRequest) -> Result<Self, Status> {
        let others = shards_into(&request.other_shards)?;
        if others.iter().any(|other| other <= own.id) {
            return Err(Status::invalid_argument(
                "other_shards: not above the shard",
            ));
        }
        Ok(Self {
            own,
            others,
            corpora: uids(&request.corpora)?,
            until: Version(request.compared_version),
            most: most(request),
            repairs: request.repairs,
        })
    }

    pub(super) async fn run(&self, telling: &mut Telling) -> Result<(), Status> {
        telling.summary().stores = self.own.store.0.to_vec();
        telling.summary().compares_shards = true;
        for other in self.others.iter() {
            self.pair(other, telling).await?;
        }
        let (differences, repaired) = {
            let summary = telling.summary();
            (summary.difference_count, summary.repaired_count)
        };
        if differences > 0 {
            let (shard, others) = (self.own.id, self.others);
            info!(%shard, %others, differences, repaired, "a shard was compared with others");
        }
        Ok(())
    }

    /// Compares, and repairs, as many documents at once as it may take note of.
    async fn pair(&self, other: ShardId, telling: &mut Telling) -> Result<(), Status> {
        let reader = self.reader(other)?;
        if self.own.record.is_rebuilt() || self.record(other)?.is_rebuilt() {
            telling.log_none();
        }
        let places = [(self.own.id, self.own.store), (other, reader.store)];
        let mut after: Option<Key> = None;
        loop {
            let rest = self.ranges_after(after.as_ref());
            let first = self.read(other, &reader, rest, after).await?;
            telling.summary().message_bytes += first.bytes;
            let Found {
                differences,
                has_more,
            } = first.found;
            let mut left = differences.clone();
            let mut failed = None;
            if self.repairs && !differences.is_empty() {
                failed = self.repair(other, &differences, &first.corpora).await.err();
                let again = ranges(&differences);
                match self.read(other, &reader, again, None).await {
                    Ok(again) => {
                        telling.summary().message_bytes += again.bytes;
                        left.retain(|one| again.found.has(&one.key));
                    }
                    // Which ones are repaired is not known.
                    Err(status) => drop(failed.get_or_insert(status)),
                }
            }
            telling.tell(&places, &differences, &left).await?;
            if let Some(status) = failed {
                return Err(status);
            }
            if !has_more {
                return Ok(());
            }
            after = differences.into_iter().next_back().map(|last| last.key);
        }
    }

    /// The replica of another shard that is read.
    fn reader(&self, other: ShardId) -> Result<Replica, Status> {
        let record = self.record(other)?;
        self.own.replica(record.in_sync[0].store)
    }

    fn record(&self, shard: ShardId) -> Result<&ShardRecord, Status> {
        if shard == self.own.id {
            return Ok(&self.own.record);
        }
        let records = self.own.layout.records();
        let record = records.and_then(|records| records.get(&shard));
        let unknown = || Status::unavailable(format!("no record of shard {shard} is known here"));
        Ok(record.ok_or_else(unknown)?)
    }

    /// What is left to compare behind a document.
    fn ranges_after(&self, after: Option<&Key>) -> Vec<CopyRange> {
        let range = |&corpus| {
            let first = match after {
                Some(key) if key.corpus > corpus => return None,
                Some(key) if key.corpus == corpus => key.fingerprint,
                _ => Fingerprint(0),
            };
            Some(CopyRange {
                corpus,
                first,
                last: Fingerprint(u64::MAX),
            })
        };
        self.corpora.iter().filter_map(range).collect()
    }

    /// Finds documents that differ, behind one in some ranges.
    async fn read(
        &self,
        other: ShardId,
        reader: &Replica,
        rest: Vec<CopyRange>,
        after: Option<Key>,
    ) -> Result<Reading, Status> {
        let OwnShard {
            engine, id, record, ..
        } = &self.own;
        let pinned = Arc::new(pin(engine, *id, record.epoch)?);
        let request = pb::CopyShardRequest {
            ranges: rest.iter().map(range).collect(),
            lowest_shard: Some(self.own.id.0.into()),
            ..reader.comparison(other, self.record(other)?.epoch)
        };
        let incoming = Incoming::open(reader, request).await?;
        let mut corpora = pinned.corpora.clone();
        corpora.extend(&incoming.corpora);
        corpora.sort_unstable_by_key(|corpus| corpus.uid);
        corpora.dedup_by_key(|corpus| corpus.uid);
        self.check_fills(other, &corpora)?;
        let cell = Cell {
            lowest: self.own.id,
            other,
        };
        let mut elements = [
            Elements::of_own(pinned, rest, Some(cell)),
            Elements::of_other(incoming),
        ];
        let settled = self.own.record.settled.max(self.record(other)?.settled);
        let compared = Compared {
            until: self.until,
            settled,
            to_settle: false,
        };
        let most = self.most;
        let found = spawn_blocking(move || {
            let is_told = |key: &Key| after.as_ref().is_some_and(|after| key <= after);
            let streams = elements.iter_mut().map(|stream| {
                stream.skip_while(|next| next.as_ref().is_ok_and(|(key, _)| is_told(key)))
            });
            let found = differences(streams.collect(), compared, most)?;
            Ok::<_, Status>((found, elements.iter().map(Elements::bytes).sum()))
        });
        let found = found.await.map_err(|_| NodeError::Stopping)?;
        let (found, bytes) = found?;
        Ok(Reading {
            found,
            corpora,
            bytes,
        })
    }

    /// Refuses to fill a shard that begins anew without a corpus that either store holds: it would be searched then.
    fn check_fills(&self, other: ShardId, held: &[Corpus]) -> Result<(), Status> {
        let fills = self.own.record.is_rebuilt() || self.record(other)?.is_rebuilt();
        let is_asked = |corpus: &Corpus| self.corpora.contains(&corpus.uid);
        match held.iter().find(|corpus| fills && !is_asked(corpus)) {
            None => Ok(()),
            Some(Corpus { uid, .. }) => Err(Status::failed_precondition(format!(
                "corpus {uid} is being deleted, or has no record: repeat its deletion, or see `simshard corpus recover`"
            ))),
        }
    }

    /// Carries the newest state of each document from the shard that has it to the others (SB3).
    async fn repair(
        &self,
        other: ShardId,
        differences: &[Difference],
        corpora: &[Corpus],
    ) -> Result<(), Status> {
        let tables = |corpus: &Corpus| (corpus.uid, Tables::new(corpus.layout));
        let tables: BTreeMap<CorpusUid, Tables> = corpora.iter().map(tables).collect();
        let is_of = |shard: ShardId, key: &Key| {
            let tables = tables.get(&key.corpus);
            let shards = tables.map(|all| all.document_shards(key.fingerprint));
            shards.is_some_and(|mut shards| shards.any(|one| one == shard.0))
        };
        let is_own = |one: &Difference| !one.is_lacking(0);
        let own = repairs(differences, corpora, is_own);
        self.carry(self.own.id, &own, Some(self.own.store)).await?;
        self.carry(other, &own, None).await?;
        let of_other = repairs(differences, corpora, |one| !is_own(one));
        self.carry(other, &of_other, None).await?;
        // More shards may be as old as this one; if it is empty, those that are being rebuilt, too. They compare no document
        // of which this one is the lowest shard. Where one cannot be reached, the others get it.
        let is_empty = self.own.record.is_rebuilt();
        let is_rebuilt = |shard| self.record(shard).is_ok_and(ShardRecord::is_rebuilt);
        let others = ShardSet::ALL.iter().filter(|shard| *shard != other);
        let others = others.filter(|shard| !is_empty || is_rebuilt(*shard));
        let carried = others.map(|shard| {
            let is_meant = |one: &Difference| !is_own(one) && is_of(shard, &one.key);
            (shard, repairs(differences, corpora, is_meant))
        });
        let carried = stream::iter(carried)
            .map(|(shard, meant)| async move { self.carry(shard, &meant, None).await })
            .buffer_unordered(CARRIED_AT_ONCE);
        let carried: Vec<Result<(), Status>> = carried.collect().await;
        carried.into_iter().collect()
    }

    /// Gives all stores of a shard the newest states of some documents, but for the one in which they were `read`.
    async fn carry(
        &self,
        shard: ShardId,
        meant: &[Repair],
        read: Option<StoreId>,
    ) -> Result<(), Status> {
        if meant.is_empty() {
            return Ok(());
        }
        let record = self.record(shard)?;
        let stores: Result<Vec<Replica>, Status> = record
            .write_set()
            .map(|store| self.own.replica(store))
            .collect();
        let stores = stores?;
        let epoch = record.epoch;
        let repaired = stores
            .iter()
            .filter(|store| Some(store.store) != read)
            .map(|store| repair(store, shard, epoch, meant));
        try_join_all(repaired).await?;
        Ok(())
    }
}
