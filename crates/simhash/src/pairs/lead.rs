//! The pairs of a layout by the shard that reports them, so that each shard can find its own.
//!
//! The canonical table of a pair chooses the first blocks in which both agree. The first few of these fill the
//! leading byte, which is the shard; they are the lead of the pair. Both have that byte, so the entries of one
//! shard under one lead hold all pairs that the shard reports with it:
//!
//! ```text
//! m = 5, k = 3      A    A agrees                           leading byte: the first 8 bits of A
//!                   B    B agrees, A does not                             the first 8 bits of B
//!                   C    C agrees, A and B do not                         …
//!                   D    D agrees, A, B and C do not
//! m = 10, k = 1     AB   A and B agree, which have 12 bits                A, and 2 bits of B
//!                   AC   A and C agree, B does not                        …
//!                   BC   B and C agree, A does not
//! ```
//!
//! # Invariants
//! - J6: a pair within the distance of a layout has exactly one of its leads. The leading bytes of both under it are
//!   that of its canonical table.

use std::ops::ControlFlow;

use super::path::Path;
use super::{Pair, PairsWanted, join_here, partition};
use crate::Fingerprint;
use crate::scan::{Level, Rule, bits};
use crate::tables::Tables;

/// Bits that tell the shard.
const SHARD_BITS: u32 = 8;

/// The blocks that fill the leading byte of a table.
#[derive(Clone, Debug)]
pub struct Lead {
    /// The first table that begins with these blocks.
    table: usize,
    /// Their bits.
    agree: u64,
    /// The blocks before the last of them that are not among them.
    differ: Vec<u64>,
}

impl Lead {
    /// The leads of a layout. `None` where a prefix is too short to fill a byte, as then the fingerprints of a pair can
    /// be in different shards.
    #[must_use]
    pub fn all(tables: &Tables) -> Option<Vec<Self>> {
        let mut leads: Vec<Self> = Vec::new();
        for (place, table) in tables.iter().enumerate() {
            let lead = Self::of(tables, place)?;
            debug_assert!(table.prefix_bits() >= SHARD_BITS);
            // Tables that begin alike need not stand together.
            if leads.iter().all(|known| known.agree != lead.agree) {
                leads.push(lead);
            }
        }
        Some(leads)
    }

    fn of(tables: &Tables, table: usize) -> Option<Self> {
        let chosen = tables.get(table).chosen();
        let (mut agree, mut differ) = (0_u64, Vec::new());
        for letter in 0..tables.layout().blocks() {
            let block = tables.layout().block_mask(letter);
            if chosen >> letter & 1 == 0 {
                differ.push(block);
                continue;
            }
            agree |= block;
            if agree.count_ones() >= SHARD_BITS {
                return Some(Self {
                    table,
                    agree,
                    differ,
                });
            }
        }
        None
    }

    /// A table whose leading byte comes from this lead, as that of all tables does that begin with it.
    #[must_use]
    pub const fn table(&self) -> usize {
        self.table
    }

