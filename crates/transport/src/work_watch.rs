//! How long pieces of work take, and which were slow: for the router that waits, and for the node that does them.

use std::time::{Duration, Instant};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use simshard_proto::shard::v1::work_item;
use simshard_runtime::observed::{SECONDS, Slow};
use tracing::warn;

/// What a router asks of a node by its stream of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// To search for this many queries.
    Search(usize),
    /// To insert or remove this many documents.
    Change(usize),
    /// To confirm that it has no later records of this many shards.
    Confirm(usize),
}

impl WorkKind {
    /// What an item asks for. One that cancels another is no work.
    #[must_use]
    pub fn of(item: &work_item::Work) -> Option<Self> {
        match item {
            work_item::Work::FindAll(find) => Some(Self::Search(find.fingerprints.len())),
            work_item::Work::Change(change) => Some(Self::Change(change.fingerprints.len())),
            work_item::Work::Confirm(confirm) => Some(Self::Confirm(confirm.shards.len())),
            work_item::Work::Cancel(_) => None,
        }
    }

    /// Its name, and how much it is.
    const fn parts(self) -> (&'static str, usize) {
        match self {
            Self::Search(queries) => ("search", queries),
            Self::Change(documents) => ("change", documents),
            Self::Confirm(shards) => ("confirm", shards),
        }
    }
}

/// The times of the work of all nodes, by node and kind. Clones share them.
#[derive(Clone, Debug)]
pub struct WorkTimes(Family<Labels, Histogram, fn() -> Histogram>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    node: String,
    work: &'static str,
}

impl WorkTimes {
    /// Adds them to a registry, as `work_seconds`.
    pub fn register(registry: &mut Registry, help: &'static str) -> Self {
        let new_histogram: fn() -> Histogram = || Histogram::new(SECONDS);
        let seconds = Family::new_with_constructor(new_histogram);
        registry.register_with_unit("work", help, Unit::Seconds, seconds.clone());
        Self(seconds)
    }

    fn of(&self, node: &str, work: WorkKind) -> Histogram {
        let (work, _) = work.parts();
        let node = node.to_owned();
        self.0.get_or_create_owned(&Labels { node, work })
    }
}

/// Watches the work of one node.
#[derive(Debug)]
pub struct WorkWatch {
    node: String,
    search: Histogram,
    change: Histogram,
    confirm: Histogram,
    slow: Slow,
    /// What the log says of slow work.
    says: &'static str,
}

impl WorkWatch {
    /// Of slow work, the log `says` this.
    #[must_use]
    pub fn new(times: &WorkTimes, node: &str, slow: &Slow, says: &'static str) -> Self {
        Self {
            node: node.to_owned(),
            search: times.of(node, WorkKind::Search(0)),
            change: times.of(node, WorkKind::Change(0)),
            confirm: times.of(node, WorkKind::Confirm(0)),
            slow: slow.clone(),
            says,
        }
    }

    /// Watches a piece of work until what this returns is dropped: it is done then, or was given up.
    #[must_use]
    pub fn begin(&self, work: WorkKind) -> Watched<'_> {
        Watched {
            watch: self,
            work,
            begun: Instant::now(),
        }
    }

    fn note(&self, work: WorkKind, took: Duration) {
        let times = match work {
            WorkKind::Search(_) => &self.search,
            WorkKind::Change(_) => &self.change,
            WorkKind::Confirm(_) => &self.confirm,
        };
        times.observe(took.as_secs_f64());
        if let Some(left_out) = self.slow.tells(took) {
            let (work, amount) = work.parts();
            warn!(
                node = self.node,
                work,
                amount,
                ?took,
                left_out,
                "{}",
                self.says
            );
        }
    }
}

/// A piece of work in progress.
#[derive(Debug)]
pub struct Watched<'a> {
    watch: &'a WorkWatch,
    work: WorkKind,
    begun: Instant,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.watch.note(self.work, self.begun.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use simshard_runtime::observed::{Metrics, Observed};

    use super::*;

    #[derive(Clone)]
    struct Times(WorkTimes);

    impl Metrics for Times {
        const PREFIX: &'static str = "simshard_test";

        fn register(registry: &mut Registry) -> Self {
            Self(WorkTimes::register(registry, "Times"))
        }
    }

    #[test]
    fn work_is_counted_by_node_and_kind_once_it_ends() {
        let observed = Observed::default();
        let Times(times) = observed.metrics();
        let [first, second] =
            ["n1", "n2"].map(|node| WorkWatch::new(&times, node, observed.slow(), "it took long"));
        let begun = first.begin(WorkKind::Change(3));
        drop(first.begin(WorkKind::Search(1)));
        drop(second.begin(WorkKind::Search(1)));
        drop(first.begin(WorkKind::Search(7)));
        let shown = observed.metrics_text().unwrap();
        drop(begun);
        let later = observed.metrics_text().unwrap();
        let count = |node, work, count| {
            format!(
                "\nsimshard_test_work_seconds_count{{node=\"{node}\",work=\"{work}\"}} {count}\n"
            )
        };
        for (shown, line) in [
            (&shown, count("n1", "search", 2)),
            (&shown, count("n2", "search", 1)),
            (&shown, count("n1", "change", 0)),
            (&later, count("n1", "change", 1)),
            (&later, count("n2", "confirm", 0)),
        ] {
            assert!(shown.contains(&line), "{line}\n{shown}");
        }
    }
}
