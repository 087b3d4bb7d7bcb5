//! All tables of a corpus in their frozen order, the lead groups, and the rule
//! that lets exactly one table report a match.
//!
//! Two fingerprints within `k` bits differ in at most `k` of the `m` blocks. So they agree on `m - k` others, and some
//! table gives them the same prefix.
//!
//! # Invariants
//! - T3: tables are the choices of `m - k` blocks in lexicographic order of
//!   their letters; the first table is the identity.
//! - T4: of the active tables whose prefix two fingerprints share, exactly one,
//!   the first, is canonical for them.
//! - T5: with any `j + 1` lead groups active, two fingerprints within `j` bits
//!   share the prefix of an active table.

use std::ops::Range;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::Fingerprint;
use crate::layout::Layout;
use crate::lead_groups::LeadGroups;
use crate::table::Table;

/// The shared tables of this process. There are 318 layouts, so the list is short.
static SHARED: Mutex<Vec<Weak<Tables>>> = Mutex::new(Vec::new());

/// The tables of a layout, in their frozen order.
#[derive(Clone, Debug)]
pub struct Tables {
    layout: Layout,
    tables: Vec<Table>,
    /// For each lead group the tables in it: they stand next to each other.
    groups: Vec<Range<usize>>,
    /// The first of the tables that agree in where their leading byte comes from.
    leading_byte_tables: Vec<usize>,
}

impl Tables {
    /// Lays out the tables of `layout`.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        let width = layout.blocks() - layout.distance();
        let tables: Vec<Table> = choices(layout.blocks(), width)
            .into_iter()
            .map(|chosen| Table::new(layout, chosen))
            .collect();
        let groups = (0..layout.lead_group_count())
            .map(|group| {
                let start = tables.partition_point(|table| table.lead_group() < group);
                let end = tables.partition_point(|table| table.lead_group() <= group);
                start..end
            })
            .collect();
        let leading_byte_tables = distinct_leading_bytes(&tables);
        Self {
            layout,
            tables,
            groups,
            leading_byte_tables,
        }
    }

    /// The tables of `layout`. The process has one copy while it is in use. 1,001 tables take about 300 KiB.
    #[must_use]
    pub fn shared(layout: Layout) -> Arc<Self> {
        let mut shared = SHARED.lock();
        let mut held = shared.iter().filter_map(Weak::upgrade);
        if let Some(tables) = held.find(|tables| tables.layout == layout) {
            return tables;
        }
        shared.retain(|tables| tables.strong_count() > 0);
        let tables = Arc::new(Self::new(layout));
        shared.push(Arc::downgrade(&tables));
        tables
    }

    /// Blocks and distance.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Number of tables, at least 1.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// The tables, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Table> {
        self.tables.iter()
    }

    /// The table at this place in the order.
    #[must_use]
    pub fn get(&self, table: usize) -> &Table {
        &self.tables[table]
    }

    /// The places of the tables of a lead group.
    #[must_use]
    pub fn lead_group(&self, group: u32) -> Range<usize> {
        self.groups[group as usize].clone()
    }

    /// The shards that store a fingerprint, some perhaps more than once.
    pub fn document_shards(&self, fingerprint: Fingerprint) -> impl Iterator<Item = u8> + '_ {
        self.leading_byte_tables
            .iter()
            .map(move |&table| self.tables[table].leading_byte(fingerprint))
    }

    /// The shard where the documents of a fingerprint are at home in every layout: that of the first table, which is the
    /// identity. **Frozen**: counting at home counts every document once.
    #[must_use]
    pub const fn home_shard(fingerprint: Fingerprint) -> u8 {
        (fingerprint.0 >> 56) as u8
    }

    /// The shards that lead groups need for a query, some perhaps repeatedly.
    ///
    /// # Panics
    /// If the layout has no such group.
    pub fn query_shards(
        &self,
        query: Fingerprint,
        groups: LeadGroups,
    ) -> impl Iterator<Item = u8> + '_ {
        groups.iter().flat_map(move |group| {
            let range = self.lead_group(group);
            // Where the first block alone fills the byte, one table speaks for all.
            let needed = if self.first_block_bits(group) >= 8 {
                &self.tables[range.start..=range.start]
            } else {
                &self.tables[range]
            };
            let bytes = move |table: &Table| table.query_leading_bytes(query);
            needed.iter().flat_map(bytes)
        })
    }

    fn first_block_bits(&self, group: u32) -> u32 {
        self.layout.block_mask(group).count_ones()
    }

    /// Whether `table` is the one that reports a match whose fingerprints have
    /// this exclusive or: the first active table whose prefix they share.
    ///
    /// `table` must be active and its prefix shared.
    #[must_use]
    pub fn is_canonical(&self, table: usize, active: &ActiveTables, difference: u64) -> bool {
        let ActiveTables::Some(set) = active else {
            return self.is_first_of_all(table, difference);
        };
        let mut earlier = self.tables[..table].iter().zip(set);
        !earlier.any(|(table, &active)| active && table.shares_prefix(difference))
    }

    /// With all tables active, an earlier one shares its prefix exactly if some
    /// unchosen block before the last chosen one agrees: it could take that
    /// one's place.
    fn is_first_of_all(&self, table: usize, difference: u64) -> bool {
        let chosen = self.tables[table].chosen();
        let last = 63 - chosen.leading_zeros();
        let mut skipped = !chosen & ((1 << last) - 1);
        while skipped != 0 {
            let letter = skipped.trailing_zeros();
            if difference & self.layout.block_mask(letter) == 0 {
                return false;
            }
            skipped &= skipped - 1;
        }
        true
    }
}

/// The tables that take part in a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActiveTables {
    /// Every table.
    All,
    /// Those with `true`, an element a table.
    Some(Vec<bool>),
}

impl ActiveTables {
    /// The tables of these lead groups.
    #[must_use]
    pub fn of_lead_groups(tables: &Tables, groups: LeadGroups) -> Self {
        if groups == LeadGroups::all(tables.layout()) {
            return Self::All;
        }
        let is_active = |table: &Table| groups.contains(table.lead_group());
        Self::Some(tables.iter().map(is_active).collect())
    }

    /// Whether a table takes part.
    #[must_use]
    pub fn contains(&self, table: usize) -> bool {
        match self {
            Self::All => true,
            Self::Some(set) => set[table],
        }
    }
}

/// Every choice of `width` of `blocks` letters as a bit set, in lexicographic
/// order of the letters.
fn choices(blocks: u32, width: u32) -> Vec<u64> {
    let mut choices = Vec::new();
    let mut letters: Vec<u32> = (0..width).collect();
    loop {
        choices.push(letters.iter().fold(0, |set, letter| set | 1 << letter));
        // The last letter that can still move on, and those after it behind it.
        let Some(place) = (0..width).rfind(|&i| letters[i as usize] < blocks - width + i) else {
            return choices;
        };
        letters[place as usize] += 1;
        for i in place as usize + 1..width as usize {
            letters[i] = letters[i - 1] + 1;
        }
    }
}

/// The first table for each different source of a leading byte.
fn distinct_leading_bytes(tables: &[Table]) -> Vec<usize> {
    let source = |table: &Table| -> Vec<Fingerprint> {
        (56..64).map(|bit| table.unpermute(1 << bit)).collect()
    };
    let mut seen = Vec::new();
    let mut distinct = Vec::new();
    for (place, table) in tables.iter().enumerate() {
        let source = source(table);
        if !seen.contains(&source) {
            seen.push(source);
            distinct.push(place);
        }
    }
    distinct
}

#[cfg(test)]
mod tests;
