//! Counts as shares: what a recipe finds up to each distance.

use serde::Serialize;
use serde_json::{Value, json};
use simshard_simhash::TextRecipe;

use super::share::{Quality, Share};
use super::similarity::Sets;
use super::tally::{DISTANCES, LENGTHS, Nearest, STEPS, Tallies, Tally, missed_distance};
use super::text::{Length, Text};
use super::{DegenerateExamples, Evaluation};

/// The figures of a recipe.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The recipe.
    pub recipe: TextRecipe,
    /// Up to each distance, from 0 on.
    pub rows: Vec<Row>,
    /// By exact distance, the pairs by similarity from 0.5 to 1 in steps of 0.05, 1 by itself.
    pub alike: Vec<[u64; STEPS]>,
    /// The nearest pairs that are unlike, or labelled so.
    pub junk: Vec<Example>,
    /// The farthest true pairs.
    pub missed: Vec<Example>,
}

/// The figures of a recipe up to a distance.
#[derive(Clone, Debug)]
pub struct Row {
    /// The distance.
    pub distance: u32,
    /// Of all pairs.
    pub all: Quality,
    /// Of pairs by the length of the shorter text.
    pub by_length: [Quality; LENGTHS],
    /// Found pairs with less than half of their runs in common.
    pub unlike: u64,
    /// Found pairs with a degenerate text.
    pub degenerate: u64,
}

/// A pair to look at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Example {
    /// The ids of the texts.
    pub ids: [String; 2],
    /// Their distance; `None` if one has no fingerprint.
    pub distance: Option<u32>,
    /// Their similarity.
    pub similarity: f64,
}

impl Row {
    /// The share of found pairs that are unlike.
    #[must_use]
    pub fn unlike_share(&self) -> Option<Share> {
        Share::new(self.unlike, self.all.found)
    }

    /// The share of found pairs with a degenerate text.
    #[must_use]
    pub fn degenerate_share(&self) -> Option<Share> {
        Share::new(self.degenerate, self.all.found)
    }
}

/// The figures of each recipe.
pub(super) fn of(
    recipes: &[TextRecipe],
    texts: &[Text],
    sets: &Sets,
    tallies: &Tallies,
) -> Vec<Figures> {
    let figures = recipes
        .iter()
        .zip(&tallies.by_recipe)
        .map(|(&recipe, tally)| {
            let example = |distance, a: usize, b: usize| Example {
                ids: [a, b].map(|place| texts[place].id.clone()),
                distance,
                similarity: sets.similarity(a, b).value(),
            };
            let examples = |nearest: &Nearest, distance: fn(u32) -> Option<u32>| {
                let examples = nearest
                    .0
                    .iter()
                    .map(|&(key, a, b)| example(distance(key), a, b));
                examples.collect()
            };
            Figures {
                recipe,
                rows: (0..DISTANCES)
                    .map(|distance| row(distance, tally, tallies))
                    .collect(),
                alike: tally.alike.to_vec(),
                junk: examples(&tally.junk, Some),
                missed: examples(&tally.missed, missed_distance),
            }
        });
    figures.collect()
}

fn row(distance: usize, tally: &Tally, tallies: &Tallies) -> Row {
    let up_to = |counts: &[u64; DISTANCES]| counts[..=distance].iter().sum::<u64>();
    let by_length = std::array::from_fn(|length| Quality {
        found: up_to(&tally.found[length]),
        found_true: up_to(&tally.found_true[length]),
        true_pairs: tallies.true_pairs[length],
        only_true: tallies.only_true,
    });
    let all = by_length
        .iter()
        .fold(Quality::default(), |sum, one: &Quality| Quality {
            found: sum.found + one.found,
            found_true: sum.found_true + one.found_true,
            true_pairs: sum.true_pairs + one.true_pairs,
            only_true: tallies.only_true,
        });
    let alike: u64 = tally.alike[..=distance].iter().flatten().sum();
    Row {
        distance: distance as u32,
        all,
        by_length,
        unlike: all.found - alike,
        degenerate: up_to(&tally.degenerate),
    }
}

impl Evaluation {
    /// Whether precision is measured. Labels that are all 1 do not tell which pairs are not true.
    #[must_use]
    pub fn measures_precision(&self) -> bool {
        let mut rows = self.recipes.iter().flat_map(|figures| &figures.rows);
        rows.all(|row| !row.all.only_true)
    }

    /// All figures, for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let degenerate = |value: fn(&DegenerateExamples) -> Value| {
            let reasons = self.degenerate.iter();
            let values = reasons.map(|one| (one.reason.name().to_owned(), value(one)));
            Value::Object(values.collect())
        };
        json!({
            "texts": self.texts,
            "repeated": self.repeated,
            "wordless": self.wordless,
            "drawn_from": self.drawn_from,
            "wordless_labels": self.wordless_labels,
            "unknown_labels": self.unknown_labels,
            "short": self.skipped.short_texts,
            "degenerate": degenerate(|one| json!(one.texts)),
            "degenerate_examples": degenerate(|one| json!(one.examples)),
            "true_pairs": self.true_pairs,
            "recipes": self.recipes.iter().map(Figures::json).collect::<Vec<_>>(),
        })
    }
}

impl Figures {
    fn json(&self) -> Value {
        let rows = self
            .rows
            .iter()
            .zip(&self.alike)
            .map(|(row, alike)| row.json(alike));
        json!({
            "recipe": self.recipe.to_string(),
            "distances": rows.collect::<Vec<_>>(),
            "junk": self.junk,
            "missed": self.missed,
        })
    }
}

impl Row {
    fn json(&self, alike: &[u64]) -> Value {
        let by_length = Length::ALL
            .iter()
            .zip(self.by_length)
            .map(|(length, quality)| {
                let mut object = quality_json(quality);
                object["words"] = length.name().into();
                object
            });
        let mut object = quality_json(self.all);
        object["distance"] = self.distance.into();
        object["unlike"] = json!(self.unlike_share());
        object["degenerate"] = json!(self.degenerate_share());
        object["similarities_at_this_distance"] = json!(alike);
        object["by_length"] = by_length.collect();
        object
    }
}

fn quality_json(quality: Quality) -> Value {
    json!({
        "found": quality.found,
        "found_true": quality.found_true,
        "true_pairs": quality.true_pairs,
        "precision": quality.precision(),
        "recall": quality.recall(),
        "f1": quality.f1(),
    })
}
