//! Finding: search every shard, keep the nearest, then look up their ids.

mod matches;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rayon::prelude::*;
use simshard_proto::v1::Matches;
use simshard_simhash::{ActiveTables, Bounds, Fingerprint, Hit, LeadGroups, Search, Tables};
use simshard_storage::Store;
use simshard_topology::{ShardId, ShardSet};

use super::{Engine, Wanted, group_by_shard, is_past};
use crate::collector::Collector;
use crate::corpora::NodeCorpus;
use crate::error::NodeError;
use crate::shard::Shard;
use crate::target::Target;

/// Fewer queries than this are searched by one thread: waking another takes longer.
const FEW: usize = 64;

/// Steps of a quick search, each a nanosecond or two.
const QUICK: usize = 1 << 17;

/// Hits of a quick search: they are sorted as well.
const QUICK_HITS: usize = 2048;

/// Tables that a quick search permutes all its queries for, before it knows which shards it needs.
const QUICK_TABLES: usize = 4096;

/// After so many hits, a search looks whether it is still wanted.
const LOOK_AFTER: u32 = 4096;

/// What a search asks of the shards of a node.
#[derive(Clone, Debug)]
pub(crate) struct NearQuery {
    pub(crate) target: Target,
    /// The shards meant.
    pub(crate) shards: ShardSet,
    /// The active lead groups, over all nodes.
    pub(crate) active: LeadGroups,
    pub(crate) max_distance: u32,
    /// Most matches a query, the nearest; 0 means all.
    pub(crate) limit: u32,
    /// Most ids listed a match; 0 means all.
    pub(crate) max_ids: u32,
    pub(crate) fingerprints: Vec<Fingerprint>,
}

impl Engine {
    /// Finds the matches that the shards meant report, if it can by the deadline.
    pub(crate) async fn find(
        self: &Arc<Self>,
        query: NearQuery,
        deadline: Option<Instant>,
    ) -> Result<Matches, NodeError> {
        let corpus = self.open(&query.target, query.shards)?;
        let layout = corpus.layout();
        let foreign = query.active.difference(LeadGroups::all(layout));
        if query.max_distance > layout.distance() || !foreign.is_empty() {
            return Err(NodeError::OutsideLayout);
        }
        let find = Find {
            store: Arc::clone(&self.store),
            corpus,
            query,
            room: Room::new(self.max_answer_bytes),
        };
        if is_past(deadline) {
            return Err(NodeError::Abandoned);
        }
        let nearest = match find.nearest_at_once() {
            Some(nearest) if nearest.0.is_empty() || find.corpus.is_bare() => {
                return find.bare(nearest);
            }
            nearest => nearest,
        };
        self.run(deadline, move |_, wanted| {
            let nearest = nearest.map_or_else(|| find.nearest(wanted), Ok)?;
            find.matches(nearest, wanted)
        })
        .await
    }
}

/// Hits by query, nearest first, and the queries whose hits were cut.
type Nearest = (Vec<Hit>, Vec<bool>);

/// A search under way.
struct Find {
    store: Arc<Store>,
    corpus: Arc<NodeCorpus>,
    query: NearQuery,
    room: Room,
}

impl Find {
    /// The nearest hits of all shards, by query, and whose hits were cut.
    fn nearest(&self, wanted: &Wanted) -> Result<Nearest, NodeError> {
        let Self { corpus, query, .. } = self;
        let all = self.collector(query.fingerprints.len());
        let Some(tables) = corpus.tables() else {
            return all.finish().ok_or(self.too_large());
        };
        let parts = group_by_shard(query.shards, &query.fingerprints, |fingerprint| {
            tables.query_shards(fingerprint, query.active)
        });
        let search = self.what(tables);
        let shards_at_once = match query.fingerprints.len() < FEW {
            true => parts.len(),
            false => 1,
        };
        let all = Mutex::new(all);
        let parts = parts.into_par_iter().with_min_len(shards_at_once);
        parts.try_for_each(|(id, places)| {
            let Some(shard) = corpus.read(id) else {
                return Ok(());
            };
            let hits = self.search(&shard, &search, &places, wanted)?;
            drop(shard);
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            let flow = all.absorb(hits, &places);
            flow.is_continue().then_some(()).ok_or(self.too_large())
        })?;
        let all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
        all.finish().ok_or(self.too_large())
    }

