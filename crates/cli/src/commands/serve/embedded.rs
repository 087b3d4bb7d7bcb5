//! `simshard serve` without a role: a router and a node in one process.

use std::net::SocketAddr;

use simshard_client::{Client, ClientError, Reason, v1};
use simshard_runtime::shutdown::Shutdown;
use simshard_topology::NodeId;

use crate::connection::block_on;
use crate::embedded::{DRAIN, EmbeddedCluster, EmbeddedConfig};
use crate::say;

/// The corpus that is there from the start.
const CORPUS: &str = "default";

pub(super) fn run(listen: SocketAddr, threads: usize) -> anyhow::Result<()> {
    block_on(async {
        let shutdown = Shutdown::on_signals()?;
        let nodes = vec![NodeId::new("local")?];
        let config = EmbeddedConfig {
            nodes,
            listen,
            threads,
            drain: DRAIN,
        };
        let mut cluster = EmbeddedCluster::start(config).await?;
        make_corpus(&cluster.url()).await?;
        say::print(format!("listening on {}", cluster.url()))?;
        let outcome = cluster.run_until(&shutdown).await;
        let stopped = cluster.stop().await;
        outcome.and(stopped)
    })
}

async fn make_corpus(url: &str) -> Result<(), ClientError> {
    let request = v1::CreateCorpusRequest {
        name: CORPUS.to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    match Client::new(url)?.create_corpus(request).await {
        Err(error) if error.reason() != Some(Reason::CorpusExists) => Err(error),
        _ => Ok(()),
    }
}
