//! The engine of a node: checks ownership, sorts work by shard, and runs it on
//! threads of its own, away from the async ones.
//!
//! # Invariants
//! - N1: a request that names a shard the node does not own changes and
//!   answers nothing.
//! - N2: what a request writes to a shard is visible to every search that
//!   starts after the request was answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use simshard_cluster::CorpusUid;
use simshard_proto::{Documents, QueryMatch};
use simshard_simhash::{ActiveTables, Fingerprint, Hit, Layout, LeadGroups, Search, Tables};
use simshard_topology::{ShardId, ShardSet};
use tokio::sync::oneshot;

use crate::collector::Collector;
use crate::corpora::{NodeCorpora, NodeCorpus};
use crate::error::NodeError;
use crate::shard::{Document, Shard, ShardCounts};

/// What a search asks of the shards of a node.
#[derive(Clone, Debug)]
pub struct NearQuery {
    /// The corpus.
    pub corpus: CorpusUid,
    /// The shards meant.
    pub shards: ShardSet,
    /// The active lead groups, over all nodes.
    pub active: LeadGroups,
    /// Largest distance of a match.
    pub max_distance: u32,
    /// Most matches a query, the nearest; 0 means all.
    pub limit: u32,
    /// Most ids listed a match; 0 means all.
    pub max_ids: u32,
    /// The queries.
    pub fingerprints: Vec<Fingerprint>,
}

/// What the shards of a node answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The matches, in no order.
    pub matches: Vec<QueryMatch>,
    /// For each query, whether the limit cut its matches in some shard.
    pub truncated: Vec<bool>,
}

/// The shards of one node, and the threads that work on them.
#[derive(Debug)]
pub struct Engine {
    owned: ShardSet,
    corpora: NodeCorpora,
    pool: ThreadPool,
    max_answer_bytes: usize,
}

