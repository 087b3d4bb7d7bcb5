//! Memory that requests in flight may use together.
//!
//! # Invariants
//! - B1: what was taken comes back when it is dropped, once.
//! - B2: [`Budget::try_take`] never takes more than is left.
//! - B3: what stays small finds room though large requests and answers have all that they may.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// One that has taken no more bytes than this is small.
const SMALL_BYTES: usize = 4096;

/// A budget keeps one of this number of parts for small ones.
const KEPT_PART: usize = 16;

/// Bytes that a process may use for what it receives, works on and answers. Clones share them.
#[derive(Clone, Debug)]
pub struct Budget {
    all: Arc<Shared>,
    /// Those of one caller, of which is taken as well.
    own: Option<OwnBudget>,
}

/// Bytes that one caller may use of those of a process. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct OwnBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: usize,
    used: AtomicUsize,
}

impl Shared {
    fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicUsize::new(0),
        })
    }

    /// Uses more, if that much is left to one that is small or not; returns whether it does.
    fn try_use(&self, bytes: usize, is_small: bool) -> bool {
        let kept = if is_small { 0 } else { self.limit / KEPT_PART };
        let most = self.limit - kept;
        let grow = |used: usize| Some(used.saturating_add(bytes)).filter(|used| *used <= most);
        let used = &self.used;
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow)
            .is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn fits(&self) -> bool {
        self.used.load(Ordering::Relaxed) <= self.limit
    }
}

impl OwnBudget {
    pub(crate) fn new(limit: usize) -> Self {
        Self(Shared::new(limit))
    }
}

impl Budget {
    /// A budget of `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            all: Shared::new(limit),
            own: None,
        }
    }

    /// The same budget for one caller: what it takes is taken of its own as well.
    pub(crate) fn with_own(&self, own: &OwnBudget) -> Self {
        Self {
            all: Arc::clone(&self.all),
            own: Some(own.clone()),
        }
    }

    /// The budgets of which is taken.
    fn each(&self) -> impl Iterator<Item = &Shared> {
        let own = self.own.iter().map(|own| &*own.0);
        own.chain([&*self.all])
    }

    /// The budget as long as something else holds it.
    pub(crate) fn watched(&self) -> WatchedBudget {
        WatchedBudget(Arc::downgrade(&self.all))
    }

    /// Takes `bytes` bytes if they are left.
    #[must_use]
    pub fn try_take(&self, bytes: usize) -> Option<Taken> {
        let mut taken = self.take(0);
        taken.try_grow(bytes).then_some(taken)
    }

    /// Takes bytes that are in use already, whether they are left or not: then nothing else is until some come back.
    #[must_use]
    pub fn take(&self, bytes: usize) -> Taken {
        let mut taken = Taken {
            budget: self.clone(),
            bytes: 0,
        };
        taken.grow(bytes);
        taken
    }
}

/// A budget that is looked at, and not kept.
#[derive(Debug)]
pub(crate) struct WatchedBudget(Weak<Shared>);

impl WatchedBudget {
    /// How many bytes are taken, and how many there are; `None` once the budget is gone.
    pub(crate) fn used_and_limit(&self) -> Option<(usize, usize)> {
        let shared = self.0.upgrade()?;
        Some((shared.used.load(Ordering::Relaxed), shared.limit))
    }
}

/// Bytes of a budget, given back when dropped.
#[derive(Debug)]
pub struct Taken {
    budget: Budget,
    bytes: usize,
}

impl Taken {
    /// Takes more, if that much is left; returns whether it did. A part of the budget is left for those that stay small.
    #[must_use]
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        let is_small = self.bytes.saturating_add(bytes) <= SMALL_BYTES;
        let Budget { all, own } = &self.budget;
        let own = own.as_ref().map(|own| &*own.0);
        if !own.is_none_or(|own| own.try_use(bytes, is_small)) {
            return false;
        }
        let grown = all.try_use(bytes, is_small);
        if grown {
            self.bytes += bytes;
        } else if let Some(own) = own {
            own.give_back(bytes);
        }
        grown
    }

    /// Whether that much more would be left if nothing else were taken.
    #[must_use]
    pub(crate) fn may_ever_grow(&self, bytes: usize) -> bool {
        let bytes = self.bytes.saturating_add(bytes);
        let has_room = |Shared { limit, .. }: &Shared| bytes <= limit - limit / KEPT_PART;
        self.budget.each().all(has_room)
    }

    /// Takes more that is in use already, whether it is left or not.
    pub fn grow(&mut self, bytes: usize) {
        for budget in self.budget.each() {
            budget.used.fetch_add(bytes, Ordering::Relaxed);
        }
        self.bytes += bytes;
    }

    /// Whether all that was taken, here and elsewhere, is no more than there is.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.budget.each().all(Shared::fits)
    }

    /// All bytes that were taken so far; none are left here.
    #[must_use]
    pub fn split(&mut self) -> Self {
        Self {
            budget: self.budget.clone(),
            bytes: std::mem::take(&mut self.bytes),
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        for budget in self.budget.each() {
            budget.give_back(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B1, B2.
    #[test]
    fn what_is_taken_comes_back_once() {
        let budget = Budget::new(100);
        let mut first = budget.try_take(60).unwrap();
        assert!(budget.try_take(41).is_none());
        assert!(!first.try_grow(41));
        assert!(first.try_grow(40));
        let rest = first.split();
        drop(first);
        assert!(budget.try_take(1).is_none(), "the rest is still held");
        drop(rest);
        assert!(budget.try_take(100).is_some());
        assert!(budget.try_take(usize::MAX).is_none());
    }

    /// B3.
    #[test]
    fn what_is_small_finds_room_where_large_ones_have_all_that_they_may() {
        let budget = Budget::new(16 * SMALL_BYTES);
        assert!(budget.try_take(15 * SMALL_BYTES + 1).is_none());
        let _large = budget.try_take(15 * SMALL_BYTES).unwrap();
        assert!(budget.try_take(SMALL_BYTES + 1).is_none());
        let mut small = budget.try_take(SMALL_BYTES - 1).unwrap();
        assert!(!small.try_grow(2), "it is large then");
        assert!(small.try_grow(1));
        assert!(budget.try_take(1).is_none(), "B2");
    }

    #[test]
    fn what_is_in_use_anyway_counts_though_it_is_too_much() {
        let budget = Budget::new(100);
        let much = budget.take(150);
        assert!(!much.fits());
        assert!(budget.try_take(0).is_none());
        drop(much);
        assert!(budget.take(100).fits());
        assert!(budget.try_take(100).is_some());
    }
}
