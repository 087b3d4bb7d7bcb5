//! What the commands that look through all of a corpus have in common.

use std::borrow::Cow;

use clap::Args;
use simshard_batch::{Member, Output, OutputFormat};
use simshard_client::{Client, Fingerprint};

use crate::args::WriteArgs;
use crate::connection::{RecipeArgs, RouterArgs};
use crate::exit::UsageError;

/// The corpus, and where what is found goes.
#[derive(Args, Debug)]
pub struct StreamArgs {
    /// Its name
    pub name: String,
    /// Its recipe.
    #[command(flatten)]
    pub recipe: RecipeArgs,
    /// Where it goes.
    #[command(flatten)]
    pub writing: WriteArgs,
    /// The router.
    #[command(flatten)]
    pub router: RouterArgs,
}

/// A corpus that is there, and an output that can be written.
pub(super) struct Plan {
    pub(super) client: Client,
    pub(super) format: OutputFormat,
    pub(super) output: Output,
    /// Documents of the corpus, if all nodes say how many they have.
    pub(super) documents: Option<u64>,
}

impl StreamArgs {
    /// Checks the arguments, and whether there is such a corpus, of the recipe asked for; the format is `usual` unless they say one.
    pub(super) async fn plan(&self, usual: OutputFormat) -> anyhow::Result<Plan> {
        let format = self.writing.effective_format(usual)?;
        let client = self.recipe.client(&self.router)?;
        // Before the output is made.
        client.recipe(&self.name).await?;
        let shown = client.get_corpus(&self.name).await?;
        Ok(Plan {
            client,
            format,
            output: self.writing.open(format, &[])?,
            documents: shown.document_count,
        })
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
