//! What a process shows of itself: whether it lives, whether it is ready, and its metrics.
//!
//! # Invariants
//! - OB1: instances in one process count apart: each has a registry of its own. What is served beside each other in one
//!   instance counts together.
//! - OB2: a process is ready only while it serves, and all that it serves is ready.

mod probe;
mod process;
mod side_port;
mod slow;

pub use probe::{NotReady, probe};
pub use side_port::serve;
pub use slow::Slow;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

/// The media type of [`Observed::metrics_text`].
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The upper ends of the buckets of times, in seconds.
pub const SECONDS: [f64; 18] = [
    50e-6, 100e-6, 200e-6, 400e-6, 800e-6, 1.6e-3, 3e-3, 6e-3, 12e-3, 25e-3, 50e-3, 0.1, 0.2, 0.5,
    1.0, 3.0, 10.0, 30.0,
];

/// Metrics that one crate counts by.
pub trait Metrics: Clone + Send + 'static {
    /// How their names begin: `simshard_` and the name of the crate.
    const PREFIX: &'static str;

    /// Makes them, and adds them to a registry.
    fn register(registry: &mut Registry) -> Self;
}

/// What one instance shows of itself. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    shown: Arc<Mutex<Shown>>,
    /// Apart from the metrics: whether a process is ready is told while these are collected.
    parts: Arc<Mutex<Parts>>,
    slow: Slow,
}

/// The names of what is served, and whether each is ready.
type Parts = Vec<(&'static str, watch::Receiver<bool>)>;

#[derive(Debug)]
struct Shown {
    registry: Registry,
    /// Set whenever the metrics are asked for.
    ready: Gauge,
    /// Those that were asked for, by their type.
    metrics: HashMap<TypeId, Box<dyn Any + Send>>,
}

impl Default for Shown {
    fn default() -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process::Process::now()));
        let ready = Gauge::default();
        let help = "Whether the process is ready, as /readyz says: 1 or 0";
        registry.register("simshard_runtime_ready", help, ready.clone());
        Self {
            registry,
            ready,
            metrics: HashMap::new(),
        }
    }
}

impl Observed {
    /// An instance whose log tells of what takes as long as this, or longer. Without it, it tells of nothing slow.
    #[must_use]
    pub fn telling_of_slow(after: Option<Duration>) -> Self {
        Self {
            slow: Slow::after(after),
            ..Self::default()
        }
    }

    /// What took so long that the log tells of it.
    #[must_use]
    pub const fn slow(&self) -> &Slow {
        &self.slow
    }

    /// The metrics of this type. They are made when they are asked for first.
    pub fn metrics<M: Metrics>(&self) -> M {
        let mut shown = locked(&self.shown);
        let known = shown.metrics.get(&TypeId::of::<M>());
        if let Some(metrics) = known.and_then(|known| known.downcast_ref::<M>()) {
            return metrics.clone();
        }
        let metrics = M::register(shown.registry.sub_registry_with_prefix(M::PREFIX));
        let kept = Box::new(metrics.clone());
        shown.metrics.insert(TypeId::of::<M>(), kept);
        metrics
    }

    /// Adds what is served by this name from now on. It is gone as soon as nothing tells whether it is ready.
    pub fn serves(&self, name: &'static str, ready: watch::Receiver<bool>) {
        locked(&self.parts).push((name, ready));
    }

    /// All metrics, in the text of OpenMetrics. It may wait for a disk that hangs: call it where that is allowed.
    ///
    /// # Errors
    /// If a collector fails.
    pub fn metrics_text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        let is_ready = self.check_ready().is_ok();
        let shown = locked(&self.shown);
        shown.ready.set(is_ready.into());
        encode(&mut text, &shown.registry)?;
        Ok(text)
    }

    /// What is not ready, or that nothing is served yet.
    ///
    /// # Errors
    /// A line for people.
    pub fn check_ready(&self) -> Result<(), String> {
        let mut parts = locked(&self.parts);
        parts.retain(|(_, ready)| ready.has_changed().is_ok());
        if parts.is_empty() {
            return Err(
                "nothing is served: this process starts, waits for what its log names, or ends"
                    .to_owned(),
            );
        }
        let waiting = parts.iter().filter(|(_, ready)| !*ready.borrow());
        let waiting: Vec<&str> = waiting.map(|(name, _)| *name).collect();
        if waiting.is_empty() {
            return Ok(());
        }
        Err(format!("not ready: {}", waiting.join(", ")))
    }
}

/// What a panic left is as whole as before: entries are added at the end.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;

    use super::*;

    #[derive(Clone)]
    struct Calls(Counter);

    impl Metrics for Calls {
        const PREFIX: &'static str = "simshard_test";

        fn register(registry: &mut Registry) -> Self {
            let calls = Self(Counter::default());
            registry.register("calls", "Calls", calls.0.clone());
            calls
        }
    }

    /// OB1.
    #[test]
    fn instances_count_apart() {
        let [one, other] = [Observed::default(), Observed::default()];
        one.metrics::<Calls>().0.inc_by(3);
        one.metrics::<Calls>().0.inc();
        other.metrics::<Calls>();
        let has = |observed: &Observed, line: &str| observed.metrics_text().unwrap().contains(line);
        assert!(has(&one, "\nsimshard_test_calls_total 4\n"));
        assert!(has(&other, "\nsimshard_test_calls_total 0\n"));
        assert!(has(&one, "\nprocess_resident_memory_bytes "));
        assert!(one.metrics_text().unwrap().ends_with("# EOF\n"));
    }

    /// OB2.
    #[test]
    fn a_process_is_ready_while_all_that_it_serves_is() {
        let observed = Observed::default();
        let shows = |line: &str| observed.metrics_text().unwrap().contains(line);
        assert!(observed.check_ready().unwrap_err().contains("starts"));
        assert!(shows("\nsimshard_runtime_ready 0\n"));
        let (one, other) = (watch::Sender::new(true), watch::Sender::new(false));
        observed.serves("one", one.subscribe());
        assert_eq!(observed.check_ready(), Ok(()));
        assert!(shows("\nsimshard_runtime_ready 1\n"));
        observed.serves("other", other.subscribe());
        assert_eq!(observed.check_ready(), Err("not ready: other".to_owned()));
        other.send_replace(true);
        assert_eq!(observed.check_ready(), Ok(()));
        drop(other);
        assert_eq!(observed.check_ready(), Ok(()));
        drop(one);
        assert!(observed.check_ready().unwrap_err().contains("ends"));
    }
}
