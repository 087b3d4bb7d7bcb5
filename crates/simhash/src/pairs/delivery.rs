//! Where the pairs of many threads go: to a visitor, in the order of the tasks that found them, or
//! to clusters, in any order.
//!
//! # Invariants
//! - J3: the visitor sees the pairs of the tasks in ascending order, whatever threads there are.
//! - J4: pairs that wait for an earlier task are bounded in number. The earliest task never waits,
//!   so the others do not wait for ever.
//! - J5: once the search has been stopped, every delivery is told to break.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};

use super::{FingerprintSet, Pair};
use crate::Clusters;

/// Most pairs of finished tasks that wait for an earlier one.
const WAITING: usize = 1 << 18;

/// Takes what tasks find. Tasks are numbered from 0, and a number is only begun after all before.
pub(super) trait Delivery: Sync {
    /// Takes the pairs, and leaves the list empty. Breaks if no more are wanted. A task says once
    /// that it has finished, with the last of its pairs.
    fn deliver(&self, task: usize, pairs: &mut Vec<Pair>, finished: bool) -> ControlFlow<()>;

    /// Asked now and then: breaks if no more pairs are wanted, though none are found to be delivered.
    fn goes_on(&self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Ends the search: waiting tasks wake up, and every delivery is told to break.
    fn stop(&self);
}

/// The callback that gets pairs.
pub(super) type Visit<'a> = dyn FnMut(&[Pair]) -> ControlFlow<()> + Send + 'a;

/// Gives pairs to a visitor, in the order of the tasks.
pub(super) struct InOrder<'a> {
    /// Only the task that has the turn locks it.
    visit: Mutex<&'a mut Visit<'a>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The task whose pairs may be visited.
    turn: usize,
    /// Of later tasks that have finished, the pairs that are left.
    waiting: BTreeMap<usize, Vec<Pair>>,
    /// How many these are.
    waiting_pairs: usize,
    stopped: bool,
}

impl<'a> InOrder<'a> {
    pub(super) fn new(visit: &'a mut Visit<'a>) -> Self {
        Self {
            visit: Mutex::new(visit),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Visits the pairs of the task that has the turn.
    fn visit(&self, pairs: &mut Vec<Pair>) -> ControlFlow<()> {
        let flow = if pairs.is_empty() {
            ControlFlow::Continue(())
        } else {
            self.visit.lock()(pairs)
        };
        pairs.clear();
        if flow.is_break() {
            self.stop();
        }
        flow
    }

    /// Passes the turn on, over all tasks that have finished already.
    fn pass_on(&self) -> ControlFlow<()> {
        loop {
            let mut state = self.state.lock();
            state.turn += 1;
            let turn = state.turn;
            let Some(mut pairs) = state.waiting.remove(&turn) else {
                break;
            };
            state.waiting_pairs -= pairs.len();
            drop(state);
            self.visit(&mut pairs)?;
        }
        self.changed.notify_all();
        ControlFlow::Continue(())
    }
}

impl Delivery for InOrder<'_> {
    fn deliver(&self, task: usize, pairs: &mut Vec<Pair>, finished: bool) -> ControlFlow<()> {
        let mut state = self.state.lock();
        while !state.stopped && state.turn != task {
            if finished && state.waiting_pairs + pairs.len() <= WAITING {
                state.waiting_pairs += pairs.len();
                state.waiting.insert(task, std::mem::take(pairs));
                return ControlFlow::Continue(());
            }
            self.changed.wait(&mut state);
        }
        if state.stopped {
            return ControlFlow::Break(());
        }
        drop(state);
        self.visit(pairs)?;
        if finished {
            self.pass_on()
        } else {
            ControlFlow::Continue(())
        }
    }

    fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
    }
}

/// Gives pairs to a visitor as they come, on the only thread that there is.
pub(super) struct AtOnce<'a> {
    /// Never waited for.
    visit: Mutex<&'a mut Visit<'a>>,
}

impl<'a> AtOnce<'a> {
    pub(super) fn new(visit: &'a mut Visit<'a>) -> Self {
        let visit = Mutex::new(visit);
        Self { visit }
    }
}

