//! `simshard dedup`: the records of an input without their near-duplicates.

mod against;

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueHint};
use simshard_batch::{By, Dedup, Output, Recompress};
use simshard_input::{Carries, Needs, Preference};

use crate::args::{InputArgs, RecipeArgs, SearchArgs};
use crate::progress::SHOWN;
use crate::say;
use against::AgainstArgs;

/// Arguments of `dedup`.
#[derive(Args, Debug)]
#[command(after_help = "\
Writes the input again without the dropped documents, in all formats but arrow
and files. The lines and records that stay keep their bytes and their order; the
rows of parquet keep all their columns. The input is read twice; standard input
is copied to a temporary file meanwhile. An output is in its place once all of
it is there, and a list of the dropped documents before it. Records of warc
without a text stay; in a compressed archive each record is a member or frame of
its own.

Texts without words have no fingerprint, nor have texts too short for another
recipe: nothing says that two of them are near-duplicates, so all are kept, and
counted. Lines that --skip-bad-lines
leaves out are left out of the output too.

Examples:
  simshard dedup pages.jsonl.zst -o clean.jsonl.zst
  simshard dedup pages.jsonl -o clean.jsonl --keep newest:date --by pairs
  simshard dedup pages.parquet -o clean.parquet --keep highest:score
  simshard dedup 'crawl/*.warc.gz' -o clean/ --dropped dropped.tsv
  simshard dedup new.jsonl -o add.jsonl --against articles --insert")]
pub struct DedupArgs {
    /// The documents.
    #[command(flatten)]
    pub documents: InputArgs,
    /// How texts become fingerprints.
    #[command(flatten)]
    pub recipe: RecipeArgs,
    /// How near-duplicates are searched for.
    #[command(flatten)]
    pub search: SearchArgs,
    /// What is kept: one document of each cluster, or as many as are not near one another
    #[arg(long, value_enum, default_value = "cluster", help_heading = "Search")]
    pub by: By,
    /// Which of several is preferred: first, longest, newest:FIELD or highest:FIELD
    ///
    /// Of equals it is the first of the input. `longest` counts the characters of the text. FIELD is a
    /// field of jsonl, a column of csv or parquet, or a field in the headers of warc, such as
    /// newest:WARC-Date. `highest` takes numbers. `newest` takes dates as in RFC 3339, dates alone such as
    /// 2026-01-31, and dates and timestamps of parquet. They are in UTC if they have no time zone. A
    /// document without a value comes last; another value is a bad line. A field that no document has is
    /// an error, and so is a column that is not there.
    #[arg(
        long,
        value_name = "WHICH",
        default_value = "first",
        help_heading = "Search"
    )]
    pub keep: Preference,
    /// The corpus to compare with, and to add to.
    #[command(flatten)]
    pub against: AgainstArgs,
    /// Where the kept documents go; `-` is standard output, a folder is for several inputs or a folder
    ///
    /// A name in .gz or .zst says that it is compressed. A folder must be new or empty: in it files
    /// have their names below the folder that all inputs are in.
    #[arg(short, long, value_name = "PATH", value_hint = ValueHint::AnyPath, help_heading = "Output")]
    pub output: PathBuf,
    /// In a folder, write files of bzip2, xz and lz4, which are only read, in this compression
    #[arg(long, value_enum, value_name = "CODEC", help_heading = "Output")]
    pub recompress: Option<Recompress>,
    /// Where a list of the dropped documents goes, as tsv: id, id of the kept one, distance
    ///
    /// With several input files, two more columns name the files of both. The last two columns say where both stand in
    /// their files: the number of the line, the record of warc, or the row of parquet. A tab, line break, NUL byte or backslash in an
    /// id or a path is written as \t, \n, \r, \0 or \\. A byte of a path that is not UTF-8 is written as \xFF.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub dropped: Option<PathBuf>,
}

/// Writes what is kept.
pub fn run(args: &DedupArgs) -> anyhow::Result<()> {
    let start = Instant::now();
    args.search.check()?;
    let recipe = args.recipe.effective()?;
    let input = args.documents.options().expanded()?;
    let dropped = match &args.dropped {
        Some(path) => Some(Output::open(Some(path), &input.paths)?),
        None => None,
    };
    let needs = Needs {
        recipe,
        ..Needs::CLIENT
    };
    let makes_fingerprints = input.carried(needs)? != Carries::Fingerprints;
    let corpus = args.against.open(makes_fingerprints.then_some(recipe))?;
    let job = Dedup {
        input,
        recipe,
        distance: args.search.distance,
        blocks: args.search.blocks.fixed(),
        threads: args.search.thread_count(),
        by: args.by,
        keep: args.keep.clone(),
        output: args.output.clone(),
        recompress: args.recompress,
        dropped,
        start,
    };
    let read = job.read(SHOWN)?;
    let Some(corpus) = corpus else {
        let (done, _) = read.write(&[], SHOWN)?;
        say::deduplicated(&done);
        return Ok(());
    };
    let known = corpus.known(&read, args.search.distance)?;
    let format = read.format();
    let (done, kept) = read.write(&known, SHOWN)?;
    drop(known);
    say::deduplicated(&done);
    corpus.insert(&kept, || {
        corpus.remedy(&args.output, &args.documents, format)
    })
}
