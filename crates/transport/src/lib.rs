//! How every Simshard server is set up: the same admission, deadlines, limits, health,
//! reflection and drain; nothing is left to the defaults of the transport.
//!
//! # Invariants
//! - TR1: the writer of a stream that is not read is held back, but never cut off. No other stream is held back.
//! - TR2: calls that are given up before the server sees them do not end the connection, on which others may be.

mod admission;
mod allowance;
mod authorize;
mod budget;
mod certified;
mod connections;
mod deadline;
mod dialer;
mod expiring;
mod followed;
mod headers;
mod health;
mod incoming;
mod json;
mod measured;
mod metrics;
mod places;
mod shares;
#[cfg(test)]
mod test_authority;
mod tls;
mod tokens;
mod web;
mod wire;
mod work_watch;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use simshard_proto::endpoint::{KEEPALIVE, KEEPALIVE_TIMEOUT, STREAM_WINDOW};
use simshard_proto::{MAX_MESSAGE_BYTES, Reason, Violations};
use simshard_runtime::observed::Observed;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::{Code, Status};
use tonic_reflection::server as reflection;
use tower::Service;
use tower::layer::layer_fn;
use tower::util::{MapResponseLayer, option_layer};
use tracing::warn;

use admission::Admission;
pub use admission::{Admitted, NO_MEMORY, Working, overloaded};
pub use allowance::Limits;
pub use authorize::Caller;
use authorize::{Authorize, KnownBy};
pub use budget::{Budget, Taken};
use deadline::AnswerInTime;
pub use deadline::client_timeout;
pub use dialer::Dialer;
use expiring::Certificates;
use headers::CheckHeaders;
use health::Health;
pub use json::InJson;
use measured::Measured;
use metrics::Requests;
pub use places::{Place, Places};
pub use shares::Peer;
pub use tls::{Tls, TlsError, TlsFiles};
pub use tokens::{Principal, Role, Tokens, TokensError, token_entry};
use web::WebLayer;
pub use web::{InvalidOrigin, Origin, Web};
pub use work_watch::{Watched, WorkKind, WorkTimes, WorkWatch};

/// Requests in flight at once on one connection.
const MAX_STREAMS: u32 = 1024;

/// Calls of a connection that were given up before the server saw them. Beyond it, the connection ends with an error
/// for all its calls. A router has all requests about corpora to a node on one connection, and clients give them up in
/// hundreds.
const MAX_GIVEN_UP: usize = MAX_STREAMS as usize;

/// Bytes that a client may send on a connection that is not read: enough for all its streams, so none blocks another.
/// The transport bears a number of small frames in proportion to it: the smallest batches there are can wait on some
/// 50 streams.
const CONNECTION_WINDOW: u32 = MAX_STREAMS * STREAM_WINDOW;

/// Bytes of the headers of one request that HTTP/2 reads. It refuses larger ones itself, without a reason. So this is
/// more than [`headers`] admits.
const MAX_HEADERS_READ: u32 = 64 << 10;

/// After this time a connection takes no new requests, and the peer makes another: perhaps to a server that was not
/// there before. Requests in flight, however long, are not cut off.
const CONNECTION_AGE: Duration = Duration::from_secs(3600);

/// Why a service could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The transport failed.
    #[error("cannot serve")]
    Transport(#[from] tonic::transport::Error),
    /// The reflection service has no descriptors.
    #[error("cannot describe the interface")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// JSON has no descriptors.
    #[error("cannot read the interface")]
    Descriptors(#[from] prost_reflect::DescriptorError),
}

/// The properties of a service besides its handlers.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its description, and that of the services beside it: an encoded `google.protobuf.FileDescriptorSet`.
    pub descriptors: &'static [u8],
    /// Other services at the same listener. Health is that of the first one alone.
    pub beside: Routes,
    /// The metrics of the process, and whether it is ready: this service adds its own.
    pub observed: Observed,
    /// The path of a stream whose messages are admitted beyond the budget. Its handler refuses their items one by one,
    /// where an error would end the stream for all of them.
    pub admits_itself: Option<&'static str>,
    /// What is taken beside gRPC over HTTP/2, if anything is.
    pub web: Option<Web>,
    /// What keeps strangers out.
    pub security: Security,
}

/// What keeps strangers out of a listener.
#[derive(Clone, Debug, Default)]
pub struct Security {
    /// Its certificates; without them there is no TLS.
    pub tls: Option<Tls>,
    /// The tokens by which callers are known. Without them they are known by their certificates, if they have to show any:
    /// else all may do all.
    pub tokens: Option<Tokens>,
}

impl Security {
    /// That of a node: callers are known by their certificates, if there are any.
    #[must_use]
    pub const fn by_certificates(tls: Option<Tls>) -> Self {
        Self { tls, tokens: None }
    }

    /// Whether only callers that are known may do more than see whether the server is healthy.
    #[must_use]
    pub fn knows_callers(&self) -> bool {
        self.known_by().is_some()
    }

    fn known_by(&self) -> Option<KnownBy> {
        let by_certificates = self.tls.as_ref().is_some_and(Tls::asks_for_certificates);
        match &self.tokens {
            Some(tokens) => Some(KnownBy::Tokens(tokens.clone())),
            None => by_certificates.then_some(KnownBy::Certificates),
        }
    }

