//! The limits that every Simshard server and channel sets: nothing is left to
//! the defaults of the transport.

use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};

/// HTTP/2 flow control for one stream: room for a large batch.
const STREAM_WINDOW: u32 = 4 << 20;

/// HTTP/2 flow control for one connection.
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Requests under way at once on one connection.
const MAX_STREAMS: u32 = 1024;

/// A silent peer is asked for a sign of life this often.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// A connection without an answer to that for so long is closed.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that is not made by then has failed.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A server with the limits set, for services to be added to.
#[must_use]
pub fn server() -> Server {
    Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MAX_STREAMS)
}

/// The connections that arrive at a listener. Small answers leave at once: the
/// server's own setting does not reach a listener that was bound elsewhere.
#[must_use]
pub fn incoming(listener: TcpListener) -> TcpIncoming {
    TcpIncoming::from(listener).with_nodelay(Some(true))
}

/// An endpoint with the limits set, to connect to.
#[must_use]
pub fn endpoint(endpoint: Endpoint) -> Endpoint {
    endpoint
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
}

/// Runs a server to its end. Once `shutdown` is called for, it has `grace` to
/// let requests finish; `None` if they did not, as a connection that never says
/// anything can hold a server up for ever.
pub async fn drained<T>(
    server: impl Future<Output = T>,
    shutdown: &CancellationToken,
    grace: Duration,
) -> Option<T> {
    let cut_off = async {
        shutdown.cancelled().await;
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        result = server => Some(result),
        () = cut_off => None,
    }
}
