//! Which recipe, distance and blocks to choose for what is wanted.

use std::str::FromStr;

use serde_json::{Value, json};
use simshard_simhash::{Layout, TextRecipe, chance_pairs};

use super::Evaluation;
use super::share::{Quality, Share};

/// A table takes less than these bytes a fingerprint.
const BYTES_A_TABLE: usize = 7;

/// The most tables that are suggested: they take about 900 bytes a document.
pub const MOST_TABLES: usize = 128;

/// The least shares that will do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Want {
    /// Of true pairs that are found.
    pub recall: f64,
    /// Of found pairs that are true.
    pub precision: f64,
}

/// Shares that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write recall=SHARE,precision=SHARE, or one of them, with shares from 0 to 1")]
pub struct BadWant;

impl FromStr for Want {
    type Err = BadWant;

    fn from_str(text: &str) -> Result<Self, BadWant> {
        let [mut recall, mut precision] = [None; 2];
        for part in text.split(',') {
            let (name, share) = part.split_once('=').ok_or(BadWant)?;
            let share: f64 = share.parse().map_err(|_| BadWant)?;
            let place = match name {
                "recall" => &mut recall,
                "precision" => &mut precision,
                _ => return Err(BadWant),
            };
            if !(0.0..=1.0).contains(&share) || place.replace(share).is_some() {
                return Err(BadWant);
            }
        }
        Ok(Self {
            recall: recall.unwrap_or(0.0),
            precision: precision.unwrap_or(0.0),
        })
    }
}

impl Want {
    fn is_met_by(self, quality: Quality) -> bool {
        let precision = quality.precision().map_or(0.0, |share| share.value);
        let recall = quality.recall().map_or(0.0, |share| share.value);
        precision >= self.precision && recall >= self.recall
    }
}

/// What a choice is to have much of. Where a recall is wanted, what has it is good enough.
fn goal(want: Option<Want>, quality: Quality) -> Option<Share> {
    match want {
        None => quality.f1(),
        Some(want) if want.recall > 0.0 => None,
        Some(_) => quality.recall(),
    }
}

/// A choice, and what it costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Suggestion {
    /// How texts become fingerprints.
    pub recipe: TextRecipe,
    /// Distance and blocks.
    pub layout: Layout,
    /// The memory of the tables, at most.
    pub bytes_a_document: usize,
    /// How many documents there will be.
    pub documents: f64,
    /// Pairs of these that are unlike, and within the distance by chance.
    pub chance_pairs: f64,
    /// What was measured for it.
    pub quality: Quality,
}

impl Suggestion {
    /// The choice of the fewest tables, for this number of documents, that meets what is wanted.
    ///
    /// If `want` names no recall, the choice must be as good as any in recall: distance 0 is the cheapest and finds least.
    /// Without `want`, it must be so in F1. One is as good as another if its interval reaches the other's value. Of equal
    /// ones it is that of the greatest F1. None has more than [`MOST_TABLES`]. Where precision is not measured, there is a
    /// choice only if recall alone is wanted.
    #[must_use]
    pub fn of(evaluation: &Evaluation, want: Option<Want>, documents: f64) -> Option<Self> {
        let wants_recall = want.is_some_and(|want| want.recall > 0.0);
        if !evaluation.measures_precision() && !wants_recall {
            return None;
        }
        let rows = evaluation.recipes.iter().flat_map(|figures| {
            let rows = figures.rows.iter();
            rows.map(move |row| (figures.recipe, row.distance, row.all))
        });
        let choices = rows.filter(|(.., quality)| want.is_none_or(|want| want.is_met_by(*quality)));
        let choices = choices.filter_map(|(recipe, distance, quality)| {
            let layout = Layout::for_documents(documents, distance).ok()?;
            if layout.table_count() > MOST_TABLES {
                return None;
            }
            let f1 = quality.f1().map_or(0.0, |share| share.value);
            let cost = (layout.table_count(), -f1, distance);
            Some((cost, recipe, layout, quality))
        });
        let choices: Vec<_> = choices.collect();
        let goals = choices
            .iter()
            .filter_map(|(.., quality)| goal(want, *quality));
        let most = goals.map(|goal| goal.value).fold(0.0, f64::max);
        let is_good = |quality| goal(want, quality).is_none_or(|goal| goal.high >= most);
        let good = choices
            .into_iter()
            .filter(|(.., quality)| is_good(*quality));
        let best =
            good.min_by(|(a, ..), (b, ..)| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        best.map(|(_, recipe, layout, quality)| Self {
            recipe,
            layout,
            quality,
            bytes_a_document: BYTES_A_TABLE * layout.table_count(),
            documents,
            chance_pairs: chance_pairs(documents, layout.distance()),
        })
    }

    /// The command that creates a corpus of this kind.
    #[must_use]
    pub fn command(&self) -> String {
        let Self {
            recipe,
            layout,
            documents,
            ..
        } = self;
        let (blocks, distance) = (layout.blocks(), layout.distance());
        format!(
            "simshard corpus create crawl --recipe {recipe} --distance {distance} --blocks {blocks} \
             --documents {documents:e}"
        )
    }

    /// The choice, for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "recipe": self.recipe.to_string(),
            "distance": self.layout.distance(),
            "blocks": self.layout.blocks(),
            "tables": self.layout.table_count(),
            "bytes_a_document": self.bytes_a_document,
            "documents": self.documents,
            "chance_pairs": self.chance_pairs,
            "precision": self.quality.precision().map(|share| share.value),
            "recall": self.quality.recall().map(|share| share.value),
            "command": self.command(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wants_are_one_or_two_shares() {
        let want = |recall, precision| Ok(Want { recall, precision });
        assert_eq!("recall=0.95,precision=0.9".parse(), want(0.95, 0.9));
        assert_eq!("precision=1".parse(), want(0.0, 1.0));
        for bad in [
            "",
            "recall",
            "recall=1.1",
            "recall=x",
            "recall=1,recall=1",
            "f1=1",
        ] {
            assert_eq!(bad.parse::<Want>(), Err(BadWant), "{bad}");
        }
    }
}
