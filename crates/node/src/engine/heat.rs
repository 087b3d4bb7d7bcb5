//! Which shards have tables in memory. A replica that is not hot has none: it keeps what is stored, and answers no
//! searches. Once the record makes it hot, its tables are made beside the changes, shard by shard.
//!
//! # Invariants
//! - HC1: a shard is built only while its tables hold what is stored, all changes applied so far included.
//! - HC2: tables are made and thrown away only while no change of the shard is being applied.
//! - HC3: a shard whose tables cannot be made, as a segment is damaged, stays without. It takes changes, and the node goes
//!   on with the others.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
use simshard_cluster::CorpusUid;
use simshard_storage::{ReadError, Store};
use simshard_topology::{ShardId, ShardSet};
use tokio::sync::watch;
use tracing::error;

use crate::corpora::NodeCorpora;

/// Which shards are to have tables, and which have.
#[derive(Debug)]
pub(super) struct Heat {
    /// Held while a shard is changed, or its tables are made or thrown away.
    turns: Box<[Mutex<()>]>,
    sets: RwLock<Sets>,
}

#[derive(Debug)]
struct Sets {
    hot: ShardSet,
    built: ShardSet,
    /// Those whose tables could not be made from what is stored now.
    damaged: ShardSet,
    /// How often tables of each shard were thrown away, or got other contents to be made from.
    thrown: Box<[u64]>,
}

impl Sets {
    /// Takes note that what was made of a shard, or is being made, counts no more.
    fn throw(&mut self, shard: ShardId) {
        self.thrown[usize::from(shard.0)] += 1;
    }
}

impl Heat {
    /// Of a node whose hot shards are all built, but for those that are damaged.
    pub(super) fn new(hot: ShardSet, damaged: ShardSet) -> Self {
        let sets = Sets {
            hot,
            built: hot.difference(&damaged),
            damaged,
            thrown: vec![0; ShardId::COUNT].into(),
        };
        Self {
            turns: ShardId::all().map(|_| Mutex::default()).collect(),
            sets: RwLock::new(sets),
        }
    }

    /// Waits until nothing changes a shard or its tables; nothing does while the guard is held.
    pub(super) fn turn(&self, shard: ShardId) -> MutexGuard<'_, ()> {
        self.turns[usize::from(shard.0)].lock()
    }

    /// Whether a shard has all its tables.
    pub(super) fn is_built(&self, shard: ShardId) -> bool {
        self.sets.read().built.contains(shard)
    }

    /// Whether a shard without tables is about to have some.
    pub(super) fn is_warming(&self, shard: ShardId) -> bool {
        let sets = self.sets.read();
        sets.hot.contains(shard) && !sets.damaged.contains(shard)
    }

    /// Takes note that the tables of a shard cannot be made. Answers whether that is news.
    fn note_damage(&self, shard: ShardId) -> bool {
        let mut sets = self.sets.write();
        let is_news = !sets.damaged.contains(shard);
        sets.damaged.insert(shard);
        is_news
    }

    /// The shards that have all their tables.
    pub(super) fn built(&self) -> ShardSet {
        self.sets.read().built
    }

    /// The shards that are to have tables and have not.
    pub(super) fn unbuilt(&self) -> ShardSet {
        let sets = self.sets.read();
        sets.hot.difference(&sets.built)
    }

    /// How often the tables of a shard were thrown away, or its contents replaced. While it is the same, what was built
    /// still is.
    pub(super) fn thrown(&self, shard: ShardId) -> u64 {
        self.sets.read().thrown[usize::from(shard.0)]
    }

    /// Takes note of the shards that are to have tables. Throws away those of others, and of shards whose contents are
    /// others now. Answers the shards that are to be built.
    fn follow(&self, hot: ShardSet, others: ShardSet, corpora: &NodeCorpora) -> ShardSet {
        let outdated = {
            let mut sets = self.sets.write();
            sets.hot = hot;
            sets.damaged = sets.damaged.difference(&others);
            // Tables that are being made from the contents of before must not count once they are complete.
            for shard in others.iter() {
                sets.throw(shard);
            }
            let cold = sets.built.difference(&hot);
            cold.union(&sets.built.intersection(&others))
        };
        for shard in outdated.iter() {
            let _turn = self.turn(shard);
            let mut sets = self.sets.write();
            sets.built = sets.built.difference(&ShardSet::from_iter([shard]));
            sets.throw(shard);
            drop(sets);
            corpora.clear(shard);
        }
        self.unbuilt()
    }

    /// Makes the tables of a shard by `load`, if it is to have them and has not. They count only if the contents stayed
    /// the same meanwhile and the shard is still to have them (HC1). Otherwise [`Heat::follow`] has named it again if
    /// it is to be built. Answers whether they count.
    fn build<E>(
        &self,
        shard: ShardId,
        corpora: &NodeCorpora,
        load: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E> {
        let _turn = self.turn(shard);
        if !self.unbuilt().contains(shard) {
            return Ok(false);
        }
        let thrown = self.thrown(shard);
        if let Err(error) = load() {
            corpora.clear(shard);
            return Err(error);
        }
        let mut sets = self.sets.write();
        let counts = sets.hot.contains(shard) && sets.thrown[usize::from(shard.0)] == thrown;
        if counts {
            sets.built.insert(shard);
            sets.damaged = sets.damaged.difference(&ShardSet::from_iter([shard]));
        }
        drop(sets);
        if !counts {
            corpora.clear(shard);
        }
        Ok(counts)
    }
}