    /// The same, at once and without a word to other threads, which would take longer than a usual search of few
    /// queries. `None` where it might take long or would have to wait: many fingerprints to compare, or a shard that
    /// is being changed.
    fn nearest_at_once(&self) -> Option<Nearest> {
        let Self { corpus, query, .. } = self;
        let number = query.fingerprints.len();
        if number >= FEW {
            return None;
        }
        let mut all = self.collector(number);
        let Some(tables) = corpus.tables() else {
            return all.finish();
        };
        if number * tables.len() > QUICK_TABLES {
            return None;
        }
        let mut parts = Vec::new();
        for (place, &fingerprint) in (0..).zip(&query.fingerprints) {
            let shards = tables.query_shards(fingerprint, query.active);
            let meant = shards.map(ShardId).filter(|id| query.shards.contains(*id));
            parts.extend(meant.map(|id| (id, place)));
        }
        parts.sort_unstable();
        parts.dedup();
        let (search, mut bounds) = (self.what(tables), Bounds::new(QUICK));
        let (mut queries, mut hits) = (Vec::new(), 0);
        for part in parts.chunk_by(|(one, _), (other, _)| one == other) {
            let Some(shard) = corpus.shard(part[0].0) else {
                continue;
            };
            let shard = shard.try_read().ok()?;
            queries.clear();
            queries.extend(
                part.iter()
                    .map(|&(_, place)| query.fingerprints[place as usize]),
            );
            let flow = shard.search_within(&mut bounds, &search, &queries, |hit| {
                hits += 1;
                if hits > QUICK_HITS {
                    return ControlFlow::Break(());
                }
                let query = part[hit.query as usize].1;
                all.push(Hit { query, ..hit })
            });
            if flow.is_break() {
                return None;
            }
        }
        all.finish()
    }

    /// The hits of one shard for the queries at `places`.
    fn search(
        &self,
        shard: &Shard,
        search: &Search,
        places: &[u32],
        wanted: &Wanted,
    ) -> Result<Collector, NodeError> {
        let fingerprint = |&place: &u32| self.query.fingerprints[place as usize];
        let queries: Vec<Fingerprint> = places.iter().map(fingerprint).collect();
        let mut collector = self.collector(queries.len());
        let mut hits = 0_u32;
        let flow = shard.search(search, &queries, |hit| {
            hits = hits.wrapping_add(1);
            if hits.is_multiple_of(LOOK_AFTER) && wanted.is_over() {
                return ControlFlow::Break(());
            }
            collector.push(hit)
        });
        if wanted.is_over() {
            return Err(NodeError::Abandoned);
        }
        flow.is_continue()
            .then_some(collector)
            .ok_or(self.too_large())
    }

    fn what(&self, tables: &Tables) -> Search {
        Search {
            active: ActiveTables::of_lead_groups(tables, self.query.active),
            max_distance: self.query.max_distance,
        }
    }

    /// More hits than fill the room make the answer too large in any case.
    fn collector(&self, queries: usize) -> Collector {
        Collector::new(queries, self.query.limit, self.room.matches())
    }

    fn too_large(&self) -> NodeError {
        NodeError::AnswerTooLarge {
            limit: self.room.limit,
        }
    }
}

/// The bytes that the matches of one request may still take.
struct Room {
    limit: usize,
    taken: AtomicUsize,
}

impl Room {
    /// Bytes of a match without its ids, and of an id without its text, about.
    const MATCH: usize = 16;
    const ID: usize = 3;

    const fn new(limit: usize) -> Self {
        Self {
            limit,
            taken: AtomicUsize::new(0),
        }
    }

    /// Most matches that fit.
    const fn matches(&self) -> usize {
        self.limit / Self::MATCH
    }

    /// Takes some; nothing if there is not enough.
    fn take(&self, bytes: usize) -> Option<()> {
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        (before + bytes <= self.limit).then_some(())
    }
}

#[cfg(test)]
mod tests;
