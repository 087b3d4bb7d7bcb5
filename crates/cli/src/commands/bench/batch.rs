//! The arguments of `simshard bench batch`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use simshard_bench::batch::{Case, Settings};
use simshard_bench::{DataArg, count};
use simshard_simhash::TextRecipe;

use crate::recipe::text_recipe_names;
use crate::sources::files_or_sources;

/// Arguments of `bench batch`. They are not its settings: only the command line knows recipe names and default folders.
#[derive(Args, Debug)]
#[command(after_help = "\
all_pairs and clusters start from an unsorted set in memory; sorting it is part
of the time. hash reads a JSONL file of the text files that it found, parsing
included; megabytes are those of the texts. hash_json reads the same lines with
serde_json alone, and scripts makes up texts: each of both measures its kinds of
work by turns, and gives the ratio. html makes a page around each text.
Peak memory is the whole process's. dedup, dedup_memory and evaluate run this
program on a file in .zst that they make of the texts: a third of its documents
are near the one before.")]
pub struct BatchArgs {
    /// Measure only this case; may be given several times
    #[arg(long = "case", value_name = "CASE", value_enum)]
    pub cases: Vec<Case>,
    /// Fingerprints in the set
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = count())]
    pub n: usize,
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
    /// hash, hash_json, scripts: how texts become fingerprints
    #[arg(long, value_name = "RECIPE", default_value_t, value_parser = text_recipe_names())]
    pub recipe: TextRecipe,
    /// hash, hash_json, html, dedup, evaluate: files or folders with text [default: the sources that cargo has unpacked, else this folder]
    #[arg(long, value_name = "PATH")]
    pub texts: Vec<PathBuf>,
    /// hash, hash_json, html, dedup, evaluate: most MiB of text
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub max_mib: u32,
    /// dedup: MiB of the set, uncompressed
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub dedup_mib: u32,
    /// dedup, evaluate: where the set lies while it is measured [default: the current folder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: Option<PathBuf>,
    /// Hold all answers against another method: every pair of fingerprints, every text alone
    #[arg(long)]
    pub check: bool,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}

impl BatchArgs {
    /// What these arguments ask for.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            cases: self.cases.clone(),
            n: self.n,
            distance: self.distance,
            blocks: self.blocks,
            threads: self.threads,
            data: self.data.into(),
            seed: self.seed,
            recipe: self.recipe,
            texts: files_or_sources(&self.texts),
            max_mib: self.max_mib,
            dedup_mib: self.dedup_mib,
            folder: self.folder.clone().unwrap_or_else(|| ".".into()),
            check: self.check,
            json: self.json,
        }
    }
}
