//! `--against`: a served corpus, whose documents are kept before any of the input, and `--insert`, which adds
//! what is kept to it.

use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use futures_util::{StreamExt, stream};
use simshard_batch::{KeptDocuments, Known, ReadDocuments};
use simshard_client::{Batcher, Client, Documents, Fingerprint, Queries, SearchSpec};
use simshard_input::{Format, format_of_name};
use simshard_runtime::terminal::counted;
use simshard_simhash::Recipe;

use crate::args::InputArgs;
use crate::commands::pipeline::{BATCH, IN_FLIGHT};
use crate::completion;
use crate::connection::{RouterArgs, block_on};
use crate::exit::UsageError;
use crate::progress;
use crate::say::note;

/// The corpus to compare with.
#[derive(Args, Debug)]
#[command(next_help_heading = "Cluster")]
pub struct AgainstArgs {
    /// Drop the documents that are near one of this corpus, before the others are compared with one another
    ///
    /// The documents are compared up to --distance with those that the corpus holds when they are read. Its recipe
    /// must be that of --recipe.
    #[arg(long, value_name = "CORPUS", add = completion::corpora())]
    pub against: Option<String>,
    /// Insert the kept documents into that corpus, once the output is complete
    #[arg(long, requires = "against")]
    pub insert: bool,
    /// The router.
    #[command(flatten)]
    pub router: RouterArgs,
}

/// A corpus that is there.
pub(super) struct Corpus<'a> {
    name: &'a str,
    recipe: String,
    args: &'a AgainstArgs,
}

impl AgainstArgs {
    /// The corpus, if one is asked for. It must have this recipe, if fingerprints are made.
    pub(super) fn open(&self, recipe: Option<Recipe>) -> anyhow::Result<Option<Corpus<'_>>> {
        let Some(name) = &self.against else {
            return Ok(None);
        };
        let found = block_on(async { Ok(self.router.client()?.recipe(name).await?) })?;
        if let Some(recipe) = recipe.filter(|recipe| recipe.to_string() != found) {
            return Err(UsageError(format!(
                "corpus {name} has recipe {found}, and the documents would be fingerprinted by \
                 {recipe}: add --recipe {found}"
            ))
            .into());
        }
        Ok(Some(Corpus {
            name,
            recipe: found,
            args: self,
        }))
    }
}