impl Delivery for AtOnce<'_> {
    fn deliver(&self, _task: usize, pairs: &mut Vec<Pair>, _finished: bool) -> ControlFlow<()> {
        let flow = self.visit.lock()(pairs);
        pairs.clear();
        flow
    }

    fn goes_on(&self) -> ControlFlow<()> {
        self.visit.lock()(&[])
    }

    fn stop(&self) {}
}

/// Links the places of fingerprints.
pub(super) struct Linking<'a> {
    set: &'a FingerprintSet,
    clusters: Mutex<Clusters>,
    stopped: AtomicBool,
}

impl<'a> Linking<'a> {
    pub(super) fn new(set: &'a FingerprintSet) -> Self {
        Self {
            set,
            clusters: Mutex::new(Clusters::new(set.len())),
            stopped: AtomicBool::new(false),
        }
    }

    pub(super) fn into_clusters(self) -> Clusters {
        self.clusters.into_inner()
    }
}

impl Delivery for Linking<'_> {
    fn deliver(&self, _task: usize, pairs: &mut Vec<Pair>, _finished: bool) -> ControlFlow<()> {
        if self.stopped.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        if pairs.is_empty() {
            return ControlFlow::Continue(());
        }
        // Looking up takes longer than linking, so it is done outside the lock.
        let places = |pair: &Pair| Some((self.set.place(pair.a)?, self.set.place(pair.b)?));
        let link = |pair: &Pair| {
            let places = places(pair);
            debug_assert!(places.is_some(), "the pairs are of the set");
            places.unwrap_or_default()
        };
        let links: Vec<(usize, usize)> = pairs.iter().map(link).collect();
        pairs.clear();
        let mut clusters = self.clusters.lock();
        for (a, b) in links {
            clusters.union(a, b);
        }
        ControlFlow::Continue(())
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::Fingerprint;

    /// As many pairs as this, all of them of the task.
    fn pairs_of(task: usize, count: usize) -> Vec<Pair> {
        let number = Fingerprint(task as u64);
        vec![
            Pair {
                a: number,
                b: Fingerprint(u64::MAX)
            };
            count
        ]
    }

    /// J3 and J4: the first task finishes only once no other task can go on.
    #[test]
    fn later_tasks_wait_with_few_pairs_and_are_visited_in_order() {
        const TASKS: usize = 40;
        const PAIRS: usize = WAITING / 10;
        let mut seen = Vec::new();
        let mut visit = |pairs: &[Pair]| {
            seen.extend(pairs.iter().map(|pair| pair.a.0 as usize));
            ControlFlow::Continue(())
        };
        let delivery = InOrder::new(&mut visit);
        let next = AtomicUsize::new(1);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let task = next.fetch_add(1, Ordering::Relaxed);
                        if task >= TASKS {
                            return;
                        }
                        let flow = delivery.deliver(task, &mut pairs_of(task, PAIRS), true);
                        assert!(flow.is_continue());
                    }
                });
            }
            // Ten tasks may leave their pairs; then all three threads are stuck with another.
            while next.load(Ordering::Relaxed) < 14 {
                std::thread::yield_now();
            }
            assert_eq!(delivery.state.lock().waiting_pairs, 10 * PAIRS);
            let flow = delivery.deliver(0, &mut pairs_of(0, PAIRS), false);
            assert!(flow.is_continue());
            let flow = delivery.deliver(0, &mut Vec::new(), true);
            assert!(flow.is_continue());
        });
        drop(delivery);
        let expected: Vec<usize> = (0..TASKS).flat_map(|task| vec![task; PAIRS]).collect();
        assert!(seen == expected);
    }

    #[test]
    fn those_who_wait_are_let_go_when_the_visitor_breaks() {
        let mut visit = |_: &[Pair]| ControlFlow::Break(());
        let delivery = InOrder::new(&mut visit);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| delivery.deliver(1, &mut pairs_of(1, WAITING + 1), true));
            assert!(delivery.deliver(0, &mut pairs_of(0, 1), false).is_break());
            assert!(waiter.join().unwrap().is_break());
        });
    }
}
