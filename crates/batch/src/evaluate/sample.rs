//! Reading the texts to evaluate: all of a small input, some neighbourhoods of a large one.
//!
//! A random sample of many documents holds almost no near-duplicates. So of an input with more
//! different texts than the sample may have, some are drawn at random, each with what is near it. All
//! texts get the fingerprint of `words-v3` when the input is read first, and what is drawn is read
//! the second time. Of texts equal word for word only the first counts, drawn or not.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use indicatif::ProgressBar;
use parking_lot::RwLock;
use rayon::prelude::*;
use simshard_input::{
    Carries, Check, Format, Ids, Input, InputError, InputOptions, Needs, Skipped, for_each_text,
};
use simshard_simhash::{Fingerprint, FingerprintSet, TextRecipe};

use super::tally::MOST_DISTANCE;
use super::text::{Text, words_of};
use super::truth::Labels;
use super::{Evaluate, EvaluateError};
use crate::progress::Progress;
use crate::texts::can_be_read_again;

/// The same documents are drawn each time.
const SEED: u64 = 0x51a5;

/// Random documents whose neighbours are looked for together.
const DRAWN_TOGETHER: usize = 256;

/// Texts that were read.
#[derive(Default)]
pub(super) struct Sample {
    /// Those that are evaluated, of texts equal word for word the first.
    pub(super) texts: Vec<Text>,
    /// Texts of the input that are equal word for word to one before them.
    pub(super) repeated: u64,
    /// Texts without words.
    pub(super) wordless: u64,
    /// The ids that labels name of these alone.
    pub(super) wordless_ids: HashSet<String>,
    /// How many different texts the sample was drawn from, if it is not all of them.
    pub(super) drawn_from: Option<u64>,
    pub(super) skipped: Skipped,
}

/// The result of reading a text for a sample.
enum Read {
    Wordless,
    Whole(Box<Text>),
    Near(Different),
}

