//! `simshard hash`: the fingerprints of documents.

use std::io;

use clap::Args;
use simshard_batch::{Member, Output, OutputError, OutputFormat, Rows, Sink};
use simshard_input::{
    Carries, Check, Columns, DegenerateTexts, Format, Ids, Input, InputOptions, Needs, Skipped,
    for_each_part,
};
use simshard_simhash::Recipe;

use crate::args::{Plan, ReadArgs, WriteArgs};
use crate::exit::UsageError;
use crate::progress;
use crate::say;

/// Arguments of `hash`.
#[derive(Args, Debug)]
#[command(after_help = "\
Prints TSV under the header `id<TAB>hash` unless told otherwise. An id with a
tab, a line break or a NUL byte is bad input for TSV. Documents are written as
the input is read: bad input ends the command with exit code 2 and leaves no
file, but on standard output good lines far before it may have been printed by
then. A text that the recipe gives no fingerprint gets no row, and is counted.
Texts with little to tell them apart get one, and are counted as degenerate.

The other commands read what it writes: a .tsv as it is, .jsonl and .parquet
with --fingerprint-field fingerprint, .json with --format json besides.

Examples:
  simshard hash --format lines texts.txt      one text a line
  simshard hash --recipe leonsim-4 texts/     one text a file
  simshard hash pages.jsonl --text-field body -o hashes.tsv
  printf 'hello world\\n' | simshard hash")]
pub struct HashArgs {
    /// What to read.
    #[command(flatten)]
    pub reading: ReadArgs,
    /// Where the fingerprints go.
    #[command(flatten)]
    pub writing: WriteArgs,
}

/// Writes the fingerprints, as the input is read.
pub fn run(args: &HashArgs) -> anyhow::Result<()> {
    let plan = Plan::new(&args.reading, &args.writing, OutputFormat::Tsv)?;
    let input = open(&plan.input, plan.format.ids(), plan.recipe)?;
    let recipe = input.text_recipe(plan.recipe)?;
    let failed = OutputError::failed(plan.output.name().to_owned());
    let bar = progress::bar("hashing", None);
    let mut skipped = Skipped::default();
    let mut degenerate = DegenerateTexts::default();
    let mut sink = plan
        .format
        .sink(Rows::Documents, plan.input.notation, plan.output)
        .map_err(&failed)?;
    let sample = Some(args.reading.selection.sample);
    for_each_part(input, recipe, sample, |part| -> anyhow::Result<()> {
        write(&part, &mut *sink).map_err(&failed)?;
        skipped += &part.skipped;
        degenerate += part.degenerate;
        bar.inc(part.fingerprints.len() as u64);
        Ok(())
    })?;
    let output = sink.finish().and_then(Output::complete);
    output.map_err(&failed)?.commit()?;
    bar.finish_and_clear();
    say::recipe(plan.recipe);
    say::left_out(&skipped);
    say::degenerate(degenerate);
    Ok(())
}

/// Opens documents that have no fingerprints yet.
fn open(options: &InputOptions, ids: Ids, recipe: Recipe) -> anyhow::Result<Input> {
    let needs = Needs {
        ids,
        check: Check::AsRead,
        preferred_format: Format::Lines,
        recipe,
    };
    let input = Input::open(options, needs)?;
    if input.carries() == Carries::Fingerprints {
        let message = "these documents carry fingerprints already: hash needs texts; a table of ids and texts is \
                       --format csv --separator tab";
        return Err(UsageError(message.to_owned()).into());
    }
    Ok(input)
}

fn write(documents: &Columns, sink: &mut dyn Sink) -> io::Result<()> {
    for (place, &fingerprint) in documents.fingerprints.iter().enumerate() {
        let id = Some(documents.id(place));
        sink.document(&Member { id, fingerprint })?;
    }
    Ok(())
}