impl Engine {
    /// An engine without corpora, for the shards that the map gives this node.
    ///
    /// # Errors
    /// If its threads cannot be started.
    pub fn new(
        owned: ShardSet,
        threads: usize,
        max_answer_bytes: usize,
    ) -> Result<Self, ThreadPoolBuildError> {
        // A panic on these threads ends the process: better than to go on with
        // tables that are half changed.
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("shards-{number}"))
            .build()?;
        Ok(Self {
            owned,
            corpora: NodeCorpora::default(),
            pool,
            max_answer_bytes,
        })
    }

    /// Makes an empty corpus; the same layout again changes nothing.
    ///
    /// # Errors
    /// If the pair makes no corpus, or the uid has another layout.
    pub fn create_corpus(
        &self,
        uid: CorpusUid,
        blocks: u32,
        distance: u32,
    ) -> Result<(), NodeError> {
        self.corpora
            .create(uid, Layout::new(blocks, distance)?, self.owned)
    }

    /// Drops a corpus, if there is one.
    pub fn delete_corpus(&self, uid: CorpusUid) {
        self.corpora.delete(uid);
    }

    /// What the node holds of a corpus, shard by shard.
    ///
    /// # Errors
    /// If the node does not hold the corpus.
    pub fn counts(&self, uid: CorpusUid) -> Result<Vec<(ShardId, ShardCounts)>, NodeError> {
        let corpus = self.corpora.get(uid)?;
        Ok(corpus
            .shards()
            .map(|(id, shard)| (id, shard.counts()))
            .collect())
    }

    /// Inserts documents into those of their shards that are meant; returns how
    /// many were new in their home shard, if that is meant.
    ///
    /// # Errors
    /// If a shard is not owned or the corpus not held: then nothing is inserted.
    pub async fn insert(
        self: &Arc<Self>,
        corpus: CorpusUid,
        shards: ShardSet,
        documents: Documents,
    ) -> Result<u64, NodeError> {
        self.change(corpus, shards, documents, Shard::insert).await
    }

    /// Removes documents from those of their shards that are meant; returns how
    /// many were in their home shard, if that is meant.
    ///
    /// # Errors
    /// If a shard is not owned or the corpus not held: then nothing is removed.
    pub async fn remove(
        self: &Arc<Self>,
        corpus: CorpusUid,
        shards: ShardSet,
        documents: Documents,
    ) -> Result<u64, NodeError> {
        let remove = |shard: &mut Shard, documents: Vec<Document>| shard.remove(&documents);
        self.change(corpus, shards, documents, remove).await
    }

    async fn change(
        self: &Arc<Self>,
        corpus: CorpusUid,
        shards: ShardSet,
        documents: Documents,
        change: fn(&mut Shard, Vec<Document>) -> u64,
    ) -> Result<u64, NodeError> {
        self.check_owned(shards)?;
        let corpus = self.corpora.get(corpus)?;
        self.run(move |_| {
            let parts = by_shard(&corpus.tables, shards, &documents);
            let parts = parts.into_par_iter();
            let counts = parts.map(|(id, places)| match corpus.write(id) {
                Some(mut shard) => change(&mut shard, pick(&documents, &places)),
                None => 0,
            });
            Ok(counts.sum())
        })
        .await
    }

    /// Finds the matches that the shards meant report.
    ///
    /// # Errors
    /// If a shard is not owned, the corpus not held, or the answer too large.
    pub async fn find(self: &Arc<Self>, query: NearQuery) -> Result<Answer, NodeError> {
        self.check_owned(query.shards)?;
        let corpus = self.corpora.get(query.corpus)?;
        let layout = corpus.tables.layout();
        let foreign = query.active.difference(LeadGroups::all(layout));
        if query.max_distance > layout.distance() || !foreign.is_empty() {
            return Err(NodeError::OutsideLayout);
        }
        self.run(move |engine| engine.find_now(&corpus, &query))
            .await
    }

    fn find_now(&self, corpus: &NodeCorpus, query: &NearQuery) -> Result<Answer, NodeError> {
        let search = Search {
            active: ActiveTables::of_lead_groups(&corpus.tables, query.active),
            max_distance: query.max_distance,
        };
        let room = Room::new(self.max_answer_bytes);
        let parts = queries_by_shard(&corpus.tables, query).into_par_iter();
        let answers: Vec<ShardAnswer> = parts
            .map(|(id, places)| match corpus.read(id) {
                Some(shard) => find_in_shard(&shard, &search, query, &places, &room),
                None => Ok(ShardAnswer::default()),
            })
            .collect::<Result<_, _>>()?;
        let mut whole = Answer {
            matches: Vec::new(),
            truncated: vec![false; query.fingerprints.len()],
        };
        for answer in answers {
            whole.matches.extend(answer.matches);
            for place in answer.truncated {
                whole.truncated[place as usize] = true;
            }
        }
        Ok(whole)
    }

    fn check_owned(&self, shards: ShardSet) -> Result<(), NodeError> {
        let foreign = shards.difference(&self.owned);
        match foreign.is_empty() {
            true => Ok(()),
            false => Err(NodeError::NotOwner(foreign)),
        }
    }

    /// Runs work on the engine's threads.
    async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, NodeError> + Send + 'static,
    ) -> Result<T, NodeError> {
        let (sender, receiver) = oneshot::channel();
        let engine = Arc::clone(self);
        self.pool.spawn(move || {
            // Nobody waits for the answer of a request that was cancelled.
            if !sender.is_closed() {
                let _ = sender.send(work(&engine));
            }
        });
        receiver.await.unwrap_or(Err(NodeError::Stopping))
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

    fn take(&self, bytes: usize) -> Result<(), NodeError> {
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        match before + bytes <= self.limit {
            true => Ok(()),
            false => Err(NodeError::AnswerTooLarge { limit: self.limit }),
        }
    }
}

