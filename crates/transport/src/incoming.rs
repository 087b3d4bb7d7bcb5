//! The connections of a server: a limited number, each of which has to begin HTTP, shared fairly among peers.
//!
//! # Invariants
//! - IN1: no more than [`MAX_CONNECTIONS`] are open; the next waits in the listener's queue.
//! - IN2: a connection that has not begun HTTP after [`GREETING`], a handshake of TLS included, is closed.
//! - IN3: a failure to accept, say for want of file descriptors, ends nothing. If an idle connection can give way, it
//!   does; else the next attempt is delayed.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::net::sockopt;
use simshard_proto::endpoint::{KEEPALIVE, KEEPALIVE_TIMEOUT};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, timeout};
use tokio_stream::Stream;
use tonic::transport::server::Connected;
use tracing::{debug, warn};

use super::certified::{Owner, Shown};
use super::connections::{Close, Id, Table};
use super::shares::Peer;
use super::tls::Tls;
use super::wire::Wire;

/// Connections open at once.
const MAX_CONNECTIONS: usize = 16_384;

/// Some of them, kept for connections that are closing: a new one does not wait for the one that gives way to it.
const CLOSING: usize = 64;

/// How long a connection may take to begin HTTP.
const GREETING: Duration = Duration::from_secs(10);

/// Bytes with which every HTTP/2 connection begins. A first request of HTTP/1.1 has more.
const PREFACE: usize = 24;

/// The pause after a failure to accept.
const PAUSE: Duration = Duration::from_millis(50);

/// The errors of a process, and of a system, that may open no more files: `EMFILE` and `ENFILE`.
const OUT_OF_FILES: [i32; 2] = [24, 23];

/// The connections that arrive at a listener, by TLS if there is any.
pub(super) fn connections(
    listener: TcpListener,
    tls: Option<Tls>,
) -> impl Stream<Item = Result<Connection, io::Error>> {
    let connections = Connections::new(MAX_CONNECTIONS - CLOSING, CLOSING);
    limited(listener, tls, connections, GREETING)
}

fn limited(
    listener: TcpListener,
    tls: Option<Tls>,
    connections: Connections,
    greeting: Duration,
) -> impl Stream<Item = Result<Connection, io::Error>> {
    let state = (listener, tls, connections);
    futures_util::stream::unfold(state, move |(listener, tls, connections)| async move {
        loop {
            // The semaphore is never closed.
            let place = Arc::clone(&connections.places).acquire_owned().await.ok()?;
            let (stream, peer) = accept(&listener, &connections).await;
            let Some((id, close)) = connections.table.lock().admit(peer) else {
                debug!(?peer, "refused a connection: its peer has its share in use");
                continue;
            };
            // Small answers leave at once; if that cannot be had, the connection is broken and will say so.
            let _ = stream.set_nodelay(true);
            let _ = keep_alive(&stream);
            let shown = Shown::default();
            let connection = Connection {
                stream: Wire::new(stream, tls.as_ref().map(Tls::acceptor), shown.clone()),
                greeting: Some(Greeting {
                    missing: PREFACE,
                    until: Box::pin(tokio::time::sleep(greeting)),
                }),
                close: Some(close),
                caller: Caller {
                    peer,
                    id,
                    connections: connections.clone(),
                    shown,
                },
                _counted: Counted {
                    id,
                    connections: connections.clone(),
                    _place: place,
                },
            };
            return Some((Ok(connection), (listener, tls, connections)));
        }
    })
}

/// Lets a connection end whose peer is gone. HTTP/2 asks by itself, and HTTP/1.1 does not.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_TIMEOUT)?;
    Ok(())
}

