//! The bytes of a connection, by TLS or as they are. The handshake of TLS is part of the first read or write: the
//! listener never waits for a client that is slow to greet.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};
use tokio_util::either::Either;

use crate::certified::Shown;

/// One connection's bytes.
pub(super) enum Wire {
    /// TLS has not begun. It tells whose certificate the peer shows.
    Handshake(Box<Accept<TcpStream>>, Shown),
    /// Bytes can be read and written.
    Open(Open),
}

/// What is open: without TLS, or with it.
type Open = Either<TcpStream, Box<TlsStream<TcpStream>>>;

impl Wire {
    /// Those of a connection, by TLS if there is something to accept it by.
    pub(super) fn new(stream: TcpStream, tls: Option<TlsAcceptor>, shown: Shown) -> Self {
        match tls {
            None => Self::Open(Either::Left(stream)),
            Some(tls) => Self::Handshake(Box::new(tls.accept(stream)), shown),
        }
    }

    /// What is open, once it is.
    fn poll_open(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Pin<&mut Open>>> {
        if let Self::Handshake(handshake, shown) = self {
            let stream = ready!(Pin::new(&mut **handshake).poll(context))?;
            let (_, session) = stream.get_ref();
            shown.set(session.peer_certificates().and_then(<[_]>::first));
            *self = Self::Open(Either::Right(Box::new(stream)));
        }
        match self {
            Self::Open(open) => Poll::Ready(Ok(Pin::new(open))),
            Self::Handshake(..) => Poll::Pending,
        }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Handshake(..) => "Handshake",
            Self::Open(Either::Left(_)) => "Plain",
            Self::Open(Either::Right(_)) => "Tls",
        })
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_open(context))?.poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(context))?.poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_open(context))?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            // The rest of a handshake is of no use.
            Self::Handshake(..) => Poll::Ready(Ok(())),
            Self::Open(open) => Pin::new(open).poll_shutdown(context),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(context))?.poll_write_vectored(context, parts)
    }

    /// Both of what it may be can.
    fn is_write_vectored(&self) -> bool {
        true
    }
}
