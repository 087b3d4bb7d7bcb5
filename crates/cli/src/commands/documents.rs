//! The common code of `simshard insert` and `simshard remove`: documents go to the router as a stream of
//! batches.

use std::time::Duration;

use clap::Args;
use futures_util::Stream;
use futures_util::stream::BoxStream;
use simshard_client::{Acknowledged, Client, ClientError, Documents, Reason};
use simshard_input::{self as input, Input, Position, Skipped};
use simshard_simhash::Recipe;

use super::pipeline;
use crate::args::InputArgs;
use crate::connection::{CorpusArgs, RouterArgs};
use crate::say::warn;

/// Which documents, and where they are or go.
#[derive(Args, Debug)]
pub struct DocumentsArgs {
    /// The documents.
    #[command(flatten)]
    pub input: InputArgs,
    /// The corpus.
    #[command(flatten)]
    pub corpus: CorpusArgs,
    /// The router.
    #[command(flatten)]
    pub router: RouterArgs,

    /// How long to go on when the router, or a node that is needed, is away or has no room, in seconds
    ///
    /// What was not acknowledged is sent again, after pauses that grow. Each batch that gets through
    /// begins this time anew. Where nothing does for a second, standard error says once what is waited for.
    #[arg(
        long,
        value_name = "SECONDS",
        env = "SIMSHARD_PATIENCE_SECONDS",
        default_value_t = 30,
        help_heading = "Cluster"
    )]
    pub patience_seconds: u32,
}

impl DocumentsArgs {
    pub(super) fn client(&self) -> anyhow::Result<Client> {
        let patience = Duration::from_secs(self.patience_seconds.into());
        let client = self.corpus.recipe.checked_by(self.router.client()?);
        Ok(client
            .with_patience(patience)
            .telling_of_waiting(|why, left| warn(waiting(why, left))))
    }
}

/// The documents of an input, without the texts that the recipe of their corpus gives no
/// fingerprint: the router would refuse their whole batch.
pub(super) fn hashable(input: Input, recipe: Option<Recipe>) -> input::Documents {
    let recipe = recipe.and_then(|recipe| recipe.for_texts().ok());
    input.documents().hashable(recipe)
}

/// Documents to send, and where in the input they begin.
pub(super) struct Unsent {
    pub(super) documents: input::Documents,
    pub(super) from: Position,
    /// Of the whole input, where that is known.
    pub(super) document_count: Option<u64>,
}

/// The result of sending documents.
#[derive(Debug, Default)]
pub(super) struct SendOutcome {
    /// Documents that were inserted or removed.
    pub(super) changed: u64,
    /// Documents that were there already, or were not there.
    pub(super) unchanged: u64,
    pub(super) skipped: Skipped,
}

/// Sends documents as a stream, and tells `durable` up to where all is.
pub(super) async fn send<S>(
    verb: &str,
    rest: Unsent,
    stream: impl FnOnce(BoxStream<'static, Documents>) -> S,
    mut durable: impl FnMut(Position) -> anyhow::Result<()>,
) -> anyhow::Result<SendOutcome>
where
    S: Stream<Item = Result<Acknowledged, ClientError>>,
{
    let mut done = SendOutcome::default();
    let acknowledged = |batch: Acknowledged, end: Position| {
        done.changed += batch.changed_count;
        done.unchanged += batch.document_count.saturating_sub(batch.changed_count);
        durable(end)
    };
    done.skipped = pipeline::stream(verb, rest, stream, acknowledged).await?;
    Ok(done)
}

/// Why nothing gets through.
fn waiting(why: &ClientError, left: Duration) -> String {
    let why = match (why.reason(), &why.nodes()[..]) {
        (Some(Reason::NodeUnreachable), [node]) => format!("node {node} is unreachable"),
        (Some(Reason::NodeUnreachable), nodes @ [_, ..]) => {
            format!("nodes {} are unreachable", nodes.join(", "))
        }
        _ => why.to_string(),
    };
    let seconds = left.as_secs_f64().ceil();
    format!("waiting, for up to {seconds} s more: {why}")
}

/// As people count.
pub(super) fn count(documents: u64) -> String {
    match documents {
        1 => "1 document".to_owned(),
        more => format!("{more} documents"),
    }
}
