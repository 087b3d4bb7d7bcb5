//! Gathering the hits of a search in bounded memory: those of one shard, then
//! those of all.

use std::ops::ControlFlow;

use simshard_simhash::{Fingerprint, Hit};

/// A hit without its query; ordered by distance, then fingerprint.
type Near = (u32, Fingerprint);

/// Hits, at most `limit` a query, and at most `most` in all.
#[derive(Debug)]
pub(crate) struct Collector {
    /// Most hits a query; `usize::MAX` means all.
    limit: usize,
    /// Most hits in all. Twice as many are held while some may yet be cut.
    most: usize,
    held: usize,
    queries: Vec<Nearest>,
    overflow: bool,
}

/// The nearest hits of one query.
#[derive(Clone, Debug, Default)]
struct Nearest {
    /// In no order, and at most twice as many as are wanted.
    hits: Vec<Near>,
    /// The farthest of those that were kept in the last cut: what is farther
    /// still need not be held.
    farthest: Option<Near>,
    truncated: bool,
}

impl Nearest {
    /// Keeps the nearest `limit`; returns how many went.
    fn cut(&mut self, limit: usize) -> usize {
        let Some(gone) = self.hits.len().checked_sub(limit).filter(|gone| *gone > 0) else {
            return 0;
        };
        let (_, farthest, _) = self.hits.select_nth_unstable(limit - 1);
        self.farthest = Some(*farthest);
        self.hits.truncate(limit);
        self.truncated = true;
        gone
    }
}

impl Collector {
    /// For this many queries; a `limit` of 0 means all.
    pub(crate) fn new(queries: usize, limit: u32, most: usize) -> Self {
        Self {
            limit: match limit {
                0 => usize::MAX,
                limit => limit as usize,
            },
            most,
            held: 0,
            queries: vec![Nearest::default(); queries],
            overflow: false,
        }
    }

    /// Takes a hit; breaks when they no longer fit.
    pub(crate) fn push(&mut self, hit: Hit) -> ControlFlow<()> {
        let nearest = &mut self.queries[hit.query as usize];
        let near = (hit.distance, hit.fingerprint);
        if nearest.farthest.is_some_and(|farthest| near > farthest) {
            return ControlFlow::Continue(());
        }
        nearest.hits.push(near);
        self.held += 1;
        if nearest.hits.len() >= self.limit.saturating_mul(2) {
            self.held -= nearest.cut(self.limit);
        }
        if self.held > 2 * self.most {
            self.cut();
            self.overflow = self.held > self.most;
        }
        match self.overflow {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Takes the hits of one shard for the queries at `places`, and which of
    /// them were cut there; breaks when they no longer fit.
    pub(crate) fn absorb(
        &mut self,
        hits: Vec<Hit>,
        cut: &[bool],
        places: &[u32],
    ) -> ControlFlow<()> {
        for (&place, &cut) in places.iter().zip(cut) {
            self.queries[place as usize].truncated |= cut;
        }
        for hit in hits {
            let query = places[hit.query as usize];
            self.push(Hit { query, ..hit })?;
        }
        ControlFlow::Continue(())
    }

    /// The hits by query, distance and fingerprint, and the queries whose hits
    /// were cut; `None` if they did not fit.
    pub(crate) fn finish(mut self) -> Option<(Vec<Hit>, Vec<bool>)> {
        self.cut();
        if self.overflow || self.held > self.most {
            return None;
        }
        let mut hits = Vec::with_capacity(self.held);
        for (query, nearest) in (0..).zip(&mut self.queries) {
            nearest.hits.sort_unstable();
            hits.extend(nearest.hits.iter().map(|&(distance, fingerprint)| Hit {
                query,
                distance,
                fingerprint,
            }));
        }
        let truncated = self.queries.iter().map(|nearest| nearest.truncated);
        Some((hits, truncated.collect()))
    }

    fn cut(&mut self) {
        for nearest in &mut self.queries {
            self.held -= nearest.cut(self.limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(query: u32, distance: u32) -> Hit {
        Hit {
            query,
            distance,
            fingerprint: Fingerprint(u64::from(distance)),
        }
    }

    #[test]
    fn the_nearest_hits_survive_in_any_order() {
        for step in [1, 7, 333, 999] {
            let mut collector = Collector::new(3, 2, 8);
            for distance in (0..1000).map(|number| number * step % 1000) {
                assert!(collector.push(hit(0, distance)).is_continue());
                assert!(collector.held <= 4);
            }
            assert!(collector.push(hit(2, 9)).is_continue());
            let (hits, truncated) = collector.finish().unwrap();
            assert_eq!(hits, [hit(0, 0), hit(0, 1), hit(2, 9)], "step {step}");
            assert_eq!(truncated, [true, false, false]);
        }
    }

    #[test]
    fn exactly_as_many_as_wanted_are_not_cut() {
        let mut collector = Collector::new(1, 3, 8);
        for distance in [2, 0, 1] {
            assert!(collector.push(hit(0, distance)).is_continue());
        }
        let (hits, truncated) = collector.finish().unwrap();
        assert_eq!(hits, [hit(0, 0), hit(0, 1), hit(0, 2)]);
        assert_eq!(truncated, [false]);
    }

    #[test]
    fn the_hits_of_shards_come_together_by_query() {
        let mut all = Collector::new(3, 2, 8);
        let flow = all.absorb(vec![hit(0, 5), hit(1, 6)], &[false, false], &[0, 2]);
        assert!(flow.is_continue());
        let flow = all.absorb(vec![hit(0, 1), hit(0, 2)], &[true], &[2]);
        assert!(flow.is_continue());
        let (hits, truncated) = all.finish().unwrap();
        assert_eq!(hits, [hit(0, 5), hit(2, 1), hit(2, 2)]);
        assert_eq!(truncated, [false, false, true]);
    }

    #[test]
    fn hits_that_do_not_fit_end_the_search() {
        for limit in [0, u32::MAX, 100] {
            let mut collector = Collector::new(1, limit, 8);
            let pushed = (0..1000).take_while(|&d| collector.push(hit(0, d)).is_continue());
            assert_eq!(pushed.count(), 16);
            assert!(collector.finish().is_none());
        }
    }

    #[test]
    fn without_a_limit_nothing_is_cut() {
        let mut collector = Collector::new(1, 0, 100);
        for distance in 0..40 {
            assert!(collector.push(hit(0, distance)).is_continue());
        }
        let (hits, truncated) = collector.finish().unwrap();
        assert_eq!((hits.len(), truncated), (40, vec![false]));
    }
}
