//! Calls to a cluster of etcd: each goes to one member, and to the next where that one cannot be reached.

use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use prost::Message;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

use super::RANGE;
use super::access::{EtcdAccess, EtcdTls};
use super::connection::{TIMEOUT, connect, endpoint, late, open, unary};
use super::login::{Login, Token, lacks_token};
use super::wire::{RangeRequest, RangeResponse};
use crate::key_value::KeyValueError;

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
    /// Grows with every connection, and when one is left.
    number: u64,
    channel: Option<Channel>,
}

/// A connection to the member that was asked when it was made.
#[derive(Debug)]
struct Connection {
    number: u64,
    channel: Channel,
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
        let connection = self.connected().await?;
        let answer = self.ask(&connection.channel, path, request).await;
        answer.map_err(|status| self.failed(connection.number, status))
    }

    /// Calls a method of every member once, each on a connection of its own. Answers the address of each member that
    /// answered, and its answer.
    pub(super) async fn each<Q, A>(&self, path: &'static str, request: &Q) -> Vec<(String, A)>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let endpoints = self.endpoints.iter();
        let answers = endpoints.map(|endpoint| self.ask_one(endpoint, path, request));
        join_all(answers).await.into_iter().flatten().collect()
    }

    async fn ask_one<Q, A>(
        &self,
        endpoint: &Endpoint,
        path: &'static str,
        request: &Q,
    ) -> Option<(String, A)>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let address = endpoint.uri().authority()?.to_string();
        let channel = connect(endpoint).await.ok()?;
        let answer = self.ask(&channel, path, request).await.ok()?;
        Some((address, answer))
    }

    async fn ask<Q, A>(
        &self,
        channel: &Channel,
        path: &'static str,
        request: &Q,
    ) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let call = |token| unary(channel.clone(), path, request, token);
        self.with_token(channel, call).await
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

    /// Forgets the token with which a stream was opened, so that the next one has another.
    pub(super) async fn forget_token<A>(&self, answers: &Answers<A>) {
        if let Some(login) = &self.login {
            login.forget(answers.token.as_ref()).await;
        }
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
        let connection = self.connected().await?;
        let call = |token| open(connection.channel.clone(), path, request, token);
        let opened = self.with_token(&connection.channel, call).await;
        let (token, stream) = opened.map_err(|status| self.failed(connection.number, status))?;
        Ok(Answers {
            connection,
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
        let connection = &answers.connection;
        let (channel, token) = (connection.channel.clone(), answers.token.clone());
        let asked = unary::<_, RangeResponse>(channel, RANGE, &request, token).await;
        match asked.map_err(|status| self.failed(connection.number, status)) {
            Ok(_) | Err(CallError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The next answer of a stream, which has no end of its own.
    async fn message<A>(&self, answers: &mut Answers<A>) -> Result<A, CallError> {
        let ended = || Status::unavailable("the stream of changes has ended");
        match answers.stream.message().await {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(self.failed(answers.connection.number, ended())),
            Err(status) => Err(self.failed(answers.connection.number, status)),
        }
    }

    /// The same, if it comes soon.
    pub(super) async fn next_soon<A>(&self, answers: &mut Answers<A>) -> Result<A, CallError> {
        let number = answers.connection.number;
        match timeout(TIMEOUT, self.message(answers)).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(self.failed(number, late())),
        }
    }

    /// A connection, to the first member from the current one on that takes it.
    async fn connected(&self) -> Result<Connection, CallError> {
        let mut reason = "no member is named".to_owned();
        for _ in &self.endpoints {
            let (member, number) = {
                let current = self.current.lock();
                let number = current.number;
                if let Some(channel) = current.channel.clone() {
                    return Ok(Connection { number, channel });
                }
                (current.member, number)
            };
            match connect(&self.endpoints[member]).await {
                Ok(channel) => return Ok(self.turn_to(member, channel)),
                Err(problem) => {
                    reason = problem;
                    self.leave(number);
                }
            }
        }
        Err(CallError::NotSent(reason))
    }

    /// Takes a new connection for the calls that come.
    fn turn_to(&self, member: usize, channel: Channel) -> Connection {
        let mut current = self.current.lock();
        let number = current.number + 1;
        *current = Current {
            member,
            number,
            channel: Some(channel.clone()),
        };
        Connection { number, channel }
    }

    /// Turns from a member to the next. Of several callers on one connection, one does so. Those on an earlier one do not:
    /// it says nothing of the current one.
    fn leave(&self, number: u64) {
        let mut current = self.current.lock();
        if current.number == number {
            *current = Current {
                member: (current.member + 1) % self.endpoints.len(),
                number: current.number + 1,
                channel: None,
            };
        }
    }

    fn failed(&self, number: u64, status: Status) -> CallError {
        if REFUSALS.contains(&status.code()) {
            return CallError::Refused(status);
        }
        self.leave(number);
        CallError::Unknown(status)
    }
}

/// A stream of answers of one member.
#[derive(Debug)]
pub(super) struct Answers<A> {
    connection: Connection,
    /// Of the user that opened it.
    token: Option<Token>,
    stream: Streaming<A>,
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_failure_on_an_earlier_connection_keeps_the_current_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let members = Members::new([&*address], &EtcdAccess::default()).unwrap();
        let number = async || members.connected().await.unwrap().number;
        let first = number().await;
        assert_eq!(number().await, first, "it stays connected");
        members.leave(first);
        let second = number().await;
        assert_ne!(second, first);
        members.leave(first);
        assert_eq!(number().await, second);
    }
}
