//! Binding the router to a listener: start, serve, drain.

use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{MetadataError, MetadataStore};
use simshard_proto::v1::corpus_service_server::CorpusServiceServer;
use simshard_proto::{FILE_DESCRIPTOR_SET, MAX_MESSAGE_BYTES, transport};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::util::MapResponseLayer;
use tracing::{info, warn};

use crate::grpc::CorpusGrpc;
use crate::router::Router;
use crate::streams::explain_size;

/// What a router needs to know.
#[derive(Clone, Debug)]
pub struct RouterConfig {
    /// How long a request may take; clients can ask for less.
    pub timeout: Duration,
    /// How long requests under way may take after a shutdown began.
    pub drain: Duration,
}

/// Why a router could not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The layout cannot be read.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A node's address is unusable, or the transport failed.
    #[error("cannot serve: {0}")]
    Transport(#[from] tonic::transport::Error),
    /// The reflection service has no descriptors.
    #[error("cannot describe the interface: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// Serves the corpora of a cluster on `listener` until `shutdown`, then lets
/// requests under way finish.
///
/// # Errors
/// If the layout cannot be read, or the router cannot start.
pub async fn serve(
    config: RouterConfig,
    store: Arc<dyn MetadataStore>,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let layout = store.layout().await?;
    let nodes = layout.nodes().len();
    let router = Arc::new(Router::new(store, layout)?);
    info!(nodes, "router serves");

    let edge = CorpusGrpc {
        router,
        timeout: config.timeout,
    };
    let service = CorpusServiceServer::new(edge)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let (health, health_service) = tonic_health::server::health_reporter();
    health
        .set_serving::<CorpusServiceServer<CorpusGrpc>>()
        .await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .build_v1()?;

    let stopping = shutdown.clone();
    let server = transport::server()
        .layer(MapResponseLayer::new(explain_response))
        .add_service(service)
        .add_service(health_service)
        .add_service(reflection)
        .serve_with_incoming_shutdown(transport::incoming(listener), async move {
            stopping.cancelled().await;
            health
                .set_not_serving::<CorpusServiceServer<CorpusGrpc>>()
                .await;
        });
    transport::drained(server, &shutdown, config.drain)
        .await
        .unwrap_or_else(|| {
            warn!("requests under way were cut off after {:?}", config.drain);
            Ok(())
        })?;
    Ok(())
}

/// Says what to do where the transport refused a message for its size.
fn explain_response(response: http::Response<Body>) -> http::Response<Body> {
    match Status::from_header_map(response.headers()) {
        Some(status) if status.code() == Code::OutOfRange => explain_size(status).into_http(),
        _ => response,
    }
}