    /// Shows when its certificates end. Warns of tokens that go through a network without TLS: they can be read there.
    fn begin(&self, observed: &Observed, listener: &TcpListener) {
        Certificates::show(observed, self.tls.as_ref());
        let is_local = |address: SocketAddr| address.ip().is_loopback();
        let is_safe = self.tls.is_some() || listener.local_addr().is_ok_and(is_local);
        if self.tokens.is_some() && !is_safe {
            warn!("clients send their tokens without TLS: others on the network can read them");
        }
    }

    /// Looks at the files of both again and again.
    async fn follow(&self) -> Infallible {
        tokio::select! {
            never = followed::follow(self.tls.as_ref().map(Tls::files)) => never,
            never = followed::follow(self.tokens.as_ref().map(Tokens::files)) => never,
        }
    }
}

impl Interface {
    /// gRPC of one service, and nothing beside it.
    #[must_use]
    pub fn new(descriptors: &'static [u8], observed: Observed) -> Self {
        Self {
            descriptors,
            beside: Routes::default(),
            observed,
            admits_itself: None,
            web: None,
            security: Security::default(),
        }
    }
}

/// Serves a service, its health and its description on a listener, within a budget of memory, until
/// `shutdown`. Its health says whether it is `ready`; it is served before that, too. At the end, requests in flight have
/// `grace` to finish, and no longer: a connection that never says anything could hold a server up for ever.
pub async fn serve<S>(
    service: S,
    interface: Interface,
    listener: TcpListener,
    budget: Budget,
    mut ready: watch::Receiver<bool>,
    shutdown: &CancellationToken,
    grace: Duration,
) -> Result<(), ServeError>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S: NamedService + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    let (reporter, health_service) = tonic_health::server::health_reporter();
    let health = Health::new(S::NAME, reporter, &interface.observed);
    let is_ready = *ready.borrow_and_update();
    health.set(is_ready).await;
    let requests: Requests = interface.observed.metrics();
    let methods = requests.of_server(S::NAME, interface.descriptors, &budget);
    let security = interface.security;
    let web = interface.web;
    security.begin(&interface.observed, &listener);
    let web = web.map(|web| WebLayer::new(web, S::NAME, interface.descriptors, &budget, &methods));
    let web = web.transpose()?;
    let server = server()
        .accept_http1(web.is_some())
        .layer(option_layer(web))
        .layer(layer_fn(|inner| {
            Measured::new(inner, &methods, interface.observed.slow())
        }))
        .layer(layer_fn(CheckHeaders))
        .layer(layer_fn(|inner| Authorize::new(inner, security.known_by())))
        .layer(layer_fn(AnswerInTime))
        .layer(Admission::new(budget, interface.admits_itself))
        .layer(MapResponseLayer::new(explain_response))
        .add_routes(interface.beside)
        .add_service(service)
        .add_service(health_service)
        .add_service(reflection(interface.descriptors).build_v1()?)
        // Many tools know this one only.
        .add_service(reflection(interface.descriptors).build_v1alpha()?)
        .serve_with_incoming_shutdown(
            incoming::connections(listener, security.tls.clone()),
            health.follow(ready, shutdown),
        );
    let cut_off = async {
        shutdown.cancelled().await;
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        result = server => Ok(result?),
        never = security.follow() => match never {},
        () = cut_off => {
            warn!(service = S::NAME, ?grace, "requests in flight were cut off");
            Ok(())
        }
    }
}

fn reflection(descriptors: &'static [u8]) -> reflection::Builder<'static> {
    reflection::Builder::configure().register_encoded_file_descriptor_set(descriptors)
}

fn server() -> Server {
    Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MAX_STREAMS)
        .http2_max_pending_accept_reset_streams(Some(MAX_GIVEN_UP))
        .http2_max_header_list_size(MAX_HEADERS_READ)
        .max_connection_age(CONNECTION_AGE)
}

/// Gives a refusal of the transport a reason.
fn explain_response(response: http::Response<Body>) -> http::Response<Body> {
    match Status::from_header_map(response.headers()) {
        Some(status) if Reason::of(&status).is_none() => explain(status).into_http(),
        Some(_) | None => response,
    }
}

/// How errors of the transport begin that are about a malformed message.
const MALFORMED: [&str; 4] = [
    "failed to decode",
    "protocol error: received message",
    "Missing request message",
    "Unexpected EOF decoding",
];

/// Gives an error of the transport about a request a reason: about its method, or the size or the bytes of a message.
/// Simshard itself uses the codes OUT_OF_RANGE and UNIMPLEMENTED with a reason only.
#[must_use]
pub fn explain(status: Status) -> Status {
    if Reason::of(&status).is_some() {
        return status;
    }
    let (code, message) = (status.code(), status.message());
    if code == Code::OutOfRange {
        let message =
            format!("a message has at most {MAX_MESSAGE_BYTES} bytes: send smaller batches");
        return Reason::MessageTooLarge.status(message, []);
    }
    if code == Code::Unimplemented {
        let message =
            "there is no such method: check its name, and that this server is the one that has it";
        return Reason::UnknownMethod.status(message, []);
    }
    if code == Code::Internal && MALFORMED.iter().any(|start| message.starts_with(start)) {
        return Violations::of("message", format!("is none: {message}"));
    }
    status
}

#[cfg(test)]
mod tests;
