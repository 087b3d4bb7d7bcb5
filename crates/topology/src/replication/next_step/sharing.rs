//! Which replicas are hot, so that each store searches as large a part of the shards that it holds as others do (PE20).

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::turns::MOST_AT_ONCE;
use super::{Searched, ShardRecord, StoreId, View};
use crate::{ShardId, ShardSet};

/// Parts that differ by less than one of this number of shards are left as they are, as tables take work.
const TOLERATED: usize = 16;

/// Of how many shards each store is in sync, and of how many of them it is hot.
#[derive(Default)]
struct Loads(BTreeMap<StoreId, Load>);

#[derive(Clone, Copy, Default)]
struct Load {
    hot: usize,
    held: usize,
}

/// A cold store that gets hot, and a hot one that gets cold once the other has its tables.
#[derive(Clone, Copy)]
struct Swap {
    warm: StoreId,
    cool: StoreId,
}

impl Loads {
    fn of<'a>(records: impl Iterator<Item = &'a ShardRecord>) -> Self {
        let mut loads = Self::default();
        for entry in records.flat_map(|record| &record.in_sync) {
            let load = loads.0.entry(entry.store).or_default();
            load.held += 1;
            load.hot += usize::from(entry.hot);
        }
        loads
    }

    /// Which of two stores is hot for a larger part of what it holds.
    fn compare(&self, one: StoreId, other: StoreId) -> Ordering {
        let (one, other) = (self.load(one), self.load(other));
        (one.hot * other.held).cmp(&(other.hot * one.held))
    }

    fn load(&self, store: StoreId) -> Load {
        self.0.get(&store).copied().unwrap_or_default()
    }

    /// Whether the parts of the two come closer, and differ by more than is tolerated.
    fn gain_by(&self, swap: Swap) -> bool {
        let (cool, warm) = (self.load(swap.cool), self.load(swap.warm));
        let difference = (cool.hot * warm.held).saturating_sub(warm.hot * cool.held);
        let stays_in_order = (cool.hot.saturating_sub(1)) * warm.held >= (warm.hot + 1) * cool.held;
        stays_in_order && difference * TOLERATED > cool.held * warm.held
    }

    fn take(&mut self, swap: Swap) {
        self.0.entry(swap.warm).or_default().hot += 1;
        self.cool(swap.cool);
    }

    fn cool(&mut self, store: StoreId) {
        let load = self.0.entry(store).or_default();
        load.hot = load.hot.saturating_sub(1);
    }

    /// The hot store of a shard that is hot for the largest part of what it holds.
    fn busiest(&self, record: &ShardRecord) -> Option<StoreId> {
        let hot = record.in_sync.iter().filter(|entry| entry.hot);
        let stores = hot.map(|entry| entry.store);
        stores.max_by(|one, other| self.compare(*one, *other))
    }

    /// The cold one that is hot for the smallest part.
    fn idlest(&self, record: &ShardRecord) -> Option<StoreId> {
        let cold = record.in_sync.iter().filter(|entry| !entry.hot);
        let stores = cold.map(|entry| entry.store);
        stores.min_by(|one, other| self.compare(*one, *other))
    }

    /// Lets the busiest store of a shard get cold.
    fn cool_busiest(&mut self, record: &ShardRecord) -> Option<StoreId> {
        let busiest = self.busiest(record)?;
        self.cool(busiest);
        Some(busiest)
    }
}

impl View {
    /// Decides for which shards the own store gets hot in the place of another one, and which store gets cold where more are
    /// hot than wished. All stores decide for all by the same records. So two of them do not take the same part from a third
    /// one.
    pub fn share_searches<'a>(
        &mut self,
        records: impl Iterator<Item = (ShardId, &'a ShardRecord)> + Clone,
    ) {
        let mut loads = Loads::of(records.clone().map(|(_, record)| record));
        let spare = records.clone().filter(|(_, record)| record.has_spare_hot());
        self.to_cool = spare
            .filter_map(|(shard, record)| Some((shard, loads.cool_busiest(record)?)))
            .collect();
        self.to_warm = ShardSet::EMPTY;
        if self.moves_are_paused {
            return;
        }
        let mut free = MOST_AT_ONCE.saturating_sub(self.unbuilt.len());
        for (shard, record) in records {
            let Some(swap) = self.swap(shard, record, &loads) else {
                continue;
            };
            loads.take(swap);
            if swap.warm == self.own && free > 0 {
                self.to_warm.insert(shard);
                free -= 1;
            }
        }
    }

