//! Calls to a cluster of etcd: each goes to one member, and to the next where that one cannot be reached.

use std::time::Duration;

use http::uri::PathAndQuery;
use parking_lot::Mutex;
use prost::Message;
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::RANGE;
use super::access::{EtcdAccess, EtcdTls};
use super::causes::with_causes;
use super::login::{Login, Token, lacks_token};
use super::wire::{RangeRequest, RangeResponse};
use crate::key_value::KeyValueError;

/// How long one member may take to connect, and to answer.
const TIMEOUT: Duration = Duration::from_millis(1500);

/// How often a connection with a stream is probed. etcd ends connections that do so every five seconds or more often.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// How long a stream may have nothing to say before its member is asked for a sign of life.
const QUIET: Duration = Duration::from_secs(1);

/// How often a read is tried at least: the first attempt may meet a connection that was lost unnoticed.
const LEAST_TRIES: usize = 2;

/// The header of the token.
const TOKEN: &str = "token";

/// The codes by which a member says that it did nothing. Any other may come from a connection that broke midway.
const REFUSALS: [Code; 7] = [
    Code::InvalidArgument,
    Code::NotFound,
    Code::FailedPrecondition,
    Code::OutOfRange,
    Code::Unimplemented,
    Code::PermissionDenied,
    Code::Unauthenticated,
];

/// A larger answer than any that the store asks for.
const MAX_ANSWER_BYTES: usize = 256 << 20;

/// The members of a cluster of etcd.
#[derive(Debug)]
pub(super) struct Members {
    endpoints: Vec<Endpoint>,
    current: Mutex<Current>,
    /// The user as which calls are made, if etcd has users.
    login: Option<Login>,
}

/// The member that is asked, and the connection to it.
#[derive(Debug, Default)]
struct Current {
    member: usize,
    channel: Option<Channel>,
}

/// Why a call failed.
#[derive(Debug)]
pub(super) enum CallError {
    /// No member was asked.
    NotSent(String),
    /// A member was asked, and may have done it.
    Unknown(Status),
    /// A member answered that it does not do it.
    Refused(Status),
}

impl CallError {
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::NotSent(reason) => reason,
            Self::Unknown(status) | Self::Refused(status) => status.message(),
        }
    }
}

