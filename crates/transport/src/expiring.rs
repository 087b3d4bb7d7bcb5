//! The certificates that a process shows to others, and when they end.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use simshard_runtime::observed::{Metrics, Observed};

use crate::tls::Tls;

/// The certificates of all servers of an instance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Certificates(Arc<Mutex<Vec<Tls>>>);

impl Certificates {
    /// Shows when these end.
    pub(crate) fn show(observed: &Observed, tls: Option<&Tls>) {
        let Self(shown) = observed.metrics();
        shown.lock().extend(tls.cloned());
    }

    /// The end of the certificates of each file, in seconds since 1970.
    fn ends(&self) -> BTreeMap<String, u64> {
        let shown = self.0.lock();
        let ends = shown.iter().filter_map(|tls| {
            let (file, end) = (tls.files().source().certificate.display(), tls.end()?);
            Some((file.to_string(), end.as_secs()))
        });
        ends.collect()
    }
}

impl Metrics for Certificates {
    const PREFIX: &'static str = "simshard_transport";

    fn register(registry: &mut Registry) -> Self {
        let certificates = Self::default();
        registry.register_collector(Box::new(certificates.clone()));
        certificates
    }
}

impl Collector for Certificates {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "When the first certificate of this file ends, in seconds since 1970";
        let metric_type = ConstGauge::new(0_u64).metric_type();
        let name = "certificate_end_timestamp";
        let mut encoder =
            encoder.encode_descriptor(name, help, Some(&Unit::Seconds), metric_type)?;
        for (file, end) in self.ends() {
            let labels = [("file", file)];
            ConstGauge::new(end).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_authority::{Authority, Folder};

    #[test]
    fn the_end_of_each_file_is_shown_and_follows_it() {
        let authority = Authority::new();
        let uri = "simshard:node";
        let folder = Folder::new(&authority.signs_until(uri, 4_000_000_000), &authority);
        let observed = Observed::default();
        let tls = folder.mutual();
        Certificates::show(&observed, Some(&tls));
        Certificates::show(&observed, Some(&tls));
        Certificates::show(&observed, None);
        let line = |end| {
            let file = folder.path("own.pem");
            let file = file.display();
            format!(
                "\nsimshard_transport_certificate_end_timestamp_seconds{{file=\"{file}\"}} {end}\n"
            )
        };
        let shown = observed.metrics_text().unwrap();
        assert_eq!(
            shown.matches(&line(4_000_000_000_u64)).count(),
            1,
            "{shown}"
        );
        folder.write_pair(&authority.signs_until(uri, 4_100_000_000));
        while !tls.files().look().unwrap() {}
        let shown = observed.metrics_text().unwrap();
        assert!(shown.contains(&line(4_100_000_000_u64)), "{shown}");
    }
}
