//! What a server counts of its requests: how long they took, which were refused, and the bytes in flight.
//!
//! # Invariants
//! - TM1: labels have a bounded number of values: methods are those of the interface, and any other is `other`.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use prost::Message;
use prost_types::FileDescriptorSet;
use simshard_proto::Reason;
use simshard_runtime::observed::{Metrics, SECONDS};
use tonic::{Code, Status};

use crate::budget::{Budget, WatchedBudget};

/// What methods are called that no interface has.
const OTHER: &str = "other";

/// The names of the codes of gRPC, by their numbers.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The metrics of all servers of an instance.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    seconds: Family<Outcome, Histogram, fn() -> Histogram>,
    refused: Family<Refusal, Counter>,
    in_flight: InFlight,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    service: Arc<str>,
    method: Arc<str>,
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refusal {
    service: Arc<str>,
    method: Arc<str>,
    reason: &'static str,
}

impl Metrics for Requests {
    const PREFIX: &'static str = "simshard_transport";

    fn register(registry: &mut Registry) -> Self {
        let new_histogram: fn() -> Histogram = || Histogram::new(SECONDS);
        let requests = Self {
            seconds: Family::new_with_constructor(new_histogram),
            refused: Family::default(),
            in_flight: InFlight::default(),
        };
        registry.register_with_unit(
            "request",
            "From the head of a request until its answer has left, by method and code",
            Unit::Seconds,
            requests.seconds.clone(),
        );
        registry.register(
            "refused_requests",
            "Requests that failed, by method and by the reason that the client was given",
            requests.refused.clone(),
        );
        registry.register_collector(Box::new(requests.in_flight.clone()));
        requests
    }
}

impl Requests {
    /// The metrics of a server of this interface.
    pub(crate) fn of_server(
        &self,
        service: &'static str,
        descriptors: &[u8],
        budget: &Budget,
    ) -> Methods {
        self.in_flight.0.lock().push((service, budget.watched()));
        let known = described(descriptors).into_iter().map(|described| {
            let path = format!("/{}/{}", described.service, described.method);
            (path, Arc::new(Method::new(self, &described)))
        });
        Methods(Arc::new(Known {
            methods: known.collect(),
            other: Arc::new(Method::new(self, &Described::other())),
        }))
    }
}

/// The methods of a server, by their paths.
#[derive(Clone, Debug)]
pub(crate) struct Methods(Arc<Known>);

#[derive(Debug)]
struct Known {
    methods: HashMap<String, Arc<Method>>,
    other: Arc<Method>,
}

impl Methods {
    pub(crate) fn of_path(&self, path: &str) -> Arc<Method> {
        let known = self.0.methods.get(path);
        Arc::clone(known.unwrap_or(&self.0.other))
    }
}

/// The metrics of one method.
#[derive(Debug)]
pub(crate) struct Method {
    requests: Requests,
    service: Arc<str>,
    method: Arc<str>,
    is_stream: bool,
    /// By the number of the code, once there is one.
    seconds: [OnceLock<Histogram>; CODES.len()],
}

impl Method {
    fn new(requests: &Requests, described: &Described) -> Self {
        Self {
            requests: requests.clone(),
            service: described.service.as_str().into(),
            method: described.method.as_str().into(),
            is_stream: described.is_stream,
            seconds: [const { OnceLock::new() }; CODES.len()],
        }
    }

    pub(crate) fn service(&self) -> &str {
        &self.service
    }

    pub(crate) fn method(&self) -> &str {
        &self.method
    }

    /// Whether requests, or answers, are streams: those take as long as their other end wants.
    pub(crate) const fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Counts an answer that has left.
    pub(crate) fn count(&self, code: Code, took: Duration) {
        let number = code as usize;
        let Some((seconds, &code)) = self.seconds.get(number).zip(CODES.get(number)) else {
            return;
        };
        let seconds = seconds.get_or_init(|| {
            let outcome = Outcome {
                service: Arc::clone(&self.service),
                method: Arc::clone(&self.method),
                code,
            };
            self.requests.seconds.get_or_create_owned(&outcome)
        });
        seconds.observe(took.as_secs_f64());
    }

    /// Counts a request that was refused at once.
    pub(crate) fn count_refusal(&self, status: &Status) {
        self.count_reason(status);
        self.count(status.code(), Duration::ZERO);
    }

    /// Counts the reason of a failure, if it has one.
    pub(crate) fn count_reason(&self, status: &Status) {
        let Some(reason) = Reason::of(status) else {
            return;
        };
        let refusal = Refusal {
            service: Arc::clone(&self.service),
            method: Arc::clone(&self.method),
            reason: reason.name(),
        };
        self.requests.refused.get_or_create(&refusal).inc();
    }
}

/// A method, as descriptors have it.
struct Described {
    service: String,
    method: String,
    is_stream: bool,
}

