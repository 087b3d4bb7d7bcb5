//! Counting pairs: which are near by each recipe, which are true, and how alike they are.

use rayon::prelude::*;

use super::similarity::{Sets, Similarity};
use super::text::{Length, Text};

/// The largest distance that is looked at.
pub const MOST_DISTANCE: u32 = 10;

/// Distances from 0 on.
pub(super) const DISTANCES: usize = MOST_DISTANCE as usize + 1;

pub(super) const LENGTHS: usize = Length::ALL.len();

/// Similarities from 0.5 in steps of 0.05; the last is 1.
pub(super) const STEPS: usize = 11;

/// Pairs with less than half in common are unlike.
pub(super) const UNLIKE: f64 = 0.5;

/// Examples of each kind that are kept.
pub(super) const EXAMPLES: usize = 5;

/// The counts of one recipe, by exact distance.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Pairs by the length of the shorter text and distance.
    pub(super) found: [[u64; DISTANCES]; LENGTHS],
    pub(super) found_true: [[u64; DISTANCES]; LENGTHS],
    /// Pairs that are not unlike, by distance and similarity.
    pub(super) alike: [[u64; STEPS]; DISTANCES],
    /// Pairs with a degenerate text, by distance.
    pub(super) degenerate: [u64; DISTANCES],
    /// The nearest pairs that should not be.
    pub(super) junk: Nearest,
    /// The farthest true pairs.
    pub(super) missed: Nearest,
}

/// The counts of all recipes.
#[derive(Clone, Debug)]
pub(super) struct Tallies {
    pub(super) by_recipe: Vec<Tally>,
    /// True pairs by the length of the shorter text.
    pub(super) true_pairs: [u64; LENGTHS],
    /// Whether only true pairs were counted, as no other ones are known.
    pub(super) only_true: bool,
}

/// The first few of many examples in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Nearest(pub(super) Vec<(u32, usize, usize)>);

impl Nearest {
    /// Whether an example would be kept.
    fn takes(&self, example: (u32, usize, usize)) -> bool {
        self.0.len() < EXAMPLES || self.0.last().is_some_and(|last| example < *last)
    }

    fn add(&mut self, example: (u32, usize, usize)) {
        if self.takes(example) {
            let place = self.0.partition_point(|one| *one < example);
            self.0.insert(place, example);
            self.0.truncate(EXAMPLES);
        }
    }
}

impl Tallies {
    fn new(recipes: usize) -> Self {
        Self {
            by_recipe: vec![Tally::default(); recipes],
            true_pairs: [0; LENGTHS],
            only_true: false,
        }
    }

    fn plus(mut self, other: &Self) -> Self {
        add(&mut self.true_pairs, &other.true_pairs);
        for (one, other) in self.by_recipe.iter_mut().zip(&other.by_recipe) {
            for length in 0..LENGTHS {
                add(&mut one.found[length], &other.found[length]);
                add(&mut one.found_true[length], &other.found_true[length]);
            }
            for distance in 0..DISTANCES {
                add(&mut one.alike[distance], &other.alike[distance]);
            }
            add(&mut one.degenerate, &other.degenerate);
            other
                .junk
                .0
                .iter()
                .for_each(|&one_more| one.junk.add(one_more));
            other
                .missed
                .0
                .iter()
                .for_each(|&one_more| one.missed.add(one_more));
        }
        self
    }

    /// Counts a pair whose similarity is known, but not that it was found.
    fn add_known(
        &mut self,
        texts: &[Text],
        pair: (usize, usize),
        similarity: Similarity,
        is_true: bool,
    ) {
        let (a, b) = pair;
        let length = shorter(texts, a, b);
        self.true_pairs[length] += u64::from(is_true);
        for (recipe, tally) in self.by_recipe.iter_mut().enumerate() {
            let distance = distance(texts, recipe, a, b);
            if distance <= MOST_DISTANCE {
                let distance = distance as usize;
                if let Some(step) = similarity.twentieths().checked_sub(10) {
                    tally.alike[distance][step] += 1;
                }
                tally.found_true[length][distance] += u64::from(is_true);
            }
            if is_true && distance > 0 {
                // The farthest come first.
                tally.missed.add((u32::MAX - distance, a, b));
            }
        }
    }

