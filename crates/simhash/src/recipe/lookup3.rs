//! `hashlittle2` of Bob Jenkins' lookup3: two 32-bit hashes of some bytes.
//!
//! Described at <https://burtleburtle.net/bob/c/lookup3.c>, which is in the public domain.

/// Bytes that are mixed in together.
const BLOCK: usize = 12;

/// The hashes `(pc, pb)` of some bytes, from the two seeds of the same names.
pub(super) fn hash(bytes: &[u8], (pc, pb): (u32, u32)) -> (u32, u32) {
    let start = start(bytes.len(), pc);
    let mut state = [start, start, start.wrapping_add(pb)];
    let mut rest = bytes;
    while rest.len() > BLOCK {
        let (block, after) = rest.split_at(BLOCK);
        state = mix(add(state, number(block)));
        rest = after;
    }
    if rest.is_empty() {
        return (state[2], state[1]);
    }
    let [_, b, c] = last_mix(add(state, number(rest)));
    (c, b)
}

/// The hashes of 1 to 12 bytes with seeds of 0, given as a number, the first byte lowest.
#[inline]
pub(super) fn hash_block(bytes: u128, length: usize) -> (u32, u32) {
    let state = [start(length, 0); 3];
    let [_, b, c] = last_mix(add(state, bytes));
    (c, b)
}

const fn start(length: usize, pc: u32) -> u32 {
    0xdead_beef_u32.wrapping_add(length as u32).wrapping_add(pc)
}

/// At most 16 bytes as a number, the first one lowest.
fn number(bytes: &[u8]) -> u128 {
    let mut padded = [0; 16];
    padded[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(padded)
}

#[inline]
fn add([a, b, c]: [u32; 3], block: u128) -> [u32; 3] {
    [
        a.wrapping_add(block as u32),
        b.wrapping_add((block >> 32) as u32),
        c.wrapping_add((block >> 64) as u32),
    ]
}

/// Mixes the state between blocks: six alike steps, each on the next of the three words.
fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    for turns in [[4, 6, 8], [16, 19, 4]] {
        (a, c) = (
            a.wrapping_sub(c) ^ c.rotate_left(turns[0]),
            c.wrapping_add(b),
        );
        (b, a) = (
            b.wrapping_sub(a) ^ a.rotate_left(turns[1]),
            a.wrapping_add(c),
        );
        (c, b) = (
            c.wrapping_sub(b) ^ b.rotate_left(turns[2]),
            b.wrapping_add(a),
        );
    }
    [a, b, c]
}

/// Mixes the state after the last block.
#[inline]
fn last_mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    let step = |word: u32, by: u32, turns| (word ^ by).wrapping_sub(by.rotate_left(turns));
    c = step(c, b, 14);
    a = step(a, c, 11);
    b = step(b, a, 25);
    c = step(c, b, 16);
    a = step(a, c, 4);
    b = step(b, a, 14);
    c = step(c, b, 24);
    [a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn the_published_values_are_met() {
        let vectors: Value =
            serde_json::from_str(include_str!("../../tests/data/vectors.json")).unwrap();
        let cases = vectors["lookup3"]["cases"].as_array().unwrap();
        assert!(!cases.is_empty());
        for case in cases {
            let word = |key: &str| u32::from_str_radix(case[key].as_str().unwrap(), 16).unwrap();
            let text = case["text"].as_str().unwrap();
            let hashes = hash(text.as_bytes(), (word("pc"), word("pb")));
            assert_eq!(hashes, (word("out_pc"), word("out_pb")), "{case}");
        }
    }

    proptest! {
        #[test]
        fn short_bytes_hash_alike_as_a_number(
            bytes in prop::collection::vec(any::<u8>(), 1..=BLOCK),
        ) {
            prop_assert_eq!(hash_block(number(&bytes), bytes.len()), hash(&bytes, (0, 0)));
        }
    }
}
