//! The common code of the commands that read a whole corpus.

use std::borrow::Cow;
use std::pin::pin;

use clap::Args;
use futures_util::{Stream, TryStreamExt};
use simshard_batch::{Member, Output, OutputError, OutputFormat, Rows, Sink};
use simshard_client::{Client, ClientError, Fingerprint};
use simshard_input::Notation;

use crate::args::{ExpectedRecipeArgs, WriteArgs};
use crate::completion;
use crate::connection::RouterArgs;
use crate::exit::UsageError;
use crate::progress;

/// The corpus, and where what is found goes.
#[derive(Args, Debug)]
pub struct StreamArgs {
    /// Its name
    #[arg(value_name = "CORPUS", add = completion::corpora())]
    pub name: String,
    /// Its recipe.
    #[command(flatten)]
    pub recipe: ExpectedRecipeArgs,
    /// Where it goes.
    #[command(flatten)]
    pub writing: WriteArgs,
    /// Write fingerprints as numbers in two's complement, as Spark, BigQuery and Java have them
    #[arg(long, help_heading = "Output")]
    pub signed: bool,
    /// The router.
    #[command(flatten)]
    pub router: RouterArgs,
}

impl StreamArgs {
    /// Writes what `open` streams from the corpus, which must be there and of the recipe asked for. `write` hands the
    /// rows of a batch to the sink, and counts them.
    pub(super) async fn write<B, S>(
        &self,
        rows: Rows,
        what: &str,
        open: impl AsyncFnOnce(&Client, &str) -> Result<S, ClientError>,
        write: impl Fn(B, OutputFormat, &mut dyn Sink) -> anyhow::Result<u64>,
    ) -> anyhow::Result<()>
    where
        S: Stream<Item = Result<B, ClientError>>,
    {
        let usual = match rows {
            Rows::Documents => OutputFormat::Tsv,
            Rows::Pairs | Rows::Members => OutputFormat::Json,
        };
        let format = self.writing.effective_format(usual)?;
        let client = self.recipe.checked_by(self.router.client()?);
        // Before the output is made.
        client.recipe(&self.name).await?;
        let documents = client.get_corpus(&self.name).await?.document_count;
        let output = self.writing.open(format, &[])?;
        let failed = OutputError::failed(output.name().to_owned());
        let notation = if self.signed {
            Notation::Signed
        } else {
            Notation::Unsigned
        };
        let mut sink = format.sink(rows, notation, output).map_err(&failed)?;
        let bar = progress::bar(what, documents.filter(|_| rows == Rows::Documents));
        let mut batches = pin!(open(&client, &self.name).await?);
        while let Some(batch) = batches.try_next().await? {
            let written = write(batch, format, &mut *sink);
            bar.inc(written.map_err(|error| match error.downcast() {
                Ok(error) => failed(error).into(),
                Err(error) => error,
            })?);
        }
        let output = sink.finish().and_then(Output::complete);
        output.map_err(&failed)?.commit()?;
        bar.finish_and_clear();
        Ok(())
    }
}

/// An id, if the format can hold it.
pub(super) fn writable(id: &str, format: OutputFormat) -> Result<Cow<'_, str>, UsageError> {
    if format.ids().hold(id) {
        return Ok(Cow::Borrowed(id));
    }
    Err(UsageError(format!(
        "the id {id:?} cannot stand in TSV: choose another --output-format"
    )))
}

/// A document as results show it, if the format can hold its id. One without an id is called by its fingerprint.
pub(super) fn member(
    fingerprint: Fingerprint,
    id: &str,
    format: OutputFormat,
) -> Result<Member<'_>, UsageError> {
    let id = match id {
        "" => None,
        id => Some(writable(id, format)?),
    };
    Ok(Member { id, fingerprint })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_would_break_a_table_are_refused() {
        for id in ["a\tb", "a\nb", "\r", "\0"] {
            let refused = writable(id, OutputFormat::Tsv).unwrap_err().to_string();
            assert!(refused.contains("--output-format"), "{refused}");
            assert_eq!(writable(id, OutputFormat::Jsonl).unwrap(), id);
        }
        assert_eq!(writable("a b", OutputFormat::Tsv).unwrap(), "a b");
    }
}