/// For each shard meant, the places of the documents that belong to it.
fn by_shard(tables: &Tables, meant: ShardSet, documents: &Documents) -> Vec<(ShardId, Vec<u32>)> {
    group_by_shard(meant, &documents.fingerprints, |fingerprint, shards| {
        shards.extend(tables.document_shards(fingerprint).map(ShardId));
    })
}

/// For each shard meant, the places of the queries that it can answer.
fn queries_by_shard(tables: &Tables, query: &NearQuery) -> Vec<(ShardId, Vec<u32>)> {
    group_by_shard(query.shards, &query.fingerprints, |fingerprint, shards| {
        for group in query.active.iter() {
            for range in tables.query_shards(fingerprint, group) {
                shards.extend(range.map(ShardId));
            }
        }
    })
}

fn group_by_shard(
    meant: ShardSet,
    fingerprints: &[Fingerprint],
    shards_of: impl Fn(Fingerprint, &mut ShardSet),
) -> Vec<(ShardId, Vec<u32>)> {
    let mut places: Vec<Vec<u32>> = vec![Vec::new(); ShardId::COUNT];
    for (place, &fingerprint) in (0..).zip(fingerprints) {
        let mut shards = ShardSet::EMPTY;
        shards_of(fingerprint, &mut shards);
        for shard in shards.intersection(&meant).iter() {
            places[shard.index()].push(place);
        }
    }
    let grouped = ShardId::all().zip(places);
    grouped.filter(|(_, places)| !places.is_empty()).collect()
}

fn pick(documents: &Documents, places: &[u32]) -> Vec<Document> {
    let document = |&place: &u32| {
        let place = place as usize;
        (documents.fingerprints[place], documents.id(place).into())
    };
    places.iter().map(document).collect()
}

/// What one shard reports.
#[derive(Default)]
struct ShardAnswer {
    matches: Vec<QueryMatch>,
    /// Places of the queries whose matches were cut.
    truncated: Vec<u32>,
}

/// The matches that one shard reports for the queries at `places`.
fn find_in_shard(
    shard: &Shard,
    search: &Search,
    query: &NearQuery,
    places: &[u32],
    room: &Room,
) -> Result<ShardAnswer, NodeError> {
    let fingerprint = |&place: &u32| query.fingerprints[place as usize];
    let queries: Vec<Fingerprint> = places.iter().map(fingerprint).collect();
    // More hits than fill the room make the answer too large in any case.
    let mut collector = Collector::new(queries.len(), query.limit as usize, room.matches());
    // Where it breaks, the collector has overflowed, and says so.
    let _ = shard.search(search, &queries, |hit| collector.push(hit));
    let too_large = NodeError::AnswerTooLarge { limit: room.limit };
    let (hits, cut) = collector.finish().ok_or(too_large)?;

    let mut answer = ShardAnswer::default();
    for hit in hits {
        let place = places[hit.query as usize];
        answer
            .matches
            .push(describe(shard, hit, place, query.max_ids, room)?);
    }
    let cut_places = places.iter().zip(cut).filter(|(_, cut)| *cut);
    answer.truncated.extend(cut_places.map(|(place, _)| place));
    Ok(answer)
}

/// A hit with the ids behind its fingerprint.
fn describe(
    shard: &Shard,
    hit: Hit,
    query: u32,
    max_ids: u32,
    room: &Room,
) -> Result<QueryMatch, NodeError> {
    let stored = shard.ids(hit.fingerprint);
    let document_count = stored.len() as u64;
    let listed = match max_ids {
        0 => stored.len(),
        most => stored.len().min(most as usize),
    };
    room.take(Room::MATCH)?;
    let mut ids = Vec::new();
    for id in stored.iter().take(listed) {
        room.take(Room::ID + id.len())?;
        ids.push(id.to_owned());
    }
    Ok(QueryMatch {
        query,
        distance: hit.distance,
        fingerprint: hit.fingerprint,
        document_count,
        ids,
    })
}