/// What tables are made from and for.
#[derive(Debug)]
pub(super) struct Warming {
    pub(super) store: Arc<Store>,
    pub(super) corpora: Arc<NodeCorpora>,
    pub(super) heat: Arc<Heat>,
    /// Told when a shard is built.
    pub(super) built: watch::Sender<()>,
}

impl Warming {
    /// Makes the tables of a shard, if it still is to have them.
    fn warm(&self, shard: ShardId) {
        let load = || {
            let mut corpora = self.corpora.all_but(&HashSet::new()).into_iter();
            corpora.try_for_each(|(uid, corpus)| {
                let loaded = corpus.load_shard(&self.store, uid, shard);
                loaded.map_err(|error| {
                    // In the same turn: the next change must not look at what is damaged.
                    if self.heat.note_damage(shard) {
                        log_damage(shard, uid, &error);
                    }
                })
            })
        };
        if self.heat.build(shard, &self.corpora, load) == Ok(true) {
            self.built.send_replace(());
        }
    }
}

/// Says that a shard stays without tables. The error names the file and the remedy.
pub(super) fn log_damage(shard: ShardId, corpus: CorpusUid, error: &ReadError) {
    error!(%shard, %corpus, %error, "a shard cannot be searched here: its tables cannot be made from what is stored");
}

/// Makes tables on threads of its own: on all cores but one, so that searches and changes have the last.
#[derive(Debug)]
pub(super) struct Warmer {
    warming: Arc<Warming>,
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Queue {
    shards: Mutex<Waiting>,
    has_changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    shards: VecDeque<ShardId>,
    is_closed: bool,
}

impl Warmer {
    /// Starts for a node that has threads for this number of cores.
    ///
    /// # Errors
    /// If the system has no threads left.
    pub(super) fn start(warming: Warming, cores: usize) -> std::io::Result<Self> {
        let mut warmer = Self {
            warming: Arc::new(warming),
            queue: Arc::default(),
            threads: Vec::new(),
        };
        for _ in 0..cores.saturating_sub(1).max(1) {
            let (warming, queue) = (Arc::clone(&warmer.warming), Arc::clone(&warmer.queue));
            let name = "warmer".to_owned();
            let thread = thread::Builder::new().name(name);
            warmer
                .threads
                .push(thread.spawn(move || queue.work(&warming))?);
        }
        Ok(warmer)
    }

    /// Follows the records that are applied. The contents of `others` are others now.
    pub(super) fn follow(&self, others: ShardSet) {
        let Warming {
            store,
            corpora,
            heat,
            ..
        } = &*self.warming;
        let cold = heat.follow(store.hot(), others, corpora);
        if !cold.is_empty() {
            self.queue.shards.lock().shards = cold.iter().collect();
            self.queue.has_changed.notify_all();
        }
    }
}

impl Queue {
    /// Makes the tables of one shard after the other, until the end.
    fn work(&self, warming: &Warming) {
        while let Some(shard) = self.next() {
            warming.warm(shard);
        }
    }

    /// The next shard, once there is one; `None` at the end.
    fn next(&self) -> Option<ShardId> {
        let mut waiting = self.shards.lock();
        while !waiting.is_closed && waiting.shards.is_empty() {
            self.has_changed.wait(&mut waiting);
        }
        if waiting.is_closed {
            return None;
        }
        waiting.shards.pop_front()
    }
}

impl Drop for Warmer {
    /// Waits for the shards in hand.
    fn drop(&mut self) {
        self.queue.shards.lock().is_closed = true;
        self.queue.has_changed.notify_all();
        for thread in self.threads.drain(..) {
            // If it panicked, the process says so.
            let _ended = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const SHARD: ShardId = ShardId(7);

    fn only() -> ShardSet {
        ShardSet::from_iter([SHARD])
    }

    /// What `during` leaves of a shard whose tables are complete after it: whether they count, and whether the shard is
    /// built.
    fn build_while(during: impl FnOnce(&Heat, &NodeCorpora)) -> (bool, bool) {
        let (heat, corpora) = (
            Heat::new(ShardSet::EMPTY, ShardSet::EMPTY),
            NodeCorpora::default(),
        );
        assert_eq!(heat.follow(only(), ShardSet::EMPTY, &corpora), only());
        let load = || {
            during(&heat, &corpora);
            Ok::<(), Infallible>(())
        };
        let Ok(counts) = heat.build(SHARD, &corpora, load);
        (counts, heat.is_built(SHARD))
    }

    /// HC1: the shard begins anew, and has a copy, while its tables are made from what it had before.
    #[test]
    fn tables_of_contents_that_were_replaced_meanwhile_do_not_count() {
        let replaced = build_while(|heat, corpora| {
            assert_eq!(
                heat.follow(ShardSet::EMPTY, only(), corpora),
                ShardSet::EMPTY
            );
            // It is named again, so that it is built anew.
            assert_eq!(heat.follow(only(), only(), corpora), only());
        });
        assert_eq!(replaced, (false, false));
    }

    /// HC1.
    #[test]
    fn tables_count_only_if_the_shard_is_still_to_have_them() {
        let cold = build_while(|heat, corpora| {
            heat.follow(ShardSet::EMPTY, ShardSet::EMPTY, corpora);
        });
        assert_eq!(cold, (false, false));
        // Other shards do not matter.
        let stayed = build_while(|heat, corpora| {
            heat.follow(only(), ShardSet::from_iter([ShardId(8)]), corpora);
        });
        assert_eq!(stayed, (true, true));
    }
}
