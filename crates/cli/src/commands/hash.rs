//! `simshard hash`: the fingerprints of documents, as TSV.

use std::io::{BufWriter, Write};

use anyhow::Context;
use clap::Args;
use rayon::prelude::*;
use simshard_simhash::TextRecipe;

use crate::commands::checking;
use crate::exit::UsageError;
use crate::input::{Content, Document, Documents, Ids, InputArgs};
use crate::progress;
use crate::recipe::text_recipe_names;
use crate::say::note;

/// Documents hashed together, on all cores.
const BATCH: usize = 1024;

/// Most bytes of text hashed together.
const BATCH_BYTES: usize = 32 << 20;

/// Arguments of `hash`.
#[derive(Args, Debug)]
#[command(after_help = "\
Prints TSV under the header `id<TAB>hash`, which `insert`, `remove` and `find`
read back with --format tsv. An id with a tab or a line break is bad input.

Examples:
  simshard hash page.txt                      one text a line
  simshard hash --recipe leonsim-4 texts/     one text a file
  printf 'hello world\\n' | simshard hash")]
pub struct HashArgs {
    /// How texts become fingerprints
    #[arg(long, value_name = "NAME", default_value_t, value_parser = text_recipe_names())]
    pub recipe: TextRecipe,
    /// The documents.
    #[command(flatten)]
    pub input: InputArgs,
}

/// Prints the fingerprints.
///
/// # Errors
/// If the input is bad or standard output cannot be written.
pub fn run(args: &HashArgs) -> anyhow::Result<()> {
    let input = checking::open(&args.input, Ids::Tsv)?;
    if input.carries_fingerprints() {
        let message = "these documents carry fingerprints already: hash needs texts";
        return Err(UsageError(message.to_owned()).into());
    }
    let bar = progress::bar("hashing", input.document_count());
    let mut documents = input.documents();
    let mut out = BufWriter::new(std::io::stdout().lock());
    writeln!(out, "id\thash")?;
    loop {
        let batch = take_batch(&mut documents)?;
        if batch.is_empty() {
            break;
        }
        let lines: Vec<String> = batch
            .par_iter()
            .map(|document| line(args.recipe, document))
            .collect();
        for line in lines {
            out.write_all(line.as_bytes())?;
        }
        bar.inc(batch.len() as u64);
    }
    out.flush().context("cannot write the fingerprints")?;
    bar.finish_and_clear();
    let skipped = documents.skipped();
    if !skipped.is_empty() {
        note(skipped);
    }
    Ok(())
}

fn take_batch(documents: &mut Documents) -> anyhow::Result<Vec<Document>> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while batch.len() < BATCH && bytes < BATCH_BYTES {
        let Some(document) = documents.next() else {
            break;
        };
        let document = document?;
        if let Content::Text(text) = &document.content {
            bytes += text.len();
        }
        batch.push(document);
    }
    Ok(batch)
}

fn line(recipe: TextRecipe, document: &Document) -> String {
    let fingerprint = match &document.content {
        Content::Text(text) => recipe.fingerprint(text),
        Content::Fingerprint(fingerprint) => *fingerprint,
    };
    format!("{}\t{fingerprint}\n", document.id)
}
