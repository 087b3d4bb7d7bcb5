//! Cutting 64 bits into blocks, and how many tables that makes.
//!
//! Source: Manku, Jain and Das Sarma, "Detecting Near-Duplicates for Web
//! Crawling", WWW 2007, section 3.

/// Most blocks a fingerprint can be cut into: one a bit.
pub const MAX_BLOCKS: u32 = 64;

/// Most tables a corpus may have.
pub const MAX_TABLES: usize = 1024;

/// A search takes as long to look into a table as to compare this many fingerprints.
const VISIT: f64 = 40.0;

/// The pairs of evenly spread fingerprints that are within a distance by chance.
///
/// ```
/// assert_eq!(simshard_simhash::chance_pairs(1e8, 6).round(), 22_573.0);
/// ```
#[must_use]
pub fn chance_pairs(documents: f64, distance: u32) -> f64 {
    // C(64, 0), then each from the one before.
    let mut choices = 1.0;
    let mut near = 1.0;
    for bits in 1..=distance.min(64) {
        choices *= f64::from(65 - bits) / f64::from(bits);
        near += choices;
    }
    documents * (documents - 1.0).max(0.0) / 2.0 * near / 64_f64.exp2()
}

/// Number of blocks and largest distance of a corpus; always valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    blocks: u32,
    distance: u32,
}

/// Why a pair of blocks and distance makes no corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// No blocks, or more than there are bits.
    #[error("blocks must be 1 to 64, not {blocks}")]
    Blocks {
        /// The blocks asked for.
        blocks: u32,
    },
    /// A distance that no number of blocks goes with.
    #[error("distance must be 0 to 63, not {distance}")]
    TooFar {
        /// The distance asked for.
        distance: u32,
    },
    /// No block would be left to lead a table.
    #[error("distance must be less than blocks ({blocks}), not {distance}")]
    Distance {
        /// The blocks asked for.
        blocks: u32,
        /// The distance asked for.
        distance: u32,
    },
    /// More tables than [`MAX_TABLES`].
    #[error(
        "{blocks} blocks with distance {distance} need more than 1024 tables: choose fewer blocks"
    )]
    Tables {
        /// The blocks asked for.
        blocks: u32,
        /// The distance asked for.
        distance: u32,
    },
}

impl Default for Layout {
    /// 5 blocks and distance 3: ten tables, for up to some hundred million.
    fn default() -> Self {
        Self {
            blocks: 5,
            distance: 3,
        }
    }
}

impl Layout {
    /// Checks a number of blocks `m` and a largest distance `k`.
    ///
    /// # Errors
    /// If `m` is 0 or over 64, if `k >= 64` or `k >= m`, or if C(m, k) is over [`MAX_TABLES`].
    pub const fn new(blocks: u32, distance: u32) -> Result<Self, LayoutError> {
        if blocks == 0 || blocks > MAX_BLOCKS {
            return Err(LayoutError::Blocks { blocks });
        }
        if distance >= MAX_BLOCKS {
            return Err(LayoutError::TooFar { distance });
        }
        if distance >= blocks {
            return Err(LayoutError::Distance { blocks, distance });
        }
        if table_count(blocks, distance) > MAX_TABLES {
            return Err(LayoutError::Tables { blocks, distance });
        }
        Ok(Self { blocks, distance })
    }

    /// The layout for a number of fingerprints, found up to `distance`. It is the one whose searches are cheapest,
    /// where twice the tables must make them more than 1.4 times as fast.
    ///
    /// # Errors
    /// If no layout has this distance.
    pub fn for_documents(documents: f64, distance: u32) -> Result<Self, LayoutError> {
        let fewest = distance.saturating_add(1).min(MAX_BLOCKS);
        let least = Self::new(fewest, distance)?;
        let layouts =
            (distance + 1..=MAX_BLOCKS).map_while(|blocks| Self::new(blocks, distance).ok());
        let cost = |layout: &Self| {
            let tables = layout.table_count() as f64;
            (VISIT * tables + layout.candidates(documents)) * tables.sqrt()
        };
        let best = layouts.min_by(|a, b| cost(a).total_cmp(&cost(b)));
        Ok(best.unwrap_or(least))
    }

    /// How many evenly spread fingerprints, of `documents`, a search compares with its query, in all
    /// tables together.
    #[must_use]
    pub fn candidates(self, documents: f64) -> f64 {
        let prefix_bits = 64.0 * f64::from(self.blocks - self.distance) / f64::from(self.blocks);
        self.table_count() as f64 * documents / prefix_bits.exp2()
    }

    /// Number of blocks, `m`.
    #[must_use]
    pub const fn blocks(self) -> u32 {
        self.blocks
    }

    /// Largest distance searched, `k`.
    #[must_use]
    pub const fn distance(self) -> u32 {
        self.distance
    }

    /// Number of tables, C(m, k).
    #[must_use]
    pub const fn table_count(self) -> usize {
        table_count(self.blocks, self.distance)
    }

    /// Number of lead groups, `k + 1`.
    #[must_use]
    pub const fn lead_group_count(self) -> u32 {
        self.distance + 1
    }

