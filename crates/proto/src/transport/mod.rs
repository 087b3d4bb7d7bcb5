//! How every Simshard server and channel is set up: the same limits, health,
//! reflection and drain; nothing is left to the defaults of the transport.
//!
//! # Invariants
//! - TR1: whoever writes to a stream that is not read is held back, and no other stream with it; it is never cut off.

mod admission;
mod budget;
mod deadline;
mod incoming;

use std::convert::Infallible;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::{Endpoint, Server};
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tower::Service;
use tower::util::MapResponseLayer;
use tracing::warn;

use crate::{MAX_MESSAGE_BYTES, Reason};
use admission::Admission;
pub use admission::{Admitted, NO_MEMORY, overloaded};
pub use budget::{Budget, Taken};
use deadline::InTime;
pub use deadline::client_timeout;

/// What a stream that is not read may send. It is little on purpose: HTTP/2 counts bytes, and small messages are many
/// frames, of which the transport bears only so many unread ones before it closes the connection to all. Large
/// messages are read as they arrive, whatever becomes of them then, and do not need more.
const STREAM_WINDOW: u32 = 128 << 10;

/// Requests under way at once on one connection.
const MAX_STREAMS: u32 = 1024;

/// What a client may send on a connection that is not read: all its streams together, so that none holds up another.
/// The transport bears a number of small frames in proportion to it: the smallest batches there are can wait on some
/// 50 streams.
const CONNECTION_WINDOW: u32 = MAX_STREAMS * STREAM_WINDOW;

/// The same for a server, which sends nothing but what it was asked for. Its answers to small batches are smaller
/// still: this is as much as HTTP/2 allows.
const ANSWERS_WINDOW: u32 = i32::MAX.unsigned_abs();

/// Bytes of the headers of one request.
const MAX_HEADERS: u32 = 16 << 10;

/// After so long a connection takes no new requests, and the peer makes another: perhaps to a server that was not
/// there before. Requests under way, however long, are not cut off.
const CONNECTION_AGE: Duration = Duration::from_secs(3600);

/// A silent peer is asked for a sign of life this often.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// A connection without an answer to that for so long is closed.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that is not made by then has failed.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a service could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The transport failed.
    #[error("cannot serve")]
    Transport(#[from] tonic::transport::Error),
    /// The reflection service has no descriptors.
    #[error("cannot describe the interface")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// Serves a service, its health and its description (an encoded
/// `google.protobuf.FileDescriptorSet`) on a listener, within a budget of memory, until
/// `shutdown`; then requests under way have `grace` to finish, and no longer:
/// a connection that never says anything could hold a server up for ever.
///
/// # Errors
/// If the transport fails.
pub async fn serve<S>(
    service: S,
    descriptors: &'static [u8],
    listener: TcpListener,
    budget: Budget,
    shutdown: &CancellationToken,
    grace: Duration,
) -> Result<(), ServeError>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S: NamedService + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    let (health, health_service) = tonic_health::server::health_reporter();
    let set_health = async |status| health.set_service_status(S::NAME, status).await;
    set_health(ServingStatus::Serving).await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(descriptors)
        .build_v1()?;
    let server = server()
        .layer(InTime)
        .layer(Admission::new(budget))
        .layer(MapResponseLayer::new(explain_response))
        .add_service(service)
        .add_service(health_service)
        .add_service(reflection)
        .serve_with_incoming_shutdown(incoming::connections(listener), async {
            shutdown.cancelled().await;
            set_health(ServingStatus::NotServing).await;
        });
    let cut_off = async {
        shutdown.cancelled().await;
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        result = server => Ok(result?),
        () = cut_off => {
            warn!(service = S::NAME, ?grace, "requests under way were cut off");
            Ok(())
        }
    }
}

fn server() -> Server {
    Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MAX_STREAMS)
        .http2_max_header_list_size(MAX_HEADERS)
        .max_connection_age(CONNECTION_AGE)
}

/// Says in our own words what the transport refused by itself: a message for its size or its bytes.
fn explain_response(response: http::Response<Body>) -> http::Response<Body> {
    let status = Status::from_header_map(response.headers());
    let Some(status) = status.filter(|status| Reason::of(status).is_none()) else {
        return response;
    };
    let (code, message) = (status.code(), status.message());
    if code == Code::OutOfRange {
        return explain_size(status).into_http();
    }
    if code == Code::Internal && message.starts_with("failed to decode") {
        let wrong = format!("the request is no such message: {message}");
        return Reason::InvalidRequest.status(wrong, []).into_http();
    }
    response
}

/// The transport says OUT_OF_RANGE, which Simshard never does, where a message
/// is over the limit.
#[must_use]
pub fn explain_size(status: Status) -> Status {
    if status.code() != Code::OutOfRange {
        return status;
    }
    let message = format!("a message has at most {MAX_MESSAGE_BYTES} bytes: send smaller batches");
    Reason::MessageTooLarge.status(message, [])
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
        .initial_connection_window_size(ANSWERS_WINDOW)
}

#[cfg(test)]
mod tests;
