//! The answers of the batch tools by other, slower methods.

use std::collections::{BTreeSet, HashMap};

use anyhow::ensure;
use rayon::prelude::*;
use simshard_input::Parts;
use simshard_simhash::{Fingerprint, FingerprintSet, TextRecipe};

use super::text::Texts;

/// Two different fingerprints, the smaller first.
pub(super) type Ends = (Fingerprint, Fingerprint);

/// Every pair of different fingerprints within a distance, by comparing each with each.
pub(super) fn pairs(fingerprints: &[Fingerprint], distance: u32) -> Vec<Ends> {
    let mut distinct = fingerprints.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let later = |place: usize| {
        let a = distinct[place];
        let near = distinct[place + 1..]
            .iter()
            .filter(move |b| a.distance(**b) <= distance);
        near.map(move |&b| (a, b))
    };
    (0..distinct.len())
        .into_par_iter()
        .flat_map_iter(later)
        .collect()
}

/// An error unless these are the expected pairs, each once.
pub(super) fn same_pairs(mut found: Vec<Ends>, expected: &[Ends]) -> anyhow::Result<()> {
    found.sort_unstable();
    ensure!(
        found == expected,
        "all_pairs is wrong: {} pairs, not {}",
        found.len(),
        expected.len()
    );
    Ok(())
}

/// An error unless the clusters are the connected components of the pairs: by a walk along them.
pub(super) fn same_clusters(
    set: &FingerprintSet,
    found: &[Vec<usize>],
    pairs: &[Ends],
) -> anyhow::Result<()> {
    let mut neighbours: HashMap<Fingerprint, Vec<Fingerprint>> = HashMap::new();
    for &(a, b) in pairs {
        neighbours.entry(a).or_default().push(b);
        neighbours.entry(b).or_default().push(a);
    }
    let all = set.as_slice();
    let mut open: BTreeSet<Fingerprint> = neighbours.keys().copied().collect();
    let mut groups = found.iter();
    while let Some(first) = open.pop_first() {
        let mut cluster = vec![first];
        let mut next = 0;
        while next < cluster.len() {
            for near in &neighbours[&cluster[next]] {
                if open.remove(near) {
                    cluster.push(*near);
                }
            }
            next += 1;
        }
        cluster.sort_unstable();
        let group: Option<Vec<Fingerprint>> = groups
            .next()
            .map(|group| group.iter().map(|&place| all[place]).collect());
        ensure!(
            group.as_ref() == Some(&cluster),
            "the cluster of {first} is wrong"
        );
    }
    ensure!(
        groups.next().is_none(),
        "there are more clusters than expected"
    );
    Ok(())
}

/// An error unless every text alone has the fingerprint that it had among the others.
pub(super) fn texts(texts: &Texts, recipe: TextRecipe, found: &Parts) -> anyhow::Result<()> {
    let mut made = found.fingerprints.iter().copied();
    for (place, text) in texts.texts.iter().enumerate() {
        let Some(expected) = recipe.fingerprint_by_definition(text) else {
            continue;
        };
        ensure!(
            made.next() == Some(expected),
            "the fingerprint of text {place} is wrong"
        );
    }
    ensure!(made.next().is_none(), "texts without fingerprint have one");
    Ok(())
}