    /// The bits of the block with this letter: 0 is `A`, the most significant.
    ///
    /// Counted from the least significant bit, block `i` covers the bits from
    /// `i * 64 / m` up to, not including, `(i + 1) * 64 / m`.
    pub(crate) const fn block_mask(self, letter: u32) -> u64 {
        let i = self.blocks - 1 - letter;
        let low = i * 64 / self.blocks;
        let high = (i + 1) * 64 / self.blocks;
        low_bits(high) & !low_bits(low)
    }
}

/// A mask of the `count` least significant bits, for 0 to 64.
pub(crate) const fn low_bits(count: u32) -> u64 {
    match count {
        0 => 0,
        count => u64::MAX >> (64 - count),
    }
}

/// C(blocks, distance), or `MAX_TABLES + 1` for everything above the bound.
const fn table_count(blocks: u32, distance: u32) -> usize {
    let smaller = if distance < blocks - distance {
        distance
    } else {
        blocks - distance
    };
    let mut count = 1_usize;
    let mut chosen = 0;
    while chosen < smaller {
        // C(n, i + 1) = C(n, i) * (n - i) / (i + 1), always whole and, up to
        // the smaller half, never falling.
        count = count * (blocks - chosen) as usize / (chosen + 1) as usize;
        if count > MAX_TABLES {
            return MAX_TABLES + 1;
        }
        chosen += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_blocks_cover_the_published_bits() {
        let layout = Layout::new(6, 3).unwrap();
        let ranges = [(63, 53), (52, 42), (41, 32), (31, 21), (20, 10), (9, 0)];
        for (letter, (high, low)) in (0..).zip(ranges) {
            let expected = low_bits(high + 1) & !low_bits(low);
            assert_eq!(layout.block_mask(letter), expected, "block {letter}");
        }
    }

    #[test]
    fn blocks_partition_the_64_bits_for_every_count() {
        for blocks in 1..=64 {
            let layout = Layout::new(blocks, 0).unwrap();
            let mut seen = 0_u64;
            for letter in 0..blocks {
                let mask = layout.block_mask(letter);
                assert_ne!(mask, 0);
                assert_eq!(mask & seen, 0);
                seen |= mask;
            }
            assert_eq!(seen, u64::MAX);
        }
    }

    #[test]
    fn tables_are_counted_up_to_the_bound() {
        for (blocks, distance, tables) in [
            (1, 0, 1),
            (5, 3, 10),
            (6, 3, 20),
            (10, 7, 120),
            (12, 5, 792),
            (64, 1, 64),
            (64, 63, 64),
            (45, 2, 990),
        ] {
            let layout = Layout::new(blocks, distance).unwrap();
            assert_eq!(layout.table_count(), tables, "({blocks}, {distance})");
        }
    }

    #[test]
    fn the_layout_follows_from_the_distance_and_the_number_of_documents() {
        for (documents, distance, blocks) in [
            (0.0, 3, 4),
            (1e6, 3, 4),
            (1e7, 3, 5),
            (1e9, 3, 5),
            (1e10, 3, 6),
            (1e7, 0, 1),
            (1e7, 2, 3),
            (1e7, 4, 6),
            (1e7, 5, 7),
            (1e7, 6, 8),
            (1e15, 63, 64),
        ] {
            let layout = Layout::for_documents(documents, distance).unwrap();
            assert_eq!(layout.blocks(), blocks, "{documents} {distance}");
        }
        for distance in [64, u32::MAX] {
            let error = LayoutError::TooFar { distance };
            assert_eq!(Layout::for_documents(1e7, distance), Err(error));
            assert_eq!(Layout::new(5, distance), Err(error));
        }
    }

    #[test]
    fn chance_puts_pairs_within_a_distance_as_the_binomials_say() {
        assert_eq!(chance_pairs(1e8, 6).round(), 22_573.0);
        assert_eq!(chance_pairs(2.0, 64).round(), 1.0);
        assert_eq!(chance_pairs(0.0, 3), 0.0);
    }

    #[test]
    fn layouts_without_a_corpus_are_refused() {
        use LayoutError::{Blocks, Distance, Tables, TooFar};
        for (blocks, distance, error) in [
            (0, 0, Blocks { blocks: 0 }),
            (65, 3, Blocks { blocks: 65 }),
            (u32::MAX, 3, Blocks { blocks: u32::MAX }),
            (
                3,
                3,
                Distance {
                    blocks: 3,
                    distance: 3,
                },
            ),
            (
                3,
                63,
                Distance {
                    blocks: 3,
                    distance: 63,
                },
            ),
            (3, u32::MAX, TooFar { distance: u32::MAX }),
            (
                46,
                2,
                Tables {
                    blocks: 46,
                    distance: 2,
                },
            ),
            (
                64,
                32,
                Tables {
                    blocks: 64,
                    distance: 32,
                },
            ),
            (
                64,
                62,
                Tables {
                    blocks: 64,
                    distance: 62,
                },
            ),
        ] {
            assert_eq!(Layout::new(blocks, distance), Err(error));
        }
    }
}