async fn accept(listener: &TcpListener, connections: &Connections) -> (TcpStream, Peer) {
    loop {
        let error = match listener.accept().await {
            Ok((stream, address)) => return (stream, Peer::of(address.ip())),
            Err(error) => error,
        };
        let mut closed = pin!(connections.closed.notified());
        closed.as_mut().enable();
        let is_out_of_files = error
            .raw_os_error()
            .is_some_and(|code| OUT_OF_FILES.contains(&code));
        if is_out_of_files && connections.table.lock().give_way() {
            debug!(%error, "an idle connection gives way to a new one");
            let _ = timeout(PAUSE, closed).await;
        } else {
            warn!(%error, "cannot accept a connection");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The connections that are open. Clones share them.
#[derive(Clone, Debug)]
struct Connections {
    /// Those that stay open.
    table: Arc<Mutex<Table>>,
    /// A place for each open file, closing or not.
    places: Arc<Semaphore>,
    /// Notified when a file was closed.
    closed: Arc<Notify>,
}

impl Connections {
    /// At most `limit` that stay open, and `closing` that are told to close.
    fn new(limit: usize, closing: usize) -> Self {
        Self {
            table: Arc::new(Mutex::new(Table::new(limit))),
            places: Arc::new(Semaphore::new(limit + closing)),
            closed: Arc::default(),
        }
    }
}

/// Counts a connection until its file is closed.
#[derive(Debug)]
struct Counted {
    id: Id,
    connections: Connections,
    _place: OwnedSemaphorePermit,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.connections.table.lock().remove(self.id);
        self.connections.closed.notify_waiters();
    }
}

/// The peer and the connection of a request, among its extensions.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    peer: Peer,
    id: Id,
    connections: Connections,
    shown: Shown,
}

impl Caller {
    pub(super) const fn peer(&self) -> Peer {
        self.peer
    }

    /// The owner of the certificate that it has shown.
    pub(super) fn owner(&self) -> Option<&Owner> {
        self.shown.owner()
    }

    /// Marks the connection as in use until the guard is dropped.
    pub(super) fn begin(&self) -> InUse {
        self.connections.table.lock().begin(self.id);
        InUse(self.clone())
    }
}

/// Keeps a connection from giving way.
#[derive(Debug)]
pub(super) struct InUse(Caller);

impl Drop for InUse {
    fn drop(&mut self) {
        let Caller {
            id, connections, ..
        } = &self.0;
        connections.table.lock().end(*id);
    }
}

/// A connection that holds one of the places.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Wire,
    /// Until it has begun HTTP.
    greeting: Option<Greeting>,
    /// Taken away once it has told the connection to close.
    close: Option<Close>,
    caller: Caller,
    /// Dropped after the stream, whose file is free then.
    _counted: Counted,
}

#[derive(Debug)]
struct Greeting {
    /// Bytes that are still to come.
    missing: usize,
    until: Pin<Box<Sleep>>,
}

impl Connected for Connection {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller.clone()
    }
}

impl Connection {
    /// What has come of a read or write; an error if nothing has, and the greeting takes too long.
    fn unless_late<T>(
        &mut self,
        done: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        match (done, &mut self.greeting) {
            (Poll::Pending, Some(greeting)) => {
                let late = || io::Error::new(io::ErrorKind::TimedOut, "the peer never began HTTP");
                greeting.until.as_mut().poll(context).map(|()| Err(late()))
            }
            (done, _) => done,
        }
    }

    /// An error once it is told to close. The task that polled the connection is woken for that.
    fn check_open(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let close = self.close.as_mut();
        if close.is_some_and(|close| Pin::new(close).poll(context).is_pending()) {
            return Ok(());
        }
        self.close = None;
        Err(io::Error::new(
            io::ErrorKind::ConnectionAborted,
            "the connection was idle and gave way to another",
        ))
    }

