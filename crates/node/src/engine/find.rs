//! Finding: search every shard, keep the nearest, then look up their ids.

mod matches;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use prost::bytes::Bytes;
use rayon::prelude::*;
use simshard_proto::v1::Matches;
use simshard_proto::{SearchSpec, matches_into_bytes};
use simshard_simhash::{ActiveTables, Bounds, Fingerprint, Hit, LeadGroups, Search, Tables};
use simshard_storage::Store;
use simshard_topology::{ShardId, ShardSet};

use super::{Cancellation, Class, Engine, group_by_shard, is_past};
use crate::collector::Collector;
use crate::corpora::NodeCorpus;
use crate::error::NodeError;
use crate::shard::Shard;
use crate::target::Target;

/// Queries of a large search that are searched under one lock of a shard. A change waits for no more of them, and small
/// searches wait for the change.
const SLICE_QUERIES: usize = 1024;

/// How much a search may do in one go.
#[derive(Clone, Copy, Debug)]
struct Reach {
    /// Tables that all queries are permuted for, before the search knows which shards it needs.
    tables: usize,
    /// Steps, each a nanosecond or two.
    steps: usize,
    /// Hits: they are sorted as well.
    hits: usize,
    /// Whether it waits for a shard that is being changed.
    waits: bool,
}

/// The reach of a search on an async thread: some 0.2 ms. There it has fewer than [`QUICK_QUERIES`] queries.
const QUICK_REACH: Reach = Reach {
    tables: 1 << 12,
    steps: 1 << 17,
    hits: 2048,
    waits: false,
};

/// Queries of a quick search.
const QUICK_QUERIES: usize = 64;

/// The reach of a small search: some milliseconds.
const SMALL_REACH: Reach = Reach {
    tables: 1 << 14,
    steps: 1 << 22,
    hits: 1 << 14,
    waits: true,
};

/// Fingerprints whose ids a small search looks up: some milliseconds, if files have to be read.
const SMALL_LOOK_UPS: usize = 1024;

/// Bytes of the answer to a small search, about: to encode it takes a fraction of a millisecond.
const SMALL_ANSWER: usize = 256 << 10;

/// After this many hits, a search looks whether its request was cancelled.
const LOOK_AFTER: u32 = 4096;

/// A search in shards of a node.
#[derive(Clone, Debug)]
pub(crate) struct NearQuery {
    pub(crate) target: Target,
    /// The shards meant.
    pub(crate) shards: ShardSet,
    /// The active lead groups, over all nodes.
    pub(crate) active: LeadGroups,
    pub(crate) spec: SearchSpec,
    pub(crate) fingerprints: Vec<Fingerprint>,
}

impl Engine {
    /// Finds the matches that the shards meant report, if it can by the deadline; encoded, as large ones take long.
    pub(crate) async fn find(
        self: &Arc<Self>,
        query: NearQuery,
        deadline: Option<Instant>,
    ) -> Result<Bytes, NodeError> {
        let corpus = self.open(&query.target, query.shards).await?;
        let (target, layout) = (query.target.clone(), corpus.layout());
        let foreign = query.active.difference(LeadGroups::all(layout));
        if query.spec.distance_in(layout.distance()) > layout.distance() || !foreign.is_empty() {
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
        self.threads.note_work();
        let nearest = match find.nearest_at_once() {
            Some(nearest) if nearest.0.is_empty() || find.corpus.is_bare() => {
                let matches = find.bare(nearest)?;
                self.check_records_and_tables(&target)?;
                return Ok(matches_into_bytes(&matches));
            }
            nearest => nearest,
        };
        let find = Arc::new(find);
        if find.may_be_small() {
            let (small, target) = (Arc::clone(&find), target.clone());
            let small = move |engine: &Self, cancellation: &_| {
                let matches = small.small(nearest, cancellation)?;
                engine.check_still_answers(&target)?;
                Ok(matches)
            };
            if let Some(matches) = self.run(Class::Small, deadline, small).await? {
                return Ok(matches_into_bytes(&matches));
            }
        }
        let large = move |engine: &Self, cancellation: &_| {
            let matches = find.matches(find.nearest(cancellation)?, cancellation)?;
            engine.check_still_answers(&target)?;
            Ok(matches_into_bytes(&matches))
        };
        self.run(Class::Large, deadline, large).await
    }
}

/// Hits by query, nearest first, and the queries whose hits were cut.
type Nearest = (Vec<Hit>, Vec<bool>);

/// A search in flight.
struct Find {
    store: Arc<Store>,
    corpus: Arc<NodeCorpus>,
    query: NearQuery,
    room: Room,
}

impl Find {
    /// The nearest hits of all shards, by query, and whose hits were cut.
    fn nearest(&self, cancellation: &Cancellation) -> Result<Nearest, NodeError> {
        let Self { corpus, query, .. } = self;
        let all = self.collector(query.fingerprints.len());
        let Some(tables) = corpus.tables() else {
            return all.finish().ok_or(self.too_large());
        };
        let parts = group_by_shard(query.shards, &query.fingerprints, |fingerprint| {
            tables.query_shards(fingerprint, query.active)
        });
        let search = self.criteria(tables);
        let all = Mutex::new(all);
        let slices = parts.par_iter().flat_map(|(id, places)| {
            let slices = places.par_chunks(SLICE_QUERIES);
            slices.map(|places| (*id, places))
        });
        slices.try_for_each(|(id, places)| {
            let Some(shard) = corpus.read(id)? else {
                return Ok(());
            };
            let hits = self.search(&shard, &search, places, cancellation)?;
            drop(shard);
            let mut all = all.lock();
            let flow = all.absorb(hits, places);
            flow.is_continue().then_some(()).ok_or(self.too_large())
        })?;
        let all = all.into_inner();
        all.finish().ok_or(self.too_large())
    }

