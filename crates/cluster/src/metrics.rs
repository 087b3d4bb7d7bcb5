//! What a process shows of the metadata of its cluster.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use simshard_runtime::observed::Metrics;

/// Since when changes of nodes and shards are not seen, as the metadata is away. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct MetadataAway(Arc<Mutex<Option<Instant>>>);

impl MetadataAway {
    /// Takes note that changes are not seen from now on, if they were.
    pub fn begin(&self) {
        self.0.lock().get_or_insert_with(Instant::now);
    }

    /// Takes note that changes are seen again.
    pub fn end(&self) {
        *self.0.lock() = None;
    }

    fn seconds(&self) -> f64 {
        let since = *self.0.lock();
        since.map_or(0.0, |since| since.elapsed().as_secs_f64())
    }
}

impl Metrics for MetadataAway {
    const PREFIX: &'static str = "simshard_cluster";

    fn register(registry: &mut Registry) -> Self {
        let away = Self::default();
        registry.register_collector(Box::new(away.clone()));
        away
    }
}

impl Collector for MetadataAway {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let seconds = ConstGauge::new(self.seconds());
        let help = "For how long changes of nodes and shards have not been seen, as the metadata is away: 0 while it is there";
        let unit = Unit::Seconds;
        let metric_type = seconds.metric_type();
        seconds.encode(encoder.encode_descriptor(
            "metadata_away",
            help,
            Some(&unit),
            metric_type,
        )?)
    }
}

#[cfg(test)]
mod tests {
    use simshard_runtime::observed::Observed;

    use super::*;

    #[test]
    fn the_seconds_count_from_the_first_failure_to_the_end() {
        let observed = Observed::default();
        let away: MetadataAway = observed.metrics();
        let shown = || observed.metrics_text().unwrap();
        let at_rest = "\nsimshard_cluster_metadata_away_seconds 0.0\n";
        assert!(shown().contains(at_rest), "{}", shown());
        away.begin();
        let begun = *away.0.lock();
        away.begin();
        assert_eq!(*away.0.lock(), begun);
        assert!(!shown().contains(at_rest), "{}", shown());
        away.end();
        assert!(shown().contains(at_rest), "{}", shown());
    }
}
