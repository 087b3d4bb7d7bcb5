//! The statistics of a run as a report.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use simshard_input::{DegenerateTexts, Ids, InputError, InputOptions, Skipped, TextLengths};
use simshard_simhash::{Fingerprint, TextRecipe};

use crate::documents::DocumentSet;
use crate::report::{ClusterSample, MemberSample, PairSample, Report, SpecialFingerprint, Why};
use crate::statistics::{Statistics, Timings, crowded_fingerprints, heaviest_prefixes};
use crate::texts::Texts;

/// Prefixes that are listed.
const PREFIXES: usize = 20;

/// Crowded fingerprints that are listed.
const CROWDED: usize = 20;

/// The settings of a run.
#[derive(Debug)]
pub(crate) struct About {
    /// The command's name.
    pub(crate) command: &'static str,
    /// The input.
    pub(crate) input: InputOptions,
    /// Which ids it may have.
    pub(crate) ids: Ids,
    /// The settings that the result depends on.
    pub(crate) settings: Vec<(String, String)>,
    /// The recipe that made fingerprints of texts, if one did.
    pub(crate) recipe: Option<TextRecipe>,
    /// The skipped lines and texts.
    pub(crate) skipped: Skipped,
    /// Texts that say too little.
    pub(crate) degenerate: DegenerateTexts,
    /// How long texts are.
    pub(crate) lengths: TextLengths,
}

/// The report of a run. Reads the texts that it shows from the input again.
pub(crate) fn report(
    about: About,
    documents: &DocumentSet,
    statistics: Statistics,
) -> Result<Report, InputError> {
    let mut timings = statistics.timings;
    let by_size = statistics.clusters.by_size.clone();
    let (mut largest, mut pairs) = statistics.clusters.into_samples();
    if let Some(recipe) = about.recipe {
        let start = Instant::now();
        add_texts(&about.input, about.ids, recipe, &mut largest, &mut pairs)?;
        timings.read_again = start.elapsed();
    }
    let empty_text = about.recipe.and_then(|recipe| recipe.fingerprint(""));
    let empty_text = empty_text.map(|fingerprint| fingerprint.0);
    let special = crowded_fingerprints(documents, CROWDED, empty_text).into_iter();
    let is_crowded = |one: &SpecialFingerprint| one.why == Why::Crowded;
    let (crowded, degenerate_fingerprints) = special.partition(is_crowded);
    let empty_texts = empty_text.and_then(|empty| {
        let place = documents.place(Fingerprint(empty))?;
        Some(documents.at(place).len() as u64)
    });
    Ok(Report {
        command: about.command,
        version: env!("CARGO_PKG_VERSION"),
        inputs: about.input.names(),
        settings: about.settings,
        documents: statistics.documents,
        fingerprints: statistics.fingerprints,
        pairs_by_distance: statistics.pairs_by_distance,
        cluster_sizes: by_size,
        largest_clusters: largest,
        pairs,
        lengths: about.lengths.bins(),
        too_little: about.recipe.and_then(too_little),
        empty_texts: empty_texts.unwrap_or(0) + about.skipped.unhashable_texts,
        heaviest_prefixes: heaviest_prefixes(documents, PREFIXES),
        crowded,
        degenerate_fingerprints,
        degenerate_texts: degenerate_texts(about.degenerate),
        timings: self::timings(timings),
        skipped: about.skipped.reasons(),
        halved: 0,
    })
}

/// Adds the texts of two members of each cluster, and of the pairs.
fn add_texts(
    input: &InputOptions,
    ids: Ids,
    recipe: TextRecipe,
    clusters: &mut [ClusterSample],
    pairs: &mut [PairSample],
) -> Result<(), InputError> {
    let mut wanted = HashSet::new();
    let mut members: Vec<&mut MemberSample> = Vec::new();
    for cluster in clusters {
        let (first, others) = match cluster.members.split_first_mut() {
            Some(both) => both,
            None => continue,
        };
        members.push(first);
        members.extend(others.iter_mut().rev().max_by_key(|member| member.distance));
    }
    for member in &members {
        wanted.insert((member.id.clone(), member.fingerprint));
    }
    let mut documents: Vec<_> = pairs
        .iter_mut()
        .flat_map(|pair| &mut pair.documents)
        .collect();
    for document in &documents {
        wanted.insert((document.id.clone(), document.fingerprint));
    }
    let texts = Texts::read(input, ids, recipe, &wanted)?;
    for member in members {
        member.text = texts.of(&member.id, member.fingerprint).cloned();
    }
    for document in &mut documents {
        document.text = texts.of(&document.id, document.fingerprint).cloned();
    }
    Ok(())
}

/// What the texts have that are too short for a recipe; `None` where those are the texts without words.
fn too_little(recipe: TextRecipe) -> Option<String> {
    let few = recipe.too_little()?;
    Some(format!("{few}, which is too short for {recipe}"))
}

fn degenerate_texts(texts: DegenerateTexts) -> Vec<(String, u64)> {
    let reasons = texts.reasons();
    reasons
        .map(|(reason, count)| (reason.name().to_owned(), count))
        .collect()
}

fn timings(timings: Timings) -> Vec<(String, Duration)> {
    let Timings {
        read,
        sort,
        join,
        write,
        read_again,
    } = timings;
    let mut phases = vec![
        ("read", read),
        ("sort", sort),
        ("join", join),
        ("write", write),
    ];
    if !read_again.is_zero() {
        phases.push(("read again for the excerpts", read_again));
    }
    let named = phases.into_iter();
    named.map(|(name, time)| (name.to_owned(), time)).collect()
}
