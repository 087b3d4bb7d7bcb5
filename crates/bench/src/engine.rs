//! `simshard bench engine`: the in-memory corpus on made-up fingerprints, its
//! answers checked by linear scan.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum, ValueHint};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use serde::Serialize;
use simshard_runtime::system::resident_memory;
use simshard_simhash::synthetic::{self, Data};
use simshard_simhash::{Corpus, Fingerprint, Layout, Match};

use crate::figure;
use crate::scan::linear_scan;
use crate::settings::{BadSettings, DataArg, count};

/// Queries whose answers are checked by linear scan.
const CHECKED: usize = 50;

/// Most fingerprints that are inserted one by one, each followed by a search.
const INTERLEAVED: usize = 200_000;

/// The arguments of `bench engine`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Half the queries have a match at distance 1 up to --distance. A sample of the
answers is checked by linear scan; a wrong one ends the run with exit code 1.
Resident memory counts what the corpus added to the process.")]
pub struct Settings {
    /// Fingerprints in the corpus
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = count())]
    pub n: usize,
    /// Fingerprints that are searched for
    #[arg(long, value_name = "Q", default_value_t = 1_000_000, value_parser = count())]
    pub queries: usize,
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
    /// Measure only this case, besides the insert that all need; may be given several times
    #[arg(long = "case", value_name = "CASE", value_enum)]
    pub cases: Vec<Case>,
    /// Hold all answers, rather than a sample, against a linear scan
    #[arg(long)]
    pub check: bool,
    /// Write fingerprints.u64le and queries.u64le into this folder, for other programs to search
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub save: Option<PathBuf>,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Case {
    /// All fingerprints at once into an empty corpus; always measured
    InsertBulk,
    /// All matches of all queries
    FindAllBulk,
    /// The nearest match of each query
    FindFirstBulk,
    /// New fingerprints one by one, and a query after each
    Interleaved,
    /// Half of the fingerprints at once
    RemoveBulk,
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
    level: &'static str,
    data: &'static str,
    seed: u64,
    seconds: f64,
    per_second: f64,
    /// Matches that a search found.
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<usize>,
    bytes_per_fingerprint: Option<f64>,
}

/// Measures and prints.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    Layout::new(settings.blocks, settings.distance)
        .map_err(|error| BadSettings(error.to_string()))?;
    let pool = ThreadPoolBuilder::new()
        .num_threads(settings.threads.into())
        .build()
        .context("cannot start the threads")?;
    pool.install(|| Bench::new(settings)?.run())
}

struct Bench<'a> {
    settings: &'a Settings,
    fingerprints: Vec<Fingerprint>,
    queries: Vec<Fingerprint>,
    corpus: Corpus,
    bytes_per_fingerprint: Option<f64>,
}

impl<'a> Bench<'a> {
    fn new(settings: &'a Settings) -> anyhow::Result<Self> {
        let data = Data::from(settings.data);
        let fingerprints = data.fingerprints(settings.n, settings.seed);
        let (count, distance) = (settings.queries, settings.distance);
        let queries = synthetic::queries(&fingerprints, count, distance, settings.seed ^ 1);
        if let Some(folder) = &settings.save {
            save(&folder.join("fingerprints.u64le"), &fingerprints)?;
            save(&folder.join("queries.u64le"), &queries)?;
        }
        Ok(Self {
            settings,
            fingerprints,
            queries,
            corpus: Corpus::new(settings.blocks, settings.distance)?,
            bytes_per_fingerprint: None,
        })
    }

    fn run(mut self) -> anyhow::Result<()> {
        self.insert_bulk()?;
        let cases = &self.settings.cases;
        let is_chosen = |case| cases.is_empty() || cases.contains(&case);
        if is_chosen(Case::FindAllBulk) {
            self.find_all_bulk()?;
        }
        if is_chosen(Case::FindFirstBulk) {
            self.find_first_bulk()?;
        }
        if is_chosen(Case::Interleaved) {
            self.interleaved()?;
        }
        if is_chosen(Case::RemoveBulk) {
            self.remove_bulk()?;
        }
        Ok(())
    }

    fn insert_bulk(&mut self) -> anyhow::Result<()> {
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
        self.print("insert_bulk", self.fingerprints.len(), seconds, None)
    }

    fn find_all_bulk(&self) -> anyhow::Result<()> {
        let start = Instant::now();
        let found = self.corpus.find_all_bulk(&self.queries);
        let seconds = start.elapsed().as_secs_f64();
        self.check("find_all", &self.fingerprints, |place, expected| {
            found.get(place) == expected
        })?;
        let matches = found.iter().map(<[Match]>::len).sum();
        self.print("find_all_bulk", self.queries.len(), seconds, Some(matches))
    }

