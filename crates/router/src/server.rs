//! Binding the router to a listener: start, serve, drain.

use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{MetadataError, MetadataStore};
use simshard_proto::v1::corpus_service_server::CorpusServiceServer;
use simshard_proto::{MAX_MESSAGE_BYTES, ROUTER_DESCRIPTORS, v1 as pb};
use simshard_runtime::observed::Observed;
use simshard_transport::{self as transport, Budget, Dialer, Interface, Security, Web};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::service::Routes;
use tracing::info;

use crate::admin::AdminGrpc;
use crate::deadline::Deadline;
use crate::decode;
use crate::grpc::{CorpusGrpc, Rights};
use crate::nodes::Access;
use crate::router::Router;

/// The configuration of a router.
#[derive(Clone, Debug)]
pub struct RouterConfig {
    /// How long a request may take; clients can ask for less.
    pub timeout: Duration,
    /// Bytes that requests in flight may use together.
    pub in_flight_bytes: usize,
    /// Corpora beyond which none is created.
    pub max_corpora: usize,
    /// How long requests in flight may take after a shutdown began.
    pub drain: Duration,
    /// The metrics of the process, and whether it is ready.
    pub observed: Observed,
    /// Who may use it from a browser.
    pub web: Web,
    /// What keeps strangers out of it.
    pub security: Security,
    /// How it reaches the nodes.
    pub dialer: Dialer,
}

/// Why a router could not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The layout cannot be read.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A node's address is unusable.
    #[error("cannot connect to the nodes")]
    Address(#[source] Status),
    /// The transport failed.
    #[error(transparent)]
    Transport(#[from] transport::ServeError),
}

/// Creates a corpus as a router does, for the process that serves its nodes.
///
/// # Errors
/// The status that a router would answer.
pub async fn create_corpus(
    store: Arc<dyn MetadataStore>,
    dialer: Dialer,
    max_corpora: usize,
    request: &pb::CreateCorpusRequest,
    timeout: Duration,
) -> Result<(), Status> {
    let access = Access {
        dialer,
        budget: Budget::new(usize::MAX),
        observed: Observed::default(),
    };
    let router = Router::new(store, access, max_corpora)?;
    let new = decode::new_corpus(request)?;
    Arc::new(router)
        .create(new, Deadline::within(timeout))
        .await?;
    Ok(())
}

/// Serves the corpora of a cluster on `listener` until `shutdown`, then lets
/// requests in flight finish.
///
/// # Errors
/// If the layout cannot be read, or the router cannot start.
pub async fn serve(
    config: RouterConfig,
    store: Arc<dyn MetadataStore>,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    // Not read anew: the metadata may be away now.
    let nodes = store.watch_layout().borrow().nodes().len();
    let budget = Budget::new(config.in_flight_bytes);
    let operators =
        AdminGrpc::new(store.registry(), config.dialer.clone(), config.timeout).into_server();
    let access = Access {
        dialer: config.dialer.clone(),
        budget: budget.clone(),
        observed: config.observed.clone(),
    };
    let router = Router::new(store, access, config.max_corpora);
    let router = Arc::new(router.map_err(ServeError::Address)?);
    info!(nodes, "router serves");

    let edge = CorpusGrpc {
        router,
        timeout: config.timeout,
        stopping: shutdown.clone(),
        rights: Rights::default(),
    };
    let service = CorpusServiceServer::new(edge)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let dialer = config.dialer.clone();
    dialer.show(&config.observed);
    let served = transport::serve(
        service,
        Interface {
            descriptors: ROUTER_DESCRIPTORS,
            beside: Routes::new(operators),
            observed: config.observed,
            admits_itself: None,
            web: Some(config.web),
            security: config.security,
        },
        listener,
        budget,
        watch::channel(true).1,
        &shutdown,
        config.drain,
    );
    tokio::select! {
        served = served => Ok(served?),
        never = dialer.follow() => match never {},
    }
}
