//! How every connection is made: the same limits at both of its ends, and nothing left to the defaults of the transport.

use std::time::Duration;

use tonic::transport::Endpoint;

/// What a stream that is not read may send, in bytes. It is little on purpose: HTTP/2 counts bytes, and small messages
/// are many frames. The transport bears a limited number of unread frames before it closes the connection to all. The
/// peer reads large messages as they arrive, so they do not need more.
pub const STREAM_WINDOW: u32 = 128 << 10;

/// A silent peer is asked for a sign of life this often.
pub const KEEPALIVE: Duration = Duration::from_secs(10);

/// A connection without an answer to that within this time is closed.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// What a server may send on a connection that is not read, in bytes. It sends nothing but what it was asked for, and
/// its answers to small batches are small: this is as much as HTTP/2 allows.
const ANSWERS_WINDOW: u32 = i32::MAX.unsigned_abs();

/// A connection that is not made by then has failed.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// An endpoint with the limits set, to connect to.
#[must_use]
pub fn limited(endpoint: Endpoint) -> Endpoint {
    endpoint
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(ANSWERS_WINDOW)
}
