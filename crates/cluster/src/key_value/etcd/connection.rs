//! Connections to one member of etcd, and calls on them.

use std::time::Duration;

use http::uri::PathAndQuery;
use prost::Message;
use simshard_runtime::causes::with_causes;
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::login::Token;
use crate::key_value::KeyValueError;

/// How long one member may take to connect, and to answer.
pub(super) const TIMEOUT: Duration = Duration::from_millis(1500);

/// How often a connection with a stream is probed. etcd ends connections that do so every five seconds or more often.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// The header of the token.
const TOKEN: &str = "token";

/// A larger answer than any that the store asks for.
const MAX_ANSWER_BYTES: usize = 256 << 20;

/// The member at an address, `host:port`.
pub(super) fn endpoint(
    address: &str,
    tls: Option<&ClientTlsConfig>,
) -> Result<Endpoint, KeyValueError> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let bad_address = |_| KeyValueError::BadAddress {
        address: address.to_owned(),
    };
    let endpoint = Endpoint::from_shared(format!("{scheme}://{address}")).map_err(bad_address)?;
    let endpoint = endpoint
        .connect_timeout(TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(TIMEOUT);
    let Some(tls) = tls else {
        return Ok(endpoint);
    };
    // It reads the certificates.
    let with_tls = endpoint.tls_config(tls.clone());
    with_tls.map_err(|error| KeyValueError::BadCertificates {
        reason: with_causes(&error),
    })
}

/// Connects in time. The own limit of an endpoint leaves out the handshake of TLS.
pub(super) async fn connect(endpoint: &Endpoint) -> Result<Channel, String> {
    match timeout(TIMEOUT, endpoint.connect()).await {
        Ok(connected) => connected.map_err(|error| with_causes(&error)),
        Err(_elapsed) => Err(format!("no connection within {TIMEOUT:?}")),
    }
}

/// Calls a method on a connection.
pub(super) async fn unary<Q, A>(
    channel: Channel,
    path: &'static str,
    request: &Q,
    token: Option<Token>,
) -> Result<A, Status>
where
    Q: Message + Clone + 'static,
    A: Message + Default + 'static,
{
    let mut grpc = Grpc::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
    let call = async {
        ready(&mut grpc).await?;
        let codec = ProstCodec::<Q, A>::default();
        let path = PathAndQuery::from_static(path);
        let request = with_header(Request::new(request.clone()), TOKEN, token);
        grpc.unary(request, path, codec).await
    };
    Ok(in_time(call).await?.into_inner())
}

/// Opens a stream on a connection. Answers its token with it.
pub(super) async fn open<Q, A>(
    channel: Channel,
    path: &'static str,
    request: &Q,
    token: Option<Token>,
) -> Result<(Option<Token>, Streaming<A>), Status>
where
    Q: Message + Clone + 'static,
    A: Message + Default + 'static,
{
    let mut grpc = Grpc::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
    // A stream of requests that ends would end the answers.
    let requests = tokio_stream::StreamExt::chain(
        tokio_stream::once(request.clone()),
        tokio_stream::pending(),
    );
    let call = async {
        ready(&mut grpc).await?;
        let with_leader = Some(MetadataValue::from_static("true"));
        let request = with_header(Request::new(requests), "hasleader", with_leader);
        let request = with_header(request, TOKEN, token.clone());
        let codec = ProstCodec::<Q, A>::default();
        let path = PathAndQuery::from_static(path);
        grpc.streaming(request, path, codec).await
    };
    let stream = in_time(call).await?.into_inner();
    Ok((token, stream))
}

fn with_header<T>(
    mut request: Request<T>,
    name: &'static str,
    value: Option<MetadataValue<Ascii>>,
) -> Request<T> {
    if let Some(value) = value {
        request.metadata_mut().insert(name, value);
    }
    request
}

async fn in_time<T>(call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    timeout(TIMEOUT, call).await.unwrap_or_else(|_| Err(late()))
}

pub(super) fn late() -> Status {
    Status::deadline_exceeded(format!("no answer within {TIMEOUT:?}"))
}

async fn ready(grpc: &mut Grpc<Channel>) -> Result<(), Status> {
    let ready = grpc.ready().await;
    ready.map_err(|error| Status::unavailable(with_causes(&error)))
}
