//! `simshard bench batch`: all pairs and clusters of made-up fingerprints, recipes over real text, the main
//! text of pages, sets without near-duplicates, and evaluations.

mod against;
mod check;
mod dedup;
mod evaluate;
mod html;
mod made;
#[cfg(feature = "published")]
mod published;
mod script;
mod text;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use clap::ValueEnum;
use rayon::ThreadPoolBuilder;
use serde::Serialize;
use simshard_input::{Ids, parts};
use simshard_runtime::system::peak_resident_memory;
use simshard_simhash::synthetic::Data;
use simshard_simhash::{Clusters, Fingerprint, FingerprintSet, PairSearch, TextRecipe};

use crate::figure;
use crate::settings::BadSettings;

/// The arguments of `bench batch`.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The cases; empty means all.
    pub cases: Vec<Case>,
    /// Fingerprints in the set.
    pub n: usize,
    /// Largest distance of a pair.
    pub distance: u32,
    /// Blocks that a fingerprint is cut into; `None` leaves the choice to the search.
    pub blocks: Option<u32>,
    /// Threads that work.
    pub threads: u16,
    /// How the fingerprints are spread.
    pub data: Data,
    /// Seed of the fingerprints.
    pub seed: u64,
    /// How texts become fingerprints.
    pub recipe: TextRecipe,
    /// Files or folders with text.
    pub texts: Vec<PathBuf>,
    /// Most MiB of text.
    pub max_mib: u32,
    /// MiB of the set that `dedup` is measured on.
    pub dedup_mib: u32,
    /// Where the sets of `dedup` and `evaluate` lie meanwhile.
    pub folder: PathBuf,
    /// Whether all answers are held against another method.
    pub check: bool,
    /// Whether figures are JSON lines, instead of a table.
    pub json: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Case {
    /// All pairs within the distance
    AllPairs,
    /// The connected components of these pairs
    Clusters,
    /// The fingerprints of texts
    Hash,
    /// The fingerprints of texts, against reading their JSON lines alone
    HashJson,
    /// The fingerprints of made-up texts in Cyrillic and in Chinese, against ASCII
    Scripts,
    /// All pairs on one thread, against the published crate all-pairs-hamming
    #[cfg(feature = "published")]
    Published,
    /// The main text of pages of HTML, against parsing them alone
    Html,
    /// A compressed set without its near-duplicates, against hash and compression
    Dedup,
    /// The memory of that, against find-clusters, for n short documents
    DedupMemory,
    /// The time to evaluate all recipes on 20,000 documents
    Evaluate,
}

/// A measurement of all pairs or clusters.
#[derive(Serialize)]
struct SetFigure {
    case: &'static str,
    n: usize,
    distance: u32,
    blocks: u32,
    threads: u16,
    data: &'static str,
    seed: u64,
    /// Pairs, or clusters of two or more.
    found: u64,
    seconds: f64,
    per_second: f64,
    peak_bytes: Option<u64>,
}

/// A measurement of a recipe.
#[derive(Serialize)]
struct HashFigure {
    case: &'static str,
    recipe: String,
    documents: usize,
    megabytes: f64,
    threads: u16,
    seconds: f64,
    megabytes_per_second: f64,
}

/// Measures and prints.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    let pool = ThreadPoolBuilder::new()
        .num_threads(settings.threads.into())
        .build()
        .context("cannot start the threads")?;
    let is_chosen = |case| settings.cases.is_empty() || settings.cases.contains(&case);
    pool.install(|| {
        if is_chosen(Case::AllPairs) {
            all_pairs(settings)?;
        }
        if is_chosen(Case::Clusters) {
            clusters(settings)?;
        }
        if is_chosen(Case::Hash) {
            hash(settings)?;
        }
        if is_chosen(Case::HashJson) {
            against::json(settings)?;
        }
        if is_chosen(Case::Scripts) {
            against::scripts(settings)?;
        }
        #[cfg(feature = "published")]
        if is_chosen(Case::Published) {
            published::measure(settings)?;
        }
        if is_chosen(Case::Html) {
            html::measure(settings)?;
        }
        if is_chosen(Case::Dedup) {
            dedup::speed(settings)?;
        }
        if is_chosen(Case::DedupMemory) {
            dedup::memory(settings)?;
        }
        if is_chosen(Case::Evaluate) {
            evaluate::measure(settings)?;
        }
        Ok(())
    })
}

