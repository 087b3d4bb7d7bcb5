//! Calls to a cluster of etcd: each goes to one member, and to the next where that one cannot be reached.

use std::time::Duration;

use http::uri::PathAndQuery;
use parking_lot::Mutex;
use prost::Message;
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::RANGE;
use super::wire::{RangeRequest, RangeResponse};

/// How long one member may take to connect, and to answer.
const TIMEOUT: Duration = Duration::from_millis(1500);

/// How often a connection with a stream is probed. etcd ends connections that do so every five seconds or more often.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// How long a stream may have nothing to say before its member is asked for a sign of life.
const QUIET: Duration = Duration::from_secs(1);

/// How often a read is tried at least: the first attempt may meet a connection that was lost unnoticed.
const LEAST_TRIES: usize = 2;

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
    pub(super) fn new<'a>(
        addresses: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, tonic::transport::Error> {
        let endpoint = |address: &str| {
            let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
            Ok(endpoint
                .connect_timeout(TIMEOUT)
                .tcp_nodelay(true)
                .http2_keep_alive_interval(KEEPALIVE)
                .keep_alive_timeout(TIMEOUT))
        };
        Ok(Self {
            endpoints: addresses
                .into_iter()
                .map(endpoint)
                .collect::<Result<_, _>>()?,
            current: Mutex::default(),
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
        let answer = unary(channel, path, request).await;
        answer.map_err(|status| self.failed(member, status))
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
        let mut grpc = Grpc::new(channel.clone()).max_decoding_message_size(MAX_ANSWER_BYTES);
        // A stream of requests that ends would end the answers.
        let requests = tokio_stream::StreamExt::chain(
            tokio_stream::once(request.clone()),
            tokio_stream::pending(),
        );
        let call = async {
            ready(&mut grpc).await?;
            let mut request = Request::new(requests);
            let headers = request.metadata_mut();
            headers.insert("hasleader", MetadataValue::from_static("true"));
            let codec = ProstCodec::<Q, A>::default();
            let path = PathAndQuery::from_static(path);
            grpc.streaming(request, path, codec).await
        };
        let answers = in_time(call).await;
        let answers = answers.map_err(|status| self.failed(member, status))?;
        Ok(Answers {
            member,
            channel,
            stream: answers.into_inner(),
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
        let asked = unary::<_, RangeResponse>(answers.channel.clone(), RANGE, &request).await;
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
            match self.endpoints[member].connect().await {
                Ok(channel) => {
                    let mut current = self.current.lock();
                    *current = Current {
                        member,
                        channel: Some(channel.clone()),
                    };
                    return Ok((member, channel));
                }
                Err(error) => {
                    reason = chain(&error);
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
    stream: Streaming<A>,
}

/// Calls a method on a connection.
async fn unary<Q, A>(channel: Channel, path: &'static str, request: &Q) -> Result<A, Status>
where
    Q: Message + Clone + 'static,
    A: Message + Default + 'static,
{
    let mut grpc = Grpc::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
    let call = async {
        ready(&mut grpc).await?;
        let codec = ProstCodec::<Q, A>::default();
        let path = PathAndQuery::from_static(path);
        grpc.unary(Request::new(request.clone()), path, codec).await
    };
    Ok(in_time(call).await?.into_inner())
}

async fn in_time<T>(call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    timeout(TIMEOUT, call).await.unwrap_or_else(|_| Err(late()))
}

fn late() -> Status {
    Status::deadline_exceeded(format!("no answer within {TIMEOUT:?}"))
}

async fn ready(grpc: &mut Grpc<Channel>) -> Result<(), Status> {
    let ready = grpc.ready().await;
    ready.map_err(|error| Status::unavailable(chain(&error)))
}

/// What an error says, with all its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| (*error).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
