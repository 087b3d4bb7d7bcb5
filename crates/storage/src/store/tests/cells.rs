//! The sums of what shards have in common.

use std::collections::BTreeMap;
use std::iter::repeat_with;

use fastrand::Rng;
use simshard_simhash::{Fingerprint, Tables};
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};
use tempfile::TempDir;

use super::copies::{alone, open, store_in};
use super::{CORPUS, Fixture, change, layout, owned, shards_of};
use crate::delta::CellSums;
use crate::element::{ChangeKind, Operation};

/// No version is later.
const ALL: Version = Version(u64::MAX);

/// The bits of the five blocks.
const WIDTHS: [u32; 5] = [13, 13, 13, 13, 12];

/// A fingerprint of which all shards are owned: the first byte of each block is one of theirs.
fn fingerprint(random: &mut Rng) -> u64 {
    WIDTHS.iter().fold(0, |bits, width| {
        let byte = random.u64(..owned().len() as u64);
        let rest = width - 8;
        bits << width | byte << rest | random.u64(..1 << rest)
    })
}

fn shards(fingerprint: u64) -> ShardSet {
    shards_of(&Tables::new(layout()), Fingerprint(fingerprint))
}

fn sums(fixture: &Fixture, corpora: &[CorpusUid], until: Version) -> BTreeMap<ShardId, CellSums> {
    let sums = |shard| {
        let record = fixture.store.synced_record(shard).unwrap();
        let pinned = fixture.store.pin(shard, record.epoch).unwrap().unwrap();
        (
            shard,
            pinned.cells(shard, corpora, until, Version::NONE).unwrap(),
        )
    };
    owned().iter().map(sums).collect()
}

/// The pairs of shards whose sums for each other differ.
fn differing(sums: &BTreeMap<ShardId, CellSums>) -> Vec<(ShardId, ShardId)> {
    let mut differing = Vec::new();
    for (shard, own) in sums {
        for (other, others) in sums.range(shard..).skip(1) {
            if own.with(*other) != others.with(*shard) {
                differing.push((*shard, *other));
            }
        }
    }
    differing
}

/// DC4.
#[test]
fn the_sums_of_two_shards_differ_if_a_document_of_both_does() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let directory = TempDir::new().unwrap();
    let fixture = open(directory.path(), &alone(store_in(directory.path()), 1));
    fixture.create();
    let all: Vec<u64> = repeat_with(|| fingerprint(&mut random)).take(200).collect();
    for version in 1..100 {
        let kind = match random.u8(..3) {
            0 => ChangeKind::Remove,
            _ => ChangeKind::Insert,
        };
        let some: Vec<(u64, &str)> = (0..random.usize(1..20))
            .map(|_| (all[random.usize(..all.len())], ["", "a"][random.usize(..2)]))
            .collect();
        fixture.run(Operation::Change(change(kind, version, &some)));
        if version % 40 == 0 {
            fixture.flush();
        }
    }
    let before = sums(&fixture, &[CORPUS], ALL);
    assert_eq!(differing(&before), []);
    assert!(before[&ShardId(0)].with(ShardId(1)) != [0; 16]);

    for (version, kind) in (100..120).zip([ChangeKind::Insert, ChangeKind::Remove].repeat(10)) {
        let document = fingerprint(&mut random);
        let shards: Vec<ShardId> = shards(document).iter().collect();
        let shard = shards[random.usize(..shards.len())];
        let mut half = change(kind, version, &[(document, "half")]);
        half.shards = ShardSet::from_iter([shard]);
        fixture.run(Operation::Change(half));
        let others = shards.iter().filter(|other| **other != shard);
        let expected: Vec<_> = others
            .map(|other| (shard.min(*other), shard.max(*other)))
            .collect();
        assert_eq!(differing(&sums(&fixture, &[CORPUS], ALL)), expected);
        assert_eq!(
            differing(&sums(&fixture, &[CORPUS], Version(version - 1))),
            []
        );
        let whole = change(kind, version, &[(document, "half")]);
        fixture.run(Operation::Change(whole));
        assert_eq!(differing(&sums(&fixture, &[CORPUS], ALL)), []);
    }
}

#[test]
fn other_corpora_do_not_count() {
    let directory = TempDir::new().unwrap();
    let fixture = open(directory.path(), &alone(store_in(directory.path()), 1));
    fixture.create();
    let document = fingerprint(&mut Rng::with_seed(7));
    fixture.run(Operation::Change(change(
        ChangeKind::Insert,
        1,
        &[(document, "a")],
    )));
    let cells = |corpora: &[CorpusUid]| {
        let sums = sums(&fixture, corpora, ALL);
        let of = |sums: &CellSums| {
            ShardSet::ALL
                .iter()
                .filter(|other| sums.with(*other) != [0; 16])
                .count()
        };
        sums.values().map(of).sum::<usize>()
    };
    let shards = shards(document).len();
    assert_eq!(cells(&[CORPUS]), shards * (shards - 1));
    assert_eq!(cells(&[CorpusUid([9; 16])]), 0);
}