fn fingerprints(settings: &Settings) -> anyhow::Result<(Vec<Fingerprint>, PairSearch)> {
    let search = PairSearch::new(settings.distance, settings.blocks, settings.n)
        .map_err(|error| BadSettings(error.to_string()))?;
    let fingerprints = settings.data.fingerprints(settings.n, settings.seed);
    Ok((fingerprints, search))
}

fn all_pairs(settings: &Settings) -> anyhow::Result<()> {
    let (fingerprints, search) = fingerprints(settings)?;
    let expected = settings
        .check
        .then(|| check::pairs(&fingerprints, settings.distance));
    let mut pairs = Vec::new();
    let mut found = 0;
    let start = Instant::now();
    let set = FingerprintSet::from_unsorted(fingerprints);
    let _ = search.pairs(&set, &|_, _| ControlFlow::Continue(()), &mut |batch| {
        found += batch.len() as u64;
        if settings.check {
            pairs.extend(batch.iter().map(|pair| (pair.a, pair.b)));
        }
        ControlFlow::Continue(())
    });
    let seconds = start.elapsed().as_secs_f64();
    if let Some(expected) = expected {
        check::same_pairs(pairs, &expected)?;
    }
    print_set(settings, "all_pairs", &search, found, seconds)
}

fn clusters(settings: &Settings) -> anyhow::Result<()> {
    let (fingerprints, search) = fingerprints(settings)?;
    let expected = settings
        .check
        .then(|| check::pairs(&fingerprints, settings.distance));
    let start = Instant::now();
    let set = FingerprintSet::from_unsorted(fingerprints);
    let clusters: Clusters = search.clusters(&set, &|_, _| ControlFlow::Continue(()));
    let groups = clusters.groups();
    let seconds = start.elapsed().as_secs_f64();
    if let Some(expected) = expected {
        check::same_clusters(&set, &groups, &expected)?;
    }
    print_set(settings, "clusters", &search, groups.len() as u64, seconds)
}

fn print_set(
    settings: &Settings,
    case: &'static str,
    search: &PairSearch,
    found: u64,
    seconds: f64,
) -> anyhow::Result<()> {
    let figure = SetFigure {
        case,
        n: settings.n,
        distance: settings.distance,
        blocks: search.layout().blocks(),
        threads: settings.threads,
        data: settings.data.name(),
        seed: settings.seed,
        found,
        seconds,
        per_second: settings.n as f64 / seconds,
        peak_bytes: peak_resident_memory(),
    };
    let memory = figure.peak_bytes.unwrap_or(0) as f64 / 1e9;
    figure::print(&figure, settings.json, || {
        let millions = figure.per_second / 1e6;
        format!(
            "{case:16} {millions:8.2} M/s  {seconds:8.3} s  {found} found, {memory:.3} GB at most"
        )
    })
}

fn hash(settings: &Settings) -> anyhow::Result<()> {
    let texts = text::collect(&settings.texts, settings.max_mib)?;
    let start = Instant::now();
    let found = parts(
        &texts.options(),
        Ids::Any,
        settings.recipe.into(),
        None,
        &mut |_| {},
    )?;
    let seconds = start.elapsed().as_secs_f64();
    if settings.check {
        check::texts(&texts, settings.recipe, &found)?;
    }
    let megabytes = texts.bytes as f64 / 1e6;
    let figure = HashFigure {
        case: "hash",
        recipe: settings.recipe.to_string(),
        documents: found.fingerprints.len(),
        megabytes,
        threads: settings.threads,
        seconds,
        megabytes_per_second: megabytes / seconds,
    };
    figure::print(&figure, settings.json, || {
        let rate = figure.megabytes_per_second;
        let documents = figure.documents;
        format!(
            "hash             {rate:8.1} MB/s {seconds:8.3} s  {documents} documents, {}",
            settings.recipe
        )
    })
}
