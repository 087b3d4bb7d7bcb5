//! What the operating system knows of this process, under the names that Prometheus has for it.

use std::fmt;
use std::fs;
use std::time::SystemTime;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::system::resident_memory;

/// All of it is asked for anew each time but when the process began.
#[derive(Debug)]
pub(super) struct Process {
    /// In seconds since 1970.
    began: f64,
}

impl Process {
    /// Of a process that begins now.
    pub(super) fn now() -> Self {
        let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            began: began.map_or(0.0, |began| began.as_secs_f64()),
        }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut add = |name, help, metric: &dyn EncodeMetric| {
            let encoder = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
            metric.encode(encoder)
        };
        let help = "Time that this process kept processors busy, in seconds";
        add(
            "process_cpu_seconds",
            help,
            &ConstCounter::new(processor_seconds()),
        )?;
        let help = "When this process began, in seconds since 1970";
        add(
            "process_start_time_seconds",
            help,
            &ConstGauge::new(self.began),
        )?;
        if let Some(bytes) = resident_memory() {
            let help = "Resident memory in bytes";
            add(
                "process_resident_memory_bytes",
                help,
                &ConstGauge::new(bytes),
            )?;
        }
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            add(
                "process_open_fds",
                "Open files",
                &ConstGauge::new(files.count()),
            )?;
        }
        if let Some(most) = getrlimit(Resource::Nofile).current {
            let help = "How many files may be open";
            add("process_max_fds", help, &ConstGauge::new(most))?;
        }
        Ok(())
    }
}

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
