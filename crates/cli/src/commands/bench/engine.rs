//! The arguments of `simshard bench engine`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use simshard_bench::engine::{Case, Settings};

use super::data::DataArg;
use super::numbers::count;

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
    /// Measure only this case, besides the insert that all need; may be given several times
    #[arg(long = "case", value_name = "CASE", value_enum)]
    pub cases: Vec<CaseArg>,
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
pub enum CaseArg {
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

impl From<CaseArg> for Case {
    fn from(case: CaseArg) -> Self {
        match case {
            CaseArg::InsertBulk => Self::InsertBulk,
            CaseArg::FindAllBulk => Self::FindAllBulk,
            CaseArg::FindFirstBulk => Self::FindFirstBulk,
            CaseArg::Interleaved => Self::Interleaved,
            CaseArg::RemoveBulk => Self::RemoveBulk,
        }
    }
}

impl EngineArgs {
    /// What these arguments ask for.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            n: self.n,
            queries: self.queries,
            blocks: self.blocks,
            distance: self.distance,
            threads: self.threads,
            data: self.data.into(),
            seed: self.seed,
            cases: self.cases.iter().copied().map(Case::from).collect(),
            check: self.check,
            save: self.save.clone(),
            json: self.json,
        }
    }
}