    /// The same, at once and without a word to other threads, which would take longer than a usual search of few
    /// queries. `None` where it might take long or would have to wait: many fingerprints to compare, or a shard that
    /// is being changed.
    fn nearest_at_once(&self) -> Option<Nearest> {
        if self.query.fingerprints.len() < QUICK_QUERIES {
            self.nearest_within(QUICK_REACH)
        } else {
            None
        }
    }

    /// Whether it is worth beginning as a small search.
    fn may_be_small(&self) -> bool {
        self.query.fingerprints.len() * self.corpus.layout().table_count() <= SMALL_REACH.tables
    }

    /// The matches of a search whose nearest hits may be known already; `None` where it turns out to be large.
    fn small(
        &self,
        nearest: Option<Nearest>,
        cancellation: &Cancellation,
    ) -> Result<Option<Matches>, NodeError> {
        let Some(nearest) = nearest.or_else(|| self.nearest_within(SMALL_REACH)) else {
            return Ok(None);
        };
        if nearest.0.len() > SMALL_LOOK_UPS && !self.corpus.is_bare() {
            return Ok(None);
        }
        let room = SMALL_ANSWER.min(self.room.limit);
        let small = self.again(self.query.clone(), room);
        match small.matches(nearest, cancellation) {
            Err(NodeError::AnswerTooLarge { .. }) => Ok(None),
            matches => matches.map(Some),
        }
    }

    /// A search of the same corpus.
    fn again(&self, query: NearQuery, room: usize) -> Self {
        Self {
            store: Arc::clone(&self.store),
            corpus: Arc::clone(&self.corpus),
            query,
            room: Room::new(room),
        }
    }

    /// The nearest hits, by this thread alone; `None` where that takes more than it may.
    fn nearest_within(&self, reach: Reach) -> Option<Nearest> {
        let Self { corpus, query, .. } = self;
        let number = query.fingerprints.len();
        let mut all = self.collector(number);
        let Some(tables) = corpus.tables() else {
            return all.finish();
        };
        if number * tables.len() > reach.tables {
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
        let (search, mut bounds) = (self.criteria(tables), Bounds::new(reach.steps));
        let (mut queries, mut hits) = (Vec::new(), 0);
        for part in parts.chunk_by(|(one, _), (other, _)| one == other) {
            // The large search says which shard is absent.
            let Some(shard) = corpus.shard(part[0].0).ok()? else {
                continue;
            };
            let shard = if reach.waits {
                shard.read()
            } else {
                shard.try_read()?
            };
            queries.clear();
            queries.extend(
                part.iter()
                    .map(|&(_, place)| query.fingerprints[place as usize]),
            );
            let flow = shard
                .index()
                .search_within(&mut bounds, &search, &queries, |hit| {
                    hits += 1;
                    if hits > reach.hits {
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
        cancellation: &Cancellation,
    ) -> Result<Collector, NodeError> {
        let fingerprint = |&place: &u32| self.query.fingerprints[place as usize];
        let queries: Vec<Fingerprint> = places.iter().map(fingerprint).collect();
        let mut collector = self.collector(queries.len());
        let mut hits = 0_u32;
        let flow = shard.index().search(search, &queries, |hit| {
            hits = hits.wrapping_add(1);
            if hits.is_multiple_of(LOOK_AFTER) && cancellation.is_over() {
                return ControlFlow::Break(());
            }
            collector.push(hit)
        });
        if cancellation.is_over() {
            return Err(NodeError::Abandoned);
        }
        flow.is_continue()
            .then_some(collector)
            .ok_or(self.too_large())
    }

    fn criteria(&self, tables: &Tables) -> Search {
        Search {
            active: ActiveTables::of_lead_groups(tables, self.query.active),
            max_distance: self.query.spec.distance_in(tables.layout().distance()),
        }
    }

    /// More hits than fill the room make the answer too large in any case.
    fn collector(&self, queries: usize) -> Collector {
        Collector::new(queries, self.query.spec.limit, self.room.matches())
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