impl Corpus<'_> {
    fn client(&self) -> anyhow::Result<Client> {
        let client = self.args.router.client()?;
        Ok(client.with_recipe(&self.recipe))
    }

    /// The documents of the corpus near those that were read, one for each fingerprint.
    pub(super) fn known(&self, read: &ReadDocuments, distance: u32) -> anyhow::Result<Vec<Known>> {
        block_on(async {
            let client = &self.client()?;
            let fingerprints = read.fingerprints();
            let bar = progress::bar("searching", Some(fingerprints.len() as u64));
            let requests = stream::iter(fingerprints.chunks(BATCH))
                .map(|batch| self.look_up(client, batch, distance));
            let mut answers = std::pin::pin!(requests.buffered(IN_FLIGHT));
            let (mut known, mut first) = (Vec::new(), 0);
            while let Some(answer) = answers.next().await {
                let (found, asked) = answer?;
                known.extend(found.into_iter().map(|known| Known {
                    place: first + known.place,
                    ..known
                }));
                first += asked;
                bar.inc(asked as u64);
            }
            bar.finish_and_clear();
            Ok(known)
        })
    }

    /// The nearest documents of a batch of fingerprints, and how many fingerprints these were.
    async fn look_up(
        &self,
        client: &Client,
        batch: &[Fingerprint],
        distance: u32,
    ) -> anyhow::Result<(Vec<Known>, usize)> {
        let spec = SearchSpec {
            max_distance: Some(distance),
            limit: Some(NonZeroU32::MIN),
            max_ids: Some(NonZeroU32::MIN),
            allow_partial: false,
        };
        let queries = Queries::Fingerprints(batch.to_vec());
        let found = client.find_all(self.name, queries, spec).await?;
        let answers = found.queries.into_iter().enumerate();
        let known = answers.filter_map(|(place, answer)| {
            let nearest = answer.matches.into_iter().next()?;
            Some(Known {
                place,
                id: nearest.ids.into_iter().next().unwrap_or_default(),
                distance: nearest.distance,
            })
        });
        Ok((known.collect(), batch.len()))
    }

    /// The command that inserts the output, which was read with these arguments and written in this format.
    fn insertion(&self, output: &Path, input: &InputArgs, format: Format) -> String {
        let name = |path: &PathBuf| match path.to_str() {
            Some("-") | None => "FILE".to_owned(),
            Some(path) => path.to_owned(),
        };
        let outputs = to_name(output, format);
        let outputs = outputs.iter().map(name);
        let words = ["simshard", "insert"].map(str::to_owned).into_iter();
        let router = &self.args.router.router;
        let options = ["--corpus", self.name, "--router", router].map(str::to_owned);
        let words = words.chain(outputs).chain(options);
        let words: Vec<String> = words.chain(input.words_for(output, format)).collect();
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    }

    /// What to do if the insertion of the output fails.
    pub(super) fn remedy(&self, output: &Path, input: &InputArgs, format: Format) -> String {
        let has_numbers = input.id_from.is_some() || format.has_line_ids();
        let numbers = if has_numbers {
            "; that numbers its documents as they stand there, and those that are in already keep their numbers of \
             the input"
        } else {
            ""
        };
        format!(
            "{} is complete, and not all of it is in corpus {}: insert it with `{}`{numbers}; do not run this command \
             again, which would leave out what is in by now",
            output.display(),
            self.name,
            self.insertion(output, input, format)
        )
    }

    /// Adds what was kept, if that is asked for. If it fails, `remedy` says what to do.
    pub(super) fn insert(
        &self,
        kept: &KeptDocuments,
        remedy: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        if !self.args.insert {
            return Ok(());
        }
        let name = self.name;
        let inserted = block_on(async {
            let client = self.client()?;
            let bar = progress::bar("inserting", None);
            let mut answers =
                std::pin::pin!(client.insert_stream(name, stream::iter(batches(kept))));
            let mut inserted = 0;
            while let Some(answer) = answers.next().await {
                let answer = answer?;
                inserted += answer.changed_count;
                bar.inc(answer.document_count);
            }
            bar.finish_and_clear();
            Ok(inserted)
        });
        let inserted = inserted.with_context(remedy)?;
        note(format!(
            "inserted {} into corpus {name}",
            counted(inserted, "document")
        ));
        Ok(())
    }
}

/// What to name so that all of an output is read. Of a folder, only files whose names say the format are.
fn to_name(output: &Path, format: Format) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if output.is_dir() && add_files(output, &mut files).is_ok() {
        let has_other_name = |file: &PathBuf| format_of_name(file) != Some(format);
        if files.iter().any(has_other_name) {
            files.sort();
            return files;
        }
    }
    vec![output.to_owned()]
}

