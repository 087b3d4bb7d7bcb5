//! Gathering the hits of a search in bounded memory: those of one shard, then
//! those of all.

use std::num::NonZeroU32;
use std::ops::ControlFlow;

use simshard_proto::at_most;
use simshard_simhash::Hit;

/// The first cut happens at this number of hits, if there is a limit.
const FIRST_CUT: usize = 4096;

/// Hits, at most `limit` a query, and at most `most` in all.
#[derive(Debug)]
pub(crate) struct Collector {
    /// Most hits a query; `usize::MAX` means all.
    limit: usize,
    /// Most hits in all. Twice as many are held while some may yet be cut.
    most: usize,
    hits: Vec<Hit>,
    /// The next cut happens above this number of hits.
    full: usize,
    /// For each query, whether hits of it were cut.
    truncated: Vec<bool>,
}

impl Collector {
    /// For this many queries.
    pub(crate) fn new(queries: usize, limit: Option<NonZeroU32>, most: usize) -> Self {
        let limit = at_most(limit);
        let room = 2 * most;
        Self {
            limit,
            most,
            hits: Vec::new(),
            full: if limit == usize::MAX {
                room
            } else {
                FIRST_CUT.min(room)
            },
            truncated: vec![false; queries],
        }
    }

    /// Takes a hit; breaks when they no longer fit.
    pub(crate) fn push(&mut self, hit: Hit) -> ControlFlow<()> {
        self.hits.push(hit);
        if self.hits.len() > self.full {
            self.make_room()
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Takes the hits of one shard for the queries at `places`, and which of
    /// them were cut there; breaks when they no longer fit.
    pub(crate) fn absorb(&mut self, shard: Self, places: &[u32]) -> ControlFlow<()> {
        for (&place, &cut) in places.iter().zip(&shard.truncated) {
            self.truncated[place as usize] |= cut;
        }
        for hit in shard.hits {
            let query = places[hit.query as usize];
            self.push(Hit { query, ..hit })?;
        }
        ControlFlow::Continue(())
    }

    /// The hits by query, distance and fingerprint, and the queries whose hits
    /// were cut; `None` if they did not fit.
    pub(crate) fn finish(mut self) -> Option<(Vec<Hit>, Vec<bool>)> {
        self.cut();
        (self.hits.len() <= self.most).then_some((self.hits, self.truncated))
    }

    fn make_room(&mut self) -> ControlFlow<()> {
        if self.limit != usize::MAX {
            self.cut();
        }
        if self.hits.len() > self.most && self.full == 2 * self.most {
            return ControlFlow::Break(());
        }
        // Cutting costs as much as was held: it must pay every time.
        self.full = self.full.max(2 * self.hits.len()).min(2 * self.most);
        ControlFlow::Continue(())
    }

    /// Sorts the hits and keeps the nearest of each query.
    fn cut(&mut self) {
        self.hits.sort_unstable();
        let (mut query, mut kept) = (u32::MAX, 0);
        let Self {
            limit, truncated, ..
        } = self;
        self.hits.retain(|hit| {
            if hit.query != query {
                (query, kept) = (hit.query, 0);
            }
            kept += 1;
            let keep = kept <= *limit;
            truncated[query as usize] |= !keep;
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use simshard_simhash::Fingerprint;

    use super::*;

    fn hit(query: u32, distance: u32) -> Hit {
        Hit {
            query,
            distance,
            fingerprint: Fingerprint(u64::from(distance)),
        }
    }

    /// The hits of a shard, of which two a query are wanted.
    fn shard(hits: &[Hit]) -> Collector {
        let mut collector = Collector::new(2, NonZeroU32::new(2), 8);
        for &hit in hits {
            assert!(collector.push(hit).is_continue());
        }
        collector
    }

    #[test]
    fn the_nearest_hits_survive_in_any_order() {
        for step in [1, 7, 333, 999] {
            let mut collector = Collector::new(3, NonZeroU32::new(2), 8);
            for distance in (0..1000).map(|number| number * step % 1000) {
                assert!(collector.push(hit(0, distance)).is_continue());
                assert!(collector.hits.len() <= 16);
            }
            assert!(collector.push(hit(2, 9)).is_continue());
            let (hits, truncated) = collector.finish().unwrap();
            assert_eq!(hits, [hit(0, 0), hit(0, 1), hit(2, 9)], "step {step}");
            assert_eq!(truncated, [true, false, false]);
        }
    }

    #[test]
    fn exactly_as_many_as_wanted_are_not_cut() {
        let mut collector = Collector::new(1, NonZeroU32::new(3), 8);
        for distance in [2, 0, 1] {
            assert!(collector.push(hit(0, distance)).is_continue());
        }
        let (hits, truncated) = collector.finish().unwrap();
        assert_eq!(hits, [hit(0, 0), hit(0, 1), hit(0, 2)]);
        assert_eq!(truncated, [false]);
    }

    #[test]
    fn the_hits_of_shards_come_together_by_query() {
        let mut all = Collector::new(3, NonZeroU32::new(2), 8);
        assert!(
            all.absorb(shard(&[hit(0, 5), hit(1, 6)]), &[0, 2])
                .is_continue()
        );
        let nearest = [hit(0, 1), hit(0, 7), hit(0, 2)];
        assert!(all.absorb(shard(&nearest), &[2]).is_continue());
        let (hits, truncated) = all.finish().unwrap();
        assert_eq!(hits, [hit(0, 5), hit(2, 1), hit(2, 2)]);
        assert_eq!(truncated, [false, false, true]);

        let mut all = Collector::new(3, NonZeroU32::new(2), 8);
        let mut cut = shard(&nearest);
        cut.cut();
        assert_eq!(cut.hits, [hit(0, 1), hit(0, 2)]);
        assert!(all.absorb(cut, &[1]).is_continue());
        assert_eq!(all.finish().unwrap().1, [false, true, false]);
    }

    #[test]
    fn hits_that_do_not_fit_end_the_search() {
        for limit in [0, u32::MAX, 100] {
            let mut collector = Collector::new(1, NonZeroU32::new(limit), 8);
            let pushed = (0..1000).take_while(|&d| collector.push(hit(0, d)).is_continue());
            assert_eq!(pushed.count(), 16);
            assert!(collector.finish().is_none());
        }
    }

    #[test]
    fn without_a_limit_nothing_is_cut() {
        let mut collector = Collector::new(1, NonZeroU32::new(0), 100);
        for distance in 0..40 {
            assert!(collector.push(hit(0, distance)).is_continue());
        }
        let (hits, truncated) = collector.finish().unwrap();
        assert_eq!((hits.len(), truncated), (40, vec![false]));
    }
}
