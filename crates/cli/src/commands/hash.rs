//! `simshard hash`: the fingerprints of documents, as TSV.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};

use anyhow::Context;
use clap::Args;
use simshard_simhash::{Recipe, TextRecipe};

use crate::exit::UsageError;
use crate::input::{
    Batch, Carries, Check, Format, Ids, Input, InputArgs, InputError, Needs, Record, RecordContent,
    Skipped,
};
use crate::progress;
use crate::recipe::recipe_names;
use crate::say::note;

/// The first line of the output.
const HEADER: &str = "id\thash\n";

/// Arguments of `hash`.
#[derive(Args, Debug)]
#[command(after_help = "\
Prints TSV under the header `id<TAB>hash`, which `insert`, `remove` and `find`
read back with --format tsv. An id with a tab or a line break is bad input.
Lines are printed as the input is read: bad input ends the command with exit
code 2, but good lines far before it may have been printed by then.

Examples:
  simshard hash page.txt                      one text a line
  simshard hash --recipe leonsim-4 texts/     one text a file
  printf 'hello world\\n' | simshard hash")]
pub struct HashArgs {
    /// How texts become fingerprints
    #[arg(long, value_name = "NAME", default_value_t, value_parser = recipe_names())]
    pub recipe: Recipe,
    /// The documents.
    #[command(flatten)]
    pub input: InputArgs,
}

/// The output lines of a batch of documents.
struct Lines {
    text: String,
    documents: u64,
    skipped: Skipped,
}

/// Prints the fingerprints, as the input is read.
///
/// # Errors
/// If the input is bad or standard output cannot be written.
pub fn run(args: &HashArgs) -> anyhow::Result<()> {
    let needs = Needs {
        ids: Ids::Tsv,
        check: Check::AsRead,
        preferred_format: Format::Lines,
        recipe: args.recipe,
    };
    let input = Input::open(&args.input, needs)?;
    if input.carries() == Carries::Fingerprints {
        let message = "these documents carry fingerprints already: hash needs texts";
        return Err(UsageError(message.to_owned()).into());
    }
    let recipe = input.text_recipe(args.recipe)?;
    let bar = progress::bar("hashing", None);
    let mut skipped = Skipped::default();
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut header = Some(HEADER);
    input.for_each_batch(
        |batch| lines(batch, recipe),
        |batches| -> anyhow::Result<bool> {
            let batches: Vec<Lines> = batches
                .into_iter()
                .map(Result::flatten)
                .collect::<Result<_, _>>()?;
            for lines in batches {
                out.write_all(header.take().unwrap_or_default().as_bytes())?;
                out.write_all(lines.text.as_bytes())?;
                skipped += lines.skipped;
                bar.inc(lines.documents);
            }
            Ok(true)
        },
    )?;
    out.write_all(header.take().unwrap_or_default().as_bytes())?;
    out.flush().context("cannot write the fingerprints")?;
    bar.finish_and_clear();
    if !skipped.is_empty() {
        note(skipped);
    }
    Ok(())
}

fn lines(batch: &Batch, recipe: TextRecipe) -> Result<Lines, InputError> {
    let mut text = String::new();
    let mut documents = 0;
    let outcome = batch.parse(|Record { id, content }| {
        let fingerprint = match content {
            RecordContent::Text(text) => recipe.fingerprint(&text),
            RecordContent::Fingerprint(fingerprint) => fingerprint,
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{id}\t{fingerprint}");
        documents += 1;
    });
    match outcome.error {
        Some(error) => Err(error),
        None => Ok(Lines {
            text,
            documents,
            skipped: outcome.skipped,
        }),
    }
}
