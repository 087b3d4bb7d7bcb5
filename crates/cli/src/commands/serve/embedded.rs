//! `simshard serve` without a role: a router and a node in one process.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::bail;
use simshard_client::{Reason, v1};
use simshard_cluster::MetadataStore;
use simshard_node::Dialer;
use simshard_router::create_corpus;
use simshard_runtime::shutdown;
use simshard_simhash::Recipe;
use tracing::warn;

use super::{roles, side_port};
use crate::connection::block_on;
use crate::embedded::{EmbeddedCluster, EmbeddedConfig, TIMEOUT};
use crate::say;

/// The corpus that is there from the start.
const CORPUS: &str = "default";

pub(super) fn run(config: EmbeddedConfig, http: Option<SocketAddr>) -> anyhow::Result<()> {
    block_on(async {
        let observed = config.observed.clone();
        side_port::beside(http, observed, serve(config)).await
    })
}

async fn serve(config: EmbeddedConfig) -> anyhow::Result<()> {
    let shutdown = shutdown::on_signals()?;
    if config.data.is_some() {
        roles::open_enough_files();
    }
    let max_corpora = config.max_corpora;
    let start = EmbeddedCluster::start(config);
    let Some(cluster) = shutdown.run_until_cancelled(start).await else {
        return Ok(());
    };
    let mut cluster = cluster?;
    make_corpus(cluster.store(), max_corpora).await?;
    say::print(format!("listening on {}", cluster.url()))?;
    let outcome = cluster.run_until(&shutdown).await;
    let stopped = cluster.stop().await;
    outcome.and(stopped)
}

async fn make_corpus(store: Arc<dyn MetadataStore>, max_corpora: usize) -> anyhow::Result<()> {
    let request = v1::CreateCorpusRequest {
        name: CORPUS.to_owned(),
        recipe: Recipe::default().to_string(),
        ..v1::CreateCorpusRequest::default()
    };
    let created = create_corpus(store, Dialer::PLAIN, max_corpora, &request, TIMEOUT).await;
    let Err(refused) = created else {
        return Ok(());
    };
    match Reason::of(&refused) {
        Some(Reason::CorpusExists) if Reason::metadata(&refused, "state").is_none() => Ok(()),
        // Without it the others serve all the same, and can be deleted.
        Some(Reason::TooManyCorpora) => {
            warn!("no corpus {CORPUS}: there are as many corpora as --max-corpora allows");
            Ok(())
        }
        // Its creation or its deletion was cut short, and can be repeated; or records are lost, and can be restored.
        Some(Reason::CorpusExists | Reason::MetadataFailed) => {
            warn!("no corpus {CORPUS}: {}", refused.message());
            Ok(())
        }
        _ => bail!("{}", refused.message()),
    }
}