    /// Counts a pair that a recipe finds; `is_junk` is asked only where that may matter.
    fn add_found(
        &mut self,
        texts: &[Text],
        recipe: usize,
        near: (u32, usize, usize),
        is_junk: impl Fn() -> bool,
    ) {
        let (bits, a, b) = near;
        let tally = &mut self.by_recipe[recipe];
        let distance = bits as usize;
        tally.found[shorter(texts, a, b)][distance] += 1;
        let is_degenerate = [a, b].iter().any(|&one| texts[one].degenerate.is_some());
        tally.degenerate[distance] += u64::from(is_degenerate);
        if tally.junk.takes(near) && is_junk() {
            tally.junk.add(near);
        }
    }
}

/// How far a missed pair of these examples is; `None` if a text of it has no fingerprint.
pub(super) fn missed_distance(key: u32) -> Option<u32> {
    Some(u32::MAX - key).filter(|&distance| distance <= 64)
}

fn add(sums: &mut [u64], more: &[u64]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}

fn shorter(texts: &[Text], a: usize, b: usize) -> usize {
    texts[a].length.min(texts[b].length) as usize
}

/// The distance by a recipe; over 64 if a text has no fingerprint.
fn distance(texts: &[Text], recipe: usize, a: usize, b: usize) -> u32 {
    let [a, b] = [a, b].map(|one| texts[one].fingerprints[recipe]);
    a.zip(b).map_or(u32::MAX, |(a, b)| a.distance(b))
}

/// Counts all pairs: true are those with the least similarity. `progress` is told how many texts are
/// done with.
pub(super) fn all_pairs(
    texts: &[Text],
    sets: &Sets,
    least: f64,
    progress: &(dyn Fn(u64) + Sync),
) -> Tallies {
    let recipes = texts.first().map_or(0, |text| text.fingerprints.len());
    let prefixes = sets.prefixes(least.min(UNLIKE));
    let columns: Vec<Vec<(u64, usize)>> =
        (0..recipes).map(|recipe| column(texts, recipe)).collect();
    let tallies = (0..texts.len()).into_par_iter().fold(
        || (Tallies::new(recipes), sets.scratch(), Vec::new()),
        |(mut tallies, mut scratch, mut alike), text| {
            alike.clear();
            sets.similar(&prefixes, text, &mut scratch, |other, similarity| {
                if similarity.value() >= UNLIKE {
                    alike.push(other);
                }
                let is_true = similarity.value() >= least;
                tallies.add_known(texts, (other, text), similarity, is_true);
            });
            alike.sort_unstable();
            // To compare two sets again takes much longer than to look one up.
            let is_unlike = |other: usize| alike.binary_search(&other).is_err();
            for (recipe, column) in columns.iter().enumerate() {
                near(texts, column, recipe, text, &mut |near| {
                    tallies.add_found(texts, recipe, near, || is_unlike(near.1));
                });
            }
            progress(1);
            (tallies, scratch, alike)
        },
    );
    let tallies = tallies.map(|(tallies, ..)| tallies);
    tallies.reduce(|| Tallies::new(recipes), |one, other| one.plus(&other))
}

/// The texts that a recipe gives a fingerprint.
fn column(texts: &[Text], recipe: usize) -> Vec<(u64, usize)> {
    let texts = texts.iter().enumerate();
    texts
        .filter_map(|(place, text)| Some((text.fingerprints[recipe]?.0, place)))
        .collect()
}

/// Hands on the texts before this one that a recipe puts near it, by comparing all.
fn near(
    texts: &[Text],
    column: &[(u64, usize)],
    recipe: usize,
    text: usize,
    take: &mut impl FnMut((u32, usize, usize)),
) {
    let Some(fingerprint) = texts[text].fingerprints[recipe] else {
        return;
    };
    let before = column.partition_point(|&(_, place)| place < text);
    for &(other, place) in &column[..before] {
        let distance = (fingerprint.0 ^ other).count_ones();
        if distance <= MOST_DISTANCE {
            take((distance, place, text));
        }
    }
}

/// Counts pairs that are labelled, and no others.
pub(super) fn labelled(texts: &[Text], sets: &Sets, labels: &[(usize, usize, bool)]) -> Tallies {
    let recipes = texts.first().map_or(0, |text| text.fingerprints.len());
    let mut tallies = Tallies::new(recipes);
    tallies.only_true = labels.iter().all(|&(.., is_true)| is_true);
    for &(a, b, is_true) in labels {
        tallies.add_known(texts, (a, b), sets.similarity(a, b), is_true);
        for recipe in 0..recipes {
            let distance = distance(texts, recipe, a, b);
            if distance <= MOST_DISTANCE {
                tallies.add_found(texts, recipe, (distance, a, b), || !is_true);
            }
        }
    }
    tallies
}
