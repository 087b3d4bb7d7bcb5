//! `simshard ready`: whether a process on this machine or another is ready.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use simshard_runtime::observed::probe;
use tokio::time::{Instant, sleep};

use crate::say::note;

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// Arguments of `ready`.
#[derive(Args, Clone, Copy, Debug)]
#[command(after_help = "\
A process answers at a side port if it was started with --http. It is ready once
it serves: a node of a cluster holds all its shards in sync then. The exit code
is 0 if it is ready, and 1 if not.

Examples:
  simshard ready --http 127.0.0.1:7471
  simshard ready --http 127.0.0.1:7471 --wait 60    # seconds")]
pub struct ReadyArgs {
    /// The side port of the process, as it was given by --http
    #[arg(long, value_name = "ADDRESS", env = "SIMSHARD_HTTP")]
    pub http: SocketAddr,
    /// Ask again and again for as long, until it is ready
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub wait: u32,
}

/// Asks until the process is ready, or time is over.
pub async fn run(args: ReadyArgs) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from_secs(args.wait.into());
    let mut told = None;
    while let Err(problem) = probe(args.http).await {
        if Instant::now() >= end {
            return Err(problem.into());
        }
        let problem = problem.to_string();
        if told.as_ref() != Some(&problem) {
            note(format!("waiting: {problem}"));
        }
        told = Some(problem);
        sleep(PAUSE).await;
    }
    note("ready");
    Ok(())
}
