//! Whether the stores that share shards with this process hear it, so that none is about to take it for dead. Pure.
//!
//! A process that was away for a second may have been found dead meanwhile, and be left out only now. A store that hears it
//! says so in each sign of life. It has forgotten what was before once it has said so for longer than a silence takes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use simshard_topology::replication::StoreId;
use tokio::time::Instant;

use super::health::{INTERVAL, Others, SILENT_AFTER};

/// For so long a store must have said that it hears this process.
const HEARD_AFTER: Duration = SILENT_AFTER.saturating_add(INTERVAL);

/// If this process was away for so long, others may have found it silent.
const UNSEEN_AFTER: Duration = SILENT_AFTER.saturating_sub(INTERVAL);

/// Since when each of the other stores hears this process.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// When this process last looked.
    looked: Option<Instant>,
    since: BTreeMap<StoreId, Instant>,
}

impl Heard {
    /// Takes note of what the others say of `own`, the store of this process.
    pub(super) fn look(&mut self, now: Instant, own: StoreId, others: &Others) {
        let looked = self.looked.replace(now);
        if looked.is_none_or(|looked| now.saturating_duration_since(looked) >= UNSEEN_AFTER) {
            self.since.clear();
        }
        self.since
            .retain(|store, _| others.by_store.contains_key(store));
        for (&store, health) in &others.by_store {
            match health.says_it_hears(own) {
                Some(true) => {
                    self.since.entry(store).or_insert(now);
                }
                Some(false) => {
                    self.since.remove(&store);
                }
                // One that has just started takes no store for dead for a while.
                None => {}
            }
        }
    }

    /// Those of these stores that may be about to take this process for dead. One that is silent itself is none.
    pub(super) fn deaf(
        &self,
        now: Instant,
        others: &Others,
        stores: &BTreeSet<StoreId>,
    ) -> BTreeSet<StoreId> {
        let silent = others.silent(now);
        let hears = |store: &StoreId| {
            let told = others.by_store.get(store).and_then(|health| health.told);
            let since = self.since.get(store);
            told.zip(since)
                .is_some_and(|(told, since)| told >= *since + HEARD_AFTER)
        };
        let deaf = stores.difference(&silent).filter(|store| !hears(store));
        deaf.copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::health::Sign;
    use super::*;

    const OWN: StoreId = StoreId([9; 16]);
    const OTHER: StoreId = StoreId([1; 16]);

    /// What the other store says of this process.
    #[derive(Clone, Copy)]
    enum Says {
        Hears,
        Silent,
        /// It has just started.
        Unheard,
        /// It lives, and says nothing else.
        Busy,
        Nothing,
    }

    struct Scene {
        others: Others,
        heard: Heard,
        now: Instant,
    }

    impl Scene {
        fn new() -> Self {
            Self {
                others: Others::default(),
                heard: Heard::default(),
                now: Instant::now(),
            }
        }

        /// Lets time pass in small steps, while the other store says this. Answers whether it hears this process then.
        fn pass(&mut self, time: Duration, says: Says) -> bool {
            let end = self.now + time;
            while self.now < end {
                self.step(INTERVAL, says);
            }
            self.is_heard()
        }

        fn step(&mut self, time: Duration, says: Says) {
            self.now += time;
            self.others.look(self.now, &BTreeSet::from([OTHER]));
            let health = self.others.by_store.get_mut(&OTHER).unwrap();
            let own = || BTreeSet::from([OWN]);
            match says {
                Says::Hears => health.note(self.now, Sign::default()),
                Says::Silent => health.note(
                    self.now,
                    Sign {
                        silent_stores: own(),
                        ..Sign::default()
                    },
                ),
                Says::Unheard => health.note(
                    self.now,
                    Sign {
                        unheard_stores: own(),
                        ..Sign::default()
                    },
                ),
                Says::Busy => health.note_life(self.now),
                Says::Nothing => {}
            }
            self.heard.look(self.now, OWN, &self.others);
        }

        fn is_heard(&self) -> bool {
            let stores = BTreeSet::from([OTHER]);
            let deaf = self.heard.deaf(self.now, &self.others, &stores);
            deaf.is_empty()
        }
    }

    /// PE5: a store that found this one silent before it started anew says so until it has heard it.
    #[test]
    fn a_store_hears_this_process_once_it_has_said_so_for_longer_than_a_silence() {
        let mut scene = Scene::new();
        assert!(!scene.pass(INTERVAL, Says::Hears));
        assert!(!scene.pass(HEARD_AFTER - INTERVAL, Says::Hears));
        assert!(scene.pass(INTERVAL, Says::Hears));
        assert!(!scene.pass(INTERVAL, Says::Silent));
        assert!(!scene.pass(HEARD_AFTER, Says::Hears));
        assert!(scene.pass(INTERVAL, Says::Hears));
        // One that is silent itself says nothing any more.
        assert!(!scene.pass(INTERVAL, Says::Silent));
        assert!(!scene.pass(SILENT_AFTER - INTERVAL, Says::Nothing));
        assert!(scene.pass(INTERVAL, Says::Nothing));
    }

    /// PE5: what counts is what it says at the end of that time.
    #[test]
    fn one_answer_and_time_are_not_enough() {
        let mut scene = Scene::new();
        scene.pass(INTERVAL, Says::Hears);
        assert!(!scene.pass(HEARD_AFTER * 2, Says::Busy));
        assert!(scene.pass(INTERVAL, Says::Hears));
        // Having too much to do takes nothing back.
        assert!(scene.pass(HEARD_AFTER, Says::Busy));
    }

    /// PE5: it may never hear it, as where the address of this node is wrong.
    #[test]
    fn a_store_that_has_yet_to_hear_this_process_may_never_do() {
        let mut scene = Scene::new();
        assert!(!scene.pass(HEARD_AFTER * 3, Says::Unheard));
        assert!(!scene.pass(HEARD_AFTER, Says::Hears));
        assert!(scene.pass(INTERVAL, Says::Hears));
        // It starts again, and has forgotten whom it heard.
        assert!(scene.pass(HEARD_AFTER, Says::Unheard));
    }

    /// PE5: what was said before counts for nothing.
    #[test]
    fn a_process_that_was_away_is_heard_only_once_others_say_so_again() {
        let mut scene = Scene::new();
        assert!(scene.pass(HEARD_AFTER + INTERVAL, Says::Hears));
        scene.step(UNSEEN_AFTER - INTERVAL, Says::Nothing);
        assert!(scene.is_heard());
        scene.step(UNSEEN_AFTER, Says::Nothing);
        assert!(!scene.is_heard());
        assert!(!scene.pass(INTERVAL, Says::Silent));
        assert!(!scene.pass(HEARD_AFTER, Says::Hears));
        assert!(scene.pass(INTERVAL, Says::Hears));
        // It does not take the others for silent instead.
        scene.now += SILENT_AFTER;
        scene.heard.look(scene.now, OWN, &scene.others);
        assert!(!scene.is_heard());
    }
}
