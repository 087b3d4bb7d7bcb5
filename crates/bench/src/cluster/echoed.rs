//! What the transport alone takes: the searches of a cluster, sent to a server that does not search.

use std::sync::Arc;

use serde::Serialize;
use simshard_client::Access;
use simshard_simhash::Fingerprint;

use super::process::{End, Process};
use super::requests::make;
use super::session::Session;
use super::settings::{BARE, Settings};
use super::single::Single;
use super::site::Site;
use super::streams;
use crate::figure;

/// The figures of one run.
#[derive(Serialize)]
struct Echoed {
    case: &'static str,
    requests: usize,
    in_flight: usize,
    /// Requests, with many in flight.
    per_second: f64,
    alone: usize,
    /// Requests one after the other.
    alone_p50_ms: f64,
    queries: usize,
    streams: usize,
    batch: usize,
    /// Queries, by streams.
    stream_per_second: f64,
}

/// Measures an echo as the searches of a cluster are: by the same client, with the same queries.
pub(super) async fn measure(
    settings: &Settings,
    session: &Session<'_>,
    queries: &[Fingerprint],
) -> anyhow::Result<()> {
    let mut command = Site::default().own_program()?;
    command.args(["bench", "echo"]);
    let mut echo = Process::start(command)?;
    let connections = echo.connections(settings.streams, &Access::default())?;
    let single = Arc::new(Single {
        connection: connections[0].clone(),
        queries: queries.to_vec(),
        new: Vec::new(),
        sample: session.sample(queries),
    });
    let stream = async |count: usize| {
        let queries = &queries[..count.min(queries.len())];
        let (size, sample) = (settings.batch, session.sample(queries));
        streams::find_all(connections.clone(), BARE, queries, size, sample).await
    };
    stream(settings.warm_up()).await?;
    let streamed = stream(settings.queries).await?;
    let (count, in_flight) = (settings.requests, settings.in_flight);
    let many = make(count, in_flight, &single, Single::find).await?;
    let alone = make(settings.alone, 1, &single, Single::find).await?;
    echo.end(End::Stop)?;
    let figures = Echoed {
        case: "echo",
        requests: count,
        in_flight,
        per_second: count as f64 / many.seconds,
        alone: settings.alone,
        alone_p50_ms: alone.latencies.percentile(50),
        queries: settings.queries,
        streams: settings.streams,
        batch: settings.batch,
        stream_per_second: settings.queries as f64 / streamed.seconds,
    };
    figure::print(&figures, settings.json, || {
        let Echoed {
            per_second,
            alone_p50_ms,
            stream_per_second,
            ..
        } = figures;
        format!(
            "echo               {per_second:>10.0}/s, alone p50 {alone_p50_ms:.3} ms, \
             by streams {stream_per_second:.0} queries/s"
        )
    })
}