impl Members {
    /// Those at these addresses, `host:port` each. Nothing is connected yet.
    ///
    /// # Errors
    /// [`KeyValueError::BadCertificates`] if they are of no use.
    pub(super) fn new<'a>(
        addresses: impl IntoIterator<Item = &'a str>,
        access: &EtcdAccess,
    ) -> Result<Self, KeyValueError> {
        let tls = access.tls.as_ref().map(EtcdTls::config).transpose()?;
        let addresses = addresses.into_iter();
        let endpoints = addresses.map(|address| endpoint(address, tls.as_ref()));
        Ok(Self {
            endpoints: endpoints.collect::<Result<_, _>>()?,
            current: Mutex::default(),
            login: access.user.clone().map(Login::new),
        })
    }

    /// Calls a method that may be repeated: each member is asked until one answers.
    pub(super) async fn read<Q, A>(&self, path: &'static str, request: &Q) -> Result<A, CallError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let mut tries = 1;
        loop {
            match self.call(path, request).await {
                Err(CallError::Unknown(_)) if tries < self.endpoints.len().max(LEAST_TRIES) => {
                    tries += 1;
                }
                answered => return answered,
            }
        }
    }

    /// Calls a method at most once.
    pub(super) async fn call<Q, A>(&self, path: &'static str, request: &Q) -> Result<A, CallError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let (member, channel) = self.connected().await?;
        let call = |token| unary(channel.clone(), path, request, token);
        let answer = self.with_token(&channel, call).await;
        answer.map_err(|status| self.failed(member, status))
    }

    /// Makes a call with the token of the user. Where etcd does not know it, it does nothing, and the call is made again.
    async fn with_token<T, C: Future<Output = Result<T, Status>>>(
        &self,
        channel: &Channel,
        call: impl Fn(Option<Token>) -> C,
    ) -> Result<T, Status> {
        let Some(login) = &self.login else {
            return call(None).await;
        };
        let token = login.token(channel).await?;
        match call(token.clone()).await {
            Err(status) if lacks_token(&status) => {
                login.forget(token.as_ref()).await;
                call(login.token(channel).await?).await
            }
            answer => answer,
        }
    }

    /// Forgets the token with which a stream was opened. Answers whether there is a user, so that there will be another.
    pub(super) async fn forget_token<A>(&self, answers: &Answers<A>) -> bool {
        if let Some(login) = &self.login {
            login.forget(answers.token.as_ref()).await;
        }
        self.login.is_some()
    }

    /// Opens a stream of answers to one request. The stream fails when the member loses its leader.
    pub(super) async fn stream<Q, A>(
        &self,
        path: &'static str,
        request: &Q,
    ) -> Result<Answers<A>, CallError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let (member, channel) = self.connected().await?;
        let call = |token| open(channel.clone(), path, request, token);
        let opened = self.with_token(&channel, call).await;
        let (token, stream) = opened.map_err(|status| self.failed(member, status))?;
        Ok(Answers {
            member,
            channel,
            token,
            stream,
        })
    }

    /// The next answer of a stream, however late. It fails if the member is lost meanwhile, even without a word.
    pub(super) async fn next<A>(&self, answers: &mut Answers<A>) -> Result<A, CallError> {
        loop {
            match timeout(QUIET, self.message(answers)).await {
                Ok(answer) => return answer,
                Err(_elapsed) => self.ask_for_life(answers).await?,
            }
        }
    }

    /// Fails if the member of a stream gives no answer at all.
    async fn ask_for_life<A>(&self, answers: &Answers<A>) -> Result<(), CallError> {
        let request = RangeRequest {
            key: b"life".to_vec(),
            is_serializable: true,
            ..RangeRequest::default()
        };
        let (channel, token) = (answers.channel.clone(), answers.token.clone());
        let asked = unary::<_, RangeResponse>(channel, RANGE, &request, token).await;
        match asked.map_err(|status| self.failed(answers.member, status)) {
            Ok(_) | Err(CallError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The next answer of a stream, which has no end of its own.
    async fn message<A>(&self, answers: &mut Answers<A>) -> Result<A, CallError> {
        let ended = || Status::unavailable("the stream of changes has ended");
        match answers.stream.message().await {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(self.failed(answers.member, ended())),
            Err(status) => Err(self.failed(answers.member, status)),
        }
    }

    /// The same, if it comes soon.
    pub(super) async fn next_soon<A>(&self, answers: &mut Answers<A>) -> Result<A, CallError> {
        let member = answers.member;
        match timeout(TIMEOUT, self.message(answers)).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(self.failed(member, late())),
        }
    }

    /// A connection, to the first member from the current one on that takes it.
    async fn connected(&self) -> Result<(usize, Channel), CallError> {
        let mut reason = "no member is named".to_owned();
        for _ in &self.endpoints {
            let member = {
                let current = self.current.lock();
                if let Some(channel) = &current.channel {
                    return Ok((current.member, channel.clone()));
                }
                current.member
            };
            match connect(&self.endpoints[member]).await {
                Ok(channel) => {
                    let mut current = self.current.lock();
                    *current = Current {
                        member,
                        channel: Some(channel.clone()),
                    };
                    return Ok((member, channel));
                }
                Err(problem) => {
                    reason = problem;
                    self.leave(member);
                }
            }
        }
        Err(CallError::NotSent(reason))
    }

    /// Turns from a member to the next. Of several callers at once, one does so.
    fn leave(&self, member: usize) {
        let mut current = self.current.lock();
        if current.member == member {
            *current = Current {
                member: (member + 1) % self.endpoints.len(),
                channel: None,
            };
        }
    }

    fn failed(&self, member: usize, status: Status) -> CallError {
        if REFUSALS.contains(&status.code()) {
            return CallError::Refused(status);
        }
        self.leave(member);
        CallError::Unknown(status)
    }
}

/// A stream of answers of one member.
#[derive(Debug)]
pub(super) struct Answers<A> {
    member: usize,
    channel: Channel,
    /// Of the user that opened it.
    token: Option<Token>,
    stream: Streaming<A>,
}

/// The member at an address, `host:port`.
fn endpoint(address: &str, tls: Option<&ClientTlsConfig>) -> Result<Endpoint, KeyValueError> {
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
async fn connect(endpoint: &Endpoint) -> Result<Channel, String> {
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
async fn open<Q, A>(
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

fn late() -> Status {
    Status::deadline_exceeded(format!("no answer within {TIMEOUT:?}"))
}

async fn ready(grpc: &mut Grpc<Channel>) -> Result<(), Status> {
    let ready = grpc.ready().await;
    ready.map_err(|error| Status::unavailable(with_causes(&error)))
}