impl Described {
    /// What stands for all methods that are in no interface.
    fn other() -> Self {
        Self {
            service: OTHER.to_owned(),
            method: OTHER.to_owned(),
            is_stream: false,
        }
    }
}

/// The methods that descriptors name. Bytes that are no descriptors give an empty list.
fn described(descriptors: &[u8]) -> Vec<Described> {
    let files = FileDescriptorSet::decode(descriptors)
        .unwrap_or_default()
        .file;
    let mut all = Vec::new();
    for file in files {
        for service in &file.service {
            let name = format!("{}.{}", file.package(), service.name());
            let methods = service.method.iter();
            all.extend(methods.map(|method| Described {
                service: name.clone(),
                method: method.name().to_owned(),
                is_stream: method.client_streaming() || method.server_streaming(),
            }));
        }
    }
    all
}

/// The name of a code, as gRPC writes it.
pub(crate) fn name_of(code: Code) -> &'static str {
    CODES.get(code as usize).copied().unwrap_or("UNKNOWN")
}

/// The budgets of the servers of an instance, by their services.
#[derive(Clone, Debug, Default)]
struct InFlight(Arc<Mutex<Vec<(&'static str, WatchedBudget)>>>);

impl Collector for InFlight {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let sums = self.sums();
        let used = sums.iter().map(|(service, (used, _))| (*service, *used));
        let help = "Memory that requests in flight use";
        add(&mut encoder, "in_flight_bytes", help, used)?;
        let limits = sums.iter().map(|(service, (_, limit))| (*service, *limit));
        let help = "Memory that they may use: more is refused";
        add(&mut encoder, "in_flight_limit_bytes", help, limits)
    }
}

impl InFlight {
    /// What is used, and may be used, by all servers of a service that run.
    fn sums(&self) -> BTreeMap<&'static str, (usize, usize)> {
        let mut sums = BTreeMap::<_, (usize, usize)>::new();
        self.0.lock().retain(|(service, budget)| {
            let Some((used, limit)) = budget.used_and_limit() else {
                return false;
            };
            let sum = sums.entry(*service).or_default();
            *sum = (sum.0 + used, sum.1.saturating_add(limit));
            true
        });
        sums
    }
}

/// Adds a gauge of each service.
fn add(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (&'static str, usize)>,
) -> fmt::Result {
    let metric_type = ConstGauge::new(0_usize).metric_type();
    let mut encoder = encoder.encode_descriptor(name, help, None, metric_type)?;
    for (service, value) in values {
        let labels = [("service", service)];
        ConstGauge::new(value).encode(encoder.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use simshard_proto::ROUTER_DESCRIPTORS;
    use simshard_runtime::observed::Observed;

    use super::*;

    /// TM1.
    #[test]
    fn what_is_counted_is_shown_by_method_code_and_reason() {
        let observed = Observed::default();
        let budget = Budget::new(100);
        let requests: Requests = observed.metrics();
        let methods = requests.of_server("router", ROUTER_DESCRIPTORS, &budget);
        let find = methods.of_path("/simshard.v1.CorpusService/FindAll");
        find.count(Code::Ok, Duration::from_micros(150));
        let refused = Reason::Overloaded.status("much", []);
        find.count(refused.code(), Duration::from_micros(10));
        find.count_reason(&refused);
        find.count_reason(&Status::ok(""));
        for path in ["/", "/simshard.v1.CorpusService/Find", "/x/y"] {
            methods
                .of_path(path)
                .count(Code::Unimplemented, Duration::ZERO);
        }
        let _taken = budget.try_take(7).unwrap();
        // Another server of the same service, and one that has ended.
        let second = Budget::new(50);
        requests.of_server("router", ROUTER_DESCRIPTORS, &second);
        requests.of_server("router", ROUTER_DESCRIPTORS, &Budget::new(1000));
        let shown = observed.metrics_text().unwrap();
        let of_find = r#"service="simshard.v1.CorpusService",method="FindAll""#;
        for line in [
            format!(r#"simshard_transport_request_seconds_bucket{{le="0.0001",{of_find},code="OK"}} 0"#),
            format!(r#"simshard_transport_request_seconds_bucket{{le="0.0002",{of_find},code="OK"}} 1"#),
            format!(r#"simshard_transport_request_seconds_count{{{of_find},code="RESOURCE_EXHAUSTED"}} 1"#),
            format!(r#"simshard_transport_refused_requests_total{{{of_find},reason="OVERLOADED"}} 1"#),
            r#"simshard_transport_request_seconds_count{service="other",method="other",code="UNIMPLEMENTED"} 3"#.to_owned(),
            r#"simshard_transport_in_flight_bytes{service="router"} 7"#.to_owned(),
            r#"simshard_transport_in_flight_limit_bytes{service="router"} 150"#.to_owned(),
        ] {
            assert!(shown.contains(&line), "{line}\n{shown}");
        }
    }
}
