//! The side port of a serving process, where it shows whether it is ready, and its metrics.

use std::net::SocketAddr;

use simshard_runtime::observed::{self, Observed};
use tokio::net::TcpSocket;

use crate::embedded::{bind, listen};
use crate::say;

/// Binds the side port, if there is to be one. Nothing answers there before [`beside`].
pub(super) fn reserve(http: Option<SocketAddr>) -> anyhow::Result<Option<TcpSocket>> {
    http.map(|address| bind(address, "--http")).transpose()
}

/// Answers on the side port while something else is done, and says where on standard error.
pub(super) async fn beside<T>(
    socket: Option<TcpSocket>,
    observed: Observed,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let Some(socket) = socket else {
        return work.await;
    };
    let listener = listen(socket, "--http")?;
    let address = listener.local_addr()?;
    say::note(format!(
        "health and metrics at http://{address}: /livez, /readyz, /metrics"
    ));
    tokio::select! {
        done = work => done,
        never = observed::serve(listener, observed) => match never {},
    }
}
