//! Sets of lead groups: which tables a query uses, by their first block.

use std::fmt;

use crate::layout::{Layout, low_bits};

/// A set of lead groups: bit `g` is the group of tables whose first block has
/// letter `g`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeadGroups(pub u64);

impl LeadGroups {
    /// No group.
    pub const NONE: Self = Self(0);

    /// All `k + 1` groups of a layout.
    #[must_use]
    pub const fn all(layout: Layout) -> Self {
        Self(low_bits(layout.lead_group_count()))
    }

    /// A single group, less than 64.
    #[must_use]
    pub const fn only(group: u32) -> Self {
        Self(1 << group)
    }

    /// Whether a group is in the set.
    #[must_use]
    pub const fn contains(self, group: u32) -> bool {
        group < 64 && self.0 >> group & 1 == 1
    }

    /// Adds a group, less than 64.
    pub const fn insert(&mut self, group: u32) {
        self.0 |= 1 << group;
    }

    /// Number of groups.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether no group is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The groups that are in this set and not in the other.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The `count` groups with the highest letters, which have the fewest
    /// tables; all, if there are fewer.
    #[must_use]
    pub const fn last(self, count: u32) -> Self {
        let mut groups = self;
        while groups.len() > count {
            groups.0 &= groups.0 - 1;
        }
        groups
    }

    /// The groups, by letter.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..64).filter(move |&group| self.contains(group))
    }

    /// The distance up to which these groups miss nothing; `None` for no group.
    #[must_use]
    pub const fn guaranteed_distance(self) -> Option<u32> {
        self.len().checked_sub(1)
    }
}

impl fmt::Display for LeadGroups {
    /// Letters, `A,C`; numbers from the 27th on.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, group) in self.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            match group {
                0..26 => write!(f, "{comma}{}", char::from(b'A' + group as u8))?,
                26.. => write!(f, "{comma}{group}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_groups_are_kept() {
        let all = LeadGroups::all(Layout::new(6, 3).unwrap());
        assert_eq!(all, LeadGroups(0b1111));
        assert_eq!(all.last(2), LeadGroups(0b1100));
        assert_eq!(all.last(9), all);
        assert_eq!(all.last(0), LeadGroups::NONE);
        assert_eq!(all.difference(all.last(3)).to_string(), "A");
        assert_eq!(all.to_string(), "A,B,C,D");
    }
}