    /// A cold store that is to search a shard, and a hot one in whose place.
    fn swap(&self, shard: ShardId, record: &ShardRecord, loads: &Loads) -> Option<Swap> {
        if !self.is_at_rest(shard, record) {
            return None;
        }
        let swap = Swap {
            warm: loads.idlest(record)?,
            cool: loads.busiest(record)?,
        };
        loads.gain_by(swap).then_some(swap)
    }

    /// Whether nothing else is to be done with a shard, and all that hold it live. The own store may not know that of
    /// shards that it does not hold. It supposes that they do: so it takes nothing from a store that gives to others.
    fn is_at_rest(&self, shard: ShardId, record: &ShardRecord) -> bool {
        let is_well = |store| match record.in_sync(self.own) {
            Some(_) => self.may_search(shard, record, store),
            None => !self.dead.contains(&store) && !self.silent.contains(&store),
        };
        record.in_sync.len() == usize::from(record.want)
            && record.learners.is_empty()
            && !record.has_spare_hot()
            && record.in_sync.iter().all(|entry| is_well(entry.store))
    }

    /// Whether a store would answer searches of a shard that it holds, once it has tables.
    fn may_search(&self, shard: ShardId, record: &ShardRecord, store: StoreId) -> bool {
        let lives = self.lives(store) && !(store == self.own && self.disk_hangs);
        let is_well = self.searched(shard, record, store) == Searched::Well;
        lives && self.may_stay(shard, store) && (is_well || !record.is_hot(store))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::replication::{Epoch, Step};

    fn id(number: u8) -> StoreId {
        StoreId([number; 16])
    }

    /// Records of shards, and the stores that live. A store knows of those with which it shares shards.
    struct Cluster {
        records: Vec<ShardRecord>,
        live: BTreeSet<StoreId>,
        steps: Vec<Step>,
    }

    impl Cluster {
        /// Each shard is held by the stores that `held` names, of which the first two are hot.
        fn of(stores: u8, held: impl Fn(usize) -> Vec<u8>) -> Self {
            Self::with_hot(2, stores, held)
        }

        /// The same with another number of hot ones.
        fn with_hot(hot: u8, stores: u8, held: impl Fn(usize) -> Vec<u8>) -> Self {
            let record = |shard| {
                let held: Vec<StoreId> = held(shard).into_iter().map(id).collect();
                ShardRecord::first(0, &held, 7).with_hot(hot)
            };
            Self {
                records: (0..ShardId::COUNT).map(record).collect(),
                live: (1..=stores).map(id).collect(),
                steps: Vec::new(),
            }
        }

        fn view(&self, own: StoreId) -> View {
            let shared = self.records.iter().filter(|record| record.names(own));
            let partners: BTreeSet<StoreId> = shared.flat_map(ShardRecord::write_set).collect();
            View {
                live: partners
                    .intersection(&self.live)
                    .copied()
                    .filter(|one| *one != own)
                    .collect(),
                ..View::alone(own)
            }
        }

        /// Each live store looks once, at the same time, and takes its steps. Tables are made at once.
        fn look(&mut self) -> usize {
            let before = self.steps.len();
            let views = self.live.iter().map(|own| {
                let mut view = self.view(*own);
                view.share_searches(ShardId::all().zip(&self.records));
                view
            });
            for view in views.collect::<Vec<_>>() {
                for shard in ShardId::all() {
                    let record = &mut self.records[shard.index()];
                    if let Some(step) = view.step(shard, record) {
                        *record = record.after(step, 7, |_| record.epoch, |_| false).unwrap();
                        self.steps.push(step);
                    }
                }
            }
            self.steps.len() - before
        }

        /// Looks until no step is left.
        fn settle(&mut self) {
            for _ in 0..100 {
                if self.look() == 0 {
                    return;
                }
            }
            panic!("there is no end: {:?}", self.parts());
        }

        /// Of how many shards each store is hot, and how many it holds.
        fn parts(&self) -> Vec<(usize, usize)> {
            let loads = Loads::of(self.records.iter());
            let loads = loads.0.values();
            loads.map(|load| (load.hot, load.held)).collect()
        }

        fn warmed(&self) -> usize {
            let warmed = self.steps.iter();
            warmed.filter(|step| matches!(step, Step::Warm(_))).count()
        }
    }

    /// PE20: as after a cluster of one node got two more.
    #[test]
    fn a_store_that_came_later_searches_as_much_as_the_others() {
        let mut cluster = Cluster::of(3, |_| vec![1, 2, 3]);
        assert_eq!(cluster.parts(), [(256, 256), (256, 256), (0, 256)]);
        cluster.settle();
        for (hot, _) in cluster.parts() {
            assert!(
                (256 * 2 / 3 - 12..=256 * 2 / 3 + 12).contains(&hot),
                "{hot}"
            );
        }
        // No tables are made in vain.
        assert!(cluster.warmed() <= 256 * 2 / 3 + 1, "{}", cluster.warmed());
        let hot = |record: &ShardRecord| record.in_sync.iter().filter(|entry| entry.hot).count();
        assert!(cluster.records.iter().all(|record| hot(record) == 2));
    }

    /// PE20: stores that do not know each other take parts from the same one.
    #[test]
    fn no_tables_are_made_in_vain_by_stores_that_share_no_shard() {
        let held = |shard| {
            if shard % 2 == 0 {
                vec![1, 2, 3]
            } else {
                vec![1, 4, 5]
            }
        };
        let mut cluster = Cluster::with_hot(1, 5, held);
        assert_eq!(cluster.parts()[..2], [(256, 256), (0, 128)]);
        cluster.settle();
        for (hot, held) in cluster.parts() {
            assert!(hot.abs_diff(held / 3) <= held / 16, "{:?}", cluster.parts());
        }
        assert!(cluster.warmed() <= 256 * 2 / 3 + 1, "{}", cluster.warmed());
    }

    /// PE20: one with a larger share of the shards searches more of them.
    #[test]
    fn stores_search_equal_parts_of_what_they_hold() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..20 {
            let stores = rng.u8(3..=6);
            let large = rng.u8(1..=stores);
            let of_shards: Vec<Vec<u8>> = (0..ShardId::COUNT)
                .map(|_| {
                    let mut all: Vec<u8> = (1..=stores).collect();
                    rng.shuffle(&mut all);
                    all.sort_by_key(|store| *store != large);
                    all.truncate(3);
                    all
                })
                .collect();
            let mut cluster = Cluster::of(stores, |shard| of_shards[shard].clone());
            cluster.settle();
            for (hot, held) in cluster.parts() {
                let part = hot as f64 / held as f64;
                assert!((0.55..=0.78).contains(&part), "{:?}", cluster.parts());
            }
        }
    }

