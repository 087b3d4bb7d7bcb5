//! Reading the texts to evaluate: all of a small input, some neighbourhoods of a large one.
//!
//! A random sample of many documents holds almost no near-duplicates. So of an input with more
//! documents than the sample may have, documents are drawn at random, each with what is near it. All
//! texts get the fingerprint of `words-v3` when the input is read first, and what is drawn is read
//! the second time.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use indicatif::ProgressBar;
use rayon::prelude::*;
use simshard_input::{
    Carries, Check, Format, Ids, Input, InputError, InputOptions, Needs, Skipped, for_each_text,
};
use simshard_simhash::{Fingerprint, FingerprintSet, TextRecipe};

use super::tally::MOST_DISTANCE;
use super::text::Text;
use super::truth::Labels;
use super::{Evaluate, EvaluateError};
use crate::progress::Progress;

/// The same documents are drawn each time.
const SEED: u64 = 0x51a5;

/// Random documents whose neighbours are looked for together.
const DRAWN_TOGETHER: usize = 256;

/// Texts that were read.
#[derive(Default)]
pub(super) struct Sample {
    /// Those that are evaluated, of texts equal word for word the first.
    pub(super) texts: Vec<Text>,
    /// Texts that are equal word for word to one before them.
    pub(super) repeated: u64,
    /// Texts without words.
    pub(super) wordless: u64,
    /// How many texts the sample was drawn from, if it is not all of them.
    pub(super) drawn_from: Option<u64>,
    pub(super) skipped: Skipped,
}

/// The result of reading a text for a sample.
enum Read {
    Wordless,
    Whole(Box<Text>),
    Near(Option<Fingerprint>),
}

impl Sample {
    /// Reads what a job asks for.
    pub(super) fn read(job: &Evaluate, progress: Progress) -> Result<Self, EvaluateError> {
        let bar = (progress.bar)("reading", None);
        let sample = match &job.labels {
            Some(labels) => Self::labelled(job, labels, &bar),
            None => Self::of_input(job, &bar),
        };
        bar.finish_and_clear();
        sample
    }

    /// The texts that labels name.
    fn labelled(job: &Evaluate, labels: &Labels, bar: &ProgressBar) -> Result<Self, EvaluateError> {
        let pairs = labels.pairs.keys();
        let wanted: HashSet<&str> = pairs.flat_map(|(a, b)| [a.as_str(), b.as_str()]).collect();
        let mut sample = Self::default();
        let mut seen = HashSet::new();
        let skipped = for_each_text(
            open(&job.input)?,
            |id, text| {
                let id = id.to_string();
                if !wanted.contains(id.as_str()) {
                    return None;
                }
                Some(Text::new(id, text, job.truth.window, &job.recipes))
            },
            |text| -> Result<bool, InputError> {
                bar.inc(1);
                match text {
                    Some(Some(text)) if seen.insert(text.id.clone()) => sample.texts.push(text),
                    Some(None) => sample.wordless += 1,
                    Some(Some(_)) | None => {}
                }
                Ok(true)
            },
        )?;
        Ok(Self { skipped, ..sample })
    }

    /// All texts of an input, or some neighbourhoods if there are too many.
    fn of_input(job: &Evaluate, bar: &ProgressBar) -> Result<Self, EvaluateError> {
        let mut sample = Self::default();
        let mut seen = HashSet::new();
        let mut fingerprints = Vec::new();
        let is_full = AtomicBool::new(false);
        let skipped = for_each_text(
            open(&job.input)?,
            |id, text| {
                if is_full.load(Ordering::Relaxed) {
                    Read::Near(TextRecipe::default().fingerprint(text))
                } else {
                    whole(job, id.to_string(), text)
                }
            },
            |read| -> Result<bool, EvaluateError> {
                bar.inc(1);
                let fingerprint = match read {
                    Read::Wordless | Read::Near(None) => {
                        sample.wordless += 1;
                        return Ok(true);
                    }
                    Read::Near(Some(fingerprint)) => fingerprint,
                    Read::Whole(mut text) => {
                        let fingerprint = text.fingerprints.pop().flatten();
                        if !is_full.load(Ordering::Relaxed) {
                            sample.add(*text, &mut seen);
                        }
                        fingerprint.unwrap_or_default()
                    }
                };
                fingerprints.push(fingerprint);
                if job.sample > 0 && sample.texts.len() > job.sample {
                    is_full.store(true, Ordering::Relaxed);
                    sample.texts.clear();
                }
                Ok(true)
            },
        )?;
        sample.skipped = skipped;
        if is_full.into_inner() {
            return sample.drawn(job, fingerprints, bar);
        }
        Ok(sample)
    }

