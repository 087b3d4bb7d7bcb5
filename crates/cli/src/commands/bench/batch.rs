//! `simshard bench batch`: all pairs and clusters of made-up fingerprints, and recipes over real
//! text.

mod check;
mod text;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use rayon::ThreadPoolBuilder;
use serde::Serialize;
use simshard_runtime::system::peak_resident_memory;
use simshard_simhash::synthetic::Data;
use simshard_simhash::{Clusters, Fingerprint, FingerprintSet, PairSearch, TextRecipe};

use super::engine::{DataArg, count};
use super::figure;
use crate::exit::UsageError;
use crate::input::{Ids, columns};
use crate::recipe::text_recipe_names;

/// Arguments of `bench batch`.
#[derive(Args, Debug)]
#[command(after_help = "\
all_pairs and clusters start from an unsorted set in memory; sorting it is part
of the time. hash reads a JSONL file of the text files that it found, parsing
included; megabytes are those of the texts. Peak memory is the whole process's.")]
pub struct BatchArgs {
    /// Measure only this case; may be given several times
    #[arg(long = "case", value_name = "CASE", value_enum)]
    pub cases: Vec<Case>,
    /// Fingerprints in the set
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = count())]
    pub n: u64,
    /// Largest distance of a pair
    #[arg(long, value_name = "K", default_value_t = 3)]
    pub distance: u32,
    /// Blocks that a fingerprint is cut into [default: chosen from n and the distance]
    #[arg(long, value_name = "M")]
    pub blocks: Option<u32>,
    /// Threads that work
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// How the fingerprints are spread
    #[arg(long, value_enum, default_value_t = DataArg::Random)]
    pub data: DataArg,
    /// Seed of the fingerprints
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// hash: how texts become fingerprints
    #[arg(long, value_name = "NAME", default_value_t, value_parser = text_recipe_names())]
    pub recipe: TextRecipe,
    /// hash: files or folders with text [default: the sources that cargo has unpacked, else this folder]
    #[arg(long, value_name = "PATH")]
    pub texts: Vec<PathBuf>,
    /// hash: most MiB of text
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub max_mib: u32,
    /// Hold all answers against another method: every pair of fingerprints, every text alone
    #[arg(long)]
    pub check: bool,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
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
///
/// # Errors
/// If the arguments make no search, no text is found, or an answer is wrong.
pub(super) fn run(args: &BatchArgs) -> anyhow::Result<()> {
    let pool = ThreadPoolBuilder::new()
        .num_threads(args.threads.into())
        .build()
        .context("cannot start the threads")?;
    let is_chosen = |case| args.cases.is_empty() || args.cases.contains(&case);
    pool.install(|| {
        if is_chosen(Case::AllPairs) {
            all_pairs(args)?;
        }
        if is_chosen(Case::Clusters) {
            clusters(args)?;
        }
        if is_chosen(Case::Hash) {
            hash(args)?;
        }
        Ok(())
    })
}

fn fingerprints(args: &BatchArgs) -> anyhow::Result<(Vec<Fingerprint>, PairSearch)> {
    let n = usize::try_from(args.n)?;
    let search = PairSearch::new(args.distance, args.blocks, n)
        .map_err(|error| UsageError(error.to_string()))?;
    Ok((Data::from(args.data).fingerprints(n, args.seed), search))
}

fn all_pairs(args: &BatchArgs) -> anyhow::Result<()> {
    let (fingerprints, search) = fingerprints(args)?;
    let expected = args
        .check
        .then(|| check::pairs(&fingerprints, args.distance));
    let mut pairs = Vec::new();
    let mut found = 0;
    let start = Instant::now();
    let set = FingerprintSet::from_unsorted(fingerprints);
    let _ = search.pairs(&set, &|_, _| {}, &mut |batch| {
        found += batch.len() as u64;
        if args.check {
            pairs.extend(batch.iter().map(|pair| (pair.a, pair.b)));
        }
        ControlFlow::Continue(())
    });
    let seconds = start.elapsed().as_secs_f64();
    if let Some(expected) = expected {
        check::same_pairs(pairs, &expected)?;
    }
    print_set(args, "all_pairs", &search, found, seconds)
}

fn clusters(args: &BatchArgs) -> anyhow::Result<()> {
    let (fingerprints, search) = fingerprints(args)?;
    let expected = args
        .check
        .then(|| check::pairs(&fingerprints, args.distance));
    let start = Instant::now();
    let set = FingerprintSet::from_unsorted(fingerprints);
    let clusters: Clusters = search.clusters(&set, &|_, _| {});
    let groups = clusters.groups();
    let seconds = start.elapsed().as_secs_f64();
    if let Some(expected) = expected {
        check::same_clusters(&set, &groups, &expected)?;
    }
    print_set(args, "clusters", &search, groups.len() as u64, seconds)
}

fn print_set(
    args: &BatchArgs,
    case: &'static str,
    search: &PairSearch,
    found: u64,
    seconds: f64,
) -> anyhow::Result<()> {
    let figure = SetFigure {
        case,
        n: usize::try_from(args.n)?,
        distance: args.distance,
        blocks: search.layout().blocks(),
        threads: args.threads,
        data: Data::from(args.data).name(),
        seed: args.seed,
        found,
        seconds,
        per_second: args.n as f64 / seconds,
        peak_bytes: peak_resident_memory(),
    };
    let memory = figure.peak_bytes.unwrap_or(0) as f64 / 1e9;
    figure::print(&figure, args.json, || {
        let millions = figure.per_second / 1e6;
        format!(
            "{case:16} {millions:8.2} M/s  {seconds:8.3} s  {found} found, {memory:.3} GB at most"
        )
    })
}

fn hash(args: &BatchArgs) -> anyhow::Result<()> {
    let texts = text::collect(&args.texts, args.max_mib)?;
    let start = Instant::now();
    let found = columns(
        &texts.arguments(),
        Ids::Any,
        args.recipe.into(),
        None,
        &ProgressBar::hidden(),
    )?;
    let seconds = start.elapsed().as_secs_f64();
    if args.check {
        check::texts(&texts, args.recipe, &found)?;
    }
    let megabytes = texts.bytes as f64 / 1e6;
    let figure = HashFigure {
        case: "hash",
        recipe: args.recipe.to_string(),
        documents: found.fingerprints.len(),
        megabytes,
        threads: args.threads,
        seconds,
        megabytes_per_second: megabytes / seconds,
    };
    figure::print(&figure, args.json, || {
        let rate = figure.megabytes_per_second;
        let documents = figure.documents;
        format!(
            "hash             {rate:8.1} MB/s {seconds:8.3} s  {documents} documents, {}",
            args.recipe
        )
    })
}
