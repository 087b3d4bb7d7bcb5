//! The side port of a process: `/livez`, `/readyz` and `/metrics` over HTTP.
//!
//! # Invariants
//! - OB3: it has [`MOST_CONNECTIONS`] at most, and a peer that sends no request in time loses its own. So it is no way to
//!   fill the memory, or the files, of what is served beside it.
//! - OB4: metrics are collected once at a time, away from the async threads. While a disk hangs, `/livez` and `/readyz`
//!   answer all the same.

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
const MOST_CONNECTIONS: usize = 256;

/// How long a peer may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(5);

/// How long a connection may last.
const AGE: Duration = Duration::from_secs(600);

/// The pause after a failure to accept, for want of files, say.
const PAUSE: Duration = Duration::from_millis(50);

/// What all requests share.
#[derive(Clone)]
struct Shown {
    observed: Observed,
    collecting: Arc<Semaphore>,
}

/// Serves what is shown, as long as it is polled.
pub async fn serve(listener: TcpListener, observed: Observed) -> Infallible {
    let routes = Router::new()
        .route("/livez", get(|| async { "alive\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(Shown {
            observed,
            collecting: Arc::new(Semaphore::new(1)),
        });
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        // The semaphore is never closed.
        let place = Arc::clone(&places).acquire_owned().await;
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

async fn readyz(State(shown): State<Shown>) -> Response {
    match shown.observed.check_ready() {
        Ok(()) => "ready\n".into_response(),
        Err(problem) => (StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")).into_response(),
    }
}

async fn metrics(State(shown): State<Shown>) -> Response {
    // The semaphore is never closed.
    let permit = shown.collecting.acquire_owned().await;
    let collect = move || {
        let _permit = permit;
        shown.observed.metrics_text()
    };
    match tokio::task::spawn_blocking(collect).await {
        Ok(Ok(text)) => ([(header::CONTENT_TYPE, METRICS_TYPE)], text).into_response(),
        Ok(Err(_)) | Err(_) => {
            warn!("metrics cannot be collected");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::DescriptorEncoder;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::watch;
    use tokio::time::Instant;

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
        let start = Instant::now();
        let answer = ask(&Observed::default(), "GET /livez HTTP/1.1\r\nhost: ").await;
        assert!(!answer.contains("200"), "{answer}");
        assert!(start.elapsed() < 2 * HEAD, "{:?}", start.elapsed());
    }

    /// OB3.
    #[tokio::test(start_paused = true)]
    async fn more_connections_wait_until_others_are_lost() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let start = Instant::now();
        let asking = async {
            let mut idle = Vec::new();
            for _ in 0..MOST_CONNECTIONS {
                idle.push(TcpStream::connect(address).await.unwrap());
            }
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = request("/livez");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let answer = tokio::select! {
            never = serve(listener, Observed::default()) => match never {},
            answer = asking => answer,
        };
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(start.elapsed() >= HEAD, "{:?}", start.elapsed());
    }

    /// A collector that waits, as for a disk that hangs.
    #[derive(Debug)]
    struct Hanging(Mutex<std::sync::mpsc::Receiver<()>>);

    impl Collector for Hanging {
        fn encode(&self, _: DescriptorEncoder<'_>) -> std::fmt::Result {
            // It ends when the sender is dropped.
            let _ = self.0.lock().unwrap().recv();
            Ok(())
        }
    }

    /// OB4.
    #[tokio::test]
    async fn a_process_says_that_it_is_ready_while_its_metrics_hang() {
        let observed = Observed::default();
        let (end, hangs) = std::sync::mpsc::channel();
        let hanging = Box::new(Hanging(Mutex::new(hangs)));
        super::super::locked(&observed.shown)
            .registry
            .register_collector(hanging);
        let ready = watch::Sender::new(true);
        observed.serves("all", ready.subscribe());
        let (metrics, asked_again) = (request("/metrics"), request("/metrics"));
        let hanging =
            async { tokio::join!(ask(&observed, &metrics), ask(&observed, &asked_again)) };
        let quick = async {
            let answer = ask(&observed, &request("/readyz")).await;
            drop(end);
            answer
        };
        let ((one, other), answer) = tokio::join!(hanging, quick);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        for metrics in [one, other] {
            assert!(metrics.ends_with("# EOF\n"), "{metrics}");
        }
    }
}