    /// Keeps a text unless it is equal to one before it, word for word.
    fn add(&mut self, text: Text, seen: &mut HashSet<u64>) {
        if seen.insert(text.words) {
            self.texts.push(text);
        } else {
            self.repeated += 1;
        }
    }

    /// Reads neighbourhoods of the documents with these fingerprints.
    fn drawn(
        self,
        job: &Evaluate,
        fingerprints: Vec<Fingerprint>,
        bar: &ProgressBar,
    ) -> Result<Self, EvaluateError> {
        if job.input.reads_stdin() {
            return Err(EvaluateError::ReadOnce { sample: job.sample });
        }
        let all = fingerprints.len() as u64;
        let wanted = neighbourhoods(fingerprints, job.sample);
        let mut sample = Self {
            drawn_from: Some(all),
            repeated: 0,
            ..self
        };
        let mut seen = HashSet::new();
        for_each_text(
            open(&job.input)?,
            |id, text| {
                let fingerprint = TextRecipe::default().fingerprint(text)?;
                if !wanted.contains(&fingerprint.0) {
                    return None;
                }
                Text::new(id.to_string(), text, job.truth.window, &job.recipes)
            },
            |text| -> Result<bool, InputError> {
                bar.inc(1);
                if let Some(text) = text {
                    sample.add(text, &mut seen);
                }
                Ok(sample.texts.len() < job.sample)
            },
        )?;
        Ok(sample)
    }
}

/// Looks at a whole text; its last fingerprint is the one that samples are drawn by.
fn whole(job: &Evaluate, id: String, text: &str) -> Read {
    match Text::new(id, text, job.truth.window, &job.recipes) {
        Some(mut whole) => {
            whole
                .fingerprints
                .push(TextRecipe::default().fingerprint(text));
            Read::Whole(Box::new(whole))
        }
        None => Read::Wordless,
    }
}

/// Fingerprints drawn at random, each with those near it, until there are as many as are wanted.
fn neighbourhoods(fingerprints: Vec<Fingerprint>, count: usize) -> HashSet<u64> {
    let (set, _) = FingerprintSet::counted(fingerprints);
    let all = set.as_slice();
    let mut order: Vec<u64> = all.iter().map(|one| one.0).collect();
    Rng::with_seed(SEED).shuffle(&mut order);
    let mut drawn = HashSet::new();
    for centres in order.chunks(DRAWN_TOGETHER) {
        let near = |centre: &u64| -> Vec<u64> {
            let near = |one: &&Fingerprint| (one.0 ^ centre).count_ones() <= MOST_DISTANCE;
            all.iter().filter(near).map(|one| one.0).collect()
        };
        let found: Vec<Vec<u64>> = centres.par_iter().map(near).collect();
        for one in found.into_iter().flatten() {
            drawn.insert(one);
            if drawn.len() == count {
                return drawn;
            }
        }
    }
    drawn
}

/// Opens an input, which must hold texts.
fn open(options: &InputOptions) -> Result<Input, EvaluateError> {
    let needs = Needs {
        ids: Ids::Any,
        check: Check::AsRead,
        preferred_format: Format::Lines,
        recipe: TextRecipe::default().into(),
    };
    let input = Input::open(options, needs)?;
    match input.carries() {
        Carries::Texts => Ok(input),
        Carries::Features => Err(EvaluateError::NoTexts("features")),
        Carries::Fingerprints => Err(EvaluateError::NoTexts("fingerprints already")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_a_drawn_document_is_drawn_too() {
        let mut rng = Rng::with_seed(3);
        let mut all = Vec::new();
        for _ in 0..1000 {
            let one = rng.u64(..);
            all.extend([one, one ^ 0b111, one ^ (1 << 40)].map(Fingerprint));
        }
        let drawn = neighbourhoods(all.clone(), 300);
        assert_eq!(drawn.len(), 300);
        let whole =
            |three: &[Fingerprint]| three.iter().filter(|one| drawn.contains(&one.0)).count();
        let partial = all
            .chunks(3)
            .filter(|three| ![0, 3].contains(&whole(three)));
        assert!(partial.count() <= 1);
        assert_eq!(drawn, neighbourhoods(all, 300));
    }
}
