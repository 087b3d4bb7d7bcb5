//! Which shards have tables in memory. A replica that is not hot has none: it keeps what is stored, and answers no
//! searches. Once the record makes it hot, its tables are made beside the changes, shard by shard.
//!
//! They are made from a snapshot of what is stored. Changes of the shard go on, and are noted. At the end the tables
//! follow them.
//!
//! # Invariants
//! - HC1: a shard is built only while its tables hold what is stored, all changes applied so far included.
//! - HC2: the tables of a shard begin to count, and are thrown away, only while none of its changes is being applied.
//!   While they are made, changes of all shards go on. Only if [`MOST_MISSED`](super::tables::MOST_MISSED) documents of a
//!   shard have changed meanwhile, its next change waits for the end, and so do all changes behind it.
//! - HC3: a shard whose tables cannot be made, as a segment is damaged, stays without until its contents are replaced. It
//!   takes changes that do not need what is damaged, and the node goes on with the others.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
use simshard_storage::{AbortOnPanic, ReadError, Snapshot, Store};
use simshard_topology::{ShardId, ShardSet};
use tokio::sync::watch;
use tracing::error;

use super::tables::Missed;
use crate::behind::give_way;
use crate::corpora::NodeCorpora;

/// Which shards are to have tables, and which have.
#[derive(Debug)]
pub(super) struct Heat {
    /// By shard.
    turns: Box<[Turn]>,
    sets: RwLock<Sets>,
}

