//! Asks the side port of another process whether that one is ready.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest reason that is read, in bytes.
const MOST: usize = 64 * 1024;

/// Why a process does not count as ready.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// It says so, in these words.
    #[error("{0}")]
    Says(String),
    /// It answers something else, so something else may listen there.
    #[error(
        "{address} answers with HTTP status {status}: is it the side port of a process (--http)?"
    )]
    Other {
        /// Where it was asked.
        address: SocketAddr,
        /// What it answered with.
        status: StatusCode,
    },
    /// It does not answer.
    #[error("no side port answers at {address}: {problem}")]
    Silent {
        /// Where it was asked.
        address: SocketAddr,
        /// What went wrong.
        problem: String,
    },
}

/// Asks it once.
///
/// # Errors
/// If it is not ready, or does not answer within five seconds.
pub async fn probe(address: SocketAddr) -> Result<(), NotReady> {
    let silent = |problem: String| NotReady::Silent { address, problem };
    let answer = match timeout(PATIENCE, ask(address)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(silent(error.to_string())),
        Err(_) => {
            return Err(silent(format!(
                "it took more than {} s",
                PATIENCE.as_secs()
            )));
        }
    };
    match answer {
        (StatusCode::OK, _) => Ok(()),
        (StatusCode::SERVICE_UNAVAILABLE, reason) => Err(NotReady::Says(reason)),
        (status, _) => Err(NotReady::Other { address, status }),
    }
}

async fn ask(address: SocketAddr) -> Result<(StatusCode, String), axum::BoxError> {
    let stream = TcpStream::connect(address).await?;
    let (mut requests, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get("/readyz")
        .header(header::HOST, address.to_string())
        .body(Body::empty())?;
    let asking = async {
        let answer = requests.send_request(request).await?;
        let status = answer.status();
        let text = to_bytes(Body::new(answer.into_body()), MOST).await?;
        Ok((status, String::from_utf8_lossy(&text).trim_end().to_owned()))
    };
    tokio::pin!(connection);
    tokio::pin!(asking);
    tokio::select! {
        answer = &mut asking => answer,
        ended = &mut connection => match ended {
            Ok(()) => asking.await,
            Err(error) => Err(error.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::sync::watch;

    use super::*;
    use crate::observed::{Observed, serve};

    #[tokio::test]
    async fn a_process_is_ready_or_says_what_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let observed = Observed::default();
        let (ready, watched) = watch::channel(false);
        observed.serves("router", watched);
        let asking = async {
            let refused = probe(address).await.unwrap_err();
            ready.send_replace(true);
            (refused.to_string(), probe(address).await)
        };
        let (refused, granted) = tokio::select! {
            never = serve(listener, observed.clone()) => match never {},
            asked = asking => asked,
        };
        assert!(
            refused.starts_with("not ready: ") && refused.contains("router"),
            "{refused}"
        );
        granted.unwrap();
    }

    #[tokio::test]
    async fn what_is_no_side_port_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for (answer, told) in [
            (
                "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
                "answers with HTTP status 404",
            ),
            ("SSH-2.0\r\n", "no side port answers at"),
        ] {
            let answering = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.read_u8().await.unwrap();
                stream.write_all(answer.as_bytes()).await.unwrap();
                stream
            };
            let (_stream, asked) = tokio::join!(answering, probe(address));
            let problem = asked.unwrap_err().to_string();
            assert!(problem.contains(told), "{problem}");
        }
        drop(listener);
        let problem = probe(address).await.unwrap_err().to_string();
        assert!(problem.contains("no side port answers at"), "{problem}");
    }
}