/// Adds the files of a folder, and of those in it.
fn add_files(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            add_files(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// A word of a command as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The kept documents in batches that fit a message.
fn batches(kept: &KeptDocuments) -> impl Iterator<Item = Documents> {
    let mut documents = kept.iter().peekable();
    std::iter::from_fn(move || {
        documents.peek()?;
        let mut batcher = Batcher::new(BATCH);
        let (mut ids, mut fingerprints) = (Vec::new(), Vec::new());
        while let Some((id, fingerprint)) = documents.next_if(|(id, _)| batcher.fits(None, id)) {
            ids.push(id.into_owned());
            fingerprints.push(fingerprint);
        }
        let keys = Queries::Fingerprints(fingerprints);
        Some(Documents { keys, ids })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments of input among those of a command.
    #[derive(clap::Parser)]
    struct Arguments {
        #[command(flatten)]
        input: InputArgs,
    }

    const ROUTER: &str = "http://10.0.0.7:7460";

    fn with_corpus<T>(run: impl FnOnce(&Corpus<'_>) -> T) -> T {
        let args = AgainstArgs {
            against: None,
            insert: true,
            router: RouterArgs {
                router: ROUTER.to_owned(),
                timeout_seconds: 1,
                access: crate::args::RouterAccessArgs::default(),
            },
        };
        run(&Corpus {
            name: "articles",
            recipe: String::new(),
            args: &args,
        })
    }

    fn input(options: &str) -> InputArgs {
        let words = std::iter::once("dedup").chain(options.split_whitespace());
        <Arguments as clap::Parser>::parse_from(words).input
    }

    #[test]
    fn the_command_that_inserts_the_output_has_all_that_it_needs() {
        for (output, options, format, expected) in [
            ("out/a.jsonl", "", Format::Jsonl, "out/a.jsonl _ jsonl"),
            ("it's", "", Format::Tsv, "'it'\\''s' _ tsv"),
            ("-", "", Format::Warc, "FILE _ warc"),
            (
                "out",
                "--text-field a.b --id-field url --text-field c --html main --skip-bad-lines",
                Format::Jsonl,
                "out _ jsonl --id-field url --text-field a.b --text-field c --html main",
            ),
            (
                "out",
                "--fingerprint-field f --signed --id row --skip-formats -f csv",
                Format::Csv,
                "out _ csv --fingerprint-field f --id row --signed",
            ),
            (
                "out.csv",
                "-f csv --separator |",
                Format::Csv,
                "out.csv _ csv --separator '|'",
            ),
            // The separator of a file without an option is what its name says.
            (
                "out.csv",
                "-f csv in.tsv",
                Format::Csv,
                "out.csv _ csv --separator tab",
            ),
            (
                "out.tsv",
                "-f csv in.csv",
                Format::Csv,
                "out.tsv _ csv --separator ','",
            ),
            ("out.tsv", "-f csv in.tsv", Format::Csv, "out.tsv _ csv"),
            (
                "out",
                "--features-field $f",
                Format::Jsonl,
                "out _ jsonl --features-field '$f'",
            ),
        ] {
            let corpus = format!("--corpus articles --router {ROUTER} --format");
            let expected = format!("simshard insert {}", expected.replace('_', &corpus));
            let command =
                |corpus: &Corpus<'_>| corpus.insertion(Path::new(output), &input(options), format);
            assert_eq!(with_corpus(command), expected);
        }
    }

    #[test]
    fn the_files_of_a_folder_are_named_where_their_names_do_not_say_what_they_hold() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let written = |name: &str| {
            let file = path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "").unwrap();
            file
        };
        written("a.jsonl");
        written("b/c.jl.gz");
        assert_eq!(to_name(path, Format::Jsonl), [path]);
        let parts = ["b/part-1", "part-0"].map(written);
        let all = [
            path.join("a.jsonl"),
            path.join("b/c.jl.gz"),
            parts[0].clone(),
            parts[1].clone(),
        ];
        assert_eq!(to_name(path, Format::Jsonl), all);
        assert_eq!(to_name(&parts[1], Format::Lines), parts[1..]);
        let command = |corpus: &Corpus<'_>| corpus.insertion(path, &input(""), Format::Jsonl);
        let names = all.map(|file| quoted(file.to_str().unwrap())).join(" ");
        let command = with_corpus(command);
        assert!(
            command.starts_with(&format!("simshard insert {names} --corpus ")),
            "{command}"
        );
    }

    #[test]
    fn what_to_do_after_a_failure_warns_of_numbers() {
        for (format, has_numbers) in [(Format::Tsv, false), (Format::Lines, true)] {
            let remedy = |corpus: &Corpus<'_>| corpus.remedy(Path::new("out"), &input(""), format);
            let remedy = with_corpus(remedy);
            let expected = "out is complete, and not all of it is in corpus articles: insert it with \
                            `simshard insert out --corpus articles ";
            assert!(remedy.starts_with(expected), "{remedy}");
            assert_eq!(remedy.contains("keep their numbers"), has_numbers);
            let end = "do not run this command again, which would leave out what is in by now";
            assert!(remedy.ends_with(end), "{remedy}");
        }
    }
}
