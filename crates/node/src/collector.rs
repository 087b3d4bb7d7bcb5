//! Gathering the hits of a search in bounded memory: those of one shard, then
//! those of all.

use std::ops::ControlFlow;

use simshard_simhash::Hit;

/// Hits, at most `limit` a query, and at most `most` in all.
#[derive(Debug)]
pub(crate) struct Collector {
    /// Most hits a query; 0 means all.
    limit: usize,
    /// Most hits in all. Twice as many are held while some may yet be cut.
    most: usize,
    hits: Vec<Hit>,
    /// Queries some of whose hits were cut.
    truncated: Vec<bool>,
    overflow: bool,
}

impl Collector {
    pub(crate) fn new(queries: usize, limit: usize, most: usize) -> Self {
        Self {
            limit,
            most,
            hits: Vec::new(),
            truncated: vec![false; queries],
            overflow: false,
        }
    }

    /// Takes a hit; breaks when they no longer fit.
    pub(crate) fn push(&mut self, hit: Hit) -> ControlFlow<()> {
        self.hits.push(hit);
        if self.hits.len() <= 2 * self.most {
            return ControlFlow::Continue(());
        }
        self.cut();
        self.overflow = self.hits.len() > self.most;
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
            self.truncated[place as usize] |= cut;
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
        if self.overflow {
            return None;
        }
        self.cut();
        (self.hits.len() <= self.most).then_some((self.hits, self.truncated))
    }

    /// Sorts, and keeps the nearest `limit` hits of each query.
    fn cut(&mut self) {
        self.hits.sort_unstable();
        if self.limit == 0 {
            return;
        }
        let (mut query, mut kept) = (None, 0);
        let truncated = &mut self.truncated;
        self.hits.retain(|hit| {
            if query != Some(hit.query) {
                (query, kept) = (Some(hit.query), 0);
            }
            kept += 1;
            truncated[hit.query as usize] |= kept > self.limit;
            kept <= self.limit
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

    #[test]
    fn the_nearest_hits_survive_any_number_of_cuts() {
        let mut collector = Collector::new(3, 2, 8);
        for distance in (0..1000).rev() {
            assert!(collector.push(hit(0, distance)).is_continue());
        }
        assert!(collector.push(hit(2, 9)).is_continue());
        let (hits, truncated) = collector.finish().unwrap();
        assert_eq!(hits, [hit(0, 0), hit(0, 1), hit(2, 9)]);
        assert_eq!(truncated, [true, false, false]);
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
        let mut collector = Collector::new(1, 0, 8);
        let pushed = (0..1000).take_while(|&d| collector.push(hit(0, d)).is_continue());
        assert_eq!(pushed.count(), 16);
        assert!(collector.finish().is_none());
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