    fn find_first_bulk(&self) -> anyhow::Result<()> {
        let start = Instant::now();
        let found = self.corpus.find_first_bulk(&self.queries);
        let seconds = start.elapsed().as_secs_f64();
        self.check("find_first", &self.fingerprints, |place, expected| {
            found[place] == expected.first().copied()
        })?;
        let matches = found.iter().flatten().count();
        self.print("find_first_bulk", found.len(), seconds, Some(matches))
    }

    /// Inserts one by one, and after each searches for one query. What it inserted
    /// goes again, so that the next case finds the set that it expects.
    fn interleaved(&mut self) -> anyhow::Result<()> {
        let count = self.queries.len().min(INTERLEAVED);
        let new = Data::from(self.settings.data).fingerprints(count, self.settings.seed ^ 2);
        let held: Vec<bool> = new.iter().map(|&f| self.corpus.contains(f)).collect();
        let mut matches = Vec::with_capacity(count);
        let start = Instant::now();
        for (&new, &query) in new.iter().zip(&self.queries) {
            self.corpus.insert(new);
            matches.push(self.corpus.find_all(query));
        }
        let seconds = start.elapsed().as_secs_f64();
        let before = self.fingerprints.len();
        let all = [&self.fingerprints[..], &new].concat();
        self.check("interleaved find_all", &all, |place, expected| {
            // Of the new ones a query sees those inserted before it.
            let later = |one: &Match| all[before + place + 1..].contains(&one.fingerprint);
            let unseen =
                |one: &Match| later(one) && !all[..=before + place].contains(&one.fingerprint);
            let seen = expected.iter().filter(|one| !unseen(one));
            place >= count || seen.eq(&matches[place])
        })?;
        let found = matches.iter().map(Vec::len).sum();
        self.print("interleaved", count, seconds, Some(found))?;
        let added = new.iter().zip(held).filter(|(_, held)| !held);
        let added: Vec<Fingerprint> = added.map(|(&new, _)| new).collect();
        self.corpus.remove_bulk(&added);
        Ok(())
    }

    fn remove_bulk(&mut self) -> anyhow::Result<()> {
        let half = self.fingerprints.len().div_ceil(2);
        let gone = self.fingerprints.drain(..half).collect::<Vec<_>>();
        let start = Instant::now();
        self.corpus.remove_bulk(&gone);
        let seconds = start.elapsed().as_secs_f64();
        // A fingerprint that was drawn twice is gone from both halves.
        let gone: HashSet<Fingerprint> = gone.into_iter().collect();
        self.fingerprints.retain(|kept| !gone.contains(kept));
        let found = self.corpus.find_all_bulk(&self.queries);
        self.check(
            "find_all after a removal",
            &self.fingerprints,
            |place, expected| found.get(place) == expected,
        )?;
        self.print("remove_bulk", half, seconds, None)
    }

    /// Holds answers, all of them or a sample that is spread over all queries, against a linear
    /// scan of `set`. `is_right` gets the place of a query and its matches.
    fn check(
        &self,
        what: &str,
        set: &[Fingerprint],
        is_right: impl Fn(usize, &[Match]) -> bool + Sync,
    ) -> anyhow::Result<()> {
        // An odd step alternates between queries with and without a match.
        let step = if self.settings.check {
            1
        } else {
            (self.queries.len() / CHECKED).max(1) | 1
        };
        let places = (0..self.queries.len()).into_par_iter().step_by(step);
        let wrong = places.find_any(|&place| {
            let expected = linear_scan(set, self.queries[place], self.settings.distance);
            !is_right(place, &expected)
        });
        match wrong {
            None => Ok(()),
            Some(place) => bail!("{what} is wrong for query {}", self.queries[place]),
        }
    }

    fn print(
        &self,
        case: &'static str,
        items: usize,
        seconds: f64,
        matches: Option<usize>,
    ) -> anyhow::Result<()> {
        let figure = Figure {
            case,
            n: self.settings.n,
            queries: self.queries.len(),
            blocks: self.settings.blocks,
            distance: self.settings.distance,
            threads: self.settings.threads,
            level: simshard_simhash::level(),
            data: Data::from(self.settings.data).name(),
            seed: self.settings.seed,
            seconds,
            per_second: items as f64 / seconds,
            matches,
            bytes_per_fingerprint: self.bytes_per_fingerprint,
        };
        figure::print(&figure, self.settings.json, || {
            let millions = figure.per_second / 1e6;
            let memory = match figure.bytes_per_fingerprint {
                Some(bytes) => format!("{bytes:.1} bytes a fingerprint"),
                None => String::new(),
            };
            let level = figure.level;
            format!("{case:16} {millions:8.2} M/s  {seconds:8.3} s  {level}  {memory}")
        })
    }
}

fn save(path: &Path, fingerprints: &[Fingerprint]) -> anyhow::Result<()> {
    let write = || {
        let mut file = BufWriter::new(File::create(path)?);
        for fingerprint in fingerprints {
            file.write_all(&fingerprint.0.to_le_bytes())?;
        }
        file.flush()
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
