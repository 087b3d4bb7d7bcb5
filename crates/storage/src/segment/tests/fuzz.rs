//! Blocks and segments with damage under sound checksums: refused, or read without a panic.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::*;
use crate::tests::{changed, changes, fuzz_cases};

#[test]
fn a_damaged_block_is_refused_or_is_what_it_says() {
    let samples = [
        block(&[(0, ""), (1, ""), (u64::MAX, "")]),
        block(&[
            (1, ""),
            (1, "a"),
            (1, "é"),
            (2, "🙂"),
            (2, "🙂z"),
            (9, "b"),
            (9, "c"),
            (10, ""),
            (11, ""),
        ]),
    ];
    for sample in samples {
        let mut bytes = Vec::new();
        sample.encode(&mut bytes);
        proptest!(fuzz_cases(), |(changes in changes(256))| {
            let bytes = sealed(changed(&bytes, &changes));
            let Ok((block, sum)) = Block::decode(&bytes) else {
                return Ok(());
            };
            let mut again = Vec::new();
            assert_eq!(block.encode(&mut again), sum);
            assert_eq!(again, bytes);
            let keys = |place| (block.element(place).fingerprint, block.element(place).id);
            assert!((1..block.len()).all(|place| keys(place - 1) < keys(place)));
        });
    }
}

/// G2.
#[test]
fn a_segment_with_a_damaged_frame_is_refused_or_in_order() {
    let (a, b) = (CorpusUid([1; 16]), CorpusUid([2; 16]));
    let blocks = [
        (a, block(&[(1, ""), (2, "")])),
        (a, block(&[(2, "b"), (3, "")])),
        (b, block(&[(1, "x")])),
    ];
    let (sample, _) = assemble(&blocks);
    let ends = sample.len() - 64 - 3 * 32 - 2 * 24;
    proptest!(fuzz_cases(), |(changes in changes(sample.len() - ends + 64))| {
        // The header in front, index and footer behind; the blocks in between stay.
        let framed = [&sample[..64], &sample[ends..]].concat();
        let framed = changed(&framed, &changes);
        let Some((header, rest)) = framed.split_first_chunk::<64>() else {
            return Ok(());
        };
        let Some((index, footer)) = rest.split_last_chunk::<64>() else {
            return Ok(());
        };
        let mut footer = footer.to_vec();
        footer[32..36].copy_from_slice(&crc32c::crc32c(index).to_le_bytes());
        let header = sealed(header.to_vec());
        let bytes = [&header, &sample[64..ends], index, &sealed(footer)].concat();
        read_all(&bytes);
    });
}

fn read_all(bytes: &[u8]) {
    let footer = Footer::decode(&bytes[bytes.len() - 64..]);
    let Ok(Footer {
        elements,
        highest_version,
        ..
    }) = footer
    else {
        return;
    };
    let meta = SegmentMeta {
        highest_version,
        ..meta_of(bytes, elements)
    };
    let Ok(segment) = open_bytes(bytes, meta) else {
        return;
    };
    for corpus in segment.corpora() {
        let _ = segment.find(corpus, Fingerprint(2), "b");
        let _ = segment.lookup(corpus, Fingerprint(1), |_| ControlFlow::Continue(()));
    }
    if let Ok(all) = segment.scan_all(|_| true).and_then(rest) {
        assert_eq!(all.len() as u64, elements);
    }
}
