//! `--only-new`: the documents of an input that have no match, as they stand there.
//!
//! The input is read twice, as `dedup` reads it. The first reading takes all of it before the first search. The second
//! prints the lines of the documents that are new.

use std::io::{self, BufWriter, Write};
use std::num::NonZeroU32;

use futures_util::StreamExt;
use futures_util::stream;
use simshard_client::{Queries, SearchSpec};
use simshard_input::{
    Format, InputOptions, Marks, Needs, Parts, Preference, Rewrite, Skipped, is_tsv_header,
    without_byte_order_mark,
};
use simshard_runtime::terminal::counted;
use simshard_simhash::Recipe;

use super::search::Search;
use crate::commands::pipeline::{BATCH, IN_FLIGHT};
use crate::exit::UsageError;
use crate::progress;
use crate::say::{left_out, note, without_fingerprint};

/// Prints the documents without a match.
pub(super) async fn run(
    search: Search<'_>,
    options: &InputOptions,
    recipe: Option<Recipe>,
) -> anyhow::Result<()> {
    let Some(recipe) = recipe else {
        let message = "--only-new needs the recipe of the corpus, which this version does not know";
        return Err(UsageError(message.to_owned()).into());
    };
    let stdin = Box::new(io::stdin());
    let mut input = Rewrite::open(options, Needs::CLIENT, recipe, Preference::First, stdin)?;
    let (format, files) = (input.format(), input.paths().len());
    if files > 1 && !is_joined(format) {
        let message =
            format!("--only-new prints one file of {format} at a time: name them one by one");
        return Err(UsageError(message).into());
    }
    let bar = progress::bar("reading", None);
    let mut read = input.read(&mut |documents| bar.inc(documents))?;
    bar.finish_and_clear();
    let mut skipped = read.parts.skipped.clone();
    let unhashable = std::mem::take(&mut skipped.unhashable_texts);
    let is_known = are_known(search, &read.parts).await?;
    read.marks.leave_out(|document| is_known[document]);
    let new = is_known.iter().filter(|is_known| !**is_known).count() as u64;
    let of = is_known.len() as u64;
    print(input, &read.marks)?;
    if unhashable > 0 {
        let texts = without_fingerprint(unhashable, Some(recipe), "no match");
        note(format!("printed {texts}"));
    }
    say(new + unhashable, of + unhashable, &skipped);
    Ok(())
}

/// Whether each document has a match.
async fn are_known(search: Search<'_>, documents: &Parts) -> anyhow::Result<Vec<bool>> {
    // One match that is another document is enough to tell.
    let search = Search {
        spec: SearchSpec {
            limit: Some(NonZeroU32::MIN),
            max_ids: Some(NonZeroU32::MIN),
            ..search.spec
        },
        ..search
    };
    let fingerprints = &documents.fingerprints;
    let bar = progress::bar("searching", Some(fingerprints.len() as u64));
    let requests = stream::iter((0..fingerprints.len()).step_by(BATCH)).map(|from| {
        let to = fingerprints.len().min(from + BATCH);
        let queries = Queries::Fingerprints(fingerprints[from..to].to_vec());
        let ids = if search.exclude_self {
            let ids = (from..to).map(|document| documents.id(document).into_owned());
            ids.collect()
        } else {
            Vec::new()
        };
        async move { search.run(queries, &ids).await }
    });
    let mut answers = std::pin::pin!(requests.buffered(IN_FLIGHT));
    let mut is_known: Vec<bool> = Vec::with_capacity(fingerprints.len());
    while let Some(found) = answers.next().await {
        let found = found?.queries;
        bar.inc(found.len() as u64);
        is_known.extend(found.iter().map(|answer| !answer.matches.is_empty()));
    }
    bar.finish_and_clear();
    Ok(is_known)
}

/// Whether several files are one if one stands after the other.
fn is_joined(format: Format) -> bool {
    match format {
        Format::Hashes | Format::Lines | Format::Jsonl | Format::Tsv => true,
        Format::Csv | Format::Parquet | Format::Arrow | Format::Warc | Format::Files => false,
    }
}

/// Prints what is not left out, the lines of all inputs as one.
fn print(input: Rewrite, left_out: &Marks) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let has_headers = input.format() == Format::Tsv;
    let (mut before, mut ends_line) = (None, true);
    input.write(left_out, |source, piece| -> anyhow::Result<()> {
        let mut rest = &piece.bytes[..];
        if before != Some(source) {
            if before.is_some() {
                // What begins a file would stand within the stream.
                rest = without_byte_order_mark(rest);
                if has_headers {
                    rest = without_header(rest);
                }
            }
            if !ends_line && !rest.is_empty() {
                out.write_all(b"\n")?;
            }
            before = Some(source);
        }
        ends_line = rest.last().map_or(ends_line, |last| *last == b'\n');
        Ok(out.write_all(rest)?)
    })?;
    Ok(out.flush()?)
}

/// TSV without the line that names its columns: only the first of a file is read as that.
fn without_header(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
    if std::str::from_utf8(line.trim_ascii_end()).is_ok_and(is_tsv_header) {
        return rest;
    }
    bytes
}

fn say(new: u64, of: u64, skipped: &Skipped) {
    left_out(skipped);
    note(format!(
        "{new} of {} have no match",
        counted(of, "document")
    ));
}
