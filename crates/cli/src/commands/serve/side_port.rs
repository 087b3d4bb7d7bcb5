//! The side port of a serving process, where it shows whether it is ready, and its metrics.

use std::net::SocketAddr;

use simshard_runtime::observed::{self, Observed};

use crate::embedded::{bind, listen};
use crate::say;

/// The flag that chooses the port.
const FLAG: &str = "--http";

/// Answers at `http`, if that is given, while something else is done, and says so on standard error.
pub(super) async fn beside<T>(
    http: Option<SocketAddr>,
    observed: Observed,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let Some(address) = http else {
        return work.await;
    };
    let listener = listen(bind(address, FLAG)?, FLAG)?;
    let address = listener.local_addr()?;
    say::note(format!(
        "health and metrics at http://{address}: /livez, /readyz, /metrics"
    ));
    tokio::select! {
        done = work => done,
        never = observed::serve(listener, observed) => match never {},
    }
}
