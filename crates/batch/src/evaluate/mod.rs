//! How well recipes find the near-duplicates of some texts: precision and recall at each distance.
//!
//! ```text
//!     input ─▶ sample ─▶ texts ─▶ similarity ─▶ tally ─▶ figures ─▶ suggestion
//!              in two passes      exact Jaccard  pairs    shares     what to choose
//!              if it is large     of all pairs   counted  intervals
//! ```
//!
//! Texts are let go as they are read: kept are their ids, fingerprints and the hashes of their runs of
//! words. All pairs are compared by each recipe, bit for bit, so nothing here depends on the search that
//! it judges.

mod figures;
mod sample;
mod share;
mod similarity;
mod suggestion;
mod tally;
mod text;
mod truth;

use std::collections::HashMap;

use rayon::{ThreadPoolBuildError, ThreadPoolBuilder};
use simshard_input::{InputError, InputOptions, Skipped};
use simshard_runtime::terminal::counted;
use simshard_simhash::{Degenerate, TextRecipe};

pub use figures::{Example, Figures, Row};
use sample::Sample;
pub use share::{Quality, Share};
use similarity::Sets;
pub use suggestion::{BadWant, MOST_TABLES, Suggestion, Want};
use tally::EXAMPLES;
pub use tally::MOST_DISTANCE;
pub use text::Length;
use text::Text;
pub use truth::{BadTruth, Labels, Truth};

use crate::progress::Progress;

/// With fewer true pairs, shares say nothing.
pub const LEAST_TRUE_PAIRS: u64 = 100;

/// The settings of an evaluation.
#[derive(Clone, Debug)]
pub struct Evaluate {
    /// The inputs, with patterns expanded.
    pub input: InputOptions,
    /// The recipes that are compared.
    pub recipes: Vec<TextRecipe>,
    /// How many different texts are evaluated at most; 0 means all. With labels, all that they name are.
    pub sample: usize,
    /// Which pairs are true where no labels say it.
    pub truth: Truth,
    /// Which pairs are true, if a file says it.
    pub labels: Option<Labels>,
    /// The threads that work; 0 means one a core.
    pub threads: usize,
}

/// Why texts cannot be evaluated.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// The documents cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The documents have no texts.
    #[error("these documents carry {0}: evaluate needs texts")]
    NoTexts(&'static str),
    /// A large input that cannot be read a second time.
    #[error(
        "there are more than {sample} texts, so that some are drawn, for which the input is read \
         twice: put it into a file, or raise --sample"
    )]
    ReadOnce {
        /// The most that are evaluated.
        sample: usize,
    },
    /// Too few pairs to judge by.
    #[error(
        "the texts have {}, and at least {LEAST_TRUE_PAIRS} are needed to measure recall: evaluate more texts, or \
         label more pairs",
        counted(.0.true_pairs, "true pair")
    )]
    FewTruePairs(Box<Evaluation>),
    /// The system gives no threads.
    #[error("cannot start the threads")]
    Threads(#[from] ThreadPoolBuildError),
}

impl EvaluateError {
    /// Whether the arguments or the input are to blame: then the same command fails again.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Input(_) | Self::NoTexts(_) | Self::ReadOnce { .. } | Self::FewTruePairs(_) => {
                true
            }
            Self::Threads(_) => false,
        }
    }
}

/// The result of an evaluation.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Texts that were evaluated.
    pub texts: u64,
    /// Texts of the input left out because one before them is equal word for word.
    pub repeated: u64,
    /// Texts left out because they have no words.
    pub wordless: u64,
    /// How many different texts these were drawn from, if not all are evaluated.
    pub drawn_from: Option<u64>,
    /// Labelled pairs left out because a text of them has no words.
    pub wordless_labels: u64,
    /// Labelled pairs left out because a text of them is not in the input, or was skipped.
    pub unknown_labels: u64,
    /// Lines and texts that were skipped for other reasons.
    pub skipped: Skipped,
    /// Degenerate texts by their reason.
    pub degenerate: Vec<DegenerateExamples>,
    /// True pairs.
    pub true_pairs: u64,
    /// The figures of each recipe, in the order of the request.
    pub recipes: Vec<Figures>,
}

