//! Binding a node to a listener: start, serve, drain.

use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{MetadataError, MetadataStore};
use simshard_proto::shard::v1::shard_service_server::ShardServiceServer;
use simshard_proto::{
    MAX_MESSAGE_BYTES, MAX_SHARD_REQUEST_BYTES, SHARD_SERVICE_DESCRIPTORS, transport,
};
use simshard_topology::NodeId;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::engine::Engine;
use crate::grpc::ShardGrpc;

/// What a node needs to know.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Its name in the cluster's layout.
    pub node: NodeId,
    /// Threads that work on shards.
    pub threads: usize,
    /// How long requests under way may take after a shutdown began.
    pub drain: Duration,
}

/// Why a node could not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The layout cannot be read.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The layout does not name this node.
    #[error("the cluster layout has no node {node}: it lists {known}")]
    UnknownNode {
        /// The node asked for.
        node: NodeId,
        /// The nodes there are.
        known: String,
    },
    /// No threads for the engine.
    #[error("cannot start the engine's threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The transport failed.
    #[error(transparent)]
    Transport(#[from] transport::ServeError),
}

/// Serves the node's shards on `listener` until `shutdown`, then lets requests
/// under way finish.
///
/// # Errors
/// If the node has no place in the layout, or cannot start.
pub async fn serve(
    config: NodeConfig,
    store: Arc<dyn MetadataStore>,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let layout = store.layout().await?;
    let Some(_) = layout.node(&config.node) else {
        let names: Vec<&str> = layout.nodes().iter().map(|node| node.id.as_str()).collect();
        return Err(ServeError::UnknownNode {
            node: config.node,
            known: names.join(", "),
        });
    };
    let owned = layout.map().shards_of(&config.node);
    let engine = Arc::new(Engine::new(owned, config.threads, MAX_MESSAGE_BYTES)?);
    info!(node = %config.node, shards = %owned, "node serves");

    let service = ShardServiceServer::new(ShardGrpc { engine })
        .max_decoding_message_size(MAX_SHARD_REQUEST_BYTES)
        .max_encoding_message_size(usize::MAX);
    transport::serve(
        service,
        SHARD_SERVICE_DESCRIPTORS,
        listener,
        &shutdown,
        config.drain,
    )
    .await?;
    Ok(())
}