    /// Calls `visit` with batches of the pairs of these fingerprints, which are distinct, that have this lead and
    /// differ in at most `distance` bits, until it breaks. (Links may have another lead.) Works on the calling thread
    /// alone, so `visit` may take its time. It is called without pairs too, now and then, so that it can end a
    /// search that finds none.
    pub fn pairs_here(
        &self,
        fingerprints: &[Fingerprint],
        distance: u32,
        wanted: PairsWanted,
        visit: &mut (dyn FnMut(&[Pair]) -> ControlFlow<()> + Send),
    ) -> ControlFlow<()> {
        if self.differ.len() > distance as usize {
            // Each of these blocks would take a bit.
            return ControlFlow::Continue(());
        }
        let path = Path::of_rule(Rule {
            distance,
            agree: self.agree,
            differ: self.differ.clone(),
        });
        let block = self.agree & partition::varying(bits(fingerprints));
        join_here(Level::best(), fingerprints, &path, block, wanted, visit)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::Clusters;
    use crate::layout::Layout;
    use crate::synthetic::Data;
    use crate::tables::ActiveTables;

    const CONTINUE: ControlFlow<()> = ControlFlow::Continue(());

    fn tables(blocks: u32, distance: u32) -> Tables {
        Tables::new(Layout::new(blocks, distance).unwrap())
    }

    #[test]
    fn the_leads_of_narrow_blocks_are_made_of_several() {
        let count = |blocks, distance| Lead::all(&tables(blocks, distance)).map(|all| all.len());
        assert_eq!(count(5, 3), Some(4));
        assert_eq!(count(1, 0), Some(1));
        assert_eq!(count(8, 7), Some(8));
        assert_eq!(count(10, 1), Some(3));
        assert_eq!(count(16, 1), Some(3));
        assert_eq!(count(64, 1), Some(9));
        for (blocks, distance) in [(9, 8), (20, 18), (64, 63)] {
            assert_eq!(count(blocks, distance), None, "({blocks}, {distance})");
        }
    }

    proptest! {
        /// J6.
        #[test]
        fn a_near_pair_has_one_lead_and_the_leading_byte_of_its_canonical_table(
            layout in prop_oneof![
                (1..=8_u32).prop_flat_map(|blocks| (Just(blocks), 0..blocks)),
                Just((9, 6)), Just((10, 7)), Just((12, 5)), Just((16, 1)), Just((64, 1)),
            ],
            one: u64,
            flips in prop::collection::vec(0..64_u32, 0..8),
        ) {
            let tables = tables(layout.0, layout.1);
            let flips = flips.into_iter().take(layout.1 as usize);
            let difference = flips.fold(0, |difference, bit| difference | 1 << bit);
            let both = [one, one ^ difference].map(Fingerprint);
            let canonical = (0..tables.len()).find(|&place| {
                tables.get(place).shares_prefix(difference)
                    && tables.is_canonical(place, &ActiveTables::All, difference)
            });
            let shard = tables.get(canonical.unwrap()).leading_byte(both[0]);

            let leads = Lead::all(&tables).unwrap();
            let rule = |lead: &Lead| Rule {
                distance: layout.1,
                agree: lead.agree,
                differ: lead.differ.clone(),
            };
            let accepting: Vec<&Lead> =
                leads.iter().filter(|lead| rule(lead).accepts(difference)).collect();
            prop_assert_eq!(accepting.len(), 1);
            let table = tables.get(accepting[0].table());
            for fingerprint in both {
                prop_assert_eq!(table.leading_byte(fingerprint), shard);
            }
        }
    }

    /// The pairs that all shards find, by lead; the links that they find.
    fn joined(tables: &Tables, set: &[Fingerprint], distance: u32) -> (Vec<Pair>, Vec<Pair>) {
        let (mut pairs, mut links) = (Vec::new(), Vec::new());
        for lead in Lead::all(tables).unwrap() {
            let mut shards: BTreeMap<u8, Vec<Fingerprint>> = BTreeMap::new();
            for &fingerprint in set {
                let shard = tables.get(lead.table()).leading_byte(fingerprint);
                shards.entry(shard).or_default().push(fingerprint);
            }
            for shard in shards.into_values() {
                let mut all = |batch: &[Pair]| {
                    pairs.extend_from_slice(batch);
                    CONTINUE
                };
                let flow = lead.pairs_here(&shard, distance, PairsWanted::All, &mut all);
                assert!(flow.is_continue());
                let mut some = |batch: &[Pair]| {
                    links.extend_from_slice(batch);
                    CONTINUE
                };
                let flow = lead.pairs_here(&shard, distance, PairsWanted::Links, &mut some);
                assert!(flow.is_continue());
            }
        }
        pairs.sort_unstable();
        (pairs, links)
    }

    fn groups(set: &[Fingerprint], pairs: &[Pair]) -> Vec<Vec<usize>> {
        let mut clusters = Clusters::new(set.len());
        for pair in pairs {
            let place = |fingerprint| set.binary_search(&fingerprint).unwrap();
            clusters.union(place(pair.a), place(pair.b));
        }
        clusters.groups()
    }

    #[test]
    fn the_shards_together_find_each_pair_once_and_links_for_all() {
        for data in Data::ALL {
            let mut set = data.fingerprints(1_500, 3);
            // Dense enough that buckets are cut anew.
            set.extend((0..1_200).map(|low| Fingerprint(0x0123_4567_89ab_c000 | low)));
            set.extend([0, 1, u64::MAX].map(Fingerprint));
            set.sort_unstable();
            set.dedup();
            for (blocks, most) in [(5, 3), (4, 2), (6, 3), (1, 0), (10, 5), (16, 1), (64, 1)] {
                let tables = tables(blocks, most);
                for distance in [most, most / 2] {
                    let (pairs, links) = joined(&tables, &set, distance);
                    let mut expected = Vec::new();
                    for (place, &a) in set.iter().enumerate() {
                        let near = set[place + 1..]
                            .iter()
                            .filter(|&&b| a.distance(b) <= distance);
                        expected.extend(near.map(|&b| Pair { a, b }));
                    }
                    let what = format!("{} ({blocks}, {most}), {distance}", data.name());
                    assert!(pairs == expected, "{what}");
                    assert!(
                        links.iter().all(|link| link.distance() <= distance),
                        "{what}"
                    );
                    assert!(groups(&set, &links) == groups(&set, &expected), "{what}");
                }
            }
        }
    }

    #[test]
    fn a_visitor_can_end_a_search_that_finds_nothing() {
        let tables = tables(4, 1);
        let lead = &Lead::all(&tables).unwrap()[0];
        // Far apart, but for the block that they share.
        let set: Vec<Fingerprint> = Data::Random.fingerprints(5_000, 4);
        let set: Vec<Fingerprint> = set.iter().map(|f| Fingerprint(f.0 >> 16)).collect();
        let mut visits = 0;
        let mut visit = |pairs: &[Pair]| {
            assert!(pairs.is_empty());
            visits += 1;
            ControlFlow::Break(())
        };
        let flow = lead.pairs_here(&set, 1, PairsWanted::All, &mut visit);
        assert!(flow.is_break());
        assert_eq!(visits, 1);
    }
}
