//! The connections of a server: so many at once, each of which has to say hello.
//!
//! # Invariants
//! - IN1: no more than [`MAX_CONNECTIONS`] are open; the next waits in the listener's queue.
//! - IN2: a connection that has not begun HTTP/2 after [`GREETING`] is closed.
//! - IN3: a failure to accept, say for want of file descriptors, delays the next attempt and ends nothing.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tokio_stream::Stream;
use tonic::transport::server::{Connected, TcpConnectInfo};
use tracing::warn;

/// Connections open at once.
const MAX_CONNECTIONS: usize = 16_384;

/// How long a connection may take to begin HTTP/2.
const GREETING: Duration = Duration::from_secs(10);

/// Bytes with which every HTTP/2 connection begins.
const PREFACE: usize = 24;

/// The pause after a failure to accept.
const PAUSE: Duration = Duration::from_millis(50);

/// The connections that arrive at a listener.
pub(super) fn connections(
    listener: TcpListener,
) -> impl Stream<Item = Result<Connection, io::Error>> {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    limited(listener, places, GREETING)
}

fn limited(
    listener: TcpListener,
    places: Arc<Semaphore>,
    greeting: Duration,
) -> impl Stream<Item = Result<Connection, io::Error>> {
    futures_util::stream::unfold((listener, places), move |(listener, places)| async move {
        // The semaphore is never closed.
        let place = Arc::clone(&places).acquire_owned().await.ok()?;
        let stream = accept(&listener).await;
        // Small answers leave at once; if that cannot be had, the connection is broken and will say so.
        let _ = stream.set_nodelay(true);
        let connection = Connection {
            stream,
            greeting: Some(Greeting {
                missing: PREFACE,
                until: Box::pin(tokio::time::sleep(greeting)),
            }),
            _place: place,
        };
        Some((Ok(connection), (listener, places)))
    })
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// A connection that holds one of the places.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    /// Until it has begun HTTP/2.
    greeting: Option<Greeting>,
    _place: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct Greeting {
    /// Bytes that are still to come.
    missing: usize,
    until: Pin<Box<Sleep>>,
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl Connection {
    /// An error once the greeting takes too long.
    fn poll_greeting(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let Some(greeting) = &mut self.greeting else {
            return Poll::Pending;
        };
        let late = || io::Error::new(io::ErrorKind::TimedOut, "the peer never began HTTP/2");
        greeting.until.as_mut().poll(context).map(|()| late())
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
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.note_read(buffer.filled().len() - before);
        match read {
            Poll::Ready(read) => Poll::Ready(read),
            Poll::Pending => self.poll_greeting(context).map(Err),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_stream::StreamExt;

    use super::*;

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
        let places = Arc::new(Semaphore::new(2));
        let mut connections = Box::pin(limited(listener, places, SHORT));
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
        let places = Arc::new(Semaphore::new(1));
        let mut connections = Box::pin(limited(listener, places, SHORT));
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
        let places = Arc::new(Semaphore::new(1));
        let mut connections = Box::pin(limited(listener, places, GREETING));
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
}
