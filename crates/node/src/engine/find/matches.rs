//! The matches of hits: how many documents have each fingerprint, and their ids.

use std::num::{NonZeroU32, NonZeroUsize};

use rayon::prelude::*;
use simshard_proto::v1::Matches;
use simshard_proto::{MatchColumns, SearchSpec, at_most};
use simshard_simhash::{Fingerprint, Hit};
use simshard_topology::ShardId;

use super::{Find, NearQuery, Nearest, Room, SMALL_LOOK_UPS};
use crate::engine::Cancellation;
use crate::error::NodeError;

/// Ids of a fingerprint that are read first; four times as many then, as often as it takes.
const FIRST_IDS: usize = 4096;

const TWO: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);

/// A hit with the number of its documents, and the ids to list.
type Described = (Hit, u64, Vec<String>);

/// The queries with fewer matches than they may have, though hits of theirs were cut.
fn short(described: &[Described], truncated: &[bool], most: usize) -> Vec<u32> {
    let mut matches = vec![0_usize; truncated.len()];
    for (hit, ..) in described {
        matches[hit.query as usize] += 1;
    }
    let queries = (0..).zip(truncated.iter().zip(matches));
    let short = queries.filter(|(_, (truncated, matches))| **truncated && *matches < most);
    short.map(|(query, _)| query).collect()
}

impl Find {
    /// The matches of hits; those of documents with ids on threads of the engine.
    pub(super) fn matches(
        &self,
        nearest: Nearest,
        cancellation: &Cancellation,
    ) -> Result<Matches, NodeError> {
        if self.corpus.is_bare() {
            return self.bare(nearest);
        }
        let (hits, mut truncated) = nearest;
        let mut described = self.describe(hits, cancellation)?;
        self.stand_in(&mut described, &mut truncated, cancellation)?;
        let mut columns = MatchColumns::new(truncated, self.query.spec.limit);
        for (hit, document_count, ids) in described {
            columns.push(
                hit.query,
                hit.distance,
                hit.fingerprint,
                document_count,
                ids,
            );
        }
        Ok(columns.finish())
    }

    /// Hits with the number of their documents and the ids to list, in order; without those whose last document was
    /// removed meanwhile.
    fn describe(
        &self,
        hits: Vec<Hit>,
        cancellation: &Cancellation,
    ) -> Result<Vec<Described>, NodeError> {
        // The ids of a few are there before another thread is awake.
        let described = hits
            .into_par_iter()
            .with_min_len(SMALL_LOOK_UPS)
            .filter_map(|hit| {
                if cancellation.is_over() {
                    Some(Err(NodeError::Abandoned))
                } else {
                    self.with_ids(hit).transpose()
                }
            });
        described.collect()
    }

    /// Searches again, for more, where hits went after others had been cut in their favour: the nearest of these are
    /// matches in their stead.
    fn stand_in(
        &self,
        described: &mut Vec<Described>,
        truncated: &mut [bool],
        cancellation: &Cancellation,
    ) -> Result<(), NodeError> {
        let mut limit = self.query.spec.limit;
        loop {
            let short = short(described, truncated, at_most(self.query.spec.limit));
            if short.is_empty() {
                return Ok(());
            }
            limit = limit.map(|limit| limit.saturating_mul(TWO));
            let fingerprint = |&place: &u32| self.query.fingerprints[place as usize];
            let query = NearQuery {
                spec: SearchSpec {
                    limit,
                    ..self.query.spec
                },
                fingerprints: short.iter().map(fingerprint).collect(),
                ..self.query.clone()
            };
            let again = self.again(query, self.room.limit);
            let (hits, cut) = again.nearest(cancellation)?;
            for (&place, cut) in short.iter().zip(cut) {
                truncated[place as usize] = cut;
            }
            described.retain(|(hit, ..)| short.binary_search(&hit.query).is_err());
            for (hit, document_count, ids) in again.describe(hits, cancellation)? {
                let query = short[hit.query as usize];
                described.push((Hit { query, ..hit }, document_count, ids));
            }
            described.sort_unstable_by_key(|(hit, ..)| *hit);
        }
    }

    /// The matches of hits where each is one document without an id.
    pub(super) fn bare(&self, (hits, truncated): Nearest) -> Result<Matches, NodeError> {
        let bytes = hits.len() * (Room::MATCH + Room::ID);
        self.room.take(bytes).ok_or(self.too_large())?;
        let mut columns = MatchColumns::new(truncated, self.query.spec.limit);
        for hit in hits {
            columns.push(hit.query, hit.distance, hit.fingerprint, 1, [String::new()]);
        }
        Ok(columns.finish())
    }

    /// A hit with the number of its documents and their ids; nothing if its last document
    /// was removed meanwhile.
    fn with_ids(&self, hit: Hit) -> Result<Option<Described>, NodeError> {
        let tables = self.corpus.tables().into_iter();
        let mut shards = tables.flat_map(|tables| tables.document_shards(hit.fingerprint));
        let meant = |&id: &ShardId| self.query.shards.contains(id);
        let Some(id) = shards.find_map(|byte| Some(ShardId(byte)).filter(meant)) else {
            return Ok(None);
        };
        let (listed, document_count) = self.ids(id, hit.fingerprint)?;
        if listed.is_empty() {
            return Ok(None);
        }
        let mut bytes = Room::MATCH;
        let mut ids = Vec::new();
        for id in listed {
            bytes += Room::ID + id.len();
            ids.push(id.into_string());
            if bytes > self.room.limit {
                break;
            }
        }
        self.room.take(bytes).ok_or(self.too_large())?;
        Ok(Some((hit, document_count, ids)))
    }

    /// The ids to list of those behind a fingerprint that a shard holds, and how many there are.
    fn ids(
        &self,
        id: ShardId,
        fingerprint: Fingerprint,
    ) -> Result<(Vec<Box<str>>, u64), NodeError> {
        let most = at_most(self.query.spec.max_ids);
        let mut part = FIRST_IDS.min(most);
        let ids = loop {
            let read = NonZeroUsize::new(part);
            let ids = self
                .store
                .live_ids(id, self.query.target.corpus, fingerprint, read)?;
            if ids.len() < part || part == most {
                break ids;
            }
            // Before more of them are read than an answer has room for.
            let bytes: usize = ids.iter().map(|id| Room::ID + id.len()).sum();
            if bytes > self.room.limit {
                return Err(self.too_large());
            }
            part = part.saturating_mul(4).min(most);
        };
        let listed = ids.len() as u64;
        if ids.len() < most {
            return Ok((ids, listed));
        }
        let shard = self.corpus.read(id)?;
        let documents = shard.map_or(0, |shard| shard.documents(fingerprint));
        Ok((ids, documents.max(listed)))
    }
}
