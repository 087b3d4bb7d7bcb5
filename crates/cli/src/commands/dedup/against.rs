//! `--against`: a served corpus, whose documents are kept before any of the input, and `--insert`, which adds
//! what is kept to it.

use std::num::NonZeroU32;
use std::path::Path;

use anyhow::Context;
use clap::Args;
use futures_util::{StreamExt, stream};
use simshard_batch::{KeptDocuments, Known, ReadDocuments};
use simshard_client::{Batcher, Client, Documents, Fingerprint, Queries, SearchSpec};
use simshard_runtime::terminal::counted;
use simshard_simhash::Recipe;

use crate::commands::pipeline::{BATCH, IN_FLIGHT};
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
    #[arg(long, value_name = "CORPUS")]
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

    /// The command that inserts the output.
    fn insertion(&self, output: &Path) -> String {
        let output = match output.as_os_str().to_str() {
            Some("-") | None => "FILE".to_owned(),
            Some(path) => quoted(path),
        };
        let (name, router) = (quoted(self.name), quoted(&self.args.router.router));
        format!("simshard insert {output} --corpus {name} --router {router}")
    }

    /// Adds what was kept, if that is asked for.
    pub(super) fn insert(&self, kept: &KeptDocuments, output: &Path) -> anyhow::Result<()> {
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
        let inserted = inserted.with_context(|| {
            format!(
                "{} is complete, and not all of it is in corpus {name}: insert it with `{}` and \
                 this command's options about formats and fields; do not run this command again, which would leave out what \
                 is in by now",
                output.display(),
                self.insertion(output)
            )
        })?;
        note(format!(
            "inserted {} into corpus {name}",
            counted(inserted, "document")
        ));
        Ok(())
    }
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

    #[test]
    fn the_command_that_inserts_the_output_names_the_file_and_the_router() {
        let args = AgainstArgs {
            against: None,
            insert: true,
            router: RouterArgs {
                router: "http://10.0.0.7:7460".to_owned(),
                timeout_seconds: 1,
            },
        };
        let corpus = Corpus {
            name: "articles",
            recipe: String::new(),
            args: &args,
        };
        for (output, word) in [
            ("out/clean.jsonl", "out/clean.jsonl"),
            ("it's.jsonl", "'it'\\''s.jsonl'"),
            ("-", "FILE"),
        ] {
            let expected =
                format!("simshard insert {word} --corpus articles --router http://10.0.0.7:7460");
            assert_eq!(corpus.insertion(Path::new(output)), expected);
        }
    }
}
