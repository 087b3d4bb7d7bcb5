//! The layouts whose exactness is promised, and tested one by one.

/// Every (blocks, distance) with up to 10 blocks and distance up to 7, and
/// distance 1 with 16, 32 and 64 blocks.
#[must_use]
pub fn promised_layouts() -> Vec<(u32, u32)> {
    let mut layouts = Vec::new();
    for blocks in 1..=10 {
        for distance in 0..blocks.min(8) {
            layouts.push((blocks, distance));
        }
    }
    layouts.extend([(16, 1), (32, 1), (64, 1)]);
    layouts
}
