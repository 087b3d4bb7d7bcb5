//! Order, permutations, shards and the canonical table, against the definitions.

use proptest::prelude::*;

use super::*;

fn tables(blocks: u32, distance: u32) -> Tables {
    Tables::new(Layout::new(blocks, distance).unwrap())
}

/// Every layout with at most 10 blocks, and some with more.
fn layouts() -> Vec<(u32, u32)> {
    let mut layouts: Vec<(u32, u32)> = (1..=10)
        .flat_map(|blocks| (0..blocks).map(move |distance| (blocks, distance)))
        .collect();
    layouts.extend([(16, 1), (32, 1), (64, 1), (12, 5), (64, 63), (33, 1)]);
    layouts
}

#[test]
fn tables_are_shared_while_in_use() {
    let [one, other] = [(37, 2), (37, 1)].map(|(m, k)| Layout::new(m, k).unwrap());
    let first = Tables::shared(one);
    assert!(Arc::ptr_eq(&first, &Tables::shared(one)));
    assert_eq!(Tables::shared(other).layout(), other);
    assert_eq!((first.layout(), first.len()), (one, one.table_count()));
    let last = Arc::downgrade(&first);
    drop(first);
    assert!(last.upgrade().is_none(), "the tables are freed");
    assert_eq!(Tables::shared(one).len(), one.table_count());
}

/// T3.
#[test]
fn tables_stand_in_lexicographic_order() {
    let names: Vec<String> = tables(4, 2).iter().map(Table::to_string).collect();
    assert_eq!(
        names,
        ["AB CD", "AC BD", "AD BC", "BC AD", "BD AC", "CD AB"]
    );
    let names: Vec<String> = tables(6, 3).iter().map(Table::to_string).collect();
    assert_eq!(names[0], "ABC DEF");
    assert_eq!(names[1], "ABD CEF");
    assert_eq!(names[19], "DEF ABC");
}

#[test]
fn four_blocks_of_sixteen_bits_permute_as_published() {
    let permuted: Vec<u64> = tables(4, 3)
        .iter()
        .map(|table| table.permute(Fingerprint(0x0123_4567_89ab_cdef)))
        .collect();
    assert_eq!(
        permuted,
        [
            0x0123_4567_89ab_cdef,
            0x4567_0123_89ab_cdef,
            0x89ab_0123_4567_cdef,
            0xcdef_0123_4567_89ab,
        ]
    );
}

#[test]
fn the_worked_example_meets_in_one_table_and_one_shard() {
    let stored = Fingerprint(5_456_993_838_078_482_869);
    let query = Fingerprint(5_457_064_206_285_785_525);
    let tables = tables(6, 3);
    let difference = stored.0 ^ query.0;
    assert_eq!(difference, 1 << 12 | 1 << 29 | 1 << 46);

    let sharing: Vec<String> = tables
        .iter()
        .filter(|table| table.shares_prefix(difference))
        .map(Table::to_string)
        .collect();
    assert_eq!(sharing, ["ACF BDE"]);

    let bytes = |fingerprint| -> Vec<u8> { tables.document_shards(fingerprint).collect() };
    assert_eq!(bytes(stored), [75, 217, 190, 188]);
    assert_eq!(bytes(query), [75, 219, 190, 156]);
}

#[test]
fn the_first_table_is_the_identity() {
    for (blocks, distance) in layouts() {
        let value = Fingerprint(0x0123_4567_89ab_cdef);
        assert_eq!(tables(blocks, distance).get(0).permute(value), value.0);
    }
}

#[test]
fn the_first_shard_of_a_fingerprint_is_its_home_in_every_layout() {
    let value = Fingerprint(0x0123_4567_89ab_cdef);
    assert_eq!(Tables::home_shard(value), 0x01);
    for (blocks, distance) in layouts() {
        let tables = tables(blocks, distance);
        let first = tables.document_shards(value).next();
        assert_eq!(first, Some(Tables::home_shard(value)));
    }
}

#[test]
fn lead_groups_cover_the_tables_in_order() {
    for (blocks, distance) in layouts() {
        let tables = tables(blocks, distance);
        let mut next = 0;
        for group in 0..=distance {
            let range = tables.lead_group(group);
            assert_eq!(range.start, next);
            assert!(range.clone().all(|t| tables.get(t).lead_group() == group));
            next = range.end;
        }
        assert_eq!(next, tables.len());
    }
}

