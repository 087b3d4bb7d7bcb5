//! The cases in which a node fails: for how long clients have no success.

use std::time::{Duration, Instant};

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;
use simshard_hosts::{Host, Link, Network};
use tokio::time::sleep;

use super::super::process::End;
use super::super::processes::Node;
use super::super::requests::Latencies;
use super::super::settings::{Case, NODES, Settings};
use super::super::site::Sites;
use super::load::{Gaps, Load};
use super::{ACQUAINTED, Failing, HUNDRED_THOUSAND, REPLICAS};
use crate::figure;
use crate::settings::BadSettings;

/// How long the longest gap is looked for after a node failed, at least.
const AFTER_FAULT: Duration = Duration::from_secs(4);

/// What clients saw when nodes failed.
#[derive(Serialize)]
struct Failover {
    case: String,
    n: usize,
    in_flight: usize,
    rounds: usize,
    /// The longest time without a successful search, and without a successful insert, of 99 of 100 rounds.
    reads_p99_ms: f64,
    writes_p99_ms: f64,
    reads_p50_ms: f64,
    writes_p50_ms: f64,
    /// Until no record of a shard names the node.
    evicted_p99_ms: f64,
    evicted_p50_ms: f64,
    requests: u64,
    /// Requests that failed at first.
    retried: u64,
    /// Requests that failed again, or did not end within five seconds.
    failed: u64,
}

impl Failover {
    /// What it says to people.
    fn line(&self) -> String {
        let Self {
            case,
            reads_p50_ms,
            reads_p99_ms,
            writes_p50_ms,
            writes_p99_ms,
            evicted_p50_ms,
            evicted_p99_ms,
            requests,
            retried,
            failed,
            ..
        } = self;
        format!(
            "{case:18} longest gaps, p50 and p99: searches {reads_p50_ms:.0} and {reads_p99_ms:.0} ms, inserts \
             {writes_p50_ms:.0} and {writes_p99_ms:.0} ms; evicted after {evicted_p50_ms:.0} and {evicted_p99_ms:.0} ms; \
             {requests} requests, {retried} sent again, {failed} failed"
        )
    }
}

/// How a node fails.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Killed,
    /// It keeps its connections and answers nothing.
    Stopped,
    /// All packets to it or from it are lost, silently.
    PacketsLost(Way),
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Incoming,
    Outgoing,
}

impl Way {
    const fn link(self, host: &Host) -> Link<'_> {
        match self {
            Self::Incoming => Link::Into(host),
            Self::Outgoing => Link::OutOf(host),
        }
    }
}

impl Fault {
    const ALL: [Self; 4] = [
        Self::Killed,
        Self::Stopped,
        Self::PacketsLost(Way::Incoming),
        Self::PacketsLost(Way::Outgoing),
    ];

    const fn case(self) -> Case {
        match self {
            Self::Killed => Case::NodeKilled,
            Self::Stopped => Case::NodeStopped,
            Self::PacketsLost(Way::Incoming) => Case::NodeIncomingLost,
            Self::PacketsLost(Way::Outgoing) => Case::NodeOutgoingLost,
        }
    }

    /// Whether it is a fault of links.
    const fn needs_network(self) -> bool {
        matches!(self, Self::PacketsLost(_))
    }

    fn begin(self, node: &mut Node, network: Option<&Network>) -> anyhow::Result<()> {
        match self {
            Self::Killed => node.end(End::Kill),
            Self::Stopped => node.freeze(),
            Self::PacketsLost(way) => {
                let (network, host) = place(network, node)?;
                Ok(network.cut(way.link(host))?)
            }
        }
    }

    fn end(self, node: &mut Node, network: Option<&Network>) -> anyhow::Result<()> {
        match self {
            Self::Killed => node.start_again().map(|_| ()),
            Self::Stopped => node.thaw(),
            Self::PacketsLost(way) => {
                let (network, host) = place(network, node)?;
                Ok(network.mend(way.link(host))?)
            }
        }
    }
}

/// The network and the host of a node that has one of its own.
fn place<'a>(
    network: Option<&'a Network>,
    node: &'a Node,
) -> anyhow::Result<(&'a Network, &'a Host)> {
    let place = network.zip(node.site().host());
    place.context("the node has no host of its own")
}

/// Whether a case needs a network of its own.
pub(super) fn needs_network(settings: &Settings) -> bool {
    let needs = |fault: &Fault| fault.needs_network() && settings.asks_for(fault.case());
    Fault::ALL.iter().any(needs)
}

/// Measures those cases that were asked for.
pub(super) async fn measure(
    settings: &Settings,
    mut network: Option<Network>,
) -> anyhow::Result<()> {
    for fault in Fault::ALL {
        if settings.asks_for(fault.case()) {
            let network = network.as_mut().filter(|_| fault.needs_network());
            failover(settings, fault, network).await?;
        }
    }
    Ok(())
}

impl Failing<'_> {
    /// Lets a node fail and come back. Answers what clients saw, and how long it stayed in the records.
    async fn fail(
        &mut self,
        node: usize,
        fault: Fault,
        network: Option<&Network>,
        load: &Load,
    ) -> anyhow::Result<(Gaps, Duration)> {
        load.take_gaps();
        fault.begin(&mut self.session.cluster.nodes[node], network)?;
        let begun = Instant::now();
        self.until_in_sync(NODES - 1).await?;
        let evicted = begun.elapsed();
        sleep(AFTER_FAULT.saturating_sub(evicted)).await;
        Ok((load.take_gaps(), evicted))
    }
}

/// A case as it is asked for.
fn name(case: Case) -> String {
    let value = case.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

async fn failover(
    settings: &Settings,
    fault: Fault,
    mut network: Option<&mut Network>,
) -> anyhow::Result<()> {
    let n = settings.n.unwrap_or(HUNDRED_THOUSAND);
    let replicas = settings.replicas().unwrap_or(REPLICAS);
    if usize::from(replicas.all) != NODES {
        return Err(
            BadSettings(format!("a node fails in clusters of {NODES} replicas only")).into(),
        );
    }
    let sites = match &mut network {
        Some(network) => Sites::apart(NODES, network)?,
        None => Sites::here(NODES),
    };
    let mut failing = Failing::start(settings, &sites, replicas, n).await?;
    let load = failing.load()?;
    sleep(ACQUAINTED).await;
    let (mut reads, mut writes, mut evictions) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..settings.rounds {
        let node = round % NODES;
        let network = network.as_deref();
        let (gaps, evicted) = failing.fail(node, fault, network, &load).await?;
        reads.push(gaps.reads);
        writes.push(gaps.writes);
        evictions.push(evicted);
        fault.end(&mut failing.session.cluster.nodes[node], network)?;
        failing.until_in_sync(NODES).await?;
        sleep(ACQUAINTED).await;
    }
    let requests = load.end().await?;
    let [reads, writes, evictions] = [reads, writes, evictions].map(Latencies::new);
    let figure = Failover {
        case: name(fault.case()),
        n,
        in_flight: settings.in_flight,
        rounds: settings.rounds,
        reads_p99_ms: reads.percentile(99),
        writes_p99_ms: writes.percentile(99),
        reads_p50_ms: reads.percentile(50),
        writes_p50_ms: writes.percentile(50),
        evicted_p99_ms: evictions.percentile(99),
        evicted_p50_ms: evictions.percentile(50),
        requests: requests.done + requests.failed,
        retried: requests.retried,
        failed: requests.failed,
    };
    figure::print(&figure, settings.json, || figure.line())?;
    failing.session.cluster.stop()
}