    /// Its tables are not made yet, and the one that looked does not know.
    #[test]
    fn what_got_hot_since_a_store_looked_stays_hot() {
        let mut cluster = Cluster::of(3, |_| vec![1, 2, 3]);
        let looked = |cluster: &Cluster| {
            let mut view = cluster.view(id(1));
            view.share_searches(ShardId::all().zip(&cluster.records));
            view
        };
        let before = looked(&cluster);
        cluster.records[0] = cluster.records[0]
            .after(Step::Warm(id(3)), 7, |_| Epoch::NONE, |_| false)
            .unwrap();
        let step = |view: &View| view.step(ShardId(0), &cluster.records[0]);
        assert_eq!(step(&before), None);
        assert!(matches!(step(&looked(&cluster)), Some(Step::Cool(_))));
    }

    /// Else each short absence would cost tables twice, and a pause would not be one.
    #[test]
    fn none_gets_hot_instead_of_another_while_one_is_away_or_moves_are_paused() {
        let mut cluster = Cluster::of(3, |_| vec![1, 2, 3]);
        cluster.live.remove(&id(1));
        assert_eq!(cluster.look(), 0);
        let mut of_four = Cluster::of(4, |_| vec![1, 2, 3, 4]);
        of_four.live.remove(&id(3));
        assert_eq!(of_four.look(), 0);
        cluster.live.insert(id(1));
        let mut view = cluster.view(id(3));
        view.moves_are_paused = true;
        view.share_searches(ShardId::all().zip(&cluster.records));
        assert!(view.to_warm.is_empty());
        view.moves_are_paused = false;
        view.share_searches(ShardId::all().zip(&cluster.records));
        assert_eq!(view.to_warm.len(), MOST_AT_ONCE);
        // Those whose tables it makes still count.
        view.unbuilt = view.to_warm;
        view.share_searches(ShardId::all().zip(&cluster.records));
        assert!(view.to_warm.is_empty());
    }

    /// It would search all that it holds, and then nothing, in turn.
    #[test]
    fn a_store_that_holds_one_shard_ends_too() {
        let mut cluster = Cluster::of(4, |shard| match shard {
            0 => vec![1, 2, 4],
            _ => vec![1, 2, 3],
        });
        cluster.settle();
        assert!(cluster.warmed() <= 256 * 2 / 3 + 1, "{}", cluster.warmed());
    }

    /// A small difference is not worth tables.
    #[test]
    fn small_differences_stay() {
        let mut cluster = Cluster::of(3, |shard| match shard % 18 {
            0..6 => vec![1, 2, 3],
            6..12 => vec![2, 3, 1],
            _ => vec![3, 1, 2],
        });
        assert_eq!(cluster.look(), 0, "{:?}", cluster.parts());
    }
}
