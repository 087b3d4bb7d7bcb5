//! The side port of a process: `/livez`, `/readyz` and `/metrics` over HTTP.
//!
//! # Invariants
//! - OB3: it has [`MOST_CONNECTIONS`] at most, and a peer that sends no request in time loses its own. So it is no way to
//!   fill the memory, or the files, of what is served beside it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::{METRICS_TYPE, Observed};

/// Connections open at once. Others wait in the queue of the listener.
const MOST_CONNECTIONS: usize = 64;

/// How long a peer may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(5);

/// How long a connection may last.
const AGE: Duration = Duration::from_secs(600);

/// The pause after a failure to accept, for want of files, say.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves what is shown, as long as it is polled.
pub async fn serve(listener: TcpListener, observed: Observed) -> Infallible {
    let routes = Router::new()
        .route("/livez", get(|| async { "alive\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(observed);
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            unreachable!("the semaphore is never closed");
        };
        while connections.try_join_next().is_some() {}
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!(%error, "the side port cannot accept a connection");
                sleep(PAUSE).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(routes.clone());
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .serve_connection(TokioIo::new(stream), service);
        connections.spawn(async move {
            let _place = place;
            if let Ok(Err(error)) = timeout(AGE, connection).await {
                debug!(%error, "a connection to the side port ended early");
            }
        });
    }
}

async fn readyz(State(observed): State<Observed>) -> Response {
    match observed.check_ready() {
        Ok(()) => "ready\n".into_response(),
        Err(problem) => (StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")).into_response(),
    }
}

async fn metrics(State(observed): State<Observed>) -> Response {
    match observed.metrics_text() {
        Ok(text) => ([(header::CONTENT_TYPE, METRICS_TYPE)], text).into_response(),
        Err(error) => {
            warn!(%error, "metrics cannot be collected");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::watch;

    use super::*;

    /// What a side port answers to this request.
    async fn ask(observed: &Observed, request: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asking = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        tokio::select! {
            never = serve(listener, observed.clone()) => match never {},
            answer = asking => answer,
        }
    }

    fn request(path: &str) -> String {
        format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    }

    /// OB2.
    #[tokio::test]
    async fn a_process_says_whether_it_lives_and_is_ready() {
        let observed = Observed::default();
        let live = ask(&observed, &request("/livez")).await;
        assert!(live.starts_with("HTTP/1.1 200 OK\r\n"), "{live}");
        let starting = ask(&observed, &request("/readyz")).await;
        assert!(starting.starts_with("HTTP/1.1 503 "), "{starting}");
        let ready = watch::Sender::new(true);
        observed.serves("all", ready.subscribe());
        let answer = ask(&observed, &request("/readyz")).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        let metrics = ask(&observed, &request("/metrics")).await;
        assert!(
            metrics.contains("content-type: application/openmetrics-text"),
            "{metrics}"
        );
        assert!(metrics.ends_with("# EOF\n"), "{metrics}");
        let other = ask(&observed, &request("/")).await;
        assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
    }

    /// OB3.
    #[tokio::test(start_paused = true)]
    async fn a_peer_that_sends_no_request_loses_its_connection() {
        let answer = ask(&Observed::default(), "GET /livez HTTP/1.1\r\nhost: ").await;
        assert!(!answer.contains("200"), "{answer}");
    }
}
