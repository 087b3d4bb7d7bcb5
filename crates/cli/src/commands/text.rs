//! `simshard text`: the texts of documents, as recipes see them.

use std::io::{self, BufWriter, IsTerminal, Write};

use anyhow::Context;
use clap::Args;
use serde_json::json;
use simshard_batch::write_json;
use simshard_input::{
    Carries, Check, Content, Document, Format, Ids, Input, InputError, InputOptions, Needs,
};
use simshard_runtime::terminal::escaped;
use simshard_simhash::Recipe;

use crate::args::SelectionArgs;
use crate::exit::UsageError;
use crate::say;

/// Arguments of `text`.
#[derive(Args, Debug)]
#[command(after_help = "\
Shows what --html takes of a page, what --text-field takes of a line, and which
pages an archive holds. One document is printed as it is. Several have a line
before each that names it: ==> a.html <==. With --json there is an object a
line, for any number of documents, and the other commands read them again with
--format jsonl.

Examples:
  simshard text page.html
  simshard text page.html --html all          with navigation and the like
  simshard text crawl.warc.gz -n 3            the first three pages
  simshard text pages.jsonl --html main --json > texts.jsonl")]
pub struct TextArgs {
    /// What to read.
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Print one JSON object a document and line, {"id":…,"text":…}
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Prints the texts, as the input is read.
pub fn run(args: &TextArgs) -> anyhow::Result<()> {
    let input = open(&args.selection.options())?;
    let most = match args.selection.sample {
        0 => usize::MAX,
        sample => usize::try_from(sample).unwrap_or(usize::MAX),
    };
    let mut documents = input.documents();
    let mut out = BufWriter::new(io::stdout().lock());
    let sample = documents.by_ref().take(most);
    let printed = if args.json {
        print_json(sample, &mut out)
    } else {
        let is_terminal = io::stdout().is_terminal();
        print_plain(sample, &mut out, is_terminal)
    };
    out.flush().context(CANNOT_WRITE)?;
    printed?;
    say::left_out(&documents.skipped());
    Ok(())
}

const CANNOT_WRITE: &str = "cannot write <stdout>";

/// Opens documents that carry texts.
fn open(options: &InputOptions) -> anyhow::Result<Input> {
    let needs = Needs {
        ids: Ids::Any,
        check: Check::AsRead,
        preferred_format: Format::Lines,
        recipe: Recipe::default(),
    };
    let input = Input::open(options, needs)?;
    let what = match input.carries() {
        Carries::Texts => return Ok(input),
        Carries::Fingerprints => "fingerprints",
        Carries::Features => "features",
    };
    let message = format!("these documents carry {what}, and no texts");
    Err(UsageError(message).into())
}

/// Prints one text as it is, and several below their ids.
fn print_plain(
    documents: impl Iterator<Item = Result<Document, InputError>>,
    out: &mut impl Write,
    is_terminal: bool,
) -> anyhow::Result<()> {
    let mut documents = documents.peekable();
    let mut are_several = false;
    while let Some(document) = documents.next() {
        let Document { id, content } = document?;
        let Content::Text(text) = content else {
            continue;
        };
        let gap = if are_several { "\n" } else { "" };
        are_several |= documents.peek().is_some();
        if are_several {
            writeln!(out, "{gap}==> {} <==", escaped(&id)).context(CANNOT_WRITE)?;
        }
        let text = if is_terminal { harmless(&text) } else { text };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        write!(out, "{text}{end}").context(CANNOT_WRITE)?;
    }
    Ok(())
}

fn print_json(
    documents: impl Iterator<Item = Result<Document, InputError>>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    for document in documents {
        let Document { id, content } = document?;
        let Content::Text(text) = content else {
            continue;
        };
        let written = write_json(&mut *out, &json!({"id": id, "text": text}));
        written.and_then(|()| writeln!(out)).context(CANNOT_WRITE)?;
    }
    Ok(())
}

/// A text in its lines, without what a terminal obeys but these and tabs.
fn harmless(text: &str) -> String {
    let pieces = text.split_inclusive(['\n', '\t']);
    let shown = pieces.map(|piece| {
        let end = piece.len() - usize::from(piece.ends_with(['\n', '\t']));
        let (piece, end) = piece.split_at(end);
        format!("{}{end}", escaped(piece))
    });
    shown.collect()
}
