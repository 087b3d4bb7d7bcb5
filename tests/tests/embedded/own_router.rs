//! A router over a store that the test has in hand.

use std::sync::Arc;
use std::time::Duration;

use simshard_client::Client;
use simshard_cluster::MetadataStore;
use simshard_router::Dialer;
use simshard_router::{RouterConfig, Security, Web};
use simshard_runtime::observed::Observed;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A router that serves until it is stopped, or the test ends.
pub(crate) struct OwnRouter {
    pub(crate) client: Client,
    _until_dropped: DropGuard,
}

impl OwnRouter {
    pub(crate) async fn start(store: Arc<dyn MetadataStore>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let config = RouterConfig {
            timeout: Duration::from_secs(60),
            max_corpora: 1000,
            in_flight_bytes: 64 << 20,
            drain: Duration::from_secs(1),
            observed: Observed::default(),
            web: Web::default(),
            security: Security::default(),
            dialer: Dialer::PLAIN,
        };
        let end = CancellationToken::new();
        tokio::spawn(simshard_router::serve(config, store, listener, end.clone()));
        Self {
            client: Client::new(&url).unwrap(),
            _until_dropped: end.drop_guard(),
        }
    }
}
