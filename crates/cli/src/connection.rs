//! Reaching the router: the arguments that all client commands share.

use anyhow::Context;
use clap::Args;
use simshard_client::Client;
use tokio::runtime::Runtime;

/// Where the router is.
#[derive(Args, Clone, Debug)]
pub struct RouterArgs {
    /// The router to ask
    #[arg(
        long,
        value_name = "URL",
        env = "SIMSHARD_ROUTER",
        default_value = "http://127.0.0.1:7460",
        help_heading = "Cluster"
    )]
    pub router: String,
}

/// The corpus to work on.
#[derive(Args, Clone, Debug)]
pub struct CorpusArgs {
    /// The corpus to use
    #[arg(
        long,
        value_name = "NAME",
        env = "SIMSHARD_CORPUS",
        default_value = "default",
        help_heading = "Cluster"
    )]
    pub corpus: String,
}

impl RouterArgs {
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::connect(&self.router)?)
    }
}

/// The runtime for a command's requests.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Runtime::new().context("cannot start the threads for requests")
}
