//! `simshard bench engine`: the in-memory corpus on made-up fingerprints, some
//! of its answers checked by linear scan.

use std::io::Write;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use rayon::ThreadPoolBuilder;
use serde::Serialize;
use simshard_runtime::system::resident_memory;
use simshard_simhash::synthetic::{self, Data};
use simshard_simhash::{BulkMatches, Corpus, Fingerprint, Layout, Match};

use crate::exit::UsageError;

/// Queries whose answers are checked by linear scan.
const CHECKED: usize = 50;

/// Most fingerprints that are inserted one by one, each followed by a search.
const INTERLEAVED: usize = 200_000;

/// Arguments of `bench engine`.
#[derive(Args, Debug)]
#[command(after_help = "\
Half the queries have a match at distance 1 up to --distance. A sample of the
answers is checked by linear scan; a wrong one ends the run with exit code 1.
Resident memory counts what the corpus added to the process.")]
pub struct EngineArgs {
    /// Fingerprints in the corpus
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = count())]
    pub n: u64,
    /// Fingerprints that are searched for
    #[arg(long, value_name = "Q", default_value_t = 1_000_000, value_parser = count())]
    pub queries: u64,
    /// Blocks that a fingerprint is cut into
    #[arg(long, value_name = "M", default_value_t = 5)]
    pub blocks: u32,
    /// Largest distance that is searched
    #[arg(long, value_name = "K", default_value_t = 3)]
    pub distance: u32,
    /// Threads that insert and search
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// How the fingerprints are spread
    #[arg(long, value_enum, default_value_t = DataArg::Random)]
    pub data: DataArg,
    /// Seed of the fingerprints and queries
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}

fn count() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=1 << 31)
}

/// How made-up fingerprints are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DataArg {
    /// Uniform and independent
    Random,
    /// Groups of 2 to 16 near a common centre
    Clustered,
    /// Each bit with a probability of its own, a tenth in clusters
    Skewed,
}

impl From<DataArg> for Data {
    fn from(data: DataArg) -> Self {
        match data {
            DataArg::Random => Self::Random,
            DataArg::Clustered => Self::Clustered,
            DataArg::Skewed => Self::Skewed,
        }
    }
}

/// One measurement.
#[derive(Serialize)]
struct Figure {
    case: &'static str,
    n: usize,
    queries: usize,
    blocks: u32,
    distance: u32,
    threads: u16,
    data: &'static str,
    seed: u64,
    seconds: f64,
    per_second: f64,
    bytes_per_fingerprint: Option<f64>,
}

/// Measures and prints.
///
/// # Errors
/// If the arguments make no corpus, or an answer is wrong.
pub(super) fn run(args: &EngineArgs) -> anyhow::Result<()> {
    Layout::new(args.blocks, args.distance).map_err(|error| UsageError(error.to_string()))?;
    let pool = ThreadPoolBuilder::new()
        .num_threads(args.threads.into())
        .build()
        .context("cannot start the threads")?;
    pool.install(|| Bench::new(args)?.run())
}

struct Bench<'a> {
    args: &'a EngineArgs,
    fingerprints: Vec<Fingerprint>,
    queries: Vec<Fingerprint>,
    corpus: Corpus,
    bytes_per_fingerprint: Option<f64>,
}

impl<'a> Bench<'a> {
    fn new(args: &'a EngineArgs) -> anyhow::Result<Self> {
        let n = usize::try_from(args.n)?;
        let fingerprints = Data::from(args.data).fingerprints(n, args.seed);
        let count = usize::try_from(args.queries)?;
        let queries = synthetic::queries(&fingerprints, count, args.distance, args.seed ^ 1);
        Ok(Self {
            args,
            fingerprints,
            queries,
            corpus: Corpus::new(args.blocks, args.distance)?,
            bytes_per_fingerprint: None,
        })
    }