    fn note_read(&mut self, bytes: usize) {
        if let Some(greeting) = &mut self.greeting {
            greeting.missing = greeting.missing.saturating_sub(bytes);
            if greeting.missing == 0 {
                self.greeting = None;
            }
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_open(context)?;
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.note_read(buffer.filled().len() - before);
        self.unless_late(read, context)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check_open(context)?;
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.unless_late(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_open(context)?;
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.unless_late(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check_open(context)?;
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.unless_late(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::net::SocketAddr;

    use bytes::Bytes;
    use http::{Request, Response, Uri};
    use http_body_util::Full;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_stream::StreamExt;
    use tonic::body::Body;
    use tower::{Layer, ServiceExt, service_fn};

    use super::*;
    use crate::Budget;
    use crate::admission::Admission;

    const SHORT: Duration = Duration::from_millis(30);

    async fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// IN2.
    #[tokio::test]
    async fn a_connection_that_says_nothing_is_given_up() {
        let (listener, address) = listener().await;
        let places = Connections::new(4, 0);
        let mut connections = Box::pin(limited(listener, None, places, SHORT));
        for said in [&b""[..], &[b'P'; PREFACE - 1]] {
            let mut peer = TcpStream::connect(address).await.unwrap();
            peer.write_all(said).await.unwrap();
            let mut connection = connections.next().await.unwrap().unwrap();
            let mut read = Vec::new();
            let error = connection.read_to_end(&mut read).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert_eq!(read, said);
        }
    }

    #[tokio::test]
    async fn a_connection_that_greeted_may_be_silent() {
        let (listener, address) = listener().await;
        let places = Connections::new(2, 0);
        let mut connections = Box::pin(limited(listener, None, places, SHORT));
        let mut peer = TcpStream::connect(address).await.unwrap();
        peer.write_all(&[b'P'; PREFACE]).await.unwrap();
        let mut connection = connections.next().await.unwrap().unwrap();
        let mut read = [0; PREFACE];
        connection.read_exact(&mut read).await.unwrap();
        let silent = tokio::time::timeout(3 * SHORT, connection.read(&mut read));
        assert!(silent.await.is_err(), "it still waits");
    }

    /// IN1.
    #[tokio::test]
    async fn a_connection_too_many_waits_for_a_place() {
        let (listener, address) = listener().await;
        let mut places = Connections::new(9, 0);
        places.places = Arc::new(Semaphore::new(1));
        let mut connections = Box::pin(limited(listener, None, places, GREETING));
        let _peers = [
            TcpStream::connect(address).await.unwrap(),
            TcpStream::connect(address).await.unwrap(),
        ];
        let first = connections.next().await.unwrap().unwrap();
        let second = tokio::time::timeout(SHORT, connections.next()).await;
        assert!(second.is_err(), "there is one place only");
        drop(first);
        assert!(connections.next().await.unwrap().is_ok());
    }

    /// IN4, IN5.
    #[tokio::test]
    async fn beyond_its_share_a_peer_loses_its_oldest_idle_connection() {
        let (listener, address) = listener().await;
        let mut connections = Box::pin(limited(listener, None, Connections::new(4, 1), GREETING));
        let mut peers = Vec::new();
        let mut opened = Vec::new();
        for _ in 0..3 {
            peers.push(TcpStream::connect(address).await.unwrap());
            opened.push(connections.next().await.unwrap().unwrap());
        }
        let error = opened[0].read(&mut [0]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        let error = opened[0].write(&[0]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        let in_use: Vec<InUse> = opened[1..]
            .iter()
            .map(|connection| connection.connect_info().begin())
            .collect();
        let mut refused = TcpStream::connect(address).await.unwrap();
        let next = tokio::time::timeout(SHORT, connections.next());
        assert!(next.await.is_err(), "none of them is idle");
        assert_eq!(refused.read(&mut [0]).await.unwrap(), 0);
        drop(in_use);
        peers.push(TcpStream::connect(address).await.unwrap());
        assert!(connections.next().await.unwrap().is_ok());
        let mut byte = [0];
        let silent = tokio::time::timeout(SHORT, opened[2].read(&mut byte));
        assert!(silent.await.is_err(), "the other was idle for longer");
    }

    /// AD5.
    #[tokio::test]
    async fn a_connection_is_in_use_until_its_answers_have_left() {
        let (listener, address) = listener().await;
        let connections = Connections::new(2, 0);
        let mut accepted = Box::pin(limited(listener, None, connections.clone(), GREETING));
        let _peer = TcpStream::connect(address).await.unwrap();
        let connection = accepted.next().await.unwrap().unwrap();
        let answer = service_fn(async |_| {
            let body = Full::new(Bytes::from_static(b"an answer"));
            Ok::<_, Infallible>(Response::new(Body::new(body)))
        });
        let service = Admission::new(Budget::new(100), None).layer(answer);
        let ask = async |path| {
            let mut request = Request::new(Body::default());
            *request.uri_mut() = Uri::from_static(path);
            request.extensions_mut().insert(connection.connect_info());
            service.clone().oneshot(request).await.unwrap()
        };
        let answer = ask("/a").await;
        assert!(!connections.table.lock().give_way());
        drop(answer);
        let _checked = ask("/grpc.health.v1.Health/Check").await;
        assert!(
            connections.table.lock().give_way(),
            "a health check is no use"
        );
    }

    /// IN3.
    #[tokio::test]
    async fn a_closed_connection_leaves_its_place() {
        let (listener, address) = listener().await;
        let connections = Connections::new(2, 0);
        let mut accepted = Box::pin(limited(listener, None, connections.clone(), GREETING));
        for _ in 0..4 {
            let _peer = TcpStream::connect(address).await.unwrap();
            let connection = accepted.next().await.unwrap().unwrap();
            let mut closed = pin!(connections.closed.notified());
            closed.as_mut().enable();
            drop(connection);
            closed.await;
        }
        assert_eq!(connections.places.available_permits(), 2);
        assert!(!connections.table.lock().give_way());
    }
}