/// What a text is drawn by: its fingerprint, and a hash of its words. It differs between different texts.
type Different = (Fingerprint, u64);

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
                let whole = Text::new(id.clone(), text, job.truth.window, &job.recipes);
                Some(whole.ok_or(id))
            },
            |text| -> Result<bool, InputError> {
                bar.inc(1);
                match text {
                    Some(Ok(text)) if seen.insert(text.id.clone()) => sample.texts.push(text),
                    Some(Err(id)) if seen.insert(id.clone()) => {
                        sample.wordless += 1;
                        sample.wordless_ids.insert(id);
                    }
                    Some(_) | None => {}
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
        let mut different: Vec<Different> = Vec::new();
        let is_full = AtomicBool::new(false);
        let skipped = for_each_text(
            open(&job.input)?,
            |id, text| {
                if is_full.load(Ordering::Relaxed) {
                    near(job, text)
                } else {
                    whole(job, id.to_string(), text)
                }
            },
            |read| -> Result<bool, EvaluateError> {
                bar.inc(1);
                different.push(match read {
                    Read::Wordless => {
                        sample.wordless += 1;
                        return Ok(true);
                    }
                    Read::Near(one) => one,
                    Read::Whole(mut text) => {
                        let fingerprint = text.fingerprints.pop().flatten();
                        let one = (fingerprint.unwrap_or_default(), text.words);
                        if !is_full.load(Ordering::Relaxed) {
                            sample.add(*text, &mut seen);
                        }
                        one
                    }
                });
                if job.sample > 0 && sample.texts.len() > job.sample {
                    if !can_be_read_again(&job.input) {
                        return Err(EvaluateError::ReadOnce { sample: job.sample });
                    }
                    is_full.store(true, Ordering::Relaxed);
                    sample.texts.clear();
                }
                Ok(true)
            },
        )?;
        sample.skipped = skipped;
        if is_full.into_inner() {
            return sample.drawn(job, different, bar);
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

    /// Reads neighbourhoods of these texts.
    fn drawn(
        self,
        job: &Evaluate,
        mut different: Vec<Different>,
        bar: &ProgressBar,
    ) -> Result<Self, EvaluateError> {
        let all = different.len();
        different.sort_unstable();
        different.dedup();
        let mut sample = Self {
            drawn_from: Some(different.len() as u64),
            repeated: (all - different.len()) as u64,
            ..self
        };
        let fingerprints = different.into_iter().map(|(fingerprint, _)| fingerprint);
        let (wanted, count) = neighbourhoods(fingerprints.collect(), job.sample);
        // Read by all cores, so that none works on a copy of what was taken.
        let seen = RwLock::new(HashSet::new());
        for_each_text(
            open(&job.input)?,
            |id, text| {
                let fingerprint = TextRecipe::default().fingerprint(text)?;
                if !wanted.contains(&fingerprint.0) {
                    return None;
                }
                let words = words_of(text, job.truth.window)?;
                if seen.read().contains(&words) {
                    return None;
                }
                Text::new(id.to_string(), text, job.truth.window, &job.recipes)
            },
            |text| -> Result<bool, InputError> {
                bar.inc(1);
                if let Some(text) = text
                    && seen.write().insert(text.words)
                {
                    sample.texts.push(text);
                }
                Ok(sample.texts.len() < count)
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

/// What a text is drawn by.
fn near(job: &Evaluate, text: &str) -> Read {
    let fingerprint = TextRecipe::default().fingerprint(text);
    match fingerprint.zip(words_of(text, job.truth.window)) {
        Some(one) => Read::Near(one),
        None => Read::Wordless,
    }
}

/// Fingerprints drawn at random, each with those near it, until as many different texts have them as are wanted. Answers
/// also how many have them.
fn neighbourhoods(fingerprints: Vec<Fingerprint>, count: usize) -> (HashSet<u64>, usize) {
    let (set, repeated) = FingerprintSet::counted(fingerprints);
    let mut order: Vec<u64> = set.as_slice().iter().map(|one| one.0).collect();
    Rng::with_seed(SEED).shuffle(&mut order);
    let mut draw = Draw::new(&set, &repeated, count);
    for centres in order.chunks(DRAWN_TOGETHER) {
        let near = |centre: &u64| draw.near(*centre);
        let found: Vec<Vec<usize>> = centres.par_iter().map(near).collect();
        if !found.iter().all(|places| draw.take(places)) {
            break;
        }
    }
    (draw.drawn, count - draw.room)
}

/// What is drawn of the fingerprints of an input.
struct Draw<'a> {
    all: &'a [Fingerprint],
    /// The places of those that several texts have, ascending, with how many do.
    repeated: &'a [(usize, usize)],
    /// How many texts are wanted.
    count: usize,
    /// How many more.
    room: usize,
    drawn: HashSet<u64>,
}

impl<'a> Draw<'a> {
    fn new(set: &'a FingerprintSet, repeated: &'a [(usize, usize)], count: usize) -> Self {
        Self {
            all: set.as_slice(),
            repeated,
            count,
            room: count,
            drawn: HashSet::new(),
        }
    }

    /// How many texts have the fingerprint at a place.
    fn texts(&self, place: usize) -> usize {
        let found = self.repeated.binary_search_by_key(&place, |(at, _)| *at);
        found.map_or(1, |at| self.repeated[at].1)
    }

    /// The places of the fingerprints near one, without those drawn before: no more than there is room for. Those
    /// that more texts have than are wanted are never drawn.
    fn near(&self, centre: u64) -> Vec<usize> {
        let places = self.all.iter().enumerate().filter(|(place, one)| {
            (one.0 ^ centre).count_ones() <= MOST_DISTANCE
                && !self.drawn.contains(&one.0)
                && self.texts(*place) <= self.count
        });
        places.map(|(place, _)| place).take(self.room).collect()
    }

    /// Draws the fingerprints at these places. False once one does not fit, or nothing more does.
    fn take(&mut self, places: &[usize]) -> bool {
        for &place in places {
            if self.drawn.contains(&self.all[place].0) {
                continue;
            }
            let Some(left) = self.room.checked_sub(self.texts(place)) else {
                return false;
            };
            self.room = left;
            self.drawn.insert(self.all[place].0);
        }
        self.room > 0
    }
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
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_is_near_a_drawn_document_is_drawn_too() {
        let mut rng = Rng::with_seed(3);
        let mut all = Vec::new();
        for _ in 0..1000 {
            let one = rng.u64(..);
            all.extend([one, one ^ 0b111, one ^ (1 << 40)].map(Fingerprint));
        }
        let (drawn, documents) = neighbourhoods(all.clone(), 300);
        assert_eq!((drawn.len(), documents), (300, 300));
        assert_eq!(drawn, one_by_one(&all, 300));
        let whole =
            |three: &[Fingerprint]| three.iter().filter(|one| drawn.contains(&one.0)).count();
        let partial = all
            .chunks(3)
            .filter(|three| ![0, 3].contains(&whole(three)));
        assert!(partial.count() <= 1);
        assert_eq!(drawn, neighbourhoods(all, 300).0);
    }

    /// The same without a bound on what is gathered, centre by centre, by the definition.
    fn one_by_one(all: &[Fingerprint], count: usize) -> HashSet<u64> {
        let distinct: BTreeSet<u64> = all.iter().map(|one| one.0).collect();
        let documents = |of: u64| all.iter().filter(|one| one.0 == of).count();
        let mut order: Vec<u64> = distinct.iter().copied().collect();
        Rng::with_seed(SEED).shuffle(&mut order);
        let (mut drawn, mut room) = (HashSet::new(), count);
        for centre in order {
            for &one in &distinct {
                let is_near = (one ^ centre).count_ones() <= MOST_DISTANCE;
                if !is_near || drawn.contains(&one) || documents(one) > count {
                    continue;
                }
                let Some(left) = room.checked_sub(documents(one)) else {
                    return drawn;
                };
                drawn.insert(one);
                room = left;
            }
        }
        drawn
    }

    #[test]
    fn documents_are_counted_whatever_their_fingerprints() {
        let mut rng = Rng::with_seed(4);
        let mut all = Vec::new();
        for _ in 0..300 {
            let one = Fingerprint(rng.u64(..) & 0xFF_0F0F_0F0F);
            all.extend(vec![one; rng.usize(1..6)]);
        }
        all.extend([Fingerprint(!0); 200]);
        for count in [1, 7, 100, 199] {
            let (drawn, documents) = neighbourhoods(all.clone(), count);
            assert_eq!(drawn, one_by_one(&all, count), "{count}");
            let texts = all.iter().filter(|one| drawn.contains(&one.0)).count();
            assert!(texts <= count && texts + 5 > count, "{texts} of {count}");
            assert_eq!(texts, documents);
        }
    }

    #[test]
    fn no_more_neighbours_are_gathered_than_there_is_room_for() {
        let (set, _) = FingerprintSet::counted((0..1024).map(Fingerprint).collect());
        let mut draw = Draw::new(&set, &[], 30);
        assert_eq!(draw.near(0).len(), 30);
        assert!(draw.take(&(0..20).collect::<Vec<_>>()));
        let places: Vec<usize> = (20..30).collect();
        assert_eq!(draw.near(0), places);
    }
}