#[test]
fn up_to_eight_blocks_touch_no_more_shards_than_lead_groups() {
    for (blocks, distance) in layouts() {
        let count = tables(blocks, distance)
            .document_shards(Fingerprint(1))
            .count();
        if blocks <= 8 {
            assert_eq!(count, distance as usize + 1, "({blocks}, {distance})");
        }
    }
}

proptest! {
    /// T1 and T2.
    #[test]
    fn permuting_is_undone_and_linear(a: u64, b: u64) {
        for (blocks, distance) in layouts() {
            for table in tables(blocks, distance).iter() {
                let permuted = table.permute(Fingerprint(a));
                prop_assert_eq!(table.unpermute(permuted), Fingerprint(a));
                prop_assert_eq!(permuted.count_ones(), a.count_ones());
                let other = table.permute(Fingerprint(b));
                prop_assert_eq!(permuted ^ other, table.permute(Fingerprint(a ^ b)));
                let range = table.prefix_range(permuted);
                prop_assert_eq!(range.contains(&other), table.shares_prefix(a ^ b));
            }
        }
    }

    #[test]
    fn documents_are_in_the_leading_bytes_of_all_tables(value: u64) {
        for (blocks, distance) in layouts() {
            let tables = tables(blocks, distance);
            let mut shards: Vec<u8> = tables.document_shards(Fingerprint(value)).collect();
            let mut expected: Vec<u8> =
                tables.iter().map(|table| table.leading_byte(Fingerprint(value))).collect();
            shards.sort_unstable();
            shards.dedup();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(shards, expected);
        }
    }

    #[test]
    fn queries_visit_the_shard_of_every_match(value: u64, flips in prop::collection::vec(0..64_u32, 0..9)) {
        for (blocks, distance) in layouts() {
            let tables = tables(blocks, distance);
            let flipped = flips.iter().take(distance as usize).fold(value, |v, bit| v ^ 1 << bit);
            for group in 0..=distance {
                for place in tables.lead_group(group) {
                    let table = tables.get(place);
                    if !table.shares_prefix(value ^ flipped) {
                        continue;
                    }
                    let shard = table.leading_byte(Fingerprint(flipped));
                    let groups = LeadGroups::only(group);
                    let mut shards = tables.query_shards(Fingerprint(value), groups);
                    prop_assert!(shards.any(|needed| needed == shard));
                }
            }
        }
    }

    /// T4.
    #[test]
    fn exactly_one_active_table_is_canonical(difference: u64, mask: u64, active_bits: u64) {
        // Few set bits, so that prefixes are shared now and then.
        let difference = difference & mask & mask.rotate_left(17) & mask.rotate_left(31);
        for (blocks, distance) in layouts() {
            let tables = tables(blocks, distance);
            let some = ActiveTables::Some(
                (0..tables.len()).map(|table| active_bits.rotate_left(table as u32) & 1 == 1).collect(),
            );
            for active in [ActiveTables::All, some] {
                let sharing = |table: &usize| {
                    active.contains(*table) && tables.get(*table).shares_prefix(difference)
                };
                let first = (0..tables.len()).find(sharing);
                for table in (0..tables.len()).filter(sharing) {
                    let canonical = tables.is_canonical(table, &active, difference);
                    prop_assert_eq!(canonical, Some(table) == first);
                }
            }
        }
    }
}

/// T5, over the blocks that differ: which bits inside them do is irrelevant.
#[test]
fn any_lead_groups_find_every_match_below_their_number() {
    for (blocks, distance) in layouts() {
        if blocks > 10 {
            continue;
        }
        let tables = tables(blocks, distance);
        for groups in 1..1_u64 << (distance + 1) {
            let groups = LeadGroups(groups);
            let reach = groups.guaranteed_distance().unwrap();
            let active = ActiveTables::of_lead_groups(&tables, groups);
            for differing in 0..1_u64 << blocks {
                if differing.count_ones() > reach {
                    continue;
                }
                let found = (0..tables.len()).any(|table| {
                    active.contains(table) && tables.get(table).chosen() & differing == 0
                });
                assert!(
                    found,
                    "({blocks}, {distance}) groups {groups} blocks {differing:b}"
                );
            }
        }
    }
}