    fn run(mut self) -> anyhow::Result<()> {
        let before = resident_memory();
        let start = Instant::now();
        let inserted = self.corpus.insert_bulk(&self.fingerprints);
        let seconds = start.elapsed().as_secs_f64();
        self.bytes_per_fingerprint = match (before, resident_memory()) {
            (Some(before), Some(after)) => {
                Some(after.saturating_sub(before) as f64 / inserted as f64)
            }
            _ => None,
        };
        self.print("insert_bulk", self.fingerprints.len(), seconds)?;

        let start = Instant::now();
        let found = self.corpus.find_all_bulk(&self.queries);
        self.print(
            "find_all_bulk",
            self.queries.len(),
            start.elapsed().as_secs_f64(),
        )?;

        let start = Instant::now();
        let first = self.corpus.find_first_bulk(&self.queries);
        self.print(
            "find_first_bulk",
            self.queries.len(),
            start.elapsed().as_secs_f64(),
        )?;
        self.check(&found, &first)?;

        self.interleave()?;

        let half = self.fingerprints.len().div_ceil(2);
        let gone = self.fingerprints[..half].to_vec();
        let start = Instant::now();
        self.corpus.remove_bulk(&gone);
        self.print("remove_bulk", gone.len(), start.elapsed().as_secs_f64())?;
        let left = gone.iter().find(|gone| self.corpus.contains(**gone));
        ensure!(
            left.is_none(),
            "a removed fingerprint is still there: {left:?}"
        );
        Ok(())
    }

    /// Inserts one by one, and after each searches for one query. What it inserted
    /// goes again, so that the next case finds the set that it expects.
    fn interleave(&mut self) -> anyhow::Result<()> {
        let count = self.queries.len().min(INTERLEAVED);
        let new = Data::from(self.args.data).fingerprints(count, self.args.seed ^ 2);
        let held: Vec<bool> = new.iter().map(|&f| self.corpus.contains(f)).collect();
        let mut found = 0;
        let start = Instant::now();
        for (&new, &query) in new.iter().zip(&self.queries) {
            self.corpus.insert(new);
            found += self.corpus.find_all(query).len();
        }
        let seconds = start.elapsed().as_secs_f64();
        ensure!(found > 0 || count < 2, "no query has a match");
        self.print("interleaved", count, seconds)?;
        let added = new.iter().zip(held).filter(|(_, held)| !held);
        let added: Vec<Fingerprint> = added.map(|(&new, _)| new).collect();
        self.corpus.remove_bulk(&added);
        Ok(())
    }

    /// Holds a sample of the answers, spread over all queries, against a linear
    /// scan.
    fn check(&self, found: &BulkMatches, first: &[Option<Match>]) -> anyhow::Result<()> {
        // An odd step alternates between queries with and without a match.
        let step = (self.queries.len() / CHECKED).max(1) | 1;
        for place in (0..self.queries.len()).step_by(step) {
            let query = self.queries[place];
            let mut expected: Vec<Match> = self
                .fingerprints
                .iter()
                .map(|&fingerprint| Match {
                    distance: fingerprint.distance(query),
                    fingerprint,
                })
                .filter(|one| one.distance <= self.args.distance)
                .collect();
            expected.sort_unstable();
            expected.dedup();
            ensure!(
                found.get(place) == expected,
                "find_all is wrong for query {query}"
            );
            ensure!(
                first[place] == expected.first().copied(),
                "find_first is wrong for {query}"
            );
        }
        Ok(())
    }

    fn print(&self, case: &'static str, items: usize, seconds: f64) -> anyhow::Result<()> {
        let figure = Figure {
            case,
            n: self.fingerprints.len(),
            queries: self.queries.len(),
            blocks: self.args.blocks,
            distance: self.args.distance,
            threads: self.args.threads,
            data: Data::from(self.args.data).name(),
            seed: self.args.seed,
            seconds,
            per_second: items as f64 / seconds,
            bytes_per_fingerprint: self.bytes_per_fingerprint,
        };
        let mut out = std::io::stdout().lock();
        if self.args.json {
            serde_json::to_writer(&mut out, &figure)?;
            return Ok(writeln!(out)?);
        }
        let millions = figure.per_second / 1e6;
        let memory = match figure.bytes_per_fingerprint {
            Some(bytes) => format!("{bytes:.1} bytes a fingerprint"),
            None => String::new(),
        };
        Ok(writeln!(
            out,
            "{case:16} {millions:8.2} M/s  {seconds:8.3} s  {memory}"
        )?)
    }
}
