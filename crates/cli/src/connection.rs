//! Reaching the router: the arguments that all client commands share.

use std::time::Duration;

use anyhow::Context;
use clap::Args;
use simshard_client::{Client, ClientError};
use simshard_simhash::Recipe;
use tokio::runtime::Runtime;

use crate::args::{ExpectedRecipeArgs, RouterAccessArgs};
use crate::completion;

/// The router of a `serve` on this machine that says nothing else.
pub(crate) const DEFAULT_ROUTER: &str = "http://127.0.0.1:7460";

/// Where the router is.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Cluster")]
pub struct RouterArgs {
    /// The router to ask
    #[arg(
        long,
        value_name = "URL",
        env = "SIMSHARD_ROUTER",
        default_value = DEFAULT_ROUTER
    )]
    pub router: String,

    /// How long to wait for each answer, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        env = "SIMSHARD_TIMEOUT_SECONDS",
        default_value_t = 30,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub timeout_seconds: u32,

    /// What the router asks for, if it has TLS.
    #[command(flatten)]
    pub access: RouterAccessArgs,
}

/// The corpus to work on.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Cluster")]
pub struct CorpusArgs {
    /// The corpus to use
    #[arg(
        long,
        value_name = "CORPUS",
        env = "SIMSHARD_CORPUS",
        default_value = "default",
        add = completion::corpora()
    )]
    pub corpus: String,

    /// Its recipe.
    #[command(flatten)]
    pub recipe: ExpectedRecipeArgs,
}

impl CorpusArgs {
    /// The recipe that the corpus has, which is thereby seen to exist; `None` if only newer versions
    /// know it.
    pub(crate) async fn known_recipe(
        &self,
        client: &Client,
    ) -> Result<Option<Recipe>, ClientError> {
        Ok(client.recipe(&self.corpus).await?.parse().ok())
    }

    /// The same before a stream of changes, which waits for a router that is away.
    pub(crate) async fn awaited_recipe(
        &self,
        client: &Client,
    ) -> Result<Option<Recipe>, ClientError> {
        Ok(client.await_recipe(&self.corpus).await?.parse().ok())
    }
}

impl RouterArgs {
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let timeout = Duration::from_secs(self.timeout_seconds.into());
        Ok(Client::with_access(&self.router, &self.access.load()?)?.with_timeout(timeout))
    }
}

/// Runs a command's requests to their end, and waits for nothing else. A thread may still be reading standard input,
/// which may never end; it must not keep an error from being reported.
pub(crate) fn block_on<T>(requests: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = Runtime::new().context("cannot start the threads for requests")?;
    let outcome = runtime.block_on(requests);
    runtime.shutdown_background();
    outcome
}