/// The turn to change a shard.
#[derive(Debug, Default)]
struct Turn {
    /// Held while the shard is changed, or its tables begin to count or are thrown away. Has what the tables miss that are
    /// being made; `None` if none are.
    missed: Mutex<Option<Missed>>,
    /// Told when tables are no longer being made.
    ended: Condvar,
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
            turns: ShardId::all().map(|_| Turn::default()).collect(),
            sets: RwLock::new(sets),
        }
    }

    /// Waits until a shard may be changed; nothing else changes it or its tables while the guard is held. Holds what the
    /// tables miss that are being made.
    pub(super) fn turn(&self, shard: ShardId) -> MutexGuard<'_, Option<Missed>> {
        let turn = &self.turns[usize::from(shard.0)];
        let mut missed = turn.missed.lock();
        let is_full = |missed: &mut Option<Missed>| missed.as_ref().is_some_and(Missed::is_full);
        turn.ended.wait_while(&mut missed, is_full);
        missed
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

    /// The shards that have all their tables.
    pub(super) fn built(&self) -> ShardSet {
        self.sets.read().built
    }

    /// The shards whose tables are to be made, and can be.
    fn unbuilt(&self) -> ShardSet {
        let sets = self.sets.read();
        sets.hot.difference(&sets.built).difference(&sets.damaged)
    }

    /// How often the tables of a shard were thrown away, or its contents replaced. While it is the same, what was built
    /// still is.
    pub(super) fn thrown(&self, shard: ShardId) -> u64 {
        self.sets.read().thrown[usize::from(shard.0)]
    }

    /// Takes note of the shards that are to have tables. Throws away those of others, and of shards whose contents are
    /// others now. Answers the shards that are to be built.
    pub(super) fn follow(
        &self,
        hot: ShardSet,
        others: ShardSet,
        corpora: &NodeCorpora,
    ) -> ShardSet {
        let outdated = {
            let mut sets = self.sets.write();
            let left = sets.hot.difference(&hot);
            sets.hot = hot;
            sets.damaged = sets.damaged.difference(&others);
            // Tables that are being made must not count once they are complete. They are made from the contents of before.
            // Or the shard was cold meanwhile, and its changes were not noted.
            for shard in others.union(&left).iter() {
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

    /// Makes the tables of a shard by `load`, from what `pin` gets of it, if it is to have them and has not. Its changes go
    /// on during `load`. The tables count only if the contents stayed the same meanwhile and the shard was to have them all
    /// the time (HC1). Otherwise [`Heat::follow`] has named it again if it is to be built. Answers whether they count.
    ///
    /// # Errors
    /// If `load` fails. Then the shard counts as damaged.
    pub(super) fn build<P>(
        &self,
        shard: ShardId,
        corpora: &NodeCorpora,
        pin: impl FnOnce() -> P,
        load: impl FnOnce(P) -> Result<(), ReadError>,
    ) -> Result<bool, ReadError> {
        let turn = &self.turns[usize::from(shard.0)];
        let mut missed = turn.missed.lock();
        // Another thread may make them from what counts no more.
        turn.ended
            .wait_while(&mut missed, |missed| missed.is_some());
        // First, so that whatever makes the shard cold from here on counts.
        let thrown = self.thrown(shard);
        if !self.unbuilt().contains(shard) {
            return Ok(false);
        }
        let pinned = pin();
        *missed = Some(Missed::default());
        drop(missed);
        // Others may wait for the end.
        let _guard = AbortOnPanic;
        let mut made = load(pinned);
        let mut of_turn = turn.missed.lock();
        let missed = of_turn.take().unwrap_or_default();
        turn.ended.notify_all();
        if made.is_ok() && self.thrown(shard) == thrown {
            made = missed.replay(corpora, shard);
        }
        let counts = self.complete(shard, thrown, made);
        if !matches!(counts, Ok(true)) {
            corpora.clear(shard);
        }
        counts
    }

    /// Takes note that tables are made, or why they cannot be. Answers whether they count: only if nothing was thrown away
    /// since they were begun.
    fn complete(
        &self,
        shard: ShardId,
        thrown: u64,
        made: Result<(), ReadError>,
    ) -> Result<bool, ReadError> {
        let mut sets = self.sets.write();
        if sets.thrown[usize::from(shard.0)] != thrown {
            return Ok(false);
        }
        let set = match made {
            Ok(()) => &mut sets.built,
            Err(_) => &mut sets.damaged,
        };
        set.insert(shard);
        made.map(|()| true)
    }
}

/// What tables are made from and for.
#[derive(Debug)]
pub(super) struct Warming {
    pub(super) store: Arc<Store>,
    pub(super) corpora: Arc<NodeCorpora>,
    pub(super) heat: Arc<Heat>,
    /// Told when a shard is built, or cannot be.
    pub(super) built: watch::Sender<()>,
}

impl Warming {
    /// Makes the tables of a shard, if it still is to have them.
    fn warm(&self, shard: ShardId) {
        let pin = || self.store.snapshot(shard);
        let load = |pinned: Result<Snapshot, ReadError>| self.load(shard, &pinned?);
        match self.heat.build(shard, &self.corpora, pin, load) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => log_damage(shard, &error),
        }
        self.built.send_replace(());
    }

    /// Makes the tables of a shard in all corpora.
    pub(super) fn load(&self, shard: ShardId, snapshot: &Snapshot) -> Result<(), ReadError> {
        let mut corpora = self.corpora.all_but(&HashSet::new()).into_iter();
        corpora.try_for_each(|(uid, corpus)| {
            corpus.load_shard(shard, |visit| snapshot.scan(uid, visit))
        })
    }
}

/// Says that a shard stays without tables. The error names the file and the remedy.
pub(super) fn log_damage(shard: ShardId, error: &ReadError) {
    error!(%shard, %error, "a shard cannot be searched here: its tables cannot be made from what is stored");
}

/// Makes tables on threads of its own, which stand behind requests: on all cores but one, so that searches and changes have
/// the last.
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
        give_way();
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
    use std::sync::mpsc::{self, RecvTimeoutError};
    use std::time::Duration;

    use simshard_simhash::{Documents, Fingerprint};
    use simshard_storage::{Change, ChangeKind};
    use simshard_topology::{CorpusUid, Version};

    use super::*;
    use crate::engine::tables::MOST_MISSED;

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
        let load = |()| {
            during(&heat, &corpora);
            Ok(())
        };
        let counts = heat.build(SHARD, &corpora, || (), load).unwrap();
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

    /// HC1: changes of a cold shard are not noted.
    #[test]
    fn tables_of_a_shard_that_was_cold_meanwhile_do_not_count() {
        let cold_for_a_while = build_while(|heat, corpora| {
            heat.follow(ShardSet::EMPTY, ShardSet::EMPTY, corpora);
            // It is named again, so that it is built anew.
            assert_eq!(heat.follow(only(), ShardSet::EMPTY, corpora), only());
        });
        assert_eq!(cold_for_a_while, (false, false));
    }

    /// HC3.
    #[test]
    fn a_damaged_shard_is_not_named_again_until_its_contents_are_replaced() {
        let (heat, corpora) = (
            Heat::new(ShardSet::EMPTY, ShardSet::EMPTY),
            NodeCorpora::default(),
        );
        heat.follow(only(), ShardSet::EMPTY, &corpora);
        let fail = |()| Err(ReadError::ShardAbsent(SHARD));
        assert!(heat.build(SHARD, &corpora, || (), fail).is_err());
        let other = ShardSet::from_iter([ShardId(8)]);
        assert_eq!(heat.follow(only(), other, &corpora), ShardSet::EMPTY);
        // It may still stand in the queue.
        assert!(matches!(
            heat.build(SHARD, &corpora, || (), fail),
            Ok(false)
        ));
        assert_eq!(heat.follow(only(), only(), &corpora), only());
        // What is found now is not the damage of the contents that come meanwhile.
        let replaced = heat.build(
            SHARD,
            &corpora,
            || (),
            |()| {
                heat.follow(only(), only(), &corpora);
                fail(())
            },
        );
        assert!(matches!(replaced, Ok(false)));
        assert_eq!(heat.unbuilt(), only());
    }

    /// HC2.
    #[test]
    fn a_change_waits_for_the_end_once_tables_miss_too_much() {
        let (heat, corpora) = (
            Heat::new(ShardSet::EMPTY, ShardSet::EMPTY),
            NodeCorpora::default(),
        );
        heat.follow(only(), ShardSet::EMPTY, &corpora);
        let change = Change {
            kind: ChangeKind::Insert,
            corpus: CorpusUid([0; 16]),
            version: Version(1),
            shards: only(),
            documents: Documents {
                fingerprints: vec![Fingerprint(0); MOST_MISSED / 2],
                ids: Vec::new(),
            },
        };
        let places: Vec<u32> = (0..change.documents.len() as u32).collect();
        thread::scope(|scope| {
            let (tell, told) = mpsc::channel();
            let load = |()| {
                for _ in 0..2 {
                    let mut turn = heat.turn(SHARD);
                    turn.as_mut().unwrap().note(&change, &places);
                }
                let heat = &heat;
                scope.spawn(move || {
                    // Tables that are being made miss nothing any more.
                    let has_ended = heat.turn(SHARD).is_none();
                    tell.send(has_ended).unwrap();
                });
                let early = told.recv_timeout(Duration::from_millis(50));
                assert_eq!(early, Err(RecvTimeoutError::Timeout));
                Ok(())
            };
            assert!(heat.build(SHARD, &corpora, || (), load).unwrap());
            assert_eq!(told.recv(), Ok(true));
        });
    }
}