/// How many texts are degenerate for one reason, and some of them.
#[derive(Clone, Debug)]
pub struct DegenerateExamples {
    /// The reason.
    pub reason: Degenerate,
    /// How many there are.
    pub texts: u64,
    /// The ids of some, those of the fewest distinct runs.
    pub examples: Vec<String>,
}

/// Reads texts and counts what recipes find among them.
///
/// # Errors
/// If the input is bad, or holds fewer than [`LEAST_TRUE_PAIRS`] true pairs.
pub fn evaluate(job: &Evaluate, progress: Progress) -> Result<Evaluation, EvaluateError> {
    let pool = ThreadPoolBuilder::new().num_threads(job.threads).build()?;
    pool.install(|| {
        let sample = Sample::read(job, progress)?;
        let evaluation = count(job, sample, progress);
        match evaluation.true_pairs {
            LEAST_TRUE_PAIRS.. => Ok(evaluation),
            _ => Err(EvaluateError::FewTruePairs(evaluation.into())),
        }
    })
}

fn count(job: &Evaluate, sample: Sample, progress: Progress) -> Evaluation {
    let mut texts = sample.texts;
    texts.sort_by(|a, b| (a.runs.len(), &a.id).cmp(&(b.runs.len(), &b.id)));
    let runs: Vec<&[u64]> = texts.iter().map(|text| text.runs.as_slice()).collect();
    let sets = Sets::new(&runs);
    let [mut wordless_labels, mut unknown_labels] = [0; 2];
    let tallies = match &job.labels {
        Some(labels) => {
            let known = places(labels, &texts);
            wordless_labels = labels.that_name(&sample.wordless_ids);
            let left_out = labels.pairs.len() - known.len();
            unknown_labels = left_out as u64 - wordless_labels;
            tally::labelled(&texts, &sets, &known)
        }
        None => {
            let bar = (progress.bar)("comparing", Some(texts.len() as u64));
            let tallies = tally::all_pairs(&texts, &sets, job.truth.least, &|done| bar.inc(done));
            bar.finish_and_clear();
            tallies
        }
    };
    Evaluation {
        texts: texts.len() as u64,
        repeated: sample.repeated,
        wordless: sample.wordless,
        drawn_from: sample.drawn_from,
        wordless_labels,
        unknown_labels,
        skipped: sample.skipped,
        degenerate: degenerate(&texts),
        true_pairs: tallies.true_pairs.iter().sum(),
        recipes: figures::of(&job.recipes, &texts, &sets, &tallies),
    }
}

/// The labelled pairs by the places of their texts, where both are there.
fn places(labels: &Labels, texts: &[Text]) -> Vec<(usize, usize, bool)> {
    let places = texts.iter().enumerate();
    let places: HashMap<&str, usize> = places
        .map(|(place, text)| (text.id.as_str(), place))
        .collect();
    let place = |id: &String| places.get(id.as_str()).copied();
    let known = labels.pairs.iter().filter_map(|((a, b), is_true)| {
        let (a, b) = (place(a)?, place(b)?);
        Some((a.min(b), a.max(b), *is_true))
    });
    known.collect()
}

fn degenerate(texts: &[Text]) -> Vec<DegenerateExamples> {
    let of = |reason| {
        let texts = texts.iter().filter(|text| text.degenerate == Some(reason));
        let examples = texts.clone().take(EXAMPLES).map(|text| text.id.clone());
        DegenerateExamples {
            reason,
            examples: examples.collect(),
            texts: texts.count() as u64,
        }
    };
    Degenerate::ALL.map(of).to_vec()
}

#[cfg(test)]
mod tests;
